package baselines

import (
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
)

// Rank1 is the rank-1 Bayesian neural network (Dusenberry et al. 2020). The inputs and the outputs of each layer are
// multiplied by Gaussian factors r and s, drawn for each example:
//
//	y = s * ((r * x) W + b),   q(r_i) = N(mu_i, sigma_i^2),   p(r_i) = N(1, PriorStd^2),
//
// and likewise for s.
//
// Here s multiplies the bias too, as in the released code of Park & Blei. In the original method the bias is added
// last, s * ((r * x) W) + b, as in its authors' library (edward2, layers.DenseRank1).
type Rank1 struct {
	PriorStd float64 // 0 means 0.1 (section 4: searched over {0.01, 0.1, 1})
	InitStd  float64 // initial posterior standard deviation; 0 means 1e-3
	// Tied draws the factors of Conv once for each channel and example, as the original method does. By default Conv
	// draws them for each pixel, as the code of Park & Blei does.
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

// Conv is Dense with a convolution instead of x W. Each input channel and each filter has one posterior. It adds the
// factors' KL, once for each channel and filter, however often a factor is drawn.
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
