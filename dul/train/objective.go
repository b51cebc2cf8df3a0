package train

import (
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
)

// An objective is the function that training minimizes,
//
//	mean_i NLL_i + KL / N - Scale * mean_i log p_energy(h_i),
//
// the negative ELBO of N examples divided by N, and the generative objective
// of the energy models (section 2.4, "Optimization"), both estimated on one
// batch. With replicas it is the sum of the replicas' objectives, whose
// gradients do not mix.
type objective struct {
	// n is the number of training examples of each replica.
	n []float64
	// logLikelihoodScale multiplies the generative objective; the released
	// code has 0.01. 0 leaves the energy models untrained.
	logLikelihoodScale float64
}

// terms are an objective and its parts for each replica, [..., 1, 1]. kl and
// logLikelihood are nil where no layer has one.
type terms struct {
	total, nll, kl, logLikelihood *graph.Node
}

// of returns the terms of the graph: nll is each example's, [..., batch, 1],
// and weights each example's share of the mean, [..., batch, 1], 1/n for the n
// examples of a replica's batch and 0 for padding.
func (o objective) of(nll, weights *graph.Node) terms {
	losses := stochastic.LayerLossesOf(nll.Graph())
	l := terms{nll: weightedSum(nll, weights)}
	l.total = l.nll
	if losses.KL != nil {
		l.kl = losses.KL
		l.total = graph.Add(l.total, graph.Mul(l.kl, o.perExample(nll)))
	}
	if losses.LogLikelihood != nil {
		l.logLikelihood = weightedSum(losses.LogLikelihood, weights)
		l.total = graph.Sub(l.total, graph.MulScalar(l.logLikelihood, o.logLikelihoodScale))
	}
	return l
}

// perExample is 1/N, [..., 1, 1].
func (o objective) perExample(like *graph.Node) *graph.Node {
	dims := append(append([]int{}, like.Shape().Dimensions[:like.Rank()-2]...), 1, 1)
	inverse := make([]float64, len(o.n))
	for i, n := range o.n {
		inverse[i] = 1 / n
	}
	return graph.ConstTensor(like.Graph(), params.FromFloat64(shapes.Make(like.DType(), dims...), inverse))
}

// weightedSum is sum_i weights_i x_i over the batch, [..., batch, 1] -> [..., 1, 1].
func weightedSum(x, weights *graph.Node) *graph.Node {
	return ops.TransposedProduct(weights, x)
}
