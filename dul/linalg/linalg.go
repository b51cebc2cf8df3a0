// Package linalg has the factorisations of small symmetric matrices that Gaussian
// processes need and GoMLX lacks, with gradients, for all backends.
//
// Matrices are [..., n, n]; leading axes are a batch. A factorisation is a fixed
// number of operations in the graph, about 15 n, most of them products of
// matrices: it is for n from 1 to a few hundred, and for many matrices at once.
package linalg

import (
	"fmt"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"densityuncertainty/dul/ops"
)

// A Factor is a lower triangular matrix L that equations can be solved with.
type Factor struct {
	// Lower is L, [..., n, n], with positive diagonal and zeros above it.
	Lower *graph.Node
	// LeastPivot is the least of the numbers whose square roots are the diagonal
	// of a Cholesky factor, [..., 1, 1], a constant for gradients. Where it is not
	// positive the matrix was not positive definite in the precision of the graph,
	// and Lower, though finite, is not its factor. Diagnose says on the host what is wrong with such a matrix.
	LeastPivot *graph.Node

	inverse *graph.Node // of Lower; a constant for gradients
}

// Cholesky factorises symmetric positive definite matrices, a = L L^T, [..., n, n].
// Of a, the diagonal and what is below it is read. The algorithm halves the matrix:
//
//	[a11  .  ]   [L11   0 ]
//	[a21  a22] : [L21  L22],   L21 = a21 L11^-T,   L22 = Cholesky(a22 - L21 L21^T).
//
// The gradient is that of Murray (2016, "Differentiation of the Cholesky
// decomposition", equation 10), in its symmetric form: with Phi(X) the lower
// triangle of X with half its diagonal,
//
//	da = (S + S^T)/2,   S = L^-T Phi(L^T dL) L^-1.
//
// Rounding errors grow with the condition number of a. Add to the diagonal what
// the precision asks for; nothing is added here.
func Cholesky(a *graph.Node) *Factor {
	n := squareSize(a)
	f := &Factor{}
	f.Lower = ops.WithGradient([]*graph.Node{a},
		func(in []*graph.Node) *graph.Node {
			b := factorise(in[0], 0, n)
			f.inverse, f.LeastPivot = graph.StopGradient(b.inverse), graph.StopGradient(b.leastPivot)
			return tied(graph.StopGradient(b.lower), in[0])
		},
		func(l, dl *graph.Node) []*graph.Node {
			phi := graph.Mul(ops.TransposedProduct(l, dl), ops.ConstantMatrix(l, func(row, column int) float64 {
				switch {
				case row > column:
					return 1
				case row == column:
					return 0.5
				}
				return 0
			}))
			inverse := ops.FirstOrder(f.inverse)
			s := ops.Product(ops.TransposedProduct(inverse, phi), inverse)
			return []*graph.Node{graph.MulScalar(graph.Add(s, transposed(s)), 0.5)}
		})
	return f
}

// A block is a part of a factorisation.
type block struct{ lower, inverse, leastPivot *graph.Node }

// leastPivotUsed takes the place of a pivot that is not positive, so that what
// follows stays finite.
const leastPivotUsed = 1e-30

// factorise is Cholesky's factor of the n rows and columns of a from first on.
func factorise(a *graph.Node, first, n int) block {
	if n == 1 {
		pivot := part(a, first, first, 1, 1)
		root := graph.Sqrt(graph.MaxScalar(pivot, leastPivotUsed))
		return block{root, graph.Reciprocal(root), pivot}
	}
	half := (n + 1) / 2
	one := factorise(a, first, half)
	below := ops.ProductTransposed(part(a, first+half, first, n-half, half), one.inverse)
	rest := part(a, first+half, first+half, n-half, n-half)
	two := factorise(graph.Sub(rest, ops.ProductTransposed(below, below)), 0, n-half)
	inverseBelow := graph.Neg(ops.Product(two.inverse, ops.Product(below, one.inverse)))
	return block{
		lower:      lowerBlocks(one.lower, below, two.lower),
		inverse:    lowerBlocks(one.inverse, inverseBelow, two.inverse),
		leastPivot: graph.Min(one.leastPivot, two.leastPivot),
	}
}

