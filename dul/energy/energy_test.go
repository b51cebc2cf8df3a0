package energy_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/mat"

	"densityuncertainty/dul"
	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/layertest"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/params"
	"densityuncertainty/environment/must"
)

// TestGradients compares all terms with finite differences, with respect to the
// parameters and the input, of vectors, alone and with replicas, and of images.
func TestGradients(t *testing.T) {
	fixtures.SkipShortOffGo(t)
	const features = 4
	for _, m := range []named{
		{"LDL", energy.LDL{}},
		{"LDL replicate", energy.LDL{ReplicatePadding: true}},
		{"Rank1Mixture 1", energy.Rank1Mixture{}},
		{"Rank1Mixture 3", energy.Rank1Mixture{Fraction: 0.75}},
		{"Rank1Mixture 3 of a convolution", energy.Rank1Mixture{Fraction: 1.5}},
		{"Rank1Mixture, released sign", energy.Rank1Mixture{Fraction: 1, NegatedLogDet: true}},
		{"Diagonal", energy.Diagonal{}},
		{"LocationMixture", energy.LocationMixture{Components: 3}},
	} {
		check := func(name string, x fixtures.Array, term func(s *model.Scope, x *graph.Node) *graph.Node) {
			t.Run(m.name+"/"+name, func(t *testing.T) {
				f := func(s *model.Scope, in fixtures.Nodes) *graph.Node {
					if len(x.Dims) == 3 {
						params.SetReplicas(in["x"].Graph(), x.Dims[:1])
					}
					return term(s.In("energy"), in["x"])
				}
				values, noise := fixtures.Explore(t, fixtures.Values{"x": x}, f)
				fixtures.CheckGradient(t, values, noise, f)
			})
		}
		for _, dims := range [][]int{{3, features}, {2, 3, features}} {
			x := fixtures.Random(rand.New(rand.NewPCG(1, 1)), dims...)
			for i, name := range []string{"Energy", "LogLikelihood"} {
				check(fmt.Sprintf("%s/%v", name, dims), x, func(s *model.Scope, x *graph.Node) *graph.Node {
					terms := m.model.Dense(s, x)
					return []*graph.Node{terms.Energy, terms.LogLikelihood}[i]
				})
			}
		}
		x := fixtures.Random(rand.New(rand.NewPCG(10, 10)), 2, 2, 4, 3)
		for _, w := range windows {
			for i, name := range []string{"Energy", "LogLikelihood", "MeanEnergy"} {
				check(fmt.Sprintf("%s/%+v", name, w), x, func(s *model.Scope, x *graph.Node) *graph.Node {
					terms := m.model.Conv(s, x, w)
					return []*graph.Node{terms.Energy, terms.LogLikelihood, terms.MeanEnergy}[i]
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

// A named energy model.
type named struct {
	name  string
	model dul.EnergyModel
}

// In single precision the two sums of a rank-1 form may be a million times their difference: for inputs along the factor
// of a component with the least variances the energy is what its bound leaves, and never below 0.
func TestMixtureOfCollinearInputs(t *testing.T) {
	const d, length = 100, 4.0
	rng := rand.New(rand.NewPCG(8, 9))
	x := fixtures.Zeros(320, d)
	sizes := make([]float64, 320)
	for i := range sizes {
		sizes[i] = rng.NormFloat64()
		for j := range d {
			x.Values[i*d+j] = sizes[i] * length
		}
	}
	m := energy.Rank1Mixture{Fraction: 1. / d}
	values, _ := fixtures.Explore(t, fixtures.Values{"x": x}, func(s *model.Scope, in fixtures.Nodes) *graph.Node {
		return m.Dense(s.In("energy"), in["x"]).Energy
	})
	values["/energy/factors"] = fixtures.Zeros(1, d).Map(func(float64) float64 { return length })
	values["/energy/log_diagonals"] = fixtures.Zeros(1, d).Map(func(float64) float64 { return -20 }) // below the floor
	for i, e := range fixtures.Evaluate(t, dtypes.Float32, values, nil, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
		return []*graph.Node{m.Dense(s.In("energy"), in["x"]).Energy}
	})[0].Values {
		exact := sizes[i] * sizes[i] / 2       // h = a v has a^2 s / (1 + s) / 2 with s in the millions
		if !(e >= 0 && e >= 0.99*exact-1e-4) { // the likelihoods of which it is the difference are in the hundreds
			t.Errorf("the energy of input %d is %g, at least %g by its bound", i, e, exact)
		}
	}
}

func TestMixtureRejectsFractions(t *testing.T) {
	for _, fraction := range []float64{-1, math.NaN(), math.Inf(1)} {
		_, err := model.CallOnce(fixtures.Backend(t), model.NewStore(), func(s *model.Scope, x *graph.Node) *graph.Node {
			return dul.Density{Energy: energy.Rank1Mixture{Fraction: fraction}}.Dense(s, x, 1)
		}, [][]float64{{1, 2}})
		if err == nil || !strings.Contains(err.Error(), "a part of the features") {
			t.Errorf("%g: %v", fraction, err)
		}
	}
}

// K is the fraction of the features, and of the channels but for three.
func TestComponents(t *testing.T) {
	for _, c := range []struct {
		fraction       float64
		features       int
		want, wantConv int
	}{
		{0, 50, 5, 5}, {0, 3, 1, 3}, {0, 64, 6, 6}, {0.2, 1, 1, 1}, {0.2, 3, 1, 3}, {0.0125, 3, 1, 3},
		{0.0125, 16, 1, 1}, {0.0125, 32, 1, 1}, {0.0125, 64, 1, 1}, {0.0125, 160, 2, 2}, {0.0125, 320, 4, 4},
		{0.0125, 640, 8, 8}, {0.2, 64, 12, 12},
	} {
		t.Run(fmt.Sprintf("%g of %d", c.fraction, c.features), func(t *testing.T) {
			m := energy.Rank1Mixture{Fraction: c.fraction}
			if got := m.Components(c.features); got != c.want {
				t.Errorf("%d components, want %d", got, c.want)
			}
			if got := m.ConvComponents(c.features); got != c.wantConv {
				t.Errorf("%d components of a convolution, want %d", got, c.wantConv)
			}
		})
	}
}

// With ZeroFactors the gradient of v is exactly zero at the start, so that the
// mixture stays one diagonal Gaussian; the orthonormal start has one.
func TestZeroFactorsNeverMove(t *testing.T) {
	x := fixtures.Random(rand.New(rand.NewPCG(6, 6)), 20, 6)
	for _, zero := range []bool{true, false} {
		t.Run(fmt.Sprintf("ZeroFactors=%t", zero), func(t *testing.T) {
			m := energy.Rank1Mixture{Fraction: 0.5, ZeroFactors: zero}
			store := model.NewStore()
			params.SetSeeds(store, 1)
			gradient := must.Get(model.CallOnce(fixtures.Backend(t), store, func(s *model.Scope, x *graph.Node) *graph.Node {
				ll := m.Dense(s.In("energy"), x).LogLikelihood
				return graph.Gradient(graph.ReduceAllMean(ll), store.GetVariable("/energy/factors").NodeValue(x))[0]
			}, fixtures.Tensor(dtypes.Float64, x)))(t)
			moves := false
			for _, v := range fixtures.FromTensor(t, gradient).Values {
				moves = moves || v != 0
			}
			if moves == zero {
				t.Errorf("the factors have a gradient: %t", moves)
			}
		})
	}
}

// descended is what gradient descent on the negative log-likelihood of inputs h
// makes of the log-variances of the features, from the given start.
func descended(t *testing.T, logLikelihood func(s *model.Scope, h *graph.Node) *graph.Node, h fixtures.Array, start, rate float64, steps int) []float64 {
	t.Helper()
	store := model.NewStore()
	var logVariances *model.Variable
	exec := must.Get(model.NewExec(fixtures.Backend(t), store, func(s *model.Scope, h, offset *graph.Node) *graph.Node {
		loss := graph.Neg(graph.ReduceAllMean(logLikelihood(s, h)))
		for v := range store.IterVariables() {
			if v.Name() == "log_variance" || v.Name() == "log_diagonals" {
				logVariances = v
			}
		}
		value := logVariances.NodeValue(h.Graph())
		step := graph.MulScalar(graph.Gradient(loss, value)[0], rate)
		logVariances.SetNodeValue(graph.Add(graph.Sub(value, step), offset))
		return loss
	}))(t)
	for range steps {
		loss := must.Get(exec.Call1(fixtures.Tensor(dtypes.Float32, h), float32(start)))(t)
		if l := fixtures.FromTensor(t, loss).Values[0]; math.IsNaN(l) || math.IsInf(l, 0) {
			t.Fatalf("the loss is %g", l)
		}
		start = 0
	}
	return fixtures.FromTensor(t, logVariances.MustValue()).Values
}

// The log-variance of a feature that is always zero ends at log 1e-4 instead of
// going on until its precision overflows; one below the floor of a feature that is
// not zero rises.
func TestDeadFeatures(t *testing.T) {
	images := fixtures.Zeros(2, 1, 2, 2) // [channels, batch, height, width]
	copy(images.Values, []float64{1, -1, 1, -1})
	dense := fixtures.Matrix(2, 2, 1, 0, -1, 0)
	window := conv.Same(1, 1)
	floor := math.Log(1e-4)
	for _, c := range []struct {
		name string
		h    fixtures.Array
		ll   func(s *model.Scope, h *graph.Node) *graph.Node
	}{
		{"LDL", dense, func(s *model.Scope, h *graph.Node) *graph.Node { return energy.LDL{}.Dense(s, h).LogLikelihood }},
		{"LDL convolution", images, func(s *model.Scope, h *graph.Node) *graph.Node { return energy.LDL{}.Conv(s, h, window).LogLikelihood }},
		{"diagonal", dense, func(s *model.Scope, h *graph.Node) *graph.Node { return energy.Diagonal{}.Dense(s, h).LogLikelihood }},
		{"diagonal convolution", images, func(s *model.Scope, h *graph.Node) *graph.Node {
			return energy.Diagonal{}.Conv(s, h, window).LogLikelihood
		}},
		{"mixture", dense, func(s *model.Scope, h *graph.Node) *graph.Node {
			return energy.Rank1Mixture{ZeroFactors: true}.Dense(s, h).LogLikelihood
		}},
		{"mixture of a convolution", images, func(s *model.Scope, h *graph.Node) *graph.Node {
			return energy.Rank1Mixture{ZeroFactors: true}.Conv(s, h, window).LogLikelihood
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := descended(t, c.ll, c.h, 0, 0.5, 800)
			if math.Abs(got[0]) > 1e-3 {
				t.Errorf("the log-variance of a feature of variance 1 is %g, want 0", got[0])
			}
			if got[1] > floor || got[1] < floor-0.5 {
				t.Errorf("the log-variance of a dead feature is %g, want about %g", got[1], floor)
			}
			if raised := descended(t, c.ll, c.h, floor-1, 1e-5, 40); !(raised[0] > floor-0.9) || raised[1] > floor-0.9 {
				t.Errorf("from below the floor log-variances go to %v, want the first to rise", raised)
			}
		})
	}
}

func TestContract(t *testing.T) {
	for name, m := range map[string]dul.EnergyModel{
		"LDL": energy.LDL{}, "Diagonal": energy.Diagonal{}, "Constant": energy.Constant{},
		"Rank1Mixture": energy.Rank1Mixture{}, "Rank1Mixture of two": energy.Rank1Mixture{Fraction: 1},
		"LocationMixture": energy.LocationMixture{}, "LocationMixture of one": energy.LocationMixture{Components: 1},
	} {
		t.Run(name, func(t *testing.T) { layertest.Energy(t, m) })
	}
}
