package baselines_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/likelihood"
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
	for _, members := range [][][]float64{nil, {{1, 0}, {1}}, {{0.5, 0.2}}} {
		if _, _, err := baselines.MixClasses(members, 2); err == nil {
			t.Errorf("no error for members %v", members)
		}
	}
	for _, c := range [][2][][]float64{{nil, nil}, {{{1}}, nil}, {{{1}, {1, 2}}, {{1}, {1, 2}}}} {
		if _, _, err := baselines.MixGaussians(c[0], c[1]); err == nil {
			t.Errorf("no error for means %v and variances %v", c[0], c[1])
		}
	}
}

// A large sample of the mixture has its moments.
func TestMixGaussians(t *testing.T) {
	mean, variance := [][]float64{{1}, {-2}, {0.5}}, [][]float64{{0.3}, {0.1}, {2}}
	mixed, mixedVariance, err := baselines.MixGaussians(mean, variance)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	const n = 100000
	first, second := 0.0, 0.0
	for range n {
		m := rng.IntN(3)
		x := mean[m][0] + math.Sqrt(variance[m][0])*rng.NormFloat64() - mixed[0]
		first, second = first+x/n, second+x*x/n
	}
	// The fourth moment of a bounded mixture of Gaussians is below 6 variance^2 here.
	if math.Abs(first) > 4*math.Sqrt(mixedVariance[0]/n) || math.Abs(second/mixedVariance[0]-1) > 4*math.Sqrt(5./n) {
		t.Errorf("a sample has mean %.4f and variance %.4f about N(%.4f, %.4f)", first, second, mixed[0], mixedVariance[0])
	}
}

// An ensemble is trained in one graph, its members differ, above all far from
// the data, and its likelihood is no worse than their mean (Jensen's inequality).
func TestRegressionEnsemble(t *testing.T) {
	const members = 4
	ctx, backend := context.Background(), backendtest.Open(t)
	rng := rand.New(rand.NewPCG(4, 5))
	set, test := sineOf(rng, 64), sineOf(rng, 30)
	fitted, err := nets.NewReplicas(backend, nets.MLP{Layers: baselines.Deterministic{}, Widths: []int{16}}, likelihood.Gaussian{}, 1, 2, 3, 4)
	if err != nil {
		t.Fatal(err)
	}
	fitted.DType = dtypes.Float64
	if err := adam(100).Fit(ctx, fitted, slices.Repeat([]train.Dataset{set}, members)...); err != nil {
		t.Fatal(err)
	}
	predicted := func(x nets.Floats) (mean, variance [][]float64) {
		t.Helper()
		found, err := predict.SampleReplicas(ctx, fitted, slices.Repeat([]nets.Floats{x}, members), predict.Options{Samples: 1})
		if err != nil {
			t.Fatal(err)
		}
		var all predict.Mixture
		for _, p := range found {
			all = predict.Mix(all, p.Mixture)
		}
		return all.Mean, all.Variances()
	}
	mean, variance := predicted(test.Inputs.(nets.Floats))
	if len(mean) != members || len(variance) != members {
		t.Fatalf("%d means and %d variances of %d members", len(mean), len(variance), members)
	}
	together, err := metrics.MonteCarloNLL(test.Targets, mean, variance, 1)
	if err != nil {
		t.Fatal(err)
	}
	apart := 0.0
	for m := range members {
		alone, err := metrics.MonteCarloNLL(test.Targets, mean[m:m+1], variance[m:m+1], 1)
		if err != nil {
			t.Fatal(err)
		}
		apart += alone / members
	}
	if together >= apart || together > 0 {
		t.Errorf("negative log-likelihood %.3f of the ensemble, %.3f of a member", together, apart)
	}
	std := func(x float64) float64 {
		mean, variance := predicted(nets.Rows([]float64{x}, 1))
		_, v, err := baselines.MixGaussians(mean, variance)
		if err != nil {
			t.Fatal(err)
		}
		return math.Sqrt(v[0])
	}
	if near, far := std(0), std(8); far < 2*near {
		t.Errorf("std %.3f far from the data, %.3f among them", far, near)
	}
}
