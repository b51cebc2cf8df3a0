package cifar

import (
	"strings"
	"testing"

	"densityuncertainty/dul"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/tables"
)

// The committed choice is that of the committed results; with -update it becomes so.
func TestCommittedChoice(t *testing.T) {
	figtest.GoldenText(t, "chosen.csv", string(must.Get(tables.Choose(must.Get(committed())(t), chosenColumns, tunings()))(t)))
}

// Each method of the comparison has its chosen value.
func TestProcessorRuns(t *testing.T) {
	values := map[string]float64{}
	for _, s := range searches {
		values[s.method.Name] = chosen()[s.method.Key].value
	}
	full, weights := named(t, "cifar-processor").Runs(), 0
	for _, e := range full {
		if err := e.Check(); err != nil || e.Recipe.Epochs != 10 || e.Task.Data.(Images).HeldOut != 5000 {
			t.Errorf("%v: %v", e, err)
		}
		if l, is := e.Method.Layers.(dul.Density); is && l.InitStd != values[e.Method.Name] {
			t.Errorf("%v starts with %g", e, l.InitStd)
		}
		if strings.HasSuffix(e.Preset, "changed") {
			weights++
		}
	}
	if len(full) != 23 || weights != 1 {
		t.Errorf("%d experiments, want 23, %d of them with weight decay on weights alone, want 1", len(full), weights)
	}
}
