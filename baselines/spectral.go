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

// SpectralNormed is the family of deterministic layers that do not stretch
// distances by more than a bound c: the weights W are trained, and
//
//	W / max(1, sigma(W)/c)
//
// is applied, where sigma is the largest singular value. With residual
// connections, which keep distances from vanishing, inputs far from the data then
// have features far from theirs, on which SNGP and DUE rely (Liu et al. 2020,
// section 3.2; van Amersfoort et al. 2021, section 3.1).
//
// sigma is found by power iteration (Miyato et al. 2018) from a vector that is
// kept from step to step (role Running): each training step makes one iteration,
//
//	v = W^T u / |W^T u|,   u = W v / |W v|,   sigma = u^T W v,
//
// with u and v constants for the gradient; in evaluation u stays. It is a lower
// bound of the norm, close after many steps of slowly moving weights.
type SpectralNormed struct {
	Bound float64 // c; 0 means 3, as DUE has it. 6 in uncertainty-baselines.
}

// Dense returns x W/max(1, sigma/c) + b, [..., batch, in] -> [..., batch, units].
func (l SpectralNormed) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	in := x.Shape().Dim(-1)
	w := params.New(s, x, "weights", params.Weight, params.KaimingNormal(in), in, units)
	return ops.Affine(x, l.bounded(s, w, matrixMap(units)), params.Bias(s, x, units))
}

// Conv returns the convolution of x with the bounded kernel, [channels, batch,
// height, width] -> [filters, batch, height', width']. The norm is that of the
// map of an image of the size of x, zeros around it included; the layer keeps a
// vector of that size, so that it is for images of one size.
func (l SpectralNormed) Conv(s *model.Scope, x *graph.Node, c conv.Spec) *graph.Node {
	fanIn := c.FanIn(x)
	kernel := params.New(s, conv.Channels(x), "weights", params.Weight, params.KaimingNormal(fanIn), c.Filters, fanIn)
	return conv.AddBias(s, conv.Convolve(x, l.bounded(s, kernel, convolutionMap(x, c)), c.Window), c, fanIn)
}

// Norm is batch normalisation whose largest factor is bounded as well, as in
// DUE: with the running variances, the scale is
//
//	scale / max(1, L/c),   L = max_j |scale_j| / sqrt(variance_j + 1e-5),
//
// and the shift stays. (In training the variances of the batch may stretch a
// little more. The running ones follow each batch by a tenth, as in all networks
// of this project; in the DUE authors' code by a hundredth, which takes more steps
// than a short training has.)
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

// Headless is the family of SpectralNormed without a last layer: its Dense returns
// its input. A network of it, with the parameters of one of SNGP or DUE, gives
// the features that the Gaussian process sees.
type Headless struct{ SpectralNormed }

// Dense returns x.
func (Headless) Dense(_ *model.Scope, x *graph.Node, _ int) *graph.Node { return x }
