package toy_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"densityuncertainty/dul/linalg"
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
		must.Near(t, mean, c.mean, 1e-6, "along (%v, %v): the mean", c.u1, c.u2)
		must.Near(t, variance, c.variance, 1e-4, "along (%v, %v): the variance", c.u1, c.u2)
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

func squaredExponential(a, b float64) float64 { return 2 * math.Exp(-(a-b)*(a-b)/2) }

func indefinite(a, b float64) float64 { return -1 }

func TestProcessVariance(t *testing.T) {
	// One observation: k(x, x) - k(x, z)^2 / (k(z, z) + sigma2).
	x := []float64{0.5, 1.5, 50}
	one := must.Get(toy.ProcessVariance(squaredExponential, []float64{0.5}, 0.1, x))(t)
	for i, at := range x {
		k := squaredExponential(at, 0.5)
		must.Near(t, one[i], 2-k*k/2.1, 1e-12, "one observation, at %v: variance", at)
	}
	// Several, by the inverse.
	data := []float64{-1, 0, 0.3, 2}
	several := must.Get(toy.ProcessVariance(squaredExponential, data, 0.1, x))(t)
	gram, inverse := mat.NewDense(4, 4, nil), new(mat.Dense)
	gram.Apply(func(i, j int, _ float64) float64 {
		if i == j {
			return 2.1
		}
		return squaredExponential(data[i], data[j])
	}, gram)
	must.Do(t, inverse.Inverse(gram))
	for i, at := range x {
		k := mat.NewVecDense(4, nil)
		for j, z := range data {
			k.SetVec(j, squaredExponential(at, z))
		}
		must.Near(t, several[i], 2-mat.Inner(k, inverse, k), 1e-12, "at %v: variance", at)
	}
	must.GetErr(toy.ProcessVariance(indefinite, data, 0.1, x))(t, linalg.ErrNotPositiveDefinite)
}

// The inner products of the features are the kernel between inducing points, and
// with all of the data as inducing points the sparse variance is the exact one.
func TestInducingFeatures(t *testing.T) {
	z, x := []float64{-2, -0.5, 1}, []float64{-2, -0.5, 1, 0.2, 9}
	a := must.Get(toy.InducingFeatures(squaredExponential, z, x))(t)
	inner := func(i, j int) float64 { return mat.Dot(a.RowView(i), a.RowView(j)) }
	for i := range x {
		for j := range z {
			must.Near(t, inner(i, j), squaredExponential(x[i], z[j]), 1e-6, "features of %v and %v", x[i], z[j])
		}
	}
	if missed := 2 - inner(3, 3); missed < 0.01 || missed > 2 {
		t.Errorf("between inducing points the features miss a variance of %v", missed)
	}

	const noise = 0.1
	exact := must.Get(toy.ProcessVariance(squaredExponential, z, noise, x))(t)
	atData := must.Get(toy.InducingFeatures(squaredExponential, z, z))(t)
	var precision, covariance mat.Dense
	precision.Mul(atData.T(), atData)
	precision.Scale(1/noise, &precision)
	precision.Add(&precision, mat.NewDiagDense(3, []float64{1, 1, 1}))
	must.Do(t, covariance.Inverse(&precision))
	for i, form := range toy.QuadraticForms(a, &covariance) {
		must.Near(t, form+2-inner(i, i), exact[i], 1e-6, "at %v: the sparse variance, and the exact one", x[i])
	}
	must.GetErr(toy.InducingFeatures(indefinite, z, x))(t, linalg.ErrNotPositiveDefinite)
}
