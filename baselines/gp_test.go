package baselines_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"

	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/must"
)

const imageClasses = 3

// colours are n images of 8 x 8 pixels whose class is the brightest channel.
func colours(n int, seed uint64) train.Dataset {
	rng := rand.New(rand.NewPCG(seed, 1))
	images := nets.Pixels{Height: 8, Width: 8, Standardization: nets.Standardization{
		Mean: []float64{0.5, 0.5, 0.5}, Std: []float64{0.25, 0.25, 0.25},
	}}
	var data train.Dataset
	for range n {
		label := rng.IntN(imageClasses)
		data.Labels = append(data.Labels, label)
		for c := range 3 {
			for range 64 {
				v := rng.IntN(200)
				if c == label {
					v += 55
				}
				images.Bytes = append(images.Bytes, byte(v))
			}
		}
	}
	data.Inputs = images
	return data
}

func smallResNet(layers nets.ConvLayers) nets.ResNet {
	return nets.ResNet{Layers: layers, Blocks: []int{1, 1}, Widths: []int{4, 6}, Stem: 4}
}

// trained is a classifier of the family after a few epochs.
func trained(t *testing.T, layers nets.ConvLayers, data train.Dataset) *nets.Model {
	t.Helper()
	c := must.Get(nets.New(fixtures.Backend(t), smallResNet(layers), likelihood.Categorical{Classes: imageClasses}, 5))(t)
	run := train.Trainer{Settings: train.Settings{
		Epochs: 12, BatchSize: 32, Schedule: train.Cosine{Start: 0.05},
		Groups: []train.Group{{
			Roles:     train.AllRoles(),
			Optimizer: train.SGD{Momentum: 0.9, Decay: 1e-4},
		}},
	}}
	must.Do(t, run.Fit(context.Background(), c, data))
	return c
}

// accuracy and mean entropy of a classifier's predictions.
func judge(t *testing.T, c *nets.Model, data train.Dataset) (accuracy, entropy float64) {
	t.Helper()
	classes := must.Get(predict.Sample(context.Background(), c, data.Inputs, predict.Options{Samples: 1}))(t)
	accuracy = metrics.Accuracy(classes.Probabilities, imageClasses, data.Labels)
	each := metrics.Entropy(classes.Probabilities, imageClasses)
	entropy = metrics.Mean(each)
	return accuracy, entropy
}

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
func sine(n int) train.Dataset { return sineOf(rand.New(rand.NewPCG(4, 5)), n) }

func sineOf(rng *rand.Rand, n int) train.Dataset {
	var x, y []float64
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
		if math.Abs(mean[i]-math.Sin(3*x)) > 0.15 || std[i] > mostStd {
			t.Errorf("at %g: mean %.3f, std %.3f; the function is %.3f", x, mean[i], std[i], math.Sin(3*x))
		}
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
