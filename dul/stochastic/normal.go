package stochastic

import (
	"math"
	"math/rand/v2"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// Draws of N(0, 1) by the ziggurat of Marsaglia & Tsang (2000), with 32 random
// bits for each: half the time of rand.Rand.NormFloat64, which takes 64. Noise is
// a tenth of a training step.
//
// The area under f(x) = exp(-x^2/2), x >= 0, is covered by layers of equal area.
// Layer i is the rectangle 0 <= x < edges[i] between the heights f(edges[i]) and
// f(edges[i+1]); nearly all of it lies under the curve. The lowest layer is the
// rectangle up to f(tailStart) with all of the tail beyond tailStart; its edge is
// as for a rectangle of the same area. A point of a random layer is a draw
// where it lies under the curve.
const (
	layers    = 256
	tailStart = 3.6541528853610088 // so that the uppermost of 256 layers ends at f(0)
	positions = 1 << 23            // across half a layer
)

var (
	edges   [layers + 1]float64
	heights [layers + 1]float64 // f(edges)
	widths  [layers]float64     // of one position
	inside  [layers]int32       // positions that lie under the curve at every height of the layer
)

func density(x float64) float64 { return math.Exp(-x * x / 2) }

func init() {
	area := tailStart*density(tailStart) + math.Sqrt(math.Pi/2)*math.Erfc(tailStart/math.Sqrt2)
	edges[0], edges[1] = area/density(tailStart), tailStart
	for i := 2; i < layers; i++ {
		edges[i] = math.Sqrt(-2 * math.Log(density(edges[i-1])+area/edges[i-1]))
	}
	for i, edge := range edges {
		heights[i] = density(edge)
	}
	for i := range layers {
		widths[i] = edges[i] / positions
		inside[i] = int32(edges[i+1] / edges[i] * positions)
	}
}

// pointOf is a random point of a random layer: 8 bits choose the layer, 24 the
// position on either side of 0. It says whether the point surely lies under the curve.
func pointOf(bits int32) (layer int32, x float64, under bool) {
	layer, position := bits&(layers-1), bits>>8
	return layer, (float64(position) + 0.5) * widths[layer], max(position, ^position) < inside[layer]
}

// normalNearCurve decides on a point x of a layer that may lie outside the
// curve, one in a hundred, and goes on to other points where it does.
func normalNearCurve(stream *rand.Rand, layer int32, x float64) float64 {
	for under := false; !under; layer, x, under = pointOf(int32(stream.Uint64())) {
		if layer == 0 {
			return math.Copysign(normalTail(stream), x)
		}
		low, high := heights[layer], heights[layer+1]
		if low+(high-low)*stream.Float64() < density(x) {
			return x
		}
	}
	return x
}

// normalTail draws from N(0, 1) beyond tailStart (Marsaglia 1964).
func normalTail(stream *rand.Rand) float64 {
	for {
		x := stream.ExpFloat64() / tailStart
		if 2*stream.ExpFloat64() > x*x {
			return tailStart + x
		}
	}
}

// normalsOf are draws of N(0, 1), each of 32 random bits, by the inverse of the
// normal distribution function: a formula without a branch, which a compiler
// computes with vector instructions, and fuses with what uses the draws.
//
// One of the bits is the sign, the others are the number k of the probability u =
// (k + 1/2)/2^32 < 1/2 of a draw beyond +-z. With t = sqrt(-log(4 u (1-u))) the
// ratio |z|/t is a smooth function, here a polynomial that was fitted for the
// least largest relative error. As u is small in the tail, and not near 1, it
// keeps all its bits there: z has a relative error of 1e-5 up to the largest draw,
// |z| = 6.34. Rounding of 4u(1-u) to float32 adds 1e-7/|z|, and no more than 3e-4,
// which only counts near 0.
//
// A compiler computes a logarithm or a root once for all of its uses, in a loop
// of its own, with what it is a function of. So there is a single value that is
// used more than once, the signed t.
func normalsOf(bits *graph.Node, dtype dtypes.DType) *graph.Node {
	g := bits.Graph()
	k := graph.ConvertDType(graph.BitwiseAnd(bits, graph.Const(g, uint32(math.MaxInt32))), dtypes.Int32)
	u := graph.MulScalar(graph.AddScalar(graph.ConvertDType(k, dtype), 0.5), 1.0/(1<<32))
	t := graph.Sqrt(graph.Neg(graph.Log(graph.Mul(graph.MulScalar(u, 4), graph.OneMinus(u)))))
	negative := graph.GreaterThan(bits, graph.Const(g, uint32(math.MaxInt32)))
	t = graph.Mul(t, graph.Where(negative, graph.Scalar(g, dtype, -1), graph.Scalar(g, dtype, 1)))
	distance := graph.Abs(t)
	ratio := graph.Scalar(g, dtype, tailRatio[len(tailRatio)-1])
	for i := len(tailRatio) - 2; i >= 0; i-- {
		ratio = graph.AddScalar(graph.Mul(ratio, distance), tailRatio[i])
	}
	return graph.Mul(t, ratio)
}

// tailRatio are the coefficients of |z|/t as a polynomial of t, lowest power first.
var tailRatio = []float64{
	1.25330108, 0.000157581176, 0.0148204976, -0.00169032475, 0.00291179102,
	-0.00265348051, 0.00086738792, -0.000125616935, 6.89291739e-06,
}
