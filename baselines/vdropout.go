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

// VDropout is variational Gaussian dropout (Kingma et al. 2015). The output of each layer is multiplied by Gaussian
// noise of mean 1 and variance alpha,
//
//	y = (x W + b) (1 + sqrt(min(alpha, 1)) eps),   eps ~ N(0, 1).
//
// alpha is fixed, as in the paper, which found that training it under-fits. The KL is the one from the log-uniform
// prior, up to a constant (their equation 14).
type VDropout struct {
	Alpha float64 // 0 means 0.1
	// Adaptive trains alpha, one for each unit. The noise has min(alpha, 1), and the KL has alpha, as in the authors'
	// code. Above alpha = 1 only the KL has a gradient. Its cubic approximation decreases without bound, so that the
	// loss has no minimum; the predictions remain those of alpha = 1.
	Adaptive bool
	// DoubledConvAlpha starts Conv at 2 Alpha, as the authors' code does.
	DoubledConvAlpha bool
}

// Dense maps [..., batch, in] to [..., batch, units] and adds the KL.
func (l VDropout) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	start := math.Log(setting("baselines.VDropout.Alpha", l.Alpha, 0.1))
	var logAlpha *graph.Node
	if l.Adaptive {
		logAlpha = params.New(s, x, "log_alpha", params.Variational, params.Constant(start), 1, units)
	} else {
		logAlpha = ops.FullRow(x, start, units)
	}
	stochastic.LayerLossesOf(x.Graph()).AddKL(dropoutKL(logAlpha))

	alpha := ops.AtMost(ops.Exp(logAlpha), 1)
	y := params.Dense(s, x, units)
	eps := stochastic.DrawRows(s, x, stochastic.Gaussian(), units)
	return graph.Mul(y, graph.AddScalar(graph.Mul(eps, graph.Sqrt(alpha)), 1))
}

// Conv is Dense with a convolution instead of x W. It draws noise for each pixel, has one alpha for each filter, and
// adds the KL.
func (l VDropout) Conv(s *model.Scope, x *graph.Node, c conv.Spec) *graph.Node {
	start := math.Log(setting("baselines.VDropout.Alpha", l.Alpha, 0.1))
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
	stochastic.LayerLossesOf(x.Graph()).AddKL(dropoutKL(graph.Reshape(logAlpha, 1, c.Filters)))

	alpha := ops.AtMost(ops.Exp(logAlpha), 1)
	eps := conv.Noise(s, pixels, stochastic.Gaussian())
	factor := graph.AddScalar(conv.MulColumn(eps, graph.Sqrt(alpha)), 1)
	return conv.LikeImage(graph.Mul(pixels, factor), y)
}

// dropoutKL is the divergence from the log-uniform prior, up to a constant, by
// the cubic approximation of Kingma et al. 2015 (equation 14), once for each
// unit:
//
//	-sum_j [ 0.5 log alpha_j + 1.16145124 alpha_j - 1.50204118 alpha_j^2 + 0.58629921 alpha_j^3 ].
func dropoutKL(logAlpha *graph.Node) *graph.Node {
	alpha := ops.Exp(logAlpha)
	square := graph.Mul(alpha, alpha)
	sum := graph.Add(
		graph.Add(graph.MulScalar(logAlpha, 0.5), graph.MulScalar(alpha, 1.16145124)),
		graph.Add(graph.MulScalar(square, -1.50204118), graph.MulScalar(graph.Mul(square, alpha), 0.58629921)))
	return graph.Neg(ops.SumColumns(sum))
}
