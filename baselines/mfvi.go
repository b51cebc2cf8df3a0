package baselines

import (
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
)

// MFVI is mean-field variational inference (Blundell et al. 2015). Every weight has an independent Gaussian posterior,
//
//	y = x W + b,   W = mu + sigma eps,   q(W_ij) = N(mu_ij, sigma_ij^2),   p(W_ij) = N(0, PriorStd^2).
//
// All examples share the draw of W. The bias is deterministic and starts at 0.
type MFVI struct {
	PriorStd float64 // 0 means 0.1
	InitStd  float64 // initial posterior standard deviation; 0 means 1e-3
}

// Dense maps [..., batch, in] to [..., batch, units] and adds the weights' KL.
func (l MFVI) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	in := x.Shape().Dim(-1)
	mean := params.New(s, x, "weights_mean", params.Variational, params.KaimingNormal(in), in, units)
	logVar := logVariance(s, x, "weights_log_variance", setting("baselines.MFVI.InitStd", l.InitStd, 1e-3), in, units)
	stochastic.LayerLossesOf(x.Graph()).AddKL(stochastic.GaussianKL(mean, logVar, 0, setting("baselines.MFVI.PriorStd", l.PriorStd, 0.1)))

	eps := stochastic.Draw(s, x, stochastic.Gaussian(), in, units)
	weights := graph.Add(mean, graph.Mul(std(logVar), eps))
	return ops.Affine(x, weights, params.New(s, x, "bias", params.Weight, params.Constant(0), 1, units))
}

// Conv is Dense with a convolution instead of x W. All examples share the draw of the kernel. It adds the kernel's KL.
func (l MFVI) Conv(s *model.Scope, x *graph.Node, c conv.Spec) *graph.Node {
	like, fanIn := conv.Channels(x), c.FanIn(x)
	mean := params.New(s, like, "weights_mean", params.Variational, params.KaimingNormal(fanIn), c.Filters, fanIn)
	logVar := logVariance(s, like, "weights_log_variance", setting("baselines.MFVI.InitStd", l.InitStd, 1e-3), c.Filters, fanIn)
	stochastic.LayerLossesOf(x.Graph()).AddKL(stochastic.GaussianKL(mean, logVar, 0, setting("baselines.MFVI.PriorStd", l.PriorStd, 0.1)))

	eps := stochastic.Draw(s, like, stochastic.Gaussian(), c.Filters, fanIn)
	y := conv.Convolve(x, graph.Add(mean, graph.Mul(std(logVar), eps)), c.Window)
	if c.NoBias {
		return y
	}
	bias := params.New(s, like, "bias", params.Weight, params.Constant(0), c.Filters, 1)
	return conv.LikeImage(conv.AddColumn(conv.Channels(y), bias), y)
}
