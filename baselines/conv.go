package baselines

import (
	"math"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
)

// Conv returns the convolution of x, [channels, batch, height, width] ->
// [filters, batch, height', width'].
func (Deterministic) Conv(s *model.Scope, x *graph.Node, c conv.Spec) *graph.Node {
	return conv.Layer(s, x, c)
}

// Conv is Dense with a convolution in the place of x W: one draw of the kernel
// for each execution. It maps [channels, batch, height, width] to [filters,
// batch, height', width'] and adds the kernel's KL.
func (l MFVI) Conv(s *model.Scope, x *graph.Node, c conv.Spec) *graph.Node {
	like, fanIn := conv.Channels(x), c.FanIn(x)
	mean := params.New(s, like, "weights_mean", params.Variational, params.KaimingNormal(fanIn), c.Filters, fanIn)
	logVar := logVariance(s, like, "weights_log_variance", orDefault(l.InitStd, 1e-3), c.Filters, fanIn)
	stochastic.TallyOf(x.Graph()).AddKL(stochastic.GaussianKL(mean, logVar, 0, orDefault(l.PriorStd, 0.1)))

	eps := stochastic.Draw(s, like, stochastic.Gaussian(), c.Filters, fanIn)
	y := conv.Convolve(x, graph.Add(mean, graph.Mul(std(logVar), eps)), c.Window)
	if c.NoBias {
		return y
	}
	bias := params.New(s, like, "bias", params.Weight, params.Constant(0), c.Filters, 1)
	return conv.LikeImage(conv.AddColumn(conv.Channels(y), bias), y)
}

// Conv is Dense with a convolution in the place of x W: every pixel of every
// channel is dropped by itself, also those of the network's input image. It maps
// [channels, batch, height, width] to [filters, batch, height', width'].
func (l MCDropout) Conv(s *model.Scope, x *graph.Node, c conv.Spec) *graph.Node {
	pixels := conv.Channels(x)
	mask := conv.Noise(s, pixels, stochastic.DropoutMask(orDefault(l.Rate, 0.1)))
	return conv.Layer(s, conv.LikeImage(graph.Mul(pixels, mask), x), c)
}

// Conv is Dense with a convolution in the place of x W, with noise drawn for
// each pixel and one alpha for each filter. It maps [channels, batch, height,
// width] to [filters, batch, height', width'] and adds the KL.
func (l VDropout) Conv(s *model.Scope, x *graph.Node, c conv.Spec) *graph.Node {
	start := math.Log(orDefault(l.Alpha, 0.1))
	if l.DoubledConvAlpha {
		start += math.Ln2
	}
	y := conv.Layer(s, x, c)
	pixels := conv.Channels(y)
	var logAlpha *graph.Node
	if l.Adaptive {
		logAlpha = params.New(s, pixels, "log_alpha", params.Variational, params.Constant(start), c.Filters, 1)
	} else {
		logAlpha = graph.Reshape(ops.FullRow(pixels, start, c.Filters), c.Filters, 1)
	}
	stochastic.TallyOf(x.Graph()).AddKL(dropoutKL(graph.Reshape(logAlpha, 1, c.Filters)))

	alpha := graph.MinScalar(graph.Exp(logAlpha), 1)
	eps := conv.Noise(s, pixels, stochastic.Gaussian())
	factor := graph.AddScalar(conv.MulColumn(eps, graph.Sqrt(alpha)), 1)
	return conv.LikeImage(graph.Mul(pixels, factor), y)
}

// Conv is Dense with a convolution in the place of x W, and one posterior for
// each input channel and each filter. It maps [channels, batch, height, width] to
// [filters, batch, height', width'] and adds the factors' KL, once for each
// channel and filter, however many draws are made of a factor.
func (l Rank1) Conv(s *model.Scope, x *graph.Node, c conv.Spec) *graph.Node {
	y := conv.Layer(s, l.scaleChannels(s, x, "input"), c)
	return l.scaleChannels(s, y, "output")
}

// scaleChannels multiplies the image x by a factor mu + sigma eps of each
// channel, drawn for each pixel, or once for each example.
func (l Rank1) scaleChannels(s *model.Scope, x *graph.Node, name string) *graph.Node {
	pixels := conv.Channels(x)
	channels, batch, draws := x.Shape().Dim(0), x.Shape().Dim(1), pixels.Shape().Dim(1)
	mean := params.New(s, pixels, name+"_factor_mean", params.Variational, params.Constant(1), channels, 1)
	logVar := logVariance(s, pixels, name+"_factor_log_variance", orDefault(l.InitStd, 1e-3), channels, 1)
	stochastic.TallyOf(x.Graph()).AddKL(stochastic.GaussianKL(mean, logVar, 1, orDefault(l.PriorStd, 0.1)))
	if l.Tied {
		draws = batch
	}
	eps := stochastic.Draw(s, pixels, stochastic.Gaussian(), channels, draws)
	factor := conv.AddColumn(conv.MulColumn(eps, std(logVar)), mean)
	if !l.Tied {
		return conv.LikeImage(graph.Mul(pixels, factor), x)
	}
	// One row for each channel and example.
	rows := channels * batch
	scaled := conv.MulColumn(graph.Reshape(x, rows, x.Shape().Size()/rows), graph.Reshape(factor, rows, 1))
	return graph.Reshape(scaled, x.Shape().Dimensions...)
}
