package stochastic_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/environment/must"
)

// The divergence of a million weights at their prior is 0, in single precision too.
func TestGaussianKLOfManyAtThePrior(t *testing.T) {
	kl := fixtures.Evaluate(t, dtypes.Float32, fixtures.Values{"x": fixtures.Zeros(1000, 1000)}, nil, func(_ *model.Scope, in fixtures.Nodes) []*graph.Node {
		return []*graph.Node{stochastic.GaussianKL(nil, graph.AddScalar(in["x"], 2*math.Log(0.1)), 0, 0.1)}
	})[0].Values[0]
	must.Near(t, kl, 0, 0.5, "the divergence in nats")
}

// The objective is the mean of all terms that there are, with the KL divided by the
// number of examples, also of replicas.
func TestObjective(t *testing.T) {
	values := fixtures.Values{
		"nll": {Dims: []int{2, 3, 1}, Values: []float64{1, 2, 3, 5, 6, 10}},      // mean 4.5
		"kl":  {Dims: []int{2, 1, 1}, Values: []float64{3, 9}},                   // mean 6
		"ll":  {Dims: []int{2, 3, 1}, Values: []float64{-1, 2, 0.5, 4, -1, 1.5}}, // mean 1
	}
	for _, c := range []struct {
		name   string
		kl, ll bool
		n      int
		want   float64
	}{{"neither", false, false, 10, 4.5}, {"KL", true, false, 1, 10.5}, {"log-likelihood", false, true, 10, 3.5}, {"both", true, true, 10, 4.1}} {
		out := fixtures.Evaluate(t, dtypes.Float64, values, nil, func(_ *model.Scope, in fixtures.Nodes) []*graph.Node {
			losses := &stochastic.LayerLosses{}
			if c.kl {
				losses.AddKL(in["kl"])
			}
			if c.ll {
				losses.AddLogLikelihood(in["ll"])
			}
			return []*graph.Node{losses.Objective(in["nll"], c.n)}
		})[0]
		must.Near(t, out.Values[0], c.want, 1e-14, "%s: the objective", c.name)
		if len(out.Dims) != 0 {
			t.Errorf("%s: the objective has the shape %v", c.name, out.Dims)
		}
	}
}

func TestLossesRefuse(t *testing.T) {
	losses := &stochastic.LayerLosses{}
	refused := map[string]func(){
		"the objective of 0 training examples": func() { losses.Objective(nil, 0) },
		"a graph in which no layer has one":    func() { losses.WeightLogLikelihood(nil) },
	}
	for _, std := range []float64{0, -0.1, 1e-200, 1e200, math.NaN()} {
		refused[fmt.Sprintf("the prior's standard deviation is %g; it", std)] = func() { stochastic.GaussianKL(nil, nil, 0, std) }
	}
	for want, f := range refused {
		must.Panic(t, f, want)
	}
	fixtures.Evaluate(t, dtypes.Float64, fixtures.Values{"kl": {Dims: []int{1, 2}, Values: []float64{1, 2}}}, nil, func(_ *model.Scope, in fixtures.Nodes) []*graph.Node {
		must.Panic(t, func() { (&stochastic.LayerLosses{KL: in["kl"]}).Objective(in["kl"], 1) }, "has shape (Float64)[1, 2]; each layer adds its sum")
		return []*graph.Node{in["kl"]}
	})
}

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
