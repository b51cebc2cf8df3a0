package baselines_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/backendtest"
)

// The members agree on the first example and not on the second.
func ExampleMixClasses() {
	p, information, err := baselines.MixClasses([][]float64{
		{0.9, 0.1, 1, 0},
		{0.9, 0.1, 0, 1},
	}, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.2f\n%.3f\n", p, information)
	// Output:
	// [0.90 0.10 0.50 0.50]
	// [0.000 0.693]
}

func TestMixErrors(t *testing.T) {
	for _, c := range []struct {
		name    string
		members [][]float64
	}{{"none", nil}, {"of two lengths", [][]float64{{1, 0}, {1}}}, {"no probabilities", [][]float64{{0.5, 0.2}}}} {
		t.Run(c.name, func(t *testing.T) {
			if _, _, err := baselines.MixClasses(c.members, 2); err == nil {
				t.Error("no error")
			}
		})
	}
}

// An ensemble is trained in one graph, its members differ, above all far from
// the data, and its likelihood is no worse than their mean (Jensen's inequality).
func TestRegressionEnsemble(t *testing.T) {
	const members = 4
	ctx, backend := context.Background(), backendtest.Open(t)
	rng := rand.New(rand.NewPCG(4, 5))
	sine := func(n int) train.Set {
		set := train.Set{D: 1}
		for range n {
			x := 2*rng.Float64() - 1
			set.X, set.Y = append(set.X, x), append(set.Y, math.Sin(3*x)+0.1*rng.NormFloat64())
		}
		return set
	}
	set, test := sine(64), sine(30)
	seeds := []uint64{1, 2, 3, 4}
	run := train.Regression{
		Network:  nets.MLP{Layers: baselines.Deterministic{}, Widths: []int{16}},
		Groups:   []train.Group{{Roles: train.AllRoles(), Optimizer: train.Adam{}}},
		Schedule: train.Cosine(0.02), Epochs: 100, BatchSize: 16, Seeds: seeds, Float64: true,
	}
	fitted, err := run.FitReplicas(ctx, backend, slices.Repeat([]train.Set{set}, members))
	if err != nil {
		t.Fatal(err)
	}
	predicted := func(x []float64) (mean, variance [][]float64) {
		draws, err := predict.Replicas(ctx, fitted, slices.Repeat([][]float64{x}, members), 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range draws {
			mean, variance = append(mean, d.Mean[0]), append(variance, slices.Repeat([]float64{d.NoiseStd * d.NoiseStd}, len(x)))
		}
		return mean, variance
	}
	mean, variance := predicted(test.X)
	together, err := metrics.MonteCarloNLL(test.Y, mean, variance, 1)
	if err != nil {
		t.Fatal(err)
	}
	apart := 0.0
	for m := range members {
		alone, err := metrics.MonteCarloNLL(test.Y, mean[m:m+1], variance[m:m+1], 1)
		if err != nil {
			t.Fatal(err)
		}
		apart += alone / members
	}
	if together >= apart || together > 0 {
		t.Errorf("negative log-likelihood %.3f of the ensemble, %.3f of a member", together, apart)
	}
	std := func(x float64) float64 {
		mean, variance := predicted([]float64{x})
		means, variances := slices.Concat(mean...), slices.Concat(variance...)
		return math.Sqrt(stat.Mean(variances, nil) + stat.PopVariance(means, nil))
	}
	if near, far := std(0), std(8); far < 2*near {
		t.Errorf("std %.3f far from the data, %.3f among them", far, near)
	}
}
