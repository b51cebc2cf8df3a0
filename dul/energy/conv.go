package energy

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
)

// ConvTerms are the results of an energy model for a batch of images.
type ConvTerms struct {
	// Energy is E >= 0 at each position of the layer's window, [1, batch, height', width'].
	Energy *graph.Node
	// MeanEnergy is the energy of each image, averaged over pixels before any pooling, [batch, 1].
	MeanEnergy *graph.Node
	// LogLikelihood is the log-likelihood of each image, [batch, 1]; nil for a model that is not fitted.
	LogLikelihood *graph.Node
	// Dimensions is the number of dimensions D of the model at a position, at least 1. The mean energy of a fitted
	// Gaussian is D/2.
	Dimensions int
}

// Conv returns the terms of images x, [channels, batch, height, width], for a layer with window w. A masked convolution
// replaces the product L^T h (section 2.4). It has the size of w, stride 1 and zero padding:
//
//	z = x + conv(x, kernel * mask)
//	E[i, j] = 1/2 sum_c z[c, i, j]^2 / exp(log variance_c)
//
// The mask lets z at a pixel depend only on what comes before it in raster order: on pixels above or to the left, and
// on earlier channels of the pixel. So the map x -> z is unit triangular and has the determinant 1, and the sum of E
// over an image is the energy of one Gaussian over whole images, with log |Sigma| = height width sum_c log variance_c.
// The log-likelihood of an image is divided by the number of pixels, as in the authors' code:
//
//	-1/2 (channels log 2 pi + sum_c log variance_c) - mean of E.
//
// A layer needs one energy at each position of its own window. The paper does not say which; as in the authors' code it
// is the mean of E over the window, where padding counts as zero. At the border it is therefore smaller: 4/9 in the
// corner under a 3 x 3 window. Since each z sees its own masked window, the mean depends on pixels outside of w too.
//
// Kernel and log variances start at zero: Sigma = I. Conv panics if the size of w is even.
func (l LDL) Conv(s *model.Scope, x *graph.Node, w conv.Window) ConvTerms {
	if w.Size%2 == 0 {
		panic(fmt.Errorf("energy.LDL: a window of size %d has no centre; the masked convolution needs an odd size", w.Size))
	}
	c := x.Shape().Dim(0)
	rows := conv.Channels(x)
	kernel := params.New(s, rows, "kernel", params.Generative, params.Constant(0), c, c*w.Pixels())
	logVariance := floored(params.New(s, rows, "log_variance", params.Generative, params.Constant(0), c, 1))

	z := conv.Channels(l.whitened(x, kernel, w.Size))
	squares := conv.WeightedSquares(z, graph.MulScalar(ops.Exp(graph.Neg(logVariance)), 0.5))
	energy := conv.LikeImage(squares, x)
	mean := conv.ExampleMeans(energy)
	logDet := ops.SumRows(logVariance)
	return ConvTerms{
		Energy:        averagePool(energy, w),
		MeanEnergy:    mean,
		LogLikelihood: graph.Add(graph.Neg(mean), logNormalizer(logDet, c)),
		Dimensions:    c,
	}
}

// whitened is z, whose entries are independent under the model.
func (l LDL) whitened(x, kernel *graph.Node, size int) *graph.Node {
	w := conv.Same(size, 1)
	if l.ReplicatePadding {
		x, w.Padding = replicate(replicate(x, 2, size/2), 3, size/2), 0
	}
	return conv.Convolve(x, causal(kernel, size*size), w)
}

// causal makes a kernel with so many positions unit triangular in raster order: entry c of
// position p of the window has number p*channels + c, and filter f has entry f of
// the centre. Entries with a lower number than the filter's are
// kept, its own is 1, and all others are 0.
func causal(kernel *graph.Node, positions int) *graph.Node {
	g, channels := kernel.Graph(), kernel.Shape().Dim(0)
	entries := shapes.Make(dtypes.Int32, channels, channels, positions) // filter, channel, position
	number := graph.Add(graph.MulScalar(graph.Iota(g, entries, 2), channels), graph.Iota(g, entries, 1))
	own := graph.AddScalar(graph.Iota(g, entries, 0), positions/2*channels)
	like := func(mask *graph.Node) *graph.Node {
		return graph.Reshape(graph.ConvertDType(mask, kernel.DType()), channels, channels*positions)
	}
	return graph.Add(graph.Mul(kernel, like(graph.LessThan(number, own))), like(graph.Equal(number, own)))
}

// replicate adds n copies of the border pixels on each side of an axis.
func replicate(x *graph.Node, axis, n int) *graph.Node {
	if n == 0 {
		return x
	}
	first := graph.SliceAxis(x, axis, graph.AxisRange(0, 1))
	last := graph.SliceAxis(x, axis, graph.AxisRange(x.Shape().Dim(axis)-1, x.Shape().Dim(axis)))
	parts := []*graph.Node{x}
	for range n {
		parts = append(append([]*graph.Node{first}, parts...), last)
	}
	return graph.Concatenate(parts, axis)
}

