package toy

import (
	"errors"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"densityuncertainty/dul/linalg"
)

// ProcessVariance is the exact posterior variance of a Gaussian process with the covariance function k at each of
// the inputs x, after observations with the noise variance sigma2 at data:
//
//	k(x, x) - k(x)^T (K + sigma2 I)^-1 k(x),   K_ij = k(data_i, data_j),   k(x)_i = k(data_i, x).
//
// What was observed there has no part in it. It returns an error, wrapping
// linalg.ErrNotPositiveDefinite, where K + sigma2 I has no Cholesky factor.
func ProcessVariance(k func(a, b float64) float64, data []float64, sigma2 float64, x []float64) ([]float64, error) {
	a, err := features(k, data, sigma2, x)
	if err != nil {
		return nil, fmt.Errorf("toy: %d observations with noise variance %g: %w", len(data), sigma2, err)
	}
	variance := make([]float64, len(x))
	for i, at := range x {
		variance[i] = k(at, at) - mat.Dot(a.RowView(i), a.RowView(i))
	}
	return variance, nil
}

// inducingJitter is added to the diagonal of K(Z, Z).
const inducingJitter = 1e-8

// InducingFeatures are the features that a sparse Gaussian process with inducing
// points z has for the inputs x, [len(x), len(z)], with the rows
//
//	a(x) = L^-1 k(z, x),   L L^T = K(z, z) + 1e-8 I.
//
// Where x is one of z, |a(x)|^2 is k(x, x); everywhere else it is less, by the
// variance that f(x) would have if f(z) were known.
func InducingFeatures(k func(a, b float64) float64, z, x []float64) (*mat.Dense, error) {
	a, err := features(k, z, inducingJitter, x)
	if err != nil {
		return nil, fmt.Errorf("toy: %d inducing points: %w", len(z), err)
	}
	return a, nil
}

// QuadraticForms are phi_i^T M phi_i of the rows phi_i of a matrix.
func QuadraticForms(rows *mat.Dense, m mat.Matrix) []float64 {
	n, _ := rows.Dims()
	forms := make([]float64, n)
	for i := range forms {
		forms[i] = mat.Inner(rows.RowView(i), m, rows.RowView(i))
	}
	return forms
}

// features are the rows L^-1 k(points, x) of the inputs x, with L L^T = K(points, points) + ridge I.
func features(k func(a, b float64) float64, points []float64, ridge float64, x []float64) (*mat.Dense, error) {
	gram := mat.NewSymDense(len(points), nil)
	for i, a := range points {
		for j, b := range points[:i+1] {
			gram.SetSym(i, j, k(a, b))
		}
		gram.SetSym(i, i, gram.At(i, i)+ridge)
	}
	var c mat.Cholesky
	if !c.Factorize(gram) {
		return nil, linalg.ErrNotPositiveDefinite
	}
	var l mat.TriDense
	c.LTo(&l)
	rows, column, row := mat.NewDense(len(x), len(points), nil), mat.NewVecDense(len(points), nil), new(mat.VecDense)
	for i, at := range x {
		for j, p := range points {
			column.SetVec(j, k(p, at))
		}
		var conditioned mat.Condition // only a warning: the solution is there
		if err := row.SolveVec(&l, column); err != nil && !errors.As(err, &conditioned) {
			return nil, fmt.Errorf("at %g: %w", at, err)
		}
		rows.SetRow(i, row.RawVector().Data)
	}
	return rows, nil
}
