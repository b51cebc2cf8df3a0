package baselines_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"

	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/backendtest"
)

const imageClasses = 3

// colours are n images of 8 x 8 pixels whose class is the brightest channel.
func colours(n int, seed uint64) train.Images {
	rng := rand.New(rand.NewPCG(seed, 1))
	data := train.Images{Height: 8, Width: 8, Standardization: nets.Standardization{
		Mean: []float64{0.5, 0.5, 0.5}, Std: []float64{0.25, 0.25, 0.25},
	}}
	for range n {
		label := rng.IntN(imageClasses)
		data.Labels = append(data.Labels, label)
		for c := range 3 {
			for range 64 {
				v := rng.IntN(200)
				if c == label {
					v += 55
				}
				data.Pixels = append(data.Pixels, byte(v))
			}
		}
	}
	return data
}

func asInputs(data train.Images) predict.Images {
	return predict.Images{Pixels: data.Pixels, Height: data.Height, Width: data.Width, Standardization: data.Standardization}
}

func smallResNet(layers nets.ConvLayers) nets.ResNet {
	return nets.ResNet{Layers: layers, Blocks: []int{1, 1}, Widths: []int{4, 6}, Stem: 4}
}

// trained is a classifier of the family after a few epochs.
func trained(t *testing.T, layers nets.ConvLayers, data train.Images) *nets.Classifier {
	t.Helper()
	c, err := nets.NewClassifier(backendtest.Open(t), smallResNet(layers), imageClasses, 5, dtypes.Float32)
	if err != nil {
		t.Fatal(err)
	}
	recipe := train.ResNet14(imageClasses)
	recipe.Epochs, recipe.PretrainEpochs, recipe.BatchSize, recipe.LearningRate = 12, 0, 32, 0.05
	run := recipe.Classification()
	run.Order = func(seed uint64, epoch, n int) []int { return rand.New(rand.NewPCG(seed, uint64(epoch))).Perm(n) }
	if err := run.Fit(context.Background(), c, data); err != nil {
		t.Fatal(err)
	}
	return c
}

// accuracy and mean entropy of a classifier's predictions.
func judge(t *testing.T, c *nets.Classifier, data train.Images) (accuracy, entropy float64) {
	t.Helper()
	classes, err := predict.Classification(context.Background(), c, asInputs(data), predict.Sampling{Samples: 1})
	if err != nil {
		t.Fatal(err)
	}
	accuracy, err = metrics.Accuracy(classes.Probabilities, imageClasses, data.Labels)
	if err != nil {
		t.Fatal(err)
	}
	each, err := metrics.Entropy(classes.Probabilities, imageClasses)
	if err != nil {
		t.Fatal(err)
	}
	entropy, err = metrics.Mean(each)
	if err != nil {
		t.Fatal(err)
	}
	return accuracy, entropy
}

// sine are n noisy values of sin 3x on [-1, 1].
func sine(n int) train.Set {
	rng := rand.New(rand.NewPCG(4, 5))
	set := train.Set{D: 1}
	for range n {
		x := 2*rng.Float64() - 1
		set.X, set.Y = append(set.X, x), append(set.Y, math.Sin(3*x)+0.1*rng.NormFloat64())
	}
	return set
}

// checkSine checks that a regression of sine knows the function where the data are,
// with at most the given standard deviation, and growth times as much far away,
// and that its draws have the moments that it states.
func checkSine(t *testing.T, fitted *nets.Regression, mostStd, growth float64) {
	t.Helper()
	ctx, inputs := context.Background(), []float64{-0.5, 0, 0.5, 10}
	marginals, err := predict.Gaussian(ctx, fitted, [][]float64{inputs}, 1)
	if err != nil {
		t.Fatal(err)
	}
	m := marginals[0]
	for i, x := range inputs[:3] {
		if math.Abs(m.Mean[i]-math.Sin(3*x)) > 0.15 || m.Std[i] > mostStd {
			t.Errorf("at %g: mean %.3f, std %.3f; the function is %.3f", x, m.Mean[i], m.Std[i], math.Sin(3*x))
		}
	}
	if m.Std[3] < growth*m.Std[1] {
		t.Errorf("std %.3f far from the data, %.3f among them", m.Std[3], m.Std[1])
	}
	draws, err := predict.Regression(ctx, fitted, inputs, 1, 2000)
	if err != nil {
		t.Fatal(err)
	}
	for i := range inputs {
		var values []float64
		for _, draw := range draws.Mean {
			values = append(values, draw[i])
		}
		fixtures.CheckMoments(t, "draws", values, m.Mean[i], m.Std[i]*m.Std[i])
	}
}
