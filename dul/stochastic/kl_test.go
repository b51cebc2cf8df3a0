package stochastic_test

import (
	"fmt"
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

func TestGaussianKLIsZeroAtThePriorAndPositiveElsewhere(t *testing.T) {
	const priorMean, priorStd = 1, 0.3
	evaluate := func(mean, logVariance fixtures.Array) float64 {
		t.Helper()
		return fixtures.Evaluate(t, dtypes.Float64, fixtures.Values{"mean": mean, "log_variance": logVariance}, nil,
			func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
				return []*graph.Node{gaussianKL(priorMean, priorStd)(s, in)}
			})[0].Values[0]
	}
	mean := fixtures.Zeros(3, 4).Map(func(float64) float64 { return priorMean })
	logVariance := fixtures.Zeros(3, 4).Map(func(float64) float64 { return 2 * math.Log(priorStd) })
	if kl := evaluate(mean, logVariance); math.Abs(kl) > 1e-13 {
		t.Errorf("KL at the prior is %g, want 0", kl)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		if kl := evaluate(fixtures.Random(rng, 3, 4), fixtures.Random(rng, 3, 4)); kl <= 0 {
			t.Errorf("KL away from the prior is %g, want more than 0", kl)
		}
	}
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

func TestGaussianKLGradient(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, dims := range [][]int{{3, 4}, {2, 3, 4}} {
		values := fixtures.Values{"mean": fixtures.Random(rng, dims...), "log_variance": fixtures.Random(rng, dims...)}
		t.Run(fmt.Sprint(dims), func(t *testing.T) { fixtures.CheckGradient(t, values, nil, gaussianKL(0.2, 0.7)) })
	}
}
