package experiment_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
)

// said is a Program that has its numbers already, or fails.
type said struct {
	Parts int
	Fails string
}

func (s said) Run(_ context.Context, e experiment.Experiment, d experiment.Data, progress func(float64, string)) (*experiment.Predictions, error) {
	progress(0.5, "half of it")
	numbers := map[string]float64{"part": 1 / float64(s.Parts), "seed": float64(e.Seed), "examples": float64(d.Train.Len())}
	return &experiment.Predictions{Inspected: numbers}, map[string]error{"diverges": train.ErrDiverged, "gives up": errors.New("it gave up")}[s.Fails]
}

// deciding are experiments with a Decision, one for each split.
func deciding(d experiment.Program) experiment.Experiments {
	e := small(baselines.Deterministic{})
	e.Task.Decision, e.Task.Metrics = d, nil
	return allSplits(e)
}

// The numbers of a Decision are the results, and a store keeps them. Another Decision is another experiment.
func TestDecision(t *testing.T) {
	list := deciding(said{Parts: 4})
	e := experiment.Engine{Store: &experiment.Store{Folder: t.TempDir()}}
	first := must.Get(e.Run(context.Background(), list...))(t)
	for i, r := range first {
		if len(r.Metrics) != 3 || r.Metrics["part"] != 0.25 || r.Metrics["seed"] != float64(list[i].Seed) || r.Metrics["examples"] < 20 {
			t.Errorf("the numbers are %v", r.Metrics)
		}
	}
	again := must.Get(e.Run(context.Background(), list...))(t)
	if d := again[0].Difference(first[0]); d != "" || !again[0].Finished.Equal(first[0].Finished) {
		t.Errorf("the stored result is another: %s", d)
	}
	if deciding(said{Parts: 2})[0].Group() == list[0].Group() {
		t.Error("another Decision has the same identity")
	}
}

// What diverges is noted, and what else fails is an error that names it.
func TestDecisionFails(t *testing.T) {
	if r := must.Get(experiment.Run(context.Background(), deciding(said{1, "diverges"})...))(t)[0]; !r.Diverged || len(r.Metrics) > 0 {
		t.Errorf("a decision that diverged has the numbers %v", r.Metrics)
	}
	if _, err := experiment.Run(context.Background(), deciding(said{1, "gives up"})[0]); err == nil || !strings.Contains(err.Error(), "it gave up") {
		t.Errorf("the error is %v", err)
	}
	if _, err := (experiment.Engine{Networks: t.TempDir()}).Run(context.Background(), deciding(said{Parts: 1})...); err == nil || !strings.Contains(err.Error(), "cannot be kept: a experiment_test.said trains the networks") {
		t.Errorf("networks of a Decision can be kept: %v", err)
	}
}
