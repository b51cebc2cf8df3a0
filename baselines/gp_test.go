package baselines_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/must"
)

// regression is an untrained model of a real target.
func regression(t *testing.T, network nets.Network) *nets.Model {
	t.Helper()
	m := must.Get(nets.New(fixtures.Backend(t), network, likelihood.Gaussian{}, 3))(t)
	m.DType = dtypes.Float64
	return m
}

// adam is a training run that suits sine.
func adam(epochs int) train.Trainer {
	return train.Trainer{Settings: train.Settings{
		Groups:   []train.Group{{Roles: train.AllRoles(), Optimizer: train.Adam{}}},
		Schedule: train.Cosine{Start: 0.02}, Epochs: epochs, BatchSize: 16,
	}}
}

// sine are n noisy values of sin 3x on [-1, 1].
func sine(n int) train.Dataset {
	rng, x, y := rand.New(rand.NewPCG(4, 5)), []float64(nil), []float64(nil)
	for range n {
		x = append(x, 2*rng.Float64()-1)
		y = append(y, math.Sin(3*x[len(x)-1])+0.1*rng.NormFloat64())
	}
	return train.Dataset{Inputs: nets.Rows(x, 1), Targets: y}
}

// checkSine checks that a regression of sine knows the function where the data are,
// with at most the given standard deviation, and growth times as much far away,
// and that its draws have the moments that it states.
func checkSine(t *testing.T, fitted *nets.Model, mostStd, growth float64) {
	t.Helper()
	ctx, inputs := context.Background(), []float64{-0.5, 0, 0.5, 10}
	marginals := must.Get(predict.Marginals(ctx, fitted, nets.Rows(inputs, 1)))(t)
	mean, std := marginals[0].Mean[0], marginals[0].Std[0]
	for i, x := range inputs[:3] {
		must.Near(t, mean[i], math.Sin(3*x), 0.15, "the mean at %g", x)
		must.Near(t, std[i], 0, mostStd, "the deviation at %g", x)
	}
	if std[3] < growth*std[1] {
		t.Errorf("std %.3f far from the data, %.3f among them", std[3], std[1])
	}
	draws := must.Get(predict.Sample(ctx, fitted, nets.Rows(inputs, 1), predict.Options{Samples: 2000}))(t)
	for i := range inputs {
		var values []float64
		for _, draw := range draws.Mean {
			values = append(values, draw[i])
		}
		fixtures.CheckMoments(t, "draws", values, mean[i], std[i]*std[i])
	}
}

// A network is refused, before a step, unless its outputs are one Gaussian process on one vector for each input.
func TestRefusedProcesses(t *testing.T) {
	hidden := func(l nets.Layers, s *model.Scope, x *graph.Node) *graph.Node {
		return graph.Tanh(l.Dense(s.In("a"), x, 8))
	}
	type around struct{ nets.Layers }
	for name, process := range map[string]nets.Process{"SNGP": baselines.SNGP{}, "DUE": baselines.DUE{Inducing: 4}} {
		of := func(build func(l nets.Layers, s *model.Scope, x *graph.Node, outputs int) *graph.Node) nets.Network {
			return must.Get(nets.Func{Name: "of", Build: build}.Over(process))(t)
		}
		for want, network := range map[string]nets.Network{
			"a Gaussian process takes one vector for each input": of(func(l nets.Layers, s *model.Scope, x *graph.Node, outputs int) *graph.Node {
				h := graph.ExpandAxes(hidden(l, s, x), 1)
				return graph.ReduceMean(l.Dense(s.In("output"), graph.Concatenate([]*graph.Node{h, h}, 1), outputs), 1)
			}),
			"are not those of its Gaussian process": of(func(l nets.Layers, s *model.Scope, x *graph.Node, outputs int) *graph.Node {
				return graph.MulScalar(l.Dense(s.In("output"), hidden(l, s, x), outputs), 100)
			}),
			"has 0 there": of(func(l nets.Layers, s *model.Scope, x *graph.Node, outputs int) *graph.Node {
				return l.Dense(s.In("last"), hidden(l, s, x), outputs)
			}),
			"and its last layer is none":                 must.Get(nets.MLP{Widths: []int{8}}.Over(around{process}))(t),
			"nets.ResidualMLP has layers for a Gaussian": nets.ResidualMLP{Layers: process, Head: baselines.Deterministic{}, Width: 8, Depth: 1},
		} {
			t.Run(name+", "+want, func(t *testing.T) {
				fit := adam(1)
				fit.Progress = func(train.Progress) { t.Error("it was trained") }
				must.Err(t, fit.Fit(t.Context(), regression(t, network), sine(32)), want)
			})
		}
	}
}
