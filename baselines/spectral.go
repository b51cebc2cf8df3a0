package baselines

import (
	"math"
	"math/rand/v2"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/floats"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
)

// SpectralNormed is the family of deterministic layers that stretch distances by at most a bound c. W is trained, and
// the layer applies
//
//	W / max(1, sigma(W)/c),
//
// where sigma(W) is the largest singular value. Residual connections keep distances from vanishing. Together they keep
// the features of inputs far from the data far from the data's features, which SNGP and DUE need (Liu et al. 2020,
// section 3.2; van Amersfoort et al. 2021, section 3.1).
//
// sigma is computed by power iteration (Miyato et al. 2018) from a vector u that is kept between steps (role Running).
// Each training step makes one iteration,
//
//	v = W^T u / |W^T u|,   u = W v / |W v|,   sigma = u^T W v,
//
// where u and v are constants for the gradient; evaluation does not change u. The result is a lower bound of the norm,
// which is close once the weights move slowly.
type SpectralNormed struct {
	Bound float64 // c; 0 means 3, as in DUE; uncertainty-baselines has 6
}

// Dense returns x W/max(1, sigma/c) + b, [..., batch, in] -> [..., batch, units].
func (l SpectralNormed) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	in := x.Shape().Dim(-1)
	w := params.New(s, x, "weights", params.Weight, params.KaimingNormal(in), in, units)
	return ops.Affine(x, l.bounded(s, w, matrixMap(units)), params.Bias(s, x, units))
}

// Conv returns the convolution of x with the bounded kernel, [channels, batch, height, width] -> [filters, batch,
// height', width']. The bounded norm is that of the map on images of the size of x, zero padding included. All images
// must have one size, because the layer keeps a vector of this size.
func (l SpectralNormed) Conv(s *model.Scope, x *graph.Node, c conv.Spec) *graph.Node {
	fanIn := c.FanIn(x)
	kernel := params.New(s, conv.Channels(x), "weights", params.Weight, params.KaimingNormal(fanIn), c.Filters, fanIn)
	return conv.AddBias(s, conv.Convolve(x, l.bounded(s, kernel, convolutionMap(x, c)), c.Window), c, fanIn)
}

// Norm returns the batch normalisation of x with a bounded scale, as in DUE. With the running variances,
//
//	scale / max(1, L/c),   L = max_j |scale_j| / sqrt(variance_j + 1e-5).
//
// The shift is not changed. In training, which uses the variances of the batch, the layer may stretch a little more.
// The running variances move a tenth of the way in each step, as in all networks of this project; in the DUE authors'
// code a hundredth, which is too slow for short trainings.
func (l SpectralNormed) Norm(s *model.Scope, x *graph.Node) *graph.Node {
	y, g := conv.BatchNorm(s, x), x.Graph()
	of := func(name string) *graph.Node {
		return s.Store().GetVariable(model.JoinPath(s.Scope(), name)).NodeValue(g)
	}
	std := graph.Sqrt(graph.AddScalar(graph.StopGradient(of("running_variance")), 1e-5))
	largest := graph.ReduceAllMax(graph.Div(graph.Abs(of("scale")), std))
	m := conv.Channels(y)
	factor := graph.BroadcastToDims(graph.Reciprocal(l.excess(largest)), m.Shape().Dim(0), 1)
	shift := graph.Mul(of("shift"), graph.OneMinus(factor)) // what the factor takes from it
	return conv.LikeImage(conv.AddColumn(conv.MulColumn(m, factor), shift), y)
}

// excess is max(1, norm/c).
func (l SpectralNormed) excess(norm *graph.Node) *graph.Node {
	return ops.AtLeast(graph.MulScalar(norm, 1/setting("baselines.SpectralNormed.Bound", l.Bound, 3)), 1)
}

// A linearMap is the map whose norm is bounded, by its weights; it maps rows
// [..., 1, n] to rows.
type linearMap struct {
	outputs             int // entries of the output
	forward, transposed func(v, weights *graph.Node) *graph.Node
}

// matrixMap is the map of rows by a matrix of weights, [..., n, outputs].
func matrixMap(outputs int) linearMap {
	return linearMap{outputs: outputs, forward: ops.Product, transposed: ops.ProductTransposed}
}

// convolutionMap is the convolution of one image of the size of x.
func convolutionMap(x *graph.Node, c conv.Spec) linearMap {
	channels, height, width := x.Shape().Dim(0), x.Shape().Dim(2), x.Shape().Dim(3)
	high, wide := c.Window.Out(height, width)
	apply := func(image, kernel *graph.Node) *graph.Node { return conv.Convolve(image, kernel, c.Window) }
	return linearMap{
		outputs: c.Filters * high * wide,
		forward: func(v, kernel *graph.Node) *graph.Node {
			return graph.Reshape(apply(graph.Reshape(v, channels, 1, height, width), kernel), 1, -1)
		},
		transposed: func(u, kernel *graph.Node) *graph.Node {
			// The transpose of a linear map is its gradient, at any place.
			at := graph.Zeros(x.Graph(), shapes.Make(x.DType(), channels, 1, height, width))
			dot := graph.ReduceAllSum(graph.Mul(apply(at, kernel), graph.Reshape(u, c.Filters, 1, high, wide)))
			return graph.Reshape(graph.Gradient(dot, at)[0], 1, -1)
		},
	}
}

// bounded is w / max(1, sigma/c), with sigma the norm of the map of w.
func (l SpectralNormed) bounded(s *model.Scope, w *graph.Node, m linearMap) *graph.Node {
	g, fixed := w.Graph(), graph.StopGradient(w)
	kept := params.Statistic(s, w, "singular_vector", unitVector, 1, m.outputs)
	u := kept.NodeValue(g)
	v := unitRow(m.transposed(u, fixed))
	if s.Store().IsTraining(g) {
		u = graph.StopGradient(unitRow(m.forward(v, fixed)))
		kept.SetNodeValue(u)
	}
	sigma := ops.SumColumns(graph.Mul(m.forward(graph.StopGradient(v), w), u))
	return graph.Div(w, l.excess(sigma))
}

// unitRow is x / |x|, row by row.
func unitRow(x *graph.Node) *graph.Node {
	norm := graph.Sqrt(ops.SumColumns(graph.Mul(x, x)))
	return graph.Div(x, ops.AtLeast(norm, 1e-12))
}

// unitVector starts a vector at a random direction.
func unitVector(rng *rand.Rand, _ []int, values []float64) {
	for i := range values {
		values[i] = rng.NormFloat64()
	}
	floats.Scale(1/math.Max(floats.Norm(values, 2), 1e-12), values)
}
