package cifar

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/conv"
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
	if len(fit.LogLikelihood) != 1001 {
		t.Fatalf("%d log-likelihoods, want 1001", len(fit.LogLikelihood))
	}
	must.Near(t, fit.LogLikelihood[1000], want, 1e-3, "log-likelihood")
	must.Near(t, fit.Energy[1000], d/2.0, 1e-2, "mean energy")
	if len(fit.Features) != n || len(fit.Others) != n || stat.Mean(fit.Others, nil) < 3*fit.Energy[1000] {
		t.Errorf("energies of %d features, and of %d others, mean %v", len(fit.Features), len(fit.Others), stat.Mean(fit.Others, nil))
	}
	// (a, -a, 0) at the first example: 1/2 x' S^-1 x.
	x, solved := mat.NewVecDense(d, others[:d]), mat.NewVecDense(d, nil)
	must.Do(t, factors.SolveVecTo(solved, x))
	want = mat.Dot(x, solved) / 2
	must.Near(t, fit.Others[0], want, 0.02*want, "the energy of another vector")
	must.GetErr(FitEnergy(backend, energy.LDL{}, 2, features[:3], nil, 1, 1))(t, "3 numbers to fit")
}

// Untrained, the energy at a position is half the squared distance of its pixels from the mean colour, averaged over the
// window. At the largest likelihood the mean over positions is 3/2, but for windows that reach beyond the border: 94/96 of
// each axis counts.
func TestEnergyMaps(t *testing.T) {
	images := Some(must.Get(OpenPictures())(t).Training, 8, 1)
	before, after := must.Get2(EnergyMaps(backendtest.Open(t), energy.LDL{}, conv.Same(3, 1), images, 400))(t)
	stats, want := datasets.FitChannelStats(images, nil), 0.0
	for c := range 3 {
		for k := range 9 { // around row 1 and column 5 of image 7
			v := float64(images.Pixels[1024*(3*7+c)+32*(k/3)+4+k%3])
			want += math.Pow((v/255-stats.Mean[c])/stats.Std[c], 2) / 18
		}
	}
	must.Near(t, before[1024*7+32+5]/want, 1, 1e-4, "the energy over its formula")
	must.Near(t, stat.Mean(after, nil), 1.5*94*94/96/96, 0.1, "the mean energy")
	if len(after) != 8*1024 {
		t.Errorf("%d energies", len(after))
	}
}
