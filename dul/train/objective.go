package train

import (
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
)

// An Objective is the function that training minimizes,
//
//	mean_i NLL_i + KL / N - Scale * mean_i log p_energy(h_i),
//
// the negative ELBO of N examples divided by N, and the generative objective
// of the energy models (section 2.4, "Optimization"), both estimated on one
// batch. With replicas it is the sum of the replicas' objectives, whose
// gradients do not mix.
type Objective struct {
	// N is the number of training examples of each replica.
	N []float64
	// LogLikelihoodScale multiplies the generative objective; the released
	// code has 0.01. 0 leaves the energy models untrained.
	LogLikelihoodScale float64
}

// Terms are an objective and its parts for each replica, [..., 1, 1]. KL and
// LogLikelihood are nil where no layer has one.
type Terms struct {
	Total, NLL, KL, LogLikelihood *graph.Node
}

// Of returns the terms of the graph: nll is each example's, [..., batch, 1],
// and weights each example's share of the mean, [..., batch, 1], 1/n for the n
// examples of a replica's batch and 0 for padding.
func (o Objective) Of(nll, weights *graph.Node) Terms {
	losses := stochastic.LayerLossesOf(nll.Graph())
	l := Terms{NLL: WeightedSum(nll, weights)}
	l.Total = l.NLL
	if losses.KL != nil {
		l.KL = losses.KL
		l.Total = graph.Add(l.Total, graph.Mul(l.KL, o.perExample(nll)))
	}
	if losses.LogLikelihood != nil {
		l.LogLikelihood = WeightedSum(losses.LogLikelihood, weights)
		l.Total = graph.Sub(l.Total, graph.MulScalar(l.LogLikelihood, o.LogLikelihoodScale))
	}
	return l
}

// perExample is 1/N, [..., 1, 1].
func (o Objective) perExample(like *graph.Node) *graph.Node {
	dims := append(append([]int{}, like.Shape().Dimensions[:like.Rank()-2]...), 1, 1)
	inverse := make([]float64, len(o.N))
	for i, n := range o.N {
		inverse[i] = 1 / n
	}
	return graph.ConstTensor(like.Graph(), params.FromFloat64(shapes.Make(like.DType(), dims...), inverse))
}

// WeightedSum is sum_i weights_i x_i over the batch, [..., batch, 1] -> [..., 1, 1].
func WeightedSum(x, weights *graph.Node) *graph.Node {
	return ops.TransposedProduct(weights, x)
}
