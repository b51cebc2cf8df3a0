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
						params.FactsOf(in["x"].Graph()).Replicas = x.Dims[:1]
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
		must.GetErr(model.CallOnce(fixtures.Backend(t), model.NewStore(), func(s *model.Scope, x *graph.Node) *graph.Node {
			return dul.Density{Energy: energy.Rank1Mixture{Fraction: fraction}}.Dense(s, x, 1)
		}, [][]float64{{1, 2}}))(t, fmt.Sprint(fraction), "a part of the features")
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
			must.Near(t, got[0], 0, 1e-3, "the log-variance of a feature of variance 1")
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

// compareTerms compares energies, log-likelihoods and, of images, mean energies.
func compareTerms(t *testing.T, got []fixtures.Array, tolerance float64, want ...fixtures.Array) {
	t.Helper()
	for i, a := range want {
		fixtures.Compare(t, []string{"energy", "log-likelihood", "mean energy"}[i], got[i], a, tolerance)
	}
}

// denseTerms evaluates energies and log-likelihoods of a model in the scope "energy" at given values.
func denseTerms(t *testing.T, m dul.EnergyModel, values fixtures.Values) []fixtures.Array {
	t.Helper()
	return fixtures.Evaluate(t, dtypes.Float64, values, nil, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
		terms := m.Dense(s.In("energy"), in["x"])
		return []*graph.Node{terms.Energy, terms.LogLikelihood}
	})
}

// ldl evaluates energy.LDL at given parameters.
func ldl(t *testing.T, lower, logVariance, x fixtures.Array) []fixtures.Array {
	t.Helper()
	return denseTerms(t, energy.LDL{}, fixtures.Values{"x": x, "/energy/lower": lower, "/energy/log_variance": logVariance})
}

// mixture evaluates energy.Rank1Mixture with one component for each row of v.
func mixture(t *testing.T, v, logDiagonals, logits, x fixtures.Array) []fixtures.Array {
	t.Helper()
	return denseTerms(t, withComponents(v), mixtureValues(v, logDiagonals, logits, x))
}

func mixtureValues(v, logDiagonals, logits, x fixtures.Array) fixtures.Values {
	return fixtures.Values{
		"x":                      x,
		"/energy/factors":        v,
		"/energy/log_diagonals":  logDiagonals,
		"/energy/mixture_logits": logits,
	}
}

// withComponents is a mixture with as many components as v has rows.
func withComponents(v fixtures.Array) energy.Rank1Mixture {
	k, d := v.Dims[len(v.Dims)-2], v.Dims[len(v.Dims)-1]
	return energy.Rank1Mixture{Fraction: (float64(k) + 0.5) / float64(d)}
}

// exact is the tolerance for ground truth in double precision, relative to the
// largest entry: these cases went through a dense inverse.
const exact = 1e-10

func TestLDLMatchesTheDenseGaussian(t *testing.T) {
	fixtures.Each(t, "gauss_ldl_*", func(t *testing.T, c fixtures.Case) {
		compareTerms(t, ldl(t, c.Array("L"), c.Array("logvar"), c.Array("x")), exact, c.Column("energy"), c.Column("logpdf"))
	})
}

func TestRank1CovarianceMatchesTheDenseGaussian(t *testing.T) {
	fixtures.Each(t, "rank1_cov_*", func(t *testing.T, c fixtures.Case) {
		compareTerms(t, mixture(t, c.Array("v"), c.Array("d").Map(math.Log), fixtures.Zeros(1, 1), c.Array("x")), exact, c.Column("energy"), c.Column("logpdf"))
	})
}

func TestMixtureMatchesTheDenseMixture(t *testing.T) {
	c := fixtures.Open(t, "rank1_mix_truth_a")
	v, logDiagonals, logits, x := c.Array("v"), c.Array("log_diagonals"), c.Array("logits"), c.Array("x")
	compareTerms(t, mixture(t, v, logDiagonals, logits, x), exact, c.Column("energy"), c.Column("loglik"))

	gradients := fixtures.Evaluate(t, dtypes.Float64, mixtureValues(v, logDiagonals, logits, x), nil, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
		return graph.Gradient(graph.ReduceAllMean(withComponents(v).Dense(s.In("energy"), in["x"]).LogLikelihood),
			in["/energy/factors"], in["/energy/log_diagonals"], in["/energy/mixture_logits"])
	})
	for i, name := range []string{"v", "log_diagonals", "logits"} {
		// Recorded by finite differences of the dense mixture.
		fixtures.Compare(t, "gradient of "+name, gradients[i], c.Array("fd_grad_"+name), 1e-7)
	}
}

// Bayesian linear regression with prior precision alpha and noise precision
// beta predicts with the exact variance
//
//	1/beta + 2/(beta N) E(x),   E the energy of N(0, Sigma),   Sigma = X^T X / N + alpha/(beta N) I,
//
// which is the identity that density uncertainty layers rest on (section 2.1).
func TestBayesianLinearRegressionVarianceIsAnEnergy(t *testing.T) {
	for name, known := range map[string]struct{ alpha, beta float64 }{"bayes_linreg_a": {0.7, 2.5}, "bayes_linreg_b": {2.0, 0.4}} {
		t.Run(name, func(t *testing.T) {
			c := fixtures.Open(t, name)
			x := c.Array("X")
			n, d := x.Dims[0], x.Dims[1]
			inputs := mat.NewDense(n, d, x.Values)
			sigma := mat.NewSymDense(d, nil)
			sigma.SymOuterK(1/float64(n), inputs.T())
			for j := range d {
				sigma.SetSym(j, j, sigma.At(j, j)+known.alpha/(known.beta*float64(n)))
			}
			lower, logVariance := precisionFactors(t, sigma)
			e := ldl(t, lower, logVariance, c.Array("X_test"))[0]
			fixtures.Compare(t, "energy", e, c.Column("energy"), exact)
			variance := e.Map(func(e float64) float64 { return 1/known.beta + 2/(known.beta*float64(n))*e })
			fixtures.Compare(t, "predictive variance", variance, c.Column("pred_var"), exact)
		})
	}
}

// precisionFactors returns the parameters of energy.LDL for the covariance sigma:
// from the Cholesky factor C of its inverse, L = C diag(C)^-1 and log variance = -2 log diag(C).
func precisionFactors(t *testing.T, sigma *mat.SymDense) (lower, logVariance fixtures.Array) {
	t.Helper()
	var factors mat.Cholesky
	if !factors.Factorize(sigma) {
		t.Fatal("the covariance is not positive definite")
	}
	precision := mat.NewSymDense(sigma.SymmetricDim(), nil)
	must.Do(t, factors.InverseTo(precision))
	if !factors.Factorize(precision) {
		t.Fatal("the precision is not positive definite")
	}
	var root mat.TriDense
	factors.LTo(&root)
	d := sigma.SymmetricDim()
	lower, logVariance = fixtures.Zeros(d, d), fixtures.Zeros(1, d)
	for j := range d {
		logVariance.Values[j] = -2 * math.Log(root.At(j, j))
		for i := j + 1; i < d; i++ {
			lower.Values[i*d+j] = root.At(i, j) / root.At(j, j)
		}
	}
	return lower, logVariance
}
