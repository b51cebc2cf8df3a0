package stochastic

import (
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

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
