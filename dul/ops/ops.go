// Package ops holds the tensor operations of all layers. Activations are [batch, features], or [replicas, batch, features]
// for models that are computed in one graph, with weights [replicas, in, out]; a layer is written once for both.
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

// WithGradient returns f(inputs) with a gradient of our own: vjp receives the
// output y and dL/dy and returns dL/dinput for every input, each of its
// input's shape, or nil where an input needs none (its gradient is then zero).
//
// GoMLX lets only an identity of one input carry a custom gradient. So every input and the output pass through one:
// backpropagation meets the output's first, which computes all gradients, and then the inputs', which hand them on. What
// GoMLX derives for f in between is never executed. An input that f does not depend on gets no gradient.
//
// A gradient of the gradient differentiates vjp. That is right if vjp computes with the inputs, y and dy. Any other node
// that f made must be taken by FirstOrder.
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

// FirstOrder is x, for the vjp of WithGradient. Differentiating it panics with an error that says so.
func FirstOrder(x *graph.Node) *graph.Node {
	return graph.IdentityWithCustomGradient(x, func(_, _ *graph.Node) *graph.Node { panic(errSecondDerivative) })
}

// Tied adds 0 times the inputs to y, so that backpropagation visits the inputs although the gradient of y is stopped.
// Compilers leave the sum out.
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

// Product returns the matrix product over the last two axes,
// [..., n, k] x [..., k, m] -> [..., n, m], replica by replica.
//
// The pure Go backend transposes a for the gradient of b, and nothing else. By the
// gradient that GoMLX derives it would transpose two matrices, and a step of 20
// replicas of the density MLP would take a quarter more CPU time (2.4 ms each for 1.9).
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

// Source is the value that a chain of identities hands on, such as x of
// StopGradient(x) and of the inputs of WithGradient. What several operations and
// gradients make of one input, the backend makes once if all make it of this node.
func Source(x *graph.Node) *graph.Node {
	for x.Type() == graph.NodeTypeIdentity {
		x = x.Inputs()[0]
	}
	return x
}

// Affine returns x w + b, the linear map of a dense layer:
// [..., n, k], [..., k, m] and [..., 1, m] -> [..., n, m].
//
// The pure Go backend adds a row of each replica entry by entry. Copied to all rows by
// a product, which rounds nothing, they are added as vectors: a step of 20 replicas of
// the density MLP takes an eighth less CPU time.
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

// QuadraticForm returns x_i (l D l^T) x_i^T for each row i of x, where D is the
// diagonal matrix of the row d, as the weighted squares of x l:
// [..., n, k], [..., k, m] and [..., 1, m] -> [..., n, 1].
func QuadraticForm(x, l, d *graph.Node) *graph.Node { return WeightedSquares(Product(x, l), d) }

// SumRows adds up the rows: [..., n, m] -> [..., 1, m].
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

// MeanRows is the mean of the rows: [..., n, m] -> [..., 1, m].
func MeanRows(x *graph.Node) *graph.Node {
	n := x.Shape().Dim(-2)
	if n <= long || !OnGo(x) {
		return graph.ReduceAndKeep(x, graph.ReduceMean, -2)
	}
	return graph.MulScalar(SumRows(x), 1/float64(n))
}

// Mean is the mean of all numbers, a scalar.
func Mean(x *graph.Node) *graph.Node {
	if n := x.Shape().Size(); n > long {
		x = MeanRows(graph.Reshape(x, n, 1))
	}
	return graph.ReduceAllMean(x)
}

// SumColumns adds up the columns: [..., n, m] -> [..., n, 1].
func SumColumns(x *graph.Node) *graph.Node { return graph.ReduceAndKeep(x, graph.ReduceSum, -1) }

// FullRow is a constant row of equal entries, [..., 1, n], with the replica
// axes and type of x.
func FullRow(x *graph.Node, value float64, n int) *graph.Node {
	dims := slices.Concat(x.Shape().Dimensions[:x.Rank()-2], []int{1, n})
	return graph.MulScalar(graph.Ones(x.Graph(), shapes.Make(x.DType(), dims...)), value)
}

// ReLU is max(x, 0), and NaN of NaN; its derivative at 0 is 0 on all backends. (GoMLX's is 0 or 1
// there, by the backend, and has no second derivative on the pure Go backend.)
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

// AtLeast is max(x, least), and NaN of NaN; where both are equal the gradient goes to x. With vector instructions the
// maximum of GoMLX's pure Go backend drops NaN in the last numbers of an array, which fill no vector.
func AtLeast(x *graph.Node, least float64) *graph.Node {
	return Maximum(x, graph.Scalar(x.Graph(), x.DType(), least))
}

// Maximum is max(x, bound) of a bound of the shape of x or a scalar, with NaN and gradient as AtLeast.
func Maximum(x, bound *graph.Node) *graph.Node {
	if !OnGo(x) {
		return graph.Max(x, bound)
	}
	return graph.Where(graph.LessThan(x, bound), bound, x)
}

// AtMost is min(x, most), with NaN and gradient as AtLeast.
func AtMost(x *graph.Node, most float64) *graph.Node {
	bound := graph.Scalar(x.Graph(), x.DType(), most)
	return graph.Where(graph.GreaterThan(x, bound), bound, x)
}

// Exp is e^x, with the right value at the edges: NaN of NaN, +Inf where e^x is
// beyond the type's range, and next to nothing of -Inf (0, or 2e-308 in float64).
// With vector instructions (GOEXPERIMENT=simd) the pure Go backend clamps x, so that
// it makes a number of NaN and never overflows: nobody would see that a training
// diverged. Its relative error is 1e-7 in float32, and 1e-14 in float64 for |x| < 80.
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

// Sigmoid is 1/(1 + e^-x); it keeps NaN, as Exp does.
func Sigmoid(x *graph.Node) *graph.Node {
	return graph.Reciprocal(graph.AddScalar(Exp(graph.Neg(x)), 1))
}

// Softmax is e^x / sum e^x over the last axis; it keeps NaN, as Exp does.
func Softmax(x *graph.Node) *graph.Node { return Exp(graph.Sub(x, LogSumExp(x))) }

// LogSumExp is log sum_k exp(x_k) over the last axis, which is kept with
// length 1. The maximum is taken out first, so that large entries do not overflow.
func LogSumExp(x *graph.Node) *graph.Node {
	maximum := graph.StopGradient(graph.ReduceAndKeep(x, graph.ReduceMax, -1))
	return graph.Add(graph.Log(SumColumns(Exp(graph.Sub(x, maximum)))), maximum)
}

// OnGo says whether x is computed by the pure Go backend. Compilers fuse what is
// written plainly; the Go backend executes operation by operation.
func OnGo(x *graph.Node) bool { return IsGo(x.Graph().Backend()) }

// OnCUDA says whether x is computed by XLA on an NVIDIA GPU.
func OnCUDA(x *graph.Node) bool {
	backend, is := x.Graph().Backend().(interface{ IsCUDA() bool })
	return is && backend.IsCUDA()
}

// IsGo says whether a backend is the pure Go backend.
func IsGo(backend compute.Backend) bool { return backend.String() == "go" }