// lowerBlocks is [a 0; b c].
func lowerBlocks(a, b, c *graph.Node) *graph.Node {
	dims := append([]int{}, a.Shape().Dimensions...)
	dims[len(dims)-1] = c.Shape().Dim(-1)
	above := graph.Zeros(a.Graph(), shapes.Make(a.DType(), dims...))
	return graph.Concatenate([]*graph.Node{
		graph.Concatenate([]*graph.Node{a, above}, -1),
		graph.Concatenate([]*graph.Node{b, c}, -1),
	}, -2)
}

// SolveLower returns X with L X = b, [..., n, m]. The gradients are db = L^-T dX
// and, on and below the diagonal, dL = -db X^T.
func (f *Factor) SolveLower(b *graph.Node) *graph.Node {
	return ops.WithGradient([]*graph.Node{f.Lower, b},
		func(in []*graph.Node) *graph.Node { return ops.Product(tied(f.inverse, in[0]), in[1]) },
		func(x, dx *graph.Node) []*graph.Node {
			db := ops.TransposedProduct(ops.FirstOrder(f.inverse), dx)
			return []*graph.Node{LowerTriangle(graph.Neg(ops.ProductTransposed(db, x))), db}
		})
}

// SolveTransposed returns X with L^T X = b, [..., n, m]. The gradients are
// db = L^-1 dX and, on and below the diagonal, dL = -X db^T.
func (f *Factor) SolveTransposed(b *graph.Node) *graph.Node {
	return ops.WithGradient([]*graph.Node{f.Lower, b},
		func(in []*graph.Node) *graph.Node { return ops.TransposedProduct(tied(f.inverse, in[0]), in[1]) },
		func(x, dx *graph.Node) []*graph.Node {
			db := ops.Product(ops.FirstOrder(f.inverse), dx)
			return []*graph.Node{LowerTriangle(graph.Neg(ops.ProductTransposed(x, db))), db}
		})
}

// LogDet is log det (L L^T) = 2 sum_i log L_ii, [..., 1, 1].
func (f *Factor) LogDet() *graph.Node {
	return graph.MulScalar(ops.SumRows(graph.Log(Diagonal(f.Lower))), 2)
}

// Diagonal is the diagonal as a column, [..., n, n] -> [..., n, 1].
func Diagonal(x *graph.Node) *graph.Node {
	squareSize(x)
	return ops.SumColumns(graph.Mul(x, Identity(x)))
}

// LowerTriangle is x with zeros above the diagonal, [..., n, m].
func LowerTriangle(x *graph.Node) *graph.Node {
	return graph.Mul(x, ops.ConstantMatrix(x, func(row, column int) float64 { return ops.Indicator(row >= column) }))
}

// Identity is the identity matrix of the shape and type of x, [..., n, n].
func Identity(x *graph.Node) *graph.Node {
	squareSize(x)
	return ops.ConstantMatrix(x, func(row, column int) float64 { return ops.Indicator(row == column) })
}

// tied is y, made to depend on x, of the same shape: the backward sweep else
// would not reach x. It keeps the sweep out of what y was computed by.
func tied(y, x *graph.Node) *graph.Node { return graph.Add(y, graph.MulScalar(x, 0)) }

// part is rows x columns entries from the given place on.
func part(x *graph.Node, row, column, rows, columns int) *graph.Node {
	if x.Shape().Dim(-2) == rows && x.Shape().Dim(-1) == columns {
		return x
	}
	return graph.SliceAxis(graph.SliceAxis(x, -2, graph.AxisRange(row, row+rows)), -1, graph.AxisRange(column, column+columns))
}

func transposed(x *graph.Node) *graph.Node { return graph.Transpose(x, -2, -1) }

// squareSize is n of [..., n, n]; it panics for any other shape.
func squareSize(x *graph.Node) int {
	if x.Rank() < 2 || x.Shape().Dim(-1) != x.Shape().Dim(-2) || x.Shape().Dim(-1) < 1 {
		panic(fmt.Errorf("linalg: a matrix of shape %s; want [..., n, n] with n at least 1", x.Shape()))
	}
	return x.Shape().Dim(-1)
}
