package experiment_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
)

// upTo are examples of y = x/n.
func upTo(n int) train.Dataset {
	d := line(n, 0)
	for i := range d.Targets {
		d.Targets[i] = float64(i) / float64(n)
	}
	return d
}

// growing trains on the same examples again and again, with a few more each time. It returns what the networks say of the
// first test input, and a random number.
type growing struct {
	Times int
	Fails float64 // with this number in the last round
}

func (g growing) Rounds() int { return g.Times }

func (g growing) Decide(d experiment.Data, random *rand.Rand, learn func(train.Dataset) ([]experiment.Prediction, error)) (map[string]float64, error) {
	found := map[string]float64{"random": random.Float64()}
	for round := range g.Times {
		sets, err := learn(upTo(20 + round))
		if err != nil {
			return nil, err
		}
		found[string(rune('a'+round))] = sets[0].Mean[0][0]
	}
	if g.Fails != 0 {
		return map[string]float64{"bad": g.Fails}, nil
	}
	return found, nil
}

// deciding are experiments with a Decision, one for each seed.
func deciding(t *testing.T, d experiment.Decision, seeds ...uint64) (list experiment.Experiments) {
	t.Helper()
	task := experiment.Task{
		Name: "lines", Data: experiment.Arrays{Train: upTo(20), Sets: []experiment.Set{{Name: "test", Dataset: upTo(5)}}},
		Network: nets.MLP{Widths: []int{3}}, Likelihood: likelihood.KnownNoise{Std: 0.1}, Decision: d,
	}
	e := must.Get(task.Experiments(experiment.Adam(200, 100, 1e-2), 1, experiment.Method{Name: "plain", Layers: baselines.Deterministic{}}))(t)[0]
	for _, e.Seed = range seeds {
		list = append(list, e)
	}
	return list
}

// A Decision trains anew in each round, and its numbers are the result. Replicas have the numbers that they have alone, and a
// store keeps them.
func TestDecision(t *testing.T) {
	list := deciding(t, growing{Times: 3}, 1, 2)
	e := experiment.Engine{Store: &experiment.Store{Folder: t.TempDir()}}
	first := must.Get(e.Run(context.Background(), list...))(t)
	if n := len(first[0].Metrics); n != 4 || first[0].Metrics["a"] == first[0].Metrics["b"] || first[0].Metrics["random"] == first[1].Metrics["random"] {
		t.Errorf("the numbers are %v and %v", first[0].Metrics, first[1].Metrics)
	}
	alone := must.Get(experiment.Run(context.Background(), list[1]))(t)[0]
	for name, v := range alone.Metrics {
		if math.Abs(first[1].Metrics[name]-v) > 1e-6 {
			t.Errorf("%s is %v, alone %v", name, first[1].Metrics[name], v)
		}
	}
	again := must.Get(e.Run(context.Background(), list...))(t)
	if d := again[0].Difference(first[0]); d != "" || !again[0].Finished.Equal(first[0].Finished) {
		t.Errorf("the stored result is another: %s", d)
	}
	if other := deciding(t, growing{Times: 2}, 1)[0]; other.Group() == list[0].Group() {
		t.Error("another Decision has the same identity")
	}
}

// What diverges is noted, and what else fails is an error that names it.
func TestDecisionFails(t *testing.T) {
	wild := deciding(t, growing{Times: 2}, 1)[0]
	wild.Recipe.Schedule = train.Constant{Start: 1e30}
	if r := must.Get(experiment.Run(context.Background(), wild))(t)[0]; !r.Diverged || len(r.Metrics) > 0 {
		t.Errorf("a wild training has the numbers %v", r.Metrics)
	}
	for want, d := range map[string]experiment.Decision{"finite": growing{Times: 1, Fails: math.Inf(1)}, "gave up": givesUp{}} {
		if _, err := experiment.Run(context.Background(), deciding(t, d, 1)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	e := deciding(t, growing{Times: 2}, 1)[0]
	e.Task.Metrics = []experiment.Metric{experiment.Regression}
	if err := e.Check(); err == nil || !strings.Contains(err.Error(), "leave Metrics") {
		t.Error(err)
	}
	if _, err := (experiment.Engine{Networks: t.TempDir()}).Run(context.Background(), deciding(t, growing{Times: 2}, 1)...); err == nil || !strings.Contains(err.Error(), "again and again") {
		t.Errorf("networks of a Decision can be kept: %v", err)
	}
}

// givesUp is a Decision that fails.
type givesUp struct{}

func (givesUp) Rounds() int { return 1 }

func (givesUp) Decide(experiment.Data, *rand.Rand, func(train.Dataset) ([]experiment.Prediction, error)) (map[string]float64, error) {
	return nil, errors.New("it gave up")
}
