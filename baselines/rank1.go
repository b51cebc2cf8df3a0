package baselines

import (
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
)

// Rank1 is the rank-1 Bayesian neural network (Dusenberry et al. 2020): the
// inputs and the outputs of each layer are multiplied by Gaussian factors,
//
//	y = s * ((r * x) W + b),   q(r_i) = N(mu_i, sigma_i^2),   p(r_i) = N(1, PriorStd^2),
//
// and likewise s; both are drawn anew for each example.
//
// s scales the bias too, as in the paper's released code, which wraps a whole linear
// layer. In the original method the factors perturb the weights alone, W * r s^T, and
// the bias is added last, as in its authors' library (edward2, layers.DenseRank1):
// s * ((r * x) W) + b.
type Rank1 struct {
	PriorStd float64 // 0 means 0.1 (section 4: searched over {0.01, 0.1, 1})
	InitStd  float64 // posterior standard deviation at the start; 0 means 1e-3
	// Tied draws the factors of Conv once for each channel and example, as the
	// original method does. By default they are drawn anew for each pixel too, as
	// in the authors' code.
	Tied bool
}

// Dense maps [..., batch, in] to [..., batch, units] and adds the factors' KL.
func (l Rank1) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	scaled := graph.Mul(x, l.factor(s, x, "input", x.Shape().Dim(-1)))
	y := params.Dense(s, scaled, units)
	return graph.Mul(y, l.factor(s, x, "output", units))
}

// factor draws mu + sigma eps for each example of x, [..., batch, n], or once for all if draws are coherent.
func (l Rank1) factor(s *model.Scope, x *graph.Node, name string, n int) *graph.Node {
	mean := params.New(s, x, name+"_factor_mean", params.Variational, params.Constant(1), 1, n)
	logVar := logVariance(s, x, name+"_factor_log_variance", setting("baselines.Rank1.InitStd", l.InitStd, 1e-3), 1, n)
	stochastic.LayerLossesOf(x.Graph()).AddKL(stochastic.GaussianKL(mean, logVar, 1, setting("baselines.Rank1.PriorStd", l.PriorStd, 0.1)))
	eps := stochastic.DrawRows(s, x, stochastic.Gaussian(), n)
	return graph.Add(graph.Mul(eps, std(logVar)), mean)
}

// Conv is Dense with a convolution in the place of x W, and one posterior for
// each input channel and each filter. It maps [channels, batch, height, width] to
// [filters, batch, height', width'] and adds the factors' KL, once for each
// channel and filter, however many draws are made of a factor.
func (l Rank1) Conv(s *model.Scope, x *graph.Node, c conv.Spec) *graph.Node {
	y := conv.Layer(s, l.scaleChannels(s, x, "input"), c)
	return l.scaleChannels(s, y, "output")
}

// scaleChannels multiplies each channel of x by a factor, drawn for each pixel, or
// once for each example and channel.
func (l Rank1) scaleChannels(s *model.Scope, x *graph.Node, name string) *graph.Node {
	pixels := conv.Channels(x)
	channels, batch := x.Shape().Dim(0), x.Shape().Dim(1)
	mean := params.New(s, pixels, name+"_factor_mean", params.Variational, params.Constant(1), channels, 1)
	logVar := logVariance(s, pixels, name+"_factor_log_variance", setting("baselines.Rank1.InitStd", l.InitStd, 1e-3), channels, 1)
	stochastic.LayerLossesOf(x.Graph()).AddKL(stochastic.GaussianKL(mean, logVar, 1, setting("baselines.Rank1.PriorStd", l.PriorStd, 0.1)))
	factor := func(eps *graph.Node) *graph.Node { return conv.AddColumn(conv.MulColumn(eps, std(logVar)), mean) }
	if !l.Tied {
		return conv.LikeImage(graph.Mul(pixels, factor(conv.Noise(s, pixels, stochastic.Gaussian()))), x)
	}
	// One row for each channel and example.
	rows := channels * batch
	eps := stochastic.Draw(s, pixels, stochastic.Gaussian(), channels, batch)
	scaled := conv.MulColumn(graph.Reshape(x, rows, x.Shape().Size()/rows), graph.Reshape(factor(eps), rows, 1))
	return graph.Reshape(scaled, x.Shape().Dimensions...)
}
