package baselines_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"gonum.org/v1/gonum/stat"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/must"
)

// An ensemble is trained in one graph, its members differ, above all far from
// the data, and its likelihood is no worse than their mean (Jensen's inequality).
func TestRegressionEnsemble(t *testing.T) {
	const members = 4
	ctx, backend := context.Background(), fixtures.Backend(t)
	rng := rand.New(rand.NewPCG(4, 5))
	set, test := sineOf(rng, 64), sineOf(rng, 30)
	fitted := must.Get(nets.NewReplicas(backend, nets.MLP{Layers: baselines.Deterministic{}, Widths: []int{16}}, likelihood.Gaussian{}, 1, 2, 3, 4))(t)
	fitted.DType = dtypes.Float64
	must.Do(t, adam(100).Fit(ctx, fitted, slices.Repeat([]train.Dataset{set}, members)...))
	predicted := func(x nets.Floats) (mean, variance [][]float64) {
		t.Helper()
		found := must.Get(predict.SampleReplicas(ctx, fitted, slices.Repeat([]nets.Floats{x}, members), predict.Options{Samples: 1}))(t)
		var each []predict.Mixture
		for _, p := range found {
			each = append(each, p.Mixture)
		}
		all := must.Get(predict.Mix(each...))(t)
		return all.Mean, all.Variances()
	}
	mean, variance := predicted(test.Inputs.(nets.Floats))
	if len(mean) != members || len(variance) != members {
		t.Fatalf("%d means and %d variances of %d members", len(mean), len(variance), members)
	}
	together := must.Get(metrics.MonteCarloNLL(test.Targets, mean, variance, 1))(t)
	apart := 0.0
	for m := range members {
		alone := must.Get(metrics.MonteCarloNLL(test.Targets, mean[m:m+1], variance[m:m+1], 1))(t)
		apart += alone / members
	}
	if together >= apart || together > 0 {
		t.Errorf("negative log-likelihood %.3f of the ensemble, %.3f of a member", together, apart)
	}
	std := func(x float64) float64 {
		mean, variance := predicted(nets.Rows([]float64{x}, 1))
		var means, variances []float64 // of the members, whose mixture has the variance
		for m := range mean {
			means, variances = append(means, mean[m][0]), append(variances, variance[m][0])
		}
		return math.Sqrt(stat.Mean(variances, nil) + stat.PopVariance(means, nil))
	}
	if near, far := std(0), std(8); far < 2*near {
		t.Errorf("std %.3f far from the data, %.3f among them", far, near)
	}
}
