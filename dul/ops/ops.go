// Package ops has the tensor operations of all layers. Activations are [batch, features], or [replicas, batch,
// features] with weights [replicas, in, out] for models in one graph: each layer is written once for both.
package ops

import (
	"errors"
	"math"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// WithGradient returns f(inputs) with your own gradient: vjp gets the output y and dL/dy, and returns dL/dinput for
// every input, in the input's shape, or nil for 0.
//
// GoMLX allows a custom gradient only for an identity of one input, so every input and the output pass through one.
// Backpropagation meets the output's first, which computes all gradients by vjp. The inputs' identities return them.
// An input on which f does not depend gets no gradient.
//
// Second derivatives differentiate vjp. They are right if vjp computes with the inputs, y and dy alone. Pass any other
// node that f made through FirstOrder.
func WithGradient(inputs []*graph.Node, f func(inputs []*graph.Node) *graph.Node, vjp func(y, dy *graph.Node) []*graph.Node) *graph.Node {
	var gradients []*graph.Node
	wrapped, handedOn := make([]*graph.Node, len(inputs)), make([]bool, len(inputs))
	for i, input := range inputs {
		wrapped[i] = graph.IdentityWithCustomGradient(input, func(x, _ *graph.Node) *graph.Node {
			if gradients == nil || handedOn[i] { // this sweep did not come by the output
				panic(errSecondDerivative)
			}
			handedOn[i] = true
			if gradients[i] == nil {
				return graph.ZerosLike(x)
			}
			return gradients[i]
		})
	}
	return graph.IdentityWithCustomGradient(f(wrapped), func(y, dy *graph.Node) *graph.Node {
		gradients = vjp(y, dy)
		clear(handedOn)
		return dy
	})
}

var errSecondDerivative = errors.New("a second derivative of an operation of this project (dul/ops, dul/conv, dul/linalg or a density layer), which has first ones alone: " +
	"put graph.StopGradient around the gradient that is differentiated again, or write the operation with GoMLX's own")

// FirstOrder returns x, for the vjp of WithGradient. Differentiating it panics with an error that says so.
func FirstOrder(x *graph.Node) *graph.Node {
	return graph.IdentityWithCustomGradient(x, func(_, _ *graph.Node) *graph.Node { panic(errSecondDerivative) })
}

// Tied returns y plus 0 times the inputs, so that backpropagation reaches the inputs although the gradient of y is
// stopped. Compilers remove the sum.
func Tied(y *graph.Node, inputs []*graph.Node) *graph.Node {
	g := y.Graph()
	zero := graph.ScalarZero(g, y.DType())
	nothing := zero
	for _, input := range inputs {
		first := make([]graph.SliceAxisSpec, input.Rank())
		for i := range first {
			first[i] = graph.AxisRange(0, 1)
		}
		entry := graph.Reshape(graph.Slice(input, first...))
		nothing = graph.Add(nothing, graph.Where(graph.Const(g, false), entry, zero))
	}
	return graph.Add(y, nothing)
}

// Product returns the matrix product over the last two axes, [..., n, k] x [..., k, m] -> [..., n, m], for each
// replica.
//
// On the pure Go backend its gradient transposes only a. GoMLX's own gradient transposes two matrices, and a step of 20
// replicas of the density MLP takes a quarter more CPU time with it (2.4 ms each instead of 1.9).
func Product(a, b *graph.Node) *graph.Node {
	return WithGradient([]*graph.Node{a, b},
		func(in []*graph.Node) *graph.Node { return dot(in[0], in[1], -2) },
		func(_, dy *graph.Node) []*graph.Node {
			return []*graph.Node{dot(dy, b, -1), dot(transpose(Source(a)), dy, -2)}
		})
}

// A sum of more numbers than long is one of sums of atOnce. Added up one after the other in float32, a million equal
// numbers are 1e-2 of their sum off, and from 2^24 on the sum does not grow any more; up to long it is 3e-3 and, of squares
// of normal numbers, 1e-4. Shorter sums, as of the pixels of a batch of images, stay as GoMLX adds them.
const long, atOnce = 1 << 18, 4096

// parts splits an axis, counted from the last, -1, into whole parts of atOnce, with an axis of its own for their number
// before it, and what is left, nil for nothing.
func parts(x *graph.Node, axis int) (whole, left *graph.Node) {
	n, at := x.Shape().Dim(axis), x.Rank()+axis
	count := n / atOnce
	if n > count*atOnce {
		left = graph.SliceAxis(x, at, graph.AxisRange(count*atOnce, n))
		x = graph.SliceAxis(x, at, graph.AxisRange(0, count*atOnce))
	}
	dims := x.Shape().Dimensions
	return graph.Reshape(x, slices.Concat(dims[:at], []int{count, atOnce}, dims[at+1:])...), left
}

// dot is the product over the last axis of a and the given axis of b.
func dot(a, b *graph.Node, axis int) *graph.Node {
	replicas := make([]int, a.Rank()-2)
	for i := range replicas {
		replicas[i] = i
	}
	if a.Shape().Dim(-1) <= long {
		return graph.DotGeneral(a, []int{a.Rank() - 1}, replicas, b, []int{b.Rank() + axis}, replicas)
	}
	partsOfA, leftOfA := parts(a, -1)
	partsOfB, leftOfB := parts(b, axis)
	r := partsOfA.Rank()
	products := graph.DotGeneral(partsOfA, []int{r - 1}, append(slices.Clone(replicas), r-2), partsOfB, []int{r + axis}, append(replicas, r+axis-1))
	y := graph.ReduceSum(products, -3)
	if leftOfA != nil {
		y = graph.Add(y, dot(leftOfA, leftOfB, axis))
	}
	return y
}

// transpose exchanges the last two axes. The pure Go backend has fast loops for one
// matrix, and for an exchange of the first two axes of three, but not for the matrices of
// replicas: without these two the step that Affine speaks of takes an eighth more.
func transpose(x *graph.Node) *graph.Node {
	if x.Rank() != 3 || !OnGo(x) {
		return graph.Transpose(x, -2, -1)
	}
	replicas, n, k := x.Shape().Dim(0), x.Shape().Dim(1), x.Shape().Dim(2)
	all := graph.Transpose(graph.Reshape(x, replicas*n, k), 0, 1)
	return graph.Transpose(graph.Reshape(all, k, replicas, n), 0, 1)
}

// Source returns the node from which a chain of identities, such as StopGradient and the inputs of WithGradient, gets
// its value. If several operations and gradients compute the same from this node, the backend computes it once.
func Source(x *graph.Node) *graph.Node {
	for x.Type() == graph.NodeTypeIdentity {
		x = x.Inputs()[0]
	}
	return x
}

// Affine returns x w + b, the linear map of a dense layer: [..., n, k], [..., k, m] and [..., 1, m] -> [..., n, m].
//
// The pure Go backend adds a row to many rows entry by entry. Copying the row first, by a product that rounds nothing,
// lets it add vectors: a step of 20 replicas of the density MLP takes an eighth less CPU time.
func Affine(x, w, b *graph.Node) *graph.Node {
	y := Product(x, w)
	if b.Rank() > 2 && OnGo(x) {
		dims := slices.Clone(y.Shape().Dimensions)
		dims[len(dims)-1] = 1
		ones := graph.Ones(x.Graph(), shapes.Make(x.DType(), dims...))
		b = WithGradient([]*graph.Node{b},
			func(in []*graph.Node) *graph.Node { return dot(ones, in[0], -2) },
			func(_, dy *graph.Node) []*graph.Node { return []*graph.Node{SumRows(dy)} })
	}
	return graph.Add(y, b)
}

// TransposedProduct returns a^T b: [..., k, n] x [..., k, m] -> [..., n, m].
func TransposedProduct(a, b *graph.Node) *graph.Node { return Product(transpose(a), b) }

// ProductTransposed returns a b^T: [..., n, k] x [..., m, k] -> [..., n, m].
func ProductTransposed(a, b *graph.Node) *graph.Node { return Product(a, transpose(b)) }

// WeightedSquares returns sum_j d_j x_ij^2 for each row i:
// [..., n, m] and [..., 1, m] -> [..., n, 1].
func WeightedSquares(x, d *graph.Node) *graph.Node { return Product(graph.Mul(x, x), transpose(d)) }

// QuadraticForm returns x_i (l D l^T) x_i^T for each row i of x, where D is the diagonal matrix of the row d: [..., n,
// k], [..., k, m] and [..., 1, m] -> [..., n, 1].
func QuadraticForm(x, l, d *graph.Node) *graph.Node { return WeightedSquares(Product(x, l), d) }

// SumRows returns the sum of the rows: [..., n, m] -> [..., 1, m].
func SumRows(x *graph.Node) *graph.Node {
	if x.Shape().Dim(-2) <= long || !OnGo(x) { // compilers add in another order
		return graph.ReduceAndKeep(x, graph.ReduceSum, -2)
	}
	whole, left := parts(x, -2)
	y := SumRows(graph.ReduceSum(whole, -2))
	if left != nil {
		y = graph.Add(y, SumRows(left))
	}
	return y
}

// MeanRows returns the mean of the rows: [..., n, m] -> [..., 1, m].
func MeanRows(x *graph.Node) *graph.Node {
	n := x.Shape().Dim(-2)
	if n <= long || !OnGo(x) {
		return graph.ReduceAndKeep(x, graph.ReduceMean, -2)
	}
	return graph.MulScalar(SumRows(x), 1/float64(n))
}

// Mean returns the mean of all entries, a scalar.
func Mean(x *graph.Node) *graph.Node {
	if n := x.Shape().Size(); n > long {
		x = MeanRows(graph.Reshape(x, n, 1))
	}
	return graph.ReduceAllMean(x)
}

// SumColumns returns the sum of the columns: [..., n, m] -> [..., n, 1].
func SumColumns(x *graph.Node) *graph.Node { return graph.ReduceAndKeep(x, graph.ReduceSum, -1) }

// FullRow returns a constant row of equal entries, [..., 1, n], with the replica axes and type of x.
func FullRow(x *graph.Node, value float64, n int) *graph.Node {
	dims := slices.Concat(x.Shape().Dimensions[:x.Rank()-2], []int{1, n})
	return graph.MulScalar(graph.Ones(x.Graph(), shapes.Make(x.DType(), dims...)), value)
}

// ReLU returns max(x, 0), and NaN for NaN. Its derivative at 0 is 0 on all backends. (GoMLX's is 0 or 1, depending on
// the backend, and has no second derivative on the pure Go backend.)
func ReLU(x *graph.Node) *graph.Node {
	return WithGradient([]*graph.Node{x},
		func(in []*graph.Node) *graph.Node {
			y := graph.MaxScalar(in[0], 0)
			if OnGo(x) {
				// A vector maximum of NaN and a number is its first operand or its second, by the compiler. Of x on either side
				// NaN stays. A comparison, as in AtLeast, would take 4% more of a step of the density MLP.
				y = graph.Max(in[0], graph.Max(y, in[0]))
			}
			return y
		},
		func(y, dy *graph.Node) []*graph.Node {
			// y >= 0, so min(y * huge, 1) is the step function of x for every y above
			// 1e-37: one product and one minimum, no comparison.
			return []*graph.Node{graph.Mul(dy, graph.StopGradient(graph.MinScalar(graph.MulScalar(y, 1e37), 1)))}
		})
}

// AtLeast returns max(x, least), and NaN for NaN. If both are equal the gradient goes to x. (With vector instructions,
// the maximum of GoMLX's pure Go backend loses NaN in the last entries of an array.)
func AtLeast(x *graph.Node, least float64) *graph.Node {
	return Maximum(x, graph.Scalar(x.Graph(), x.DType(), least))
}

// Maximum returns max(x, bound), where bound has the shape of x or is a scalar. NaN and gradient are as in AtLeast.
func Maximum(x, bound *graph.Node) *graph.Node {
	if !OnGo(x) {
		return graph.Max(x, bound)
	}
	return graph.Where(graph.LessThan(x, bound), bound, x)
}

// AtMost returns min(x, most). NaN and gradient are as in AtLeast.
func AtMost(x *graph.Node, most float64) *graph.Node {
	bound := graph.Scalar(x.Graph(), x.DType(), most)
	return graph.Where(graph.GreaterThan(x, bound), bound, x)
}

// Exp returns e^x: NaN for NaN, +Inf if e^x is out of range, and 0 (2e-308 in float64) for -Inf. With vector
// instructions (GOEXPERIMENT=simd) the pure Go backend's own e^x clamps x, turns NaN into a number and never overflows,
// so that a diverged training would go unnoticed. The relative error is 1e-7 in float32, and 1e-14 in float64 for |x| <
// 80.
func Exp(x *graph.Node) *graph.Node {
	if !OnGo(x) {
		return graph.Exp(x)
	}
	largest := 88.029 // whose exponential is half the largest number of float32; the backend clamps beyond
	if x.DType() == dtypes.Float64 {
		largest = 709.78
	}
	return WithGradient([]*graph.Node{x},
		func(in []*graph.Node) *graph.Node {
			inRange := graph.LessThan(in[0], graph.Scalar(x.Graph(), x.DType(), largest))
			return graph.Where(inRange, graph.Exp(in[0]), graph.MulScalar(in[0], math.Inf(1))) // NaN is not in range
		},
		func(y, dy *graph.Node) []*graph.Node { return []*graph.Node{graph.Mul(dy, y)} })
}

// Sigmoid returns 1/(1 + e^-x), and NaN for NaN.
func Sigmoid(x *graph.Node) *graph.Node {
	return graph.Reciprocal(graph.AddScalar(Exp(graph.Neg(x)), 1))
}

// Softmax returns e^x / sum e^x over the last axis; NaN stays NaN.
func Softmax(x *graph.Node) *graph.Node { return Exp(graph.Sub(x, LogSumExp(x))) }

// LogSumExp returns log sum_k exp(x_k) over the last axis, which stays with length 1. Large entries do not overflow.
func LogSumExp(x *graph.Node) *graph.Node {
	maximum := graph.StopGradient(graph.ReduceAndKeep(x, graph.ReduceMax, -1))
	return graph.Add(graph.Log(SumColumns(Exp(graph.Sub(x, maximum)))), maximum)
}

// OnGo reports whether the pure Go backend computes x. It executes one operation after the other, where compilers fuse
// them.
func OnGo(x *graph.Node) bool { return IsGo(x.Graph().Backend()) }

// OnCUDA reports whether XLA computes x on an NVIDIA GPU.
func OnCUDA(x *graph.Node) bool {
	backend, is := x.Graph().Backend().(interface{ IsCUDA() bool })
	return is && backend.IsCUDA()
}

// IsGo reports whether a backend is the pure Go backend.
func IsGo(backend compute.Backend) bool { return backend.String() == "go" }
