package toy

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
	"gonum.org/v1/plot"

	"densityuncertainty/dul/linalg"
	"densityuncertainty/figures/report"
)

// Quadrature is a distribution of two numbers on a grid, where integrals are sums: the exact answer that approximations
// of a posterior in two dimensions are compared with.
type Quadrature struct {
	First, Second []float64 // the points of the grid
	Mass          []float64 // their probabilities
}

// An Axis is the ends of an axis and the number of points on it.
type Axis struct {
	Low, High float64
	Points    int
}

// NewQuadrature is the distribution with a log density, up to a constant, on the grid of two axes. It is an error where
// the mass at the border is more than a thousandth, as then the grid is too small, or where the log density is not a
// number.
func NewQuadrature(logDensity func(first, second float64) float64, first, second Axis) (Quadrature, error) {
	if first.Points < 3 || second.Points < 3 || !(first.Low < first.High && second.Low < second.High) {
		return Quadrature{}, fmt.Errorf("toy: quadrature on the axes %+v and %+v; want at least 3 points, and the lower end below the higher", first, second)
	}
	var q Quadrature
	axis := func(g Axis) []float64 { return floats.Span(make([]float64, g.Points), g.Low, g.High) }
	for _, a := range axis(first) {
		for _, b := range axis(second) {
			log := logDensity(a, b)
			if math.IsNaN(log) || math.IsInf(log, 1) {
				return Quadrature{}, fmt.Errorf("toy: quadrature: the log density at (%v, %v) is %v", a, b, log)
			}
			q.First, q.Second, q.Mass = append(q.First, a), append(q.Second, b), append(q.Mass, log)
		}
	}
	total := floats.LogSumExp(q.Mass)
	border := 0.0
	for i, log := range q.Mass {
		q.Mass[i] = math.Exp(log - total)
		if row, column := i/second.Points, i%second.Points; row == 0 || row == first.Points-1 || column == 0 || column == second.Points-1 {
			border += q.Mass[i]
		}
	}
	if !(border < 1e-3) {
		return Quadrature{}, fmt.Errorf("toy: quadrature: %.2g of the mass is at the border of the axes %+v and %+v; make them longer", border, first, second)
	}
	return q, nil
}

// Moments are the mean and the variance of u1 first + u2 second.
func (q Quadrature) Moments(u1, u2 float64) (mean, variance float64) {
	along := make([]float64, len(q.Mass))
	for i := range along {
		along[i] = u1*q.First[i] + u2*q.Second[i]
	}
	return stat.PopMeanVariance(along, q.Mass)
}

// An Approximation is a Gaussian with a mean and a precision matrix of order two.
type Approximation struct {
	Name      string
	Mean      mat.Vector
	Precision mat.Symmetric
}

// The numbers of Compare: draws that are shown, and the squared radius of the ellipse that holds 95% of a Gaussian in
// two dimensions, -2 log 0.05.
const comparedDraws = 600

var squaredRadius95 = -2 * math.Log(0.05)

// Compare is a figure with two panels: draws of the distribution with the ellipse that holds 95% of each approximation,
// and the standard deviation of w . u for unit vectors u of every angle, exact and approximated.
func (q Quadrature) Compare(approximations ...Approximation) (report.Figure, error) {
	draws := report.New("Posterior of the weights", "w1", "w2")
	deviations := report.New("Uncertainty of the logit w · x", "angle of x (degrees)", "standard deviation")
	var x, y []float64
	pick := distuv.NewCategorical(q.Mass, rand.NewPCG(1, 2))
	for range comparedDraws {
		i := int(pick.Rand())
		x, y = append(x, q.First[i]), append(y, q.Second[i])
	}
	if err := report.Points(draws, "", x, y, report.Grey, 0.8); err != nil {
		return report.Figure{}, err
	}
	var angles, exact []float64
	for angle := 0.0; angle <= 180; angle += 3 {
		u1, u2 := direction(angle)
		_, variance := q.Moments(u1, u2)
		angles, exact = append(angles, angle), append(exact, math.Sqrt(variance))
	}
	if err := report.Points(deviations, "exact", angles, exact, report.Grey, report.DotRadius); err != nil {
		return report.Figure{}, err
	}
	for k, a := range approximations {
		var covariance mat.Dense
		if err := covariance.Inverse(a.Precision); err != nil {
			return report.Figure{}, fmt.Errorf("toy: the precision of %s: %w", a.Name, err)
		}
		colour := report.Palette()[k]
		var ex, ey, sd []float64
		// The ellipse's point in the direction u is mean + r u, r^2 u^T Precision u = squaredRadius95.
		for angle := 0.0; angle <= 360; angle += 3 {
			u1, u2 := direction(angle)
			u := mat.NewVecDense(2, []float64{u1, u2})
			r := math.Sqrt(squaredRadius95 / mat.Inner(u, a.Precision, u))
			ex, ey = append(ex, a.Mean.AtVec(0)+r*u1), append(ey, a.Mean.AtVec(1)+r*u2)
			if angle <= 180 {
				sd = append(sd, math.Sqrt(mat.Inner(u, &covariance, u)))
			}
		}
		if err := report.Line(draws, "", ex, ey, colour); err != nil {
			return report.Figure{}, err
		}
		if err := report.Line(deviations, a.Name, angles, sd, colour); err != nil {
			return report.Figure{}, err
		}
	}
	deviations.Y.Min, deviations.Legend.Top = 0, true
	return report.Figure{
		Name: "posterior", Panels: [][]*plot.Plot{{draws, deviations}}, Width: 560, Height: 210,
		Caption: prose.Caption("posterior", nil),
	}, nil
}

func direction(degrees float64) (x, y float64) {
	y, x = math.Sincos(degrees * math.Pi / 180)
	return x, y
}

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