// averagePool is the mean over the window of one-channel images; padding counts
// as zeros. Compilers are slow at a convolution of one channel with one filter: they
// add up shifted images.
func averagePool(x *graph.Node, w conv.Window) *graph.Node {
	if w == conv.Same(1, 1) {
		return x
	}
	n := w.Pixels()
	if !ops.OnGo(x) {
		return graph.MulScalar(windowSums(windowSums(x, 2, w), 3, w), 1/float64(n))
	}
	mean := graph.MulScalar(graph.Ones(x.Graph(), shapes.Make(x.DType(), 1, n)), 1/float64(n))
	return conv.Convolve(x, mean, w)
}

// windowSums is sum_u x[i*Stride + u - Padding] along one axis of images.
func windowSums(x *graph.Node, axis int, w conv.Window) *graph.Node {
	around := make([]graph.PadAxis, 4)
	around[axis] = graph.PadAxis{Start: w.Padding, End: w.Padding}
	padded := graph.Pad(x, graph.ScalarZero(x.Graph(), x.DType()), around...)
	var sum *graph.Node
	for first := range w.Size {
		last := padded.Shape().Dim(axis) - w.Size + first
		shifted := graph.SliceAxis(padded, axis, graph.AxisRange(first, last+1).Stride(w.Stride))
		if sum == nil {
			sum = shifted
		} else {
			sum = graph.Add(sum, shifted)
		}
	}
	return sum
}

// ConvComponents returns K for images with so many channels: 3 for RGB images, as in the authors' code, and otherwise
// Components(channels).
func (m Rank1Mixture) ConvComponents(channels int) int {
	if channels == rgb {
		return rgb
	}
	return m.Components(channels)
}

// rgb is the number of channels of a colour image.
const rgb = 3

// Conv returns the terms of images x, [channels, batch, height, width], for a layer with window w: Dense's terms for
// every patch that the window sees, a vector of D = channels Pixels() entries. No patch is built: both quadratic forms
// are convolutions with one filter for each component,
//
//	h^T D_k^-1 h = conv(x^2, D_k^-1),   v_k^T D_k^-1 h = conv(x, D_k^-1 v_k).
//
// The log-likelihood of an image is the mean over its patches. K is ConvComponents(channels).
func (m Rank1Mixture) Conv(s *model.Scope, x *graph.Node, w conv.Window) ConvTerms {
	return m.conv(s, x, w, m.ConvComponents(x.Shape().Dim(0)))
}

// conv is Conv with k components.
func (m Rank1Mixture) conv(s *model.Scope, x *graph.Node, w conv.Window, k int) ConvTerms {
	rows, d := conv.Channels(x), x.Shape().Dim(0)*w.Pixels()
	precision, scaled, capacity, logDet := m.components(s, rows, k, d)
	logits := params.New(s, rows, "mixture_logits", params.Generative, params.Constant(0), k, 1)

	// Where a D_k is small the forms are large and nearly equal.
	diagonal := conv.InFullPrecision(graph.Mul(x, x), precision, w) // [K, batch, height', width']
	along := conv.Channels(conv.InFullPrecision(x, scaled, w))
	share := graph.Reciprocal(capacity)
	quadratic := atLeast(graph.Sub(conv.Channels(diagonal), conv.MulColumn(graph.Mul(along, along), share)), conv.MulColumn(along, share))

	normalizing := logDet
	if m.NegatedLogDet {
		normalizing = graph.Neg(logDet)
	}
	logWeights := graph.Sub(logits, logSumExpRows(logits))
	atZero := graph.Add(logWeights, logNormalizer(normalizing, d)) // log pi_k N(0; 0, Sigma_k)
	logLikelihood := logSumExpRows(conv.AddColumn(graph.MulScalar(quadratic, -0.5), atZero))
	energy := conv.LikeImage(notNegative(conv.AddColumn(graph.Neg(logLikelihood), logSumExpRows(atZero))), diagonal)
	return ConvTerms{
		Energy:        energy,
		MeanEnergy:    conv.ExampleMeans(energy),
		LogLikelihood: conv.ExampleMeans(conv.LikeImage(logLikelihood, diagonal)),
		Dimensions:    d,
	}
}

// logSumExpRows is log sum_k exp(x_k) over the rows, [K, m] -> [1, m].
func logSumExpRows(x *graph.Node) *graph.Node {
	if x.Shape().Dim(0) == 1 {
		return x
	}
	maximum := graph.StopGradient(graph.ReduceAndKeep(x, graph.ReduceMax, 0))
	return graph.Add(graph.Log(ops.SumRows(ops.Exp(graph.Sub(x, maximum)))), maximum)
}
