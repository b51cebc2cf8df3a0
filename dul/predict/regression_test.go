package predict_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	gomlx "github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
)

// model is an untrained network with two inputs; its noise variance is 1.
func model(t testing.TB, layers nets.Layers, replicas int) *nets.Regression {
	t.Helper()
	seeds := []uint64{1}
	for len(seeds) < replicas {
		seeds = append(seeds, uint64(len(seeds)+1))
	}
	r, err := nets.NewRegression(fixtures.Backend(t), nets.MLP{Layers: layers, Widths: []int{4}}, seeds, replicas > 0, dtypes.Float64)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// scaledOutput is a family of deterministic hidden layers and an output that is
// multiplied by Gaussian noise.
type scaledOutput struct{}

func (scaledOutput) Dense(s *gomlx.Scope, x *graph.Node, units int) *graph.Node {
	if units == 1 {
		return baselines.VDropout{}.Dense(s, x, units)
	}
	return baselines.Deterministic{}.Dense(s, x, units)
}

func ExampleDraws_Moments() {
	d := predict.Draws{Mean: [][]float64{{1, 5}, {3, 5}}}
	mean, std := d.Moments()
	fmt.Println(mean, std)
	// Output: [2 5] [1 0]
}

// Draws of a deterministic network are equal, those of a stochastic one are
// not; a network drops nothing and adds nothing over many draws of its mean.
func TestDraws(t *testing.T) {
	x := []float64{0.5, -1, 2, 0.3}
	plain, err := predict.Regression(context.Background(), model(t, baselines.Deterministic{}, 0), x, 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	if plain.NoiseStd != 1 {
		t.Errorf("noise of an untrained model is %v, want 1", plain.NoiseStd)
	}
	for i := range plain.Mean[0] {
		if plain.Mean[0][i] != plain.Mean[1][i] {
			t.Errorf("input %d: two draws of a deterministic network differ", i)
		}
	}
	const draws = 4000
	noisy, err := predict.Regression(context.Background(), model(t, scaledOutput{}, 0), x, 2, draws)
	if err != nil {
		t.Fatal(err)
	}
	mean, std := noisy.Moments()
	for i := range mean {
		if z := (mean[i] - plain.Mean[0][i]) / (std[i] / math.Sqrt(draws)); math.Abs(z) > 4 {
			t.Errorf("input %d: mean of the draws %v, want %v (z = %.1f)", i, mean[i], plain.Mean[0][i], z)
		}
		// The output is multiplied by noise of variance 0.1: std = sqrt(0.1) |mean|.
		want := math.Sqrt(0.1) * math.Abs(plain.Mean[0][i])
		if z := (std[i]/want - 1) * math.Sqrt(2*draws); math.Abs(z) > 4 {
			t.Errorf("input %d: standard deviation of the draws %v, want %v (z = %.1f)", i, std[i], want, z)
		}
	}
}

// Inputs of unequal number are padded, which must not show.
func TestReplicasOfUnequalSize(t *testing.T) {
	r := model(t, baselines.Deterministic{}, 2)
	long, short := []float64{0.5, -1, 2, 0.3, 1, 1}, []float64{2, 0.3}
	draws, err := predict.Replicas(context.Background(), r, [][]float64{long, short}, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(draws[0].Mean[0]) != 3 || len(draws[1].Mean[0]) != 1 {
		t.Fatalf("%d and %d predictions, want 3 and 1", len(draws[0].Mean[0]), len(draws[1].Mean[0]))
	}
	alone, err := predict.Replicas(context.Background(), r, [][]float64{short, short}, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(alone[1].Mean[0][0]-draws[1].Mean[0][0]) > 1e-12 {
		t.Errorf("prediction %v padded, %v alone", draws[1].Mean[0][0], alone[1].Mean[0][0])
	}
}

func TestErrors(t *testing.T) {
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	single, pair := model(t, baselines.Deterministic{}, 0), model(t, baselines.Deterministic{}, 2)
	x := []float64{1, 2}
	tests := []struct {
		name string
		call func() error
		want string
	}{
		{"samples", func() error { _, err := predict.Regression(context.Background(), single, x, 2, 0); return err }, "0 samples"},
		{"features", func() error { _, err := predict.Regression(context.Background(), single, x, 0, 1); return err }, "0 features"},
		{"ragged", func() error { _, err := predict.Regression(context.Background(), single, x, 3, 1); return err }, "2 input values"},
		{"replicated", func() error { _, err := predict.Regression(context.Background(), pair, x, 2, 1); return err }, "predict.Replicas"},
		{"not replicated", func() error {
			_, err := predict.Replicas(context.Background(), single, [][]float64{x}, 2, 1)
			return err
		}, "0 replicas"},
		{"canceled", func() error { _, err := predict.Regression(canceled, single, x, 2, 1); return err }, "stopped after 0 of 1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := test.call()
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want one with %q", err, test.want)
			}
			if test.name == "canceled" && !errors.Is(err, context.Canceled) {
				t.Errorf("error %v does not wrap context.Canceled", err)
			}
		})
	}
}
