package energy_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/mat"

	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/params"
)

// Energy, log-likelihood and log determinant against finite differences, with
// respect to the parameters and the input, alone and with replicas.
func TestGradients(t *testing.T) {
	type dense interface {
		Dense(s *model.Scope, h *graph.Node) energy.Terms
	}
	for name, e := range map[string]dense{
		"LDL":            energy.LDL{},
		"Rank1Mixture 1": energy.Rank1Mixture{Fraction: 0.1},
		"Rank1Mixture 3": energy.Rank1Mixture{Fraction: 0.75},
	} {
		for term, of := range map[string]func(energy.Terms) *graph.Node{
			"Energy":        func(t energy.Terms) *graph.Node { return t.Energy },
			"LogLikelihood": func(t energy.Terms) *graph.Node { return t.LogLikelihood },
			"LogDet":        func(t energy.Terms) *graph.Node { return t.LogDet },
		} {
			for _, dims := range [][]int{{3, 4}, {2, 3, 4}} {
				t.Run(fmt.Sprintf("%s/%s/%v", name, term, dims), func(t *testing.T) {
					f := func(s *model.Scope, in fixtures.Nodes) *graph.Node { return of(e.Dense(s.In("energy"), in["x"])) }
					inputs := fixtures.Values{"x": fixtures.Random(rand.New(rand.NewPCG(1, 1)), dims...)}
					values, noise := fixtures.Explore(t, inputs, f)
					fixtures.CheckGradient(t, values, noise, f)
				})
			}
		}
	}
}

// energyOfBasis returns the quadratic form's matrix A, E(x) = 1/2 x^T A x, by
// polarization: from the energies of e_i and e_i + e_j.
func energyOfBasis(d int, energies func(x fixtures.Array) fixtures.Array) *mat.SymDense {
	x := fixtures.Zeros(d*d, d)
	for i := range d {
		for j := range d {
			x.Values[(i*d+j)*d+i]++
			x.Values[(i*d+j)*d+j]++ // row i = j is 2 e_i
		}
	}
	e := energies(x).Values
	a := mat.NewSymDense(d, nil)
	for i := range d {
		for j := i; j < d; j++ {
			// E(2 e_i) = 2 A_ii; E(e_i + e_j) = (A_ii + A_jj)/2 + A_ij.
			a.SetSym(i, j, e[i*d+j]-e[i*d+i]/4-e[j*d+j]/4)
		}
		a.SetSym(i, i, e[i*d+i]/2)
	}
	return a
}

// checkGaussian checks that the quadratic form of the energies is positive
// definite with the determinant that the model claims.
func checkGaussian(t *testing.T, d int, energies func(x fixtures.Array) fixtures.Array, logDetSigma float64) {
	t.Helper()
	precision := energyOfBasis(d, energies)
	var factors mat.Cholesky
	if !factors.Factorize(precision) {
		t.Fatalf("the precision is not positive definite:\n%.4g", mat.Formatted(precision))
	}
	logDet, sign := mat.LogDet(precision)
	if sign != 1 || math.Abs(-logDet-logDetSigma) > 1e-8*max(1, math.Abs(logDetSigma)) {
		t.Errorf("log |Sigma| is %g, that of the quadratic form %g", logDetSigma, -logDet)
	}
}

func TestLDLIsAGaussianForAnyParameters(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 10 {
		d := 1 + rng.IntN(6)
		lower, logVariance := fixtures.Random(rng, d, d), fixtures.Random(rng, 1, d)
		_, _, logDet := ldl(t, lower, logVariance, fixtures.Zeros(1, d))
		checkGaussian(t, d, func(x fixtures.Array) fixtures.Array {
			e, _, _ := ldl(t, lower, logVariance, x)
			return e
		}, logDet.Values[0])
	}
}

func TestRank1IsAGaussianForAnyParameters(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 10 {
		d := 1 + rng.IntN(6)
		v, logDiagonals, logits := fixtures.Random(rng, 1, d), fixtures.Random(rng, 1, d), fixtures.Random(rng, 1, 1)
		_, _, logDet := mixture(t, v, logDiagonals, logits, fixtures.Zeros(1, d))
		checkGaussian(t, d, func(x fixtures.Array) fixtures.Array {
			e, _, _ := mixture(t, v, logDiagonals, logits, x)
			return e
		}, logDet.Values[0])
	}
}

