// Package ops holds the few tensor operations that every layer of this project
// is made of, written once with gradients that are fast on the pure Go backend.
//
// # Shapes
//
// Activations are [batch, features]. A leading axis makes them
// [replicas, batch, features]: replicas are independent models of one shape
// (twenty train/test splits, five ensemble members) that are computed in one
// graph. Weights then are [replicas, in, out] and vectors [replicas, 1, out];
// nothing else changes, so a layer is written once for both.
//
// # Why own gradients
//
// GoMLX differentiates a broadcast by ReduceSum and a ReLU by Where, the two
// slowest elementwise operations of the Go backend. The same derivatives as
// matrix products with a vector of ones, or as a clipped product, take a third
// of the time. Each function's test compares it with finite differences.
package ops

import (
	"errors"
	"reflect"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// WithGradient returns f(inputs) with a gradient of our own: vjp receives the
// output y and dL/dy and returns dL/dinput for every input, each of its
// input's shape, or nil where an input needs none (its gradient is then zero).
//
// GoMLX lets only the identity carry a custom gradient, and of one input. So
// every input and the output pass through such an identity: the backward
// sweep meets the output's first, which computes all gradients, and then the
// inputs', which hand them on. What GoMLX derives for f in between is never
// used and never executed. An input that f does not depend on gets no gradient.
//
// A gradient of the gradient passes through what vjp was made of. That is right
// where vjp computes with the inputs themselves, y and dy. A node that f made on the
// way would lead past the output's identity: take such a node by FirstOrder.
func WithGradient(inputs []*Node, f func(inputs []*Node) *Node, vjp func(y, dy *Node) []*Node) *Node {
	var gradients []*Node
	wrapped, handedOn := make([]*Node, len(inputs)), make([]bool, len(inputs))
	for i, input := range inputs {
		wrapped[i] = IdentityWithCustomGradient(input, func(x, _ *Node) *Node {
			if gradients == nil || handedOn[i] { // this sweep did not come by the output
				panic(errSecondDerivative)
			}
			handedOn[i] = true
			if gradients[i] == nil {
				return ZerosLike(x)
			}
			return gradients[i]
		})
	}
	return IdentityWithCustomGradient(f(wrapped), func(y, dy *Node) *Node {
		gradients = vjp(y, dy)
		clear(handedOn)
		return dy
	})
}

var errSecondDerivative = errors.New("a second derivative of an operation of this project (dul/ops, dul/conv, dul/linalg or a density layer), which has first ones alone: " +
	"put graph.StopGradient around the gradient that is differentiated again, or write the operation with GoMLX's own")

// FirstOrder is x, for the vjp of WithGradient, in a gradient that nobody can
// differentiate again: to ask for its derivative panics, with an error that says so.
func FirstOrder(x *Node) *Node {
	return IdentityWithCustomGradient(x, func(_, _ *Node) *Node { panic(errSecondDerivative) })
}

// Tied is y, made to depend on the inputs for the backward sweep, which else
// would not reach them, as it stops at a y whose gradient is stopped. What is
// selected is always y: a compiler sees that and leaves the selection out.
func Tied(y *Node, inputs []*Node) *Node {
	g := y.Graph()
	for _, input := range inputs {
		first := make([]SliceAxisSpec, input.Rank())
		for i := range first {
			first[i] = AxisRange(0, 1)
		}
		entry := Reshape(Slice(input, first...))
		y = Where(Const(g, false), BroadcastToShape(entry, y.Shape()), y)
	}
	return y
}

// Product returns the matrix product over the last two axes,
// [..., n, k] x [..., k, m] -> [..., n, m], replica by replica.
func Product(a, b *Node) *Node {
	return WithGradient([]*Node{a, b},
		func(in []*Node) *Node { return multiply(in[0], in[1]) },
		func(_, dy *Node) []*Node {
			return []*Node{multiplyTransposed(dy, b), multiply(transpose(source(a)), dy)}
		})
}

// Affine returns x w + b, the linear map of a dense layer:
// [..., n, k], [..., k, m] and [..., 1, m] -> [..., n, m].
func Affine(x, w, b *Node) *Node {
	return WithGradient([]*Node{x, w, b},
		func(in []*Node) *Node {
			ones := onesLike(x, x.Shape().Dim(-2), 1)
			return multiply(Concatenate([]*Node{in[0], ones}, -1), Concatenate([]*Node{in[1], in[2]}, -2))
		},
		func(_, dy *Node) []*Node {
			sums := multiplyEach(dy, transpose(source(x)), onesLike(x, 1, x.Shape().Dim(-2)))
			return []*Node{multiplyTransposed(dy, w), sums[0], sums[1]}
		})
}

// TransposedProduct returns a^T b: [..., k, n] x [..., k, m] -> [..., n, m].
func TransposedProduct(a, b *Node) *Node {
	return Product(transpose(a), b)
}

// ProductTransposed returns a b^T: [..., n, k] x [..., m, k] -> [..., n, m].
func ProductTransposed(a, b *Node) *Node {
	return Product(a, transpose(b))
}

// WeightedSquares returns sum_j d_j x_ij^2 for each row i:
// [..., n, m] and [..., 1, m] -> [..., n, 1].
func WeightedSquares(x, d *Node) *Node {
	return WithGradient([]*Node{x, d},
		func(in []*Node) *Node {
			return multiply(Mul(in[0], in[0]), transpose(in[1]))
		},
		func(_, dy *Node) []*Node {
			return []*Node{
				Mul(x, multiply(dy, MulScalar(d, 2))),
				multiply(transpose(dy), Mul(x, x)),
			}
		})
}

// QuadraticForm returns x_i (l D l^T) x_i^T for each row i of x, where D is the
// diagonal matrix of the row d, as the weighted squares of z = x l:
// [..., n, k], [..., k, m] and [..., 1, m] -> [..., n, 1].
//
// It is WeightedSquares(Product(x, l), d), but z keeps the columns of zeros
// that the product is filled up with: they add nothing to the squares.
func QuadraticForm(x, l, d *Node) *Node {
	var z, squares, weights *Node
	return WithGradient([]*Node{x, l, d},
		func(in []*Node) *Node {
			padding := columnPadding(in[0], in[1])
			weights = withZeroColumns(in[2], padding)
			z = multiplyAsIs(in[0], withZeroColumns(in[1], padding))
			squares = Mul(z, z)
			return multiply(squares, transpose(weights))
		},
		func(_, dy *Node) []*Node {
			m := d.Shape().Dim(-1)
			dz := Mul(FirstOrder(z), multiply(dy, MulScalar(FirstOrder(weights), 2)))
			return []*Node{
				multiplyTransposed(firstColumns(dz, m), l),
				firstColumns(multiply(transpose(source(x)), dz), m),
				firstColumns(multiply(transpose(dy), FirstOrder(squares)), m),
			}
		})
}

// SumRows adds up the rows: [..., n, m] -> [..., 1, m].
func SumRows(x *Node) *Node {
	if x.Shape().Dim(-2) == 1 {
		return x
	}
	if !OnGo(x) {
		return plainSum(x, -2)
	}
	return Product(onesLike(x, 1, x.Shape().Dim(-2)), x)
}

// SumColumns adds up the columns: [..., n, m] -> [..., n, 1].
func SumColumns(x *Node) *Node {
	if x.Shape().Dim(-1) == 1 {
		return x
	}
	if !OnGo(x) {
		return plainSum(x, -1)
	}
	return Product(x, onesLike(x, x.Shape().Dim(-1), 1))
}

// plainSum is the sum for compilers, which fuse it with what it is a sum of; as
// products GPUs would compute it with 10 bits of precision (TF32).
func plainSum(x *Node, axis int) *Node { return ReduceAndKeep(x, ReduceSum, axis) }

// FullRow is a constant row of equal entries, [..., 1, n], with the replica
// axes and type of x.
func FullRow(x *Node, value float64, n int) *Node {
	return MulScalar(onesLike(x, 1, n), value)
}

// onesLike is a matrix of ones with the replica axes and type of x.
func onesLike(x *Node, rows, columns int) *Node {
	dims := append(append([]int{}, x.Shape().Dimensions[:x.Rank()-2]...), rows, columns)
	return Ones(x.Graph(), shapes.Make(x.DType(), dims...))
}

// AddRow adds one row to every row: [..., n, m] + [..., 1, m].
func AddRow(x, row *Node) *Node {
	return WithGradient([]*Node{x, row},
		func(in []*Node) *Node { return Add(in[0], in[1]) },
		func(_, dy *Node) []*Node { return []*Node{dy, SumRows(dy)} })
}

// MulRow multiplies every row by one row, entry by entry: [..., n, m] * [..., 1, m].
func MulRow(x, row *Node) *Node {
	return WithGradient([]*Node{x, row},
		func(in []*Node) *Node { return Mul(in[0], in[1]) },
		func(_, dy *Node) []*Node { return []*Node{Mul(dy, row), SumRows(Mul(dy, x))} })
}

// SqrtScaled returns sqrt(variance) * noise, entry by entry; noise is a
// constant for the gradient.
func SqrtScaled(variance, noise *Node) *Node {
	var std *Node
	return WithGradient([]*Node{variance},
		func(in []*Node) *Node {
			std = Sqrt(in[0])
			return Mul(std, noise)
		},
		func(_, dy *Node) []*Node {
			return []*Node{Div(Mul(dy, MulScalar(noise, 0.5)), FirstOrder(std))}
		})
}

// ReLU is max(x, 0); its derivative at 0 is 0.
func ReLU(x *Node) *Node {
	return WithGradient([]*Node{x},
		func(in []*Node) *Node { return MaxScalar(in[0], 0) },
		func(y, dy *Node) []*Node {
			// y >= 0, so min(y * huge, 1) is the step function of x for every
			// y above 1e-37: one product and one minimum, no comparison.
			return []*Node{Mul(dy, MinScalar(MulScalar(StopGradient(y), 1e37), 1))}
		})
}

// LogSumExp is log sum_k exp(x_k) over the last axis, which is kept with
// length 1. The maximum is taken out first, so that large entries do not overflow.
func LogSumExp(x *Node) *Node {
	maximum := StopGradient(ReduceAndKeep(x, ReduceMax, -1))
	return Add(Log(SumColumns(Exp(Sub(x, maximum)))), maximum)
}

// UnitLowerTriangular returns L~ = I + strictly lower triangle of the square
// matrix l ([..., d, d]); the entries of l on and above the diagonal are not
// used and their gradient is zero.
func UnitLowerTriangular(l *Node) *Node {
	below, diagonal := computedTriangle(l)
	if OnGo(l) {
		below = ConstantMatrix(l, func(row, column int) float64 { return Indicator(row > column) })
		diagonal = ConstantMatrix(l, func(row, column int) float64 { return Indicator(row == column) })
	}
	return Add(Mul(l, below), diagonal)
}

// computedTriangle is 1 below the diagonal, and on it, in the replica axes and
// type of l, for compilers: they compute it where it is used, while a constant
// would be part of the program.
func computedTriangle(l *Node) (below, diagonal *Node) {
	g, d := l.Graph(), l.Shape().Dim(-1)
	square := shapes.Make(dtypes.Int32, d, d)
	row, column := Iota(g, square, 0), Iota(g, square, 1)
	entries := func(holds *Node) *Node {
		return Reshape(ConvertDType(holds, l.DType()), append(slices.Repeat([]int{1}, l.Rank()-2), d, d)...)
	}
	return entries(GreaterThan(row, column)), entries(Equal(row, column))
}

// ConstantMatrix is a constant of the shape and type of x, the same for every
// replica. (The Go backend is ten times slower where one operand of a product or sum
// has fewer axes than the other.)
func ConstantMatrix(x *Node, entry func(row, column int) float64) *Node {
	rows, columns := x.Shape().Dim(-2), x.Shape().Dim(-1)
	entries := make([]float64, x.Shape().Size())
	for i := range entries {
		entries[i] = entry(i/columns%rows, i%columns)
	}
	constant := tensors.FromShape(x.Shape())
	constant.MustMutableFlatData(func(flat any) {
		reflect.Copy(reflect.ValueOf(flat), reflect.ValueOf(shapes.CastAsDType(entries, x.DType())))
	})
	return ConstTensor(x.Graph(), constant)
}

// Indicator is 1 where a condition holds, and 0 elsewhere.
func Indicator(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}
