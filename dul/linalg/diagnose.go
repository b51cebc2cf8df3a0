package linalg

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// ErrNotPositiveDefinite is wrapped by the error of a matrix that has no
// Cholesky factor in the precision in which it was computed.
var ErrNotPositiveDefinite = errors.New("the matrix is not positive definite")

// Diagnose says on the host what is wrong with a symmetric n x n matrix,
// row-major, whose factorisation in the graph had a pivot that is not positive:
// its least eigenvalue and its condition number, the largest over the least
// eigenvalue by size. The error wraps ErrNotPositiveDefinite.
func Diagnose(matrix []float64, n int) error {
	if n < 1 || len(matrix) != n*n {
		return fmt.Errorf("linalg: %d entries are not a matrix of %d x %d", len(matrix), n, n)
	}
	if i := slices.IndexFunc(matrix, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }); i >= 0 {
		return fmt.Errorf("%w: of %d x %d, with %g in row %d and column %d", ErrNotPositiveDefinite, n, n, matrix[i], i/n, i%n)
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(mat.NewSymDense(n, matrix), false) {
		return fmt.Errorf("%w: of %d x %d, whose eigenvalues could not be computed", ErrNotPositiveDefinite, n, n)
	}
	values := eigen.Values(nil) // ascending
	least, largest, smallest := values[0], 0.0, math.Inf(1)
	for _, v := range values {
		largest, smallest = max(largest, math.Abs(v)), min(smallest, math.Abs(v))
	}
	return fmt.Errorf("%w: of %d x %d, with eigenvalues from %.3g to %.3g and condition number %.3g; add more to its diagonal, or compute in double precision",
		ErrNotPositiveDefinite, n, n, least, values[n-1], largest/smallest)
}