// A mixture of K equal components is one Gaussian, and its energy that of K = 1.
func TestMixtureOfEqualComponentsIsTheGaussian(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	const d, k = 5, 3
	v, logDiagonals, x := fixtures.Random(rng, 1, d), fixtures.Random(rng, 1, d), fixtures.Random(rng, 8, d)
	wantEnergy, wantLikelihood, _ := mixture(t, v, logDiagonals, fixtures.Zeros(1, 1), x)
	repeat := func(a fixtures.Array) fixtures.Array {
		b := fixtures.Zeros(k, d)
		for i := range b.Values {
			b.Values[i] = a.Values[i%d]
		}
		return b
	}
	e, ll, _ := mixture(t, repeat(v), repeat(logDiagonals), fixtures.Random(rng, 1, k), x)
	fixtures.Compare(t, "energy", e, wantEnergy, 1e-12)
	fixtures.Compare(t, "log-likelihood", ll, wantLikelihood, 1e-12)
}

// The energy is not negative, and zero at zero: zero is the mode of every component.
func TestEnergyIsNotNegative(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for range 20 {
		d := 1 + rng.IntN(6)
		k := 1 + rng.IntN(d)
		x := fixtures.Random(rng, 20, d).Scale(math.Exp(3 * rng.NormFloat64()))
		clear(x.Values[:d])
		ofMixture, _, _ := mixture(t, fixtures.Random(rng, k, d), fixtures.Random(rng, k, d), fixtures.Random(rng, 1, k), x)
		ofLDL, _, _ := ldl(t, fixtures.Random(rng, d, d), fixtures.Random(rng, 1, d), x)
		for name, e := range map[string]fixtures.Array{"Rank1Mixture": ofMixture, "LDL": ofLDL} {
			if math.Abs(e.Values[0]) > 1e-14 {
				t.Errorf("%s: the energy of zero is %g", name, e.Values[0])
			}
			for i, v := range e.Values[1:] {
				if !(v >= 0) {
					t.Errorf("%s: the energy of input %d is %g", name, i+1, v)
				}
			}
		}
	}
}

func TestComponents(t *testing.T) {
	for _, c := range []struct {
		fraction float64
		features int
		want     int
	}{{0, 50, 5}, {0, 3, 1}, {0.0125, 16, 1}, {0.0125, 160, 2}, {0.2, 64, 12}, {0.0125, 640, 8}} {
		if got := (energy.Rank1Mixture{Fraction: c.fraction}).Components(c.features); got != c.want {
			t.Errorf("fraction %g of %d features: %d components, want %d", c.fraction, c.features, got, c.want)
		}
	}
}

// With ZeroFactors the gradient of v is exactly zero at the start, so that the
// mixture stays one diagonal Gaussian; the orthonormal start has one.
func TestZeroFactorsNeverMove(t *testing.T) {
	x := fixtures.Random(rand.New(rand.NewPCG(6, 6)), 20, 6)
	for _, zero := range []bool{true, false} {
		m := energy.Rank1Mixture{Fraction: 0.5, ZeroFactors: zero}
		store := model.NewStore()
		params.SetSeeds(store, 1)
		gradient, err := model.CallOnce(fixtures.Backend(t), store, func(s *model.Scope, x *graph.Node) *graph.Node {
			ll := m.Dense(s.In("energy"), x).LogLikelihood
			return graph.Gradient(graph.ReduceAllMean(ll), store.GetVariable("/energy/factors").NodeValue(x))[0]
		}, fixtures.Tensor(dtypes.Float64, x))
		if err != nil {
			t.Fatal(err)
		}
		moves := false
		for _, v := range fixtures.FromTensor(t, gradient).Values {
			moves = moves || v != 0
		}
		if moves == zero {
			t.Errorf("ZeroFactors %t: the factors have a gradient: %t", zero, moves)
		}
	}
}
