package stochastic_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/stochastic"
)

// gaussianKL is stochastic.GaussianKL of posteriors in the values "mean" (if
// given) and "log_variance".
func gaussianKL(priorMean, priorStd float64) func(s *model.Scope, in fixtures.Nodes) *graph.Node {
	return func(_ *model.Scope, in fixtures.Nodes) *graph.Node {
		return stochastic.GaussianKL(in["mean"], in["log_variance"], priorMean, priorStd)
	}
}

// The recorded priors differ from entry to entry and GaussianKL has one prior
// for all, so each entry is compared by itself and the sum with the recorded KL.
func TestGaussianKLMatchesTheReleasedGaussian(t *testing.T) {
	fixtures.Each(t, "factorized_gaussian_*", func(t *testing.T, c fixtures.Case) {
		forValues, forGradients := c.Tolerances()
		mean, logVariance := c.Array("mu"), c.Array("logvar")
		total := fixtures.Zeros(1, 1)
		gradients := []fixtures.Array{fixtures.Zeros(mean.Dims...), fixtures.Zeros(mean.Dims...)}
		for i := range mean.Values {
			kl := gaussianKL(c.Array("q_mu").Values[i], math.Exp(c.Array("q_logvar").Values[i]/2))
			out := fixtures.Evaluate(t, c.DType, fixtures.Values{
				"mean":         fixtures.Matrix(1, 1, mean.Values[i]),
				"log_variance": fixtures.Matrix(1, 1, logVariance.Values[i]),
			}, nil, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
				y := kl(s, in)
				return append([]*graph.Node{y}, graph.Gradient(graph.ReduceAllSum(y), in["mean"], in["log_variance"])...)
			})
			total.Values[0] += out[0].Values[0]
			gradients[0].Values[i], gradients[1].Values[i] = out[1].Values[0], out[2].Values[0]
		}
		fixtures.Compare(t, "kl", total, c.Array("kl"), forValues)
		fixtures.Compare(t, "gkl__mu", gradients[0], c.Array("gkl__mu"), forGradients)
		fixtures.Compare(t, "gkl__logvar", gradients[1], c.Array("gkl__logvar"), forGradients)
	})
}

func TestGaussianKLWithoutMeanIsThatAtThePriorsMean(t *testing.T) {
	logVariance := fixtures.Random(rand.New(rand.NewPCG(3, 4)), 2, 5)
	without := fixtures.Evaluate(t, dtypes.Float64, fixtures.Values{"log_variance": logVariance}, nil,
		func(_ *model.Scope, in fixtures.Nodes) []*graph.Node {
			return []*graph.Node{stochastic.GaussianKL(nil, in["log_variance"], 0, 0.5)}
		})[0]
	with := fixtures.Evaluate(t, dtypes.Float64, fixtures.Values{"log_variance": logVariance, "mean": fixtures.Zeros(2, 5)}, nil,
		func(s *model.Scope, in fixtures.Nodes) []*graph.Node { return []*graph.Node{gaussianKL(0, 0.5)(s, in)} })[0]
	fixtures.Compare(t, "KL", without, with, 1e-14)
}

// With replicas there is one KL for each, the sum over its own entries.
func TestGaussianKLOfReplicas(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	mean, logVariance := fixtures.Random(rng, 2, 3, 4), fixtures.Random(rng, 2, 3, 4)
	evaluate := func(mean, logVariance fixtures.Array) fixtures.Array {
		t.Helper()
		return fixtures.Evaluate(t, dtypes.Float64, fixtures.Values{"mean": mean, "log_variance": logVariance}, nil,
			func(s *model.Scope, in fixtures.Nodes) []*graph.Node { return []*graph.Node{gaussianKL(0, 0.5)(s, in)} })[0]
	}
	together := evaluate(mean, logVariance)
	for r := range 2 {
		part := func(a fixtures.Array) fixtures.Array { return fixtures.Matrix(3, 4, a.Values[r*12:(r+1)*12]...) }
		alone := evaluate(part(mean), part(logVariance))
		fixtures.Compare(t, "KL of a replica", fixtures.Matrix(1, 1, together.Values[r]), alone, 1e-14)
	}
}
