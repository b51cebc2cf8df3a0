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
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
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
func WithGradient(inputs []*Node, f func(inputs []*Node) *Node, vjp func(y, dy *Node) []*Node) *Node {
	var gradients []*Node
	wrapped := make([]*Node, len(inputs))
	for i, input := range inputs {
		wrapped[i] = IdentityWithCustomGradient(input, func(x, _ *Node) *Node {
			if gradients[i] == nil {
				return ZerosLike(x)
			}
			return gradients[i]
		})
	}
	return IdentityWithCustomGradient(f(wrapped), func(y, dy *Node) *Node {
		gradients = vjp(y, dy)
		return dy
	})
}

// Product returns the matrix product over the last two axes,
// [..., n, k] x [..., k, m] -> [..., n, m], replica by replica.
func Product(a, b *Node) *Node {
	return WithGradient([]*Node{a, b},
		func(in []*Node) *Node { return multiply(in[0], in[1]) },
		func(_, dy *Node) []*Node {
			return []*Node{multiply(dy, transpose(b)), rowsGradient(a, dy, a.Shape().Dim(-1))}
		})
}

// Affine returns x w + b, the linear map of a dense layer:
// [..., n, k], [..., k, m] and [..., 1, m] -> [..., n, m].
func Affine(x, w, b *Node) *Node {
	return WithGradient([]*Node{x, w, b},
		func(in []*Node) *Node {
			return multiply(withOnes(in[0]), Concatenate([]*Node{in[1], in[2]}, -2))
		},
		func(_, dy *Node) []*Node {
			k := w.Shape().Dim(-2)
			both := rowsGradient(x, dy, k+1)
			return []*Node{
				multiply(dy, transpose(w)),
				rows(both, 0, k),
				rows(both, k, k+1),
			}
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

// multiply is the plain product of each pair of replicas. In this order of
// axes the Go backend multiplies matrices as they lie in memory; in any other
// it first transposes both, so the gradients above transpose just one.
//
// For small products the backend has a vector kernel that takes 32 columns at
// once and the rest one by one, ten times slower an entry; so those are filled
// up with columns of zeros, which are cut off again.
func multiply(a, b *Node) *Node {
	replicaAxes := make([]int, a.Rank()-2)
	for i := range replicaAxes {
		replicaAxes[i] = i
	}
	columns := b.Shape().Dim(-1)
	work := a.Shape().Size() * columns
	padding := (vectorColumns - columns%vectorColumns) % vectorColumns
	pad := columns > vectorColumns/2 && padding > 0 && work > worthPadding && work < largeProduct
	if pad {
		b = Concatenate([]*Node{b, MulScalar(onesLike(b, b.Shape().Dim(-2), padding), 0)}, -1)
	}
	product := DotGeneral(a, []int{a.Rank() - 1}, replicaAxes, b, []int{b.Rank() - 2}, replicaAxes)
	if pad {
		product = SliceAxis(product, -1, AxisRange(0, columns))
	}
	return product
}

const (
	vectorColumns = 32
	worthPadding  = 1 << 16 // multiplications; below, padding costs more than it saves
	largeProduct  = 1 << 22 // from here on the backend's large kernel pads by itself
)

// rowsGradient is the first count rows of [x, 1]^T dy. A layer needs x^T dy for
// each product that x enters and sum_i dy_i for its bias; asking for all of
// them in this one form makes the transposed factor the same node, which the
// backend computes once.
func rowsGradient(x, dy *Node, count int) *Node {
	return rows(multiply(transpose(withOnes(x)), dy), 0, count)
}

// withOnes appends a column of ones: [..., n, k] -> [..., n, k+1].
func withOnes(x *Node) *Node {
	return Concatenate([]*Node{x, onesLike(x, x.Shape().Dim(-2), 1)}, -1)
}

// transpose exchanges the last two axes; for a single row or column that is
// only another name for the same memory.
func transpose(x *Node) *Node {
	n, m := x.Shape().Dim(-2), x.Shape().Dim(-1)
	if n == 1 || m == 1 {
		return Reshape(x, append(leadOf(x), m, n)...)
	}
	return Transpose(x, -2, -1)
}

// leadOf returns the replica axes.
func leadOf(x *Node) []int { return append([]int{}, x.Shape().Dimensions[:x.Rank()-2]...) }

// rows is the rows from first to before end.
func rows(x *Node, first, end int) *Node {
	if first == 0 && end == x.Shape().Dim(-2) {
		return x
	}
	return SliceAxis(x, -2, AxisRange(first, end))
}

// SumRows adds up the rows: [..., n, m] -> [..., 1, m].
func SumRows(x *Node) *Node {
	if x.Shape().Dim(-2) == 1 {
		return x
	}
	return Product(onesLike(x, 1, x.Shape().Dim(-2)), x)
}

// SumColumns adds up the columns: [..., n, m] -> [..., n, 1].
func SumColumns(x *Node) *Node {
	if x.Shape().Dim(-1) == 1 {
		return x
	}
	return Product(x, onesLike(x, x.Shape().Dim(-1), 1))
}

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
			return []*Node{Div(Mul(dy, MulScalar(noise, 0.5)), std)}
		})
}

// ReLU is max(x, 0); its derivative at 0 is 0.
func ReLU(x *Node) *Node {
	return WithGradient([]*Node{x},
		func(in []*Node) *Node { return MaxScalar(in[0], 0) },
		func(y, dy *Node) []*Node {
			// y >= 0, so min(y * huge, 1) is the step function of x for every
			// y above 1e-37: one product and one minimum, no comparison.
			return []*Node{Mul(dy, MinScalar(MulScalar(y, 1e37), 1))}
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
	g, d := l.Graph(), l.Shape().Dim(-1)
	square := shapes.Make(l.DType(), d, d)
	row, column := Iota(g, square, 0), Iota(g, square, 1)
	lead := make([]int, l.Rank()-2)
	for i := range lead {
		lead[i] = 1
	}
	below := Reshape(ConvertDType(GreaterThan(row, column), l.DType()), append(lead, d, d)...)
	identity := Reshape(ConvertDType(Equal(row, column), l.DType()), append(lead, d, d)...)
	return Add(Mul(l, below), identity)
}
