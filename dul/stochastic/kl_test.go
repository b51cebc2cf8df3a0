package stochastic_test

import (
	"math"
	"testing"

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
