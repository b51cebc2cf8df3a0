package baselines

import (
	"cmp"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
)

// MCDropout is Monte Carlo dropout (Gal & Ghahramani 2016). Each input of each layer is dropped with probability Rate,
// in training and in prediction,
//
//	y = (x * mask) W + b,   mask = Bernoulli(1 - Rate) / (1 - Rate).
//
// It has no KL.
type MCDropout struct {
	Rate float64 // below 1; 0 means 0.1: for no dropout use Deterministic
}

// Dense maps [..., batch, in] to [..., batch, units].
func (l MCDropout) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	mask := stochastic.DrawRows(s, x, stochastic.DropoutMask(cmp.Or(l.Rate, 0.1)), x.Shape().Dim(-1))
	return params.Dense(s, graph.Mul(x, mask), units)
}

// Conv is Dense with a convolution instead of x W. Every pixel of every channel is dropped separately, in the network's
// input image too.
func (l MCDropout) Conv(s *model.Scope, x *graph.Node, c conv.Spec) *graph.Node {
	pixels := conv.Channels(x)
	mask := conv.Noise(s, pixels, stochastic.DropoutMask(cmp.Or(l.Rate, 0.1)))
	return conv.Layer(s, conv.LikeImage(graph.Mul(pixels, mask), x), c)
}
