package cifar

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"densityuncertainty/dul/energy"
	"densityuncertainty/environment/backendtest"
	"densityuncertainty/environment/must"
)

// The likelihood of a Gaussian is largest at the covariance of the features, where
// their mean energy is d/2.
func TestFitEnergy(t *testing.T) {
	backend := backendtest.Open(t)
	const d, n = 3, 400
	rng := rand.New(rand.NewPCG(1, 2))
	var features, others []float64
	for range n {
		a, b, c := rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()
		features = append(features, a, a+0.5*b, c-a)
		others = append(others, a, -a, 0)
	}
	fit := must.Get(FitEnergy(backend, energy.LDL{}, d, features, others, 1000, 1))(t)
	var second mat.SymDense // about zero, as the model
	second.SymOuterK(1.0/n, mat.NewDense(n, d, features).T())
	var factors mat.Cholesky
	if !factors.Factorize(&second) {
		t.Fatal("the covariance is singular")
	}
	want := -0.5 * (d*math.Log(2*math.Pi) + factors.LogDet() + d)
	if got := fit.LogLikelihood[len(fit.LogLikelihood)-1]; len(fit.LogLikelihood) != 1001 || math.Abs(got-want) > 1e-3 {
		t.Errorf("log-likelihood %v after %d steps, want %v", got, len(fit.LogLikelihood)-1, want)
	}
	if got := fit.Energy[1000]; math.Abs(got-d/2.0) > 1e-2 {
		t.Errorf("mean energy %v, want %v", got, d/2.0)
	}
	if len(fit.Features) != n || len(fit.Others) != n || stat.Mean(fit.Others, nil) < 3*fit.Energy[1000] {
		t.Errorf("energies of %d features, and of %d others, mean %v", len(fit.Features), len(fit.Others), stat.Mean(fit.Others, nil))
	}
	// (a, -a, 0) at the first example: 1/2 x' S^-1 x.
	x, solved := mat.NewVecDense(d, others[:d]), mat.NewVecDense(d, nil)
	must.Do(t, factors.SolveVecTo(solved, x))
	if want := mat.Dot(x, solved) / 2; math.Abs(fit.Others[0]-want) > 0.02*want {
		t.Errorf("energy of another vector %v, want %v", fit.Others[0], want)
	}
	fails(t, "half a vector", errorOf(FitEnergy(backend, energy.LDL{}, 2, features[:3], nil, 1, 1)), "3 numbers to fit")
}
