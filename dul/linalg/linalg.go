// Package linalg has factorisations of symmetric matrices [..., n, n] that GoMLX lacks, with gradients. They take about
// 15 n operations of the graph, and are meant for n up to a few hundred and for many matrices at once.
package linalg

import (
	"errors"
	"fmt"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"densityuncertainty/dul/ops"
)

// ErrNotPositiveDefinite is wrapped by errors about a matrix that has no Cholesky factor in the precision of the
// computation.
var ErrNotPositiveDefinite = errors.New("the matrix is not positive definite; add more to its diagonal, or compute in double precision")

// A Factor is a lower triangular matrix L, with which equations can be solved.
type Factor struct {
	// Lower is L, [..., n, n], with positive diagonal and zeros above it.
	Lower *graph.Node
	// LeastPivot is the smallest of the numbers whose square roots are the diagonal of L, [..., 1, 1], a constant for
	// gradients. If it is not positive, the matrix was not positive definite in the precision of the graph, and Lower
	// is finite but not its factor.
	LeastPivot *graph.Node

	inverse *graph.Node // of Lower
}

// Cholesky returns the factor of symmetric positive definite matrices, a = L L^T, [..., n, n]. Only the lower triangle
// of a is read and gets a gradient. The algorithm halves the matrix:
//
//	[a11  .  ]   [L11   0 ]
//	[a21  a22] : [L21  L22],   L21 = a21 L11^-T,   L22 = Cholesky(a22 - L21 L21^T).
//
// Rounding errors grow with the condition number of a; add to the diagonal what the precision needs. See
// Factor.LeastPivot for matrices without a factor.
func Cholesky(a *graph.Node) *Factor {
	return factorise(a, 0, squareSize(a))
}

// leastPivotUsed takes the place of a pivot that is not positive, so that what
// follows stays finite.
const leastPivotUsed = 1e-30

// factorise is Cholesky's factor of the n rows and columns of a from first on.
func factorise(a *graph.Node, first, n int) *Factor {
	if n == 1 {
		pivot := part(a, first, first, 1, 1)
		root := graph.Sqrt(ops.AtLeast(pivot, leastPivotUsed))
		return &Factor{root, graph.StopGradient(pivot), graph.Reciprocal(root)}
	}
	half := (n + 1) / 2
	one := factorise(a, first, half)
	below := ops.ProductTransposed(part(a, first+half, first, n-half, half), one.inverse)
	rest := part(a, first+half, first+half, n-half, n-half)
	two := factorise(graph.Sub(rest, ops.ProductTransposed(below, below)), 0, n-half)
	inverseBelow := graph.Neg(ops.Product(two.inverse, ops.Product(below, one.inverse)))
	return &Factor{
		Lower:      lowerBlocks(one.Lower, below, two.Lower),
		LeastPivot: graph.Min(one.LeastPivot, two.LeastPivot),
		inverse:    lowerBlocks(one.inverse, inverseBelow, two.inverse),
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

// SolveLower returns X with L X = b, [..., n, m].
func (f *Factor) SolveLower(b *graph.Node) *graph.Node { return ops.Product(f.inverse, b) }

// SolveTransposed returns X with L^T X = b, [..., n, m].
func (f *Factor) SolveTransposed(b *graph.Node) *graph.Node {
	return ops.TransposedProduct(f.inverse, b)
}

// Diagonal returns the diagonal as a column, [..., n, n] -> [..., n, 1].
func Diagonal(x *graph.Node) *graph.Node {
	return ops.SumColumns(graph.Mul(x, Identity(x)))
}

// Identity returns the identity matrix in the shape and type of x, [..., n, n].
func Identity(x *graph.Node) *graph.Node {
	n := squareSize(x)
	one := graph.ConvertDType(graph.Diagonal(x.Graph(), n), x.DType())
	return graph.BroadcastToDims(graph.ExpandLeftToRank(one, x.Rank()), x.Shape().Dimensions...)
}

// UnitLowerTriangular returns the lower triangle of x with ones on the diagonal, [..., n, n]. The other entries of x
// are not used and have the gradient 0.
func UnitLowerTriangular(x *graph.Node) *graph.Node {
	return graph.Add(graph.TakeLowerTriangular(x, -1), Identity(x))
}

// part is rows x columns entries from the given place on.
func part(x *graph.Node, row, column, rows, columns int) *graph.Node {
	if x.Shape().Dim(-2) == rows && x.Shape().Dim(-1) == columns {
		return x
	}
	return graph.SliceAxis(graph.SliceAxis(x, -2, graph.AxisRange(row, row+rows)), -1, graph.AxisRange(column, column+columns))
}

// squareSize is n of [..., n, n]; it panics for any other shape.
func squareSize(x *graph.Node) int {
	if x.Rank() < 2 || x.Shape().Dim(-1) != x.Shape().Dim(-2) || x.Shape().Dim(-1) < 1 {
		panic(fmt.Errorf("linalg: a matrix of shape %s; want [..., n, n] with n at least 1", x.Shape()))
	}
	return x.Shape().Dim(-1)
}
