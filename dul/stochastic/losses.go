// Package stochastic has what stochastic layers share: sources of noise, the Kullback-Leibler divergence of Gaussian
// posteriors, and the sums of KL and log-likelihood that the layers of a graph add to the objective.
package stochastic

import (
	"errors"
	"fmt"
	"math"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
)

// LayerLosses are what the layers of one graph add to the objective.
type LayerLosses struct {
	// KL is the sum over layers of KL(q || p), [1, 1] or [replicas, 1, 1]; nil if no layer has one.
	KL *graph.Node
	// LogLikelihood is the sum over layers l of log p_energy(h_l; omega_l) for each example, [batch, 1] or [replicas,
	// batch, 1]; nil if no layer has one.
	LogLikelihood *graph.Node
	// Energies are the layers' energies E_l(h_l), in the order in which they were built, each [batch, 1] or [replicas,
	// batch, 1].
	Energies []*graph.Node
}

const layerLossesKey = "/stochastic_layer_losses"

// LayerLossesOf returns the layer losses of the graph g. Layers add to them while the graph is built; read them after
// the last layer.
func LayerLossesOf(g *graph.Graph) *LayerLosses {
	return params.OfGraph[LayerLosses](g, layerLossesKey)
}

// AddKL adds a layer's KL divergence, [1, 1] or [replicas, 1, 1].
func (l *LayerLosses) AddKL(kl *graph.Node) { l.KL = addTerm(l.KL, kl) }

// AddLogLikelihood adds a layer's log-likelihood of each example,
// [batch, 1] or [replicas, batch, 1].
func (l *LayerLosses) AddLogLikelihood(ll *graph.Node) {
	l.LogLikelihood = addTerm(l.LogLikelihood, ll)
}

// Objective returns what your own training loop minimises for n training examples, a scalar:
//
//	mean_i nll_i + KL / n - mean_i log p_energy(h_i),
//
// the negative ELBO divided by n, and the generative objective of the energy models (section 2.4, "Optimization"), both
// estimated on a batch. nll is -log p(y | x) of each example, [..., batch, 1], or the mean. Terms that no layer has are
// left out. With replicas the result is the mean over replicas. It panics if n < 1 or if KL has another shape.
func (l *LayerLosses) Objective(nll *graph.Node, n int) *graph.Node {
	if n < 1 {
		panic(fmt.Errorf("stochastic: the objective of %d training examples; there must be at least 1", n))
	}
	total := ops.Mean(nll)
	if l.KL != nil {
		if dims := l.KL.Shape().Dimensions; len(dims) < 2 || dims[len(dims)-2] != 1 || dims[len(dims)-1] != 1 {
			panic(fmt.Errorf("stochastic: the KL divergence of the layers has shape %s; each layer adds its sum over all parameters, [1, 1] or [replicas, 1, 1]", l.KL.Shape()))
		}
		total = graph.Add(total, graph.MulScalar(graph.ReduceAllMean(l.KL), 1/float64(n)))
	}
	if l.LogLikelihood != nil {
		total = graph.Sub(total, ops.Mean(l.LogLikelihood))
	}
	return total
}

// WeightLogLikelihood multiplies each example's log-likelihood by its weight, [batch, 1] or [replicas, batch, 1], a
// constant for the gradient. The weighted generative objective
//
//	sum_i weight_i sum_l log p_energy(h_l(x_i); omega_l)
//
// fits energy models to the examples that determine the posterior, with the weights energy.LaplaceWeights; the paper
// leaves them at 1. train.Settings.WeightEnergies calls it. In your own training loop call it once, between the network
// and the objective:
//
//	logits := network.Apply(s, x, classes)
//	stochastic.LayerLossesOf(logits.Graph()).WeightLogLikelihood(energy.LaplaceWeights(logits))
//	loss := stochastic.LayerLossesOf(logits.Graph()).Objective(nll, n)
//
// Weights of mean 1 do not change the size of the gradient. Whatever their mean, a Gaussian fitted with weights has
// Sigma = sum_i weight_i h_i h_i^T / sum_i weight_i. It panics if no layer has a log-likelihood.
func (l *LayerLosses) WeightLogLikelihood(weights *graph.Node) {
	if l.LogLikelihood == nil {
		panic(errors.New("stochastic: weights for the log-likelihood of a graph in which no layer has one; weight it after the network is built"))
	}
	l.LogLikelihood = graph.Mul(l.LogLikelihood, graph.StopGradient(weights))
}

// AddEnergy appends a layer's energy of each example, [batch, 1] or [replicas, batch, 1].
func (l *LayerLosses) AddEnergy(energy *graph.Node) { l.Energies = append(l.Energies, energy) }

func addTerm(sum, term *graph.Node) *graph.Node {
	if sum == nil {
		return term
	}
	return graph.Add(sum, term)
}

// GaussianKL returns KL(N(mean, e^logVar) || N(priorMean, priorStd^2)), summed over the last two axes, which stay with
// length 1:
//
//	1/2 sum [ log priorStd^2 - logVar + (e^logVar + (mean - priorMean)^2)/priorStd^2 - 1 ]
//
// A nil mean stands for priorMean. It panics unless priorStd and its square are positive and finite.
func GaussianKL(mean, logVar *graph.Node, priorMean, priorStd float64) *graph.Node {
	priorVar := priorStd * priorStd
	if !(priorStd > 0 && priorVar > 0) || math.IsInf(priorVar, 1) {
		panic(fmt.Errorf("GaussianKL: the prior's standard deviation is %g; it and its square must be positive and finite", priorStd))
	}
	spread := ops.Exp(logVar)
	if mean != nil {
		offset := graph.AddScalar(mean, -priorMean)
		spread = graph.Add(spread, graph.Mul(offset, offset))
	}
	// The constant before the sum, or the sum of a million entries would have lost the digits that it leaves.
	terms := graph.AddScalar(graph.Sub(graph.MulScalar(spread, 1/priorVar), logVar), math.Log(priorVar)-1)
	return graph.MulScalar(ops.SumColumns(ops.SumRows(terms)), 0.5)
}

// likeNoise is the shape of per-entry noise: the leading axes of like with the given rows and columns.
func likeNoise(like *graph.Node, rows, columns int) shapes.Shape {
	dims := append(append([]int{}, like.Shape().Dimensions[:like.Rank()-2]...), rows, columns)
	if rows == shapes.DynamicDim {
		return shapes.MakeDynamic(like.DType(), dims, []string{like.Shape().AxisName(-2), ""})
	}
	return shapes.Make(like.DType(), dims...)
}
