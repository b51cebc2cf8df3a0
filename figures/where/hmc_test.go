package where

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/hmc"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
)

// lines are examples of y = x + noise of deviation 0.1.
func lines(n int) train.Dataset {
	rng := rand.New(rand.NewPCG(1, 1))
	var x, y []float64
	for range n {
		x = append(x, rng.NormFloat64())
		y = append(y, x[len(x)-1]+0.1*rng.NormFloat64())
	}
	return train.Dataset{Inputs: nets.Rows(x, 1), Targets: y}
}

// sampled is an experiment by HMC. Its network is linear: its posterior has one mode, so that the chains agree whatever
// the rounding of a machine.
func sampled(t *testing.T, h hmcProgram) experiment.Experiment {
	t.Helper()
	task := experiment.Task{
		Name: "lines", Data: experiment.Arrays{Train: lines(20), Sets: []experiment.Set{{Name: "test", Dataset: lines(5)}, {Name: "far", Dataset: lines(3)}}},
		Network: nets.MLP{}, Likelihood: likelihood.KnownNoise{Std: 0.1}, Metrics: []experiment.Metric{experiment.Regression},
	}
	m := experiment.Method{Name: "HMC", Layers: hmc.Prior{Layers: baselines.Deterministic{}}, Members: 2, Program: h}
	return must.Get(task.Experiments(experiment.Adam(20, 20, 1e-2), 1, m))(t)[0]
}

// The draws of all chains are the prediction, and the result says how the chains went. The same experiment has the same
// draws.
func TestHMC(t *testing.T) {
	e := sampled(t, hmcProgram{Warmup: 100, Draws: 80, Leapfrogs: 10, Keep: 20})
	r := must.Get(experiment.Run(context.Background(), e))(t)[0]
	p := must.Get(r.Predictions())(t)
	for i, n := range []int{5, 3} {
		if s := p.Sets[i]; len(s.Mean) != 2*20 || len(s.Mean[0]) != n || len(s.Targets) != n {
			t.Errorf("the set %q has %d components at %d inputs", s.Set, len(s.Mean), len(s.Mean[0]))
		}
	}
	for name, between := range map[string][2]float64{
		metricRHat: {0.99, 1.2}, metricEffectiveSize: {40, 1000}, metricAcceptance: {0.5, 1},
		metricDivergences: {0, 0}, metricStepSize: {0.1, 3}, experiment.MetricRMSE: {0.01, 0.15},
	} {
		if v, has := r.Metrics[name]; !has || v < between[0] || v > between[1] {
			t.Errorf("%s is %v (%t), want between %v and %v", name, v, has, between[0], between[1])
		}
	}
	again := must.Get(must.Get(experiment.Run(context.Background(), e))(t)[0].Predictions())(t)
	if !reflect.DeepEqual(again.Sets[0].Mean, p.Sets[0].Mean) {
		t.Error("the same experiment has other draws")
	}
}

func TestHMCRefuses(t *testing.T) {
	for _, h := range []hmcProgram{{Warmup: 40, Draws: 20, Leapfrogs: 2, Keep: 6}, {Warmup: 39, Draws: 20, Leapfrogs: 2, Keep: 5}, {Warmup: 40, Draws: 20, Keep: 5}} {
		t.Run(fmt.Sprintf("%+v", h), func(t *testing.T) { must.Err(t, sampled(t, h).Check(), "Keep must divide") })
	}
	e := sampled(t, hmcProgram{Warmup: 40, Draws: 20, Leapfrogs: 2, Keep: 5})
	e.Method.Layers = baselines.SNGP{}
	must.GetErr(experiment.Run(context.Background(), e))(t, "describe a posterior themselves")
}

// Chains that do not move, as the noise is a millionth, have diverged, and the result says that no transition was accepted.
func TestHMCStuck(t *testing.T) {
	e := sampled(t, hmcProgram{Warmup: 40, Draws: 8, Leapfrogs: 2, Keep: 4})
	e.Task.Likelihood = likelihood.KnownNoise{Std: 1e-7}
	r := must.Get(experiment.Run(context.Background(), e))(t)[0]
	if !r.Diverged || !strings.Contains(r.Reason, "chains with acceptance 0 and ") {
		t.Errorf("diverged %t: %s", r.Diverged, r.Reason)
	}
}
