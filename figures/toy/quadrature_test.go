package toy_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/toy"
)

// gaussian is the log density of a Gaussian with mean (1, -2), variances 1 and 4 and covariance 1.
func gaussian(a, b float64) float64 {
	a, b = a-1, b+2
	return -(4*a*a - 2*a*b + b*b) / 3 / 2
}

var wide = []toy.Axis{{-5, 7, 97}, {-14, 10, 97}}

func TestQuadrature(t *testing.T) {
	q := must.Get(toy.NewQuadrature(gaussian, wide[0], wide[1]))(t)
	for _, c := range []struct{ u1, u2, mean, variance float64 }{{1, 0, 1, 1}, {0, 1, -2, 4}, {1, 1, -1, 7}, {1, -1, 3, 3}} {
		mean, variance := q.Moments(c.u1, c.u2)
		if math.Abs(mean-c.mean) > 1e-6 || math.Abs(variance-c.variance) > 1e-4 {
			t.Errorf("along (%v, %v): mean %v, variance %v, want %v and %v", c.u1, c.u2, mean, variance, c.mean, c.variance)
		}
	}
	mean := mat.NewVecDense(2, []float64{1, -2})
	right := mat.NewSymDense(2, []float64{4. / 3, -1. / 3, -1. / 3, 1. / 3})
	wrong := mat.NewSymDense(2, []float64{1, 0, 0, 0.25})
	figtest.Golden(t)(q.Compare(toy.Approximation{"right", mean, right}, toy.Approximation{"without correlation", mean, wrong}))
	must.GetErr(q.Compare(toy.Approximation{"singular", mean, mat.NewSymDense(2, nil)}))(t, "precision of singular")
}

func TestQuadratureErrors(t *testing.T) {
	for _, c := range []struct {
		want          string
		density       func(a, b float64) float64
		first, second toy.Axis
	}{
		{"at the border", gaussian, toy.Axis{-5, 2, 50}, wide[1]},
		{"at least 3 points", gaussian, toy.Axis{-5, 2, 2}, wide[1]},
		{"lower end below", gaussian, wide[0], toy.Axis{3, 3, 9}},
		{"is NaN", func(a, _ float64) float64 { return math.Sqrt(a) }, wide[0], wide[1]},
	} {
		must.GetErr(toy.NewQuadrature(c.density, c.first, c.second))(t, c.want)
	}
}
