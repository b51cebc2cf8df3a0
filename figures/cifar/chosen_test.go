package cifar

import (
	"strings"
	"testing"

	"densityuncertainty/dul"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/methods"
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

// The runs are in rows by their methods and weight decay, with the option that was chosen.
func TestComparisonTable(t *testing.T) {
	found := resultsOf(func(experiment.Experiment) map[string]float64 {
		return map[string]float64{experiment.MetricAccuracy: 0.8, experiment.MetricNLL: 0.6, experiment.MetricECE: 0.02, "brier": 0.3, "aurc": 0.06, metricPosteriorStd: 0.02}
	}, seeded(Chosen(Processor), 1).Of(ten, methods.Density), seeded(Chosen(onProcessor.withDecay(false)), 1).Of(ten, methods.Density))
	found = append(found, resultsOf(func(experiment.Experiment) map[string]float64 {
		return map[string]float64{experiment.MetricAccuracy: 0.81, experiment.MetricNLL: 0.7, experiment.MetricECE: 0.03, "brier": 0.25, "aurc": 0.07}
	}, seeded(Processor, 1).Of(ten, methods.Deterministic))...)
	same(t, lines(tableOf(t, "cifar-processor", found...)), []string{
		"CIFAR-10 | Deterministic | 1 | *81.00* | 0.7000 | 0.0300 | 0.2500 | 0.0700 | – | –",
		"CIFAR-10 | Density Uncertainty | 1 | 80.00 | *0.6000* | *0.0200* | 0.3000 | 0.0600 | 0.02 | init_std = 0.001",
		"CIFAR-10 | Density Uncertainty, decay on weights alone | 1 | 80.00 | 0.6000 | 0.0200 | 0.3000 | 0.0600 | 0.02 | init_std = 0.001",
	})
}
