package energy_test

import (
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/mat"

	"densityuncertainty/dul"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/environment/must"
)

// denseTerms evaluates a model in the scope "energy" at given values.
func denseTerms(t *testing.T, m dul.EnergyModel, values fixtures.Values) (e, logLikelihood fixtures.Array) {
	t.Helper()
	out := fixtures.Evaluate(t, dtypes.Float64, values, nil, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
		terms := m.Dense(s.In("energy"), in["x"])
		return []*graph.Node{terms.Energy, terms.LogLikelihood}
	})
	return out[0], out[1]
}

// ldl evaluates energy.LDL at given parameters.
func ldl(t *testing.T, lower, logVariance, x fixtures.Array) (e, logLikelihood fixtures.Array) {
	t.Helper()
	return denseTerms(t, energy.LDL{}, fixtures.Values{"x": x, "/energy/lower": lower, "/energy/log_variance": logVariance})
}

// mixture evaluates energy.Rank1Mixture with one component for each row of v.
func mixture(t *testing.T, v, logDiagonals, logits, x fixtures.Array) (e, logLikelihood fixtures.Array) {
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
		e, ll := ldl(t, c.Array("L"), c.Array("logvar"), c.Array("x"))
		fixtures.Compare(t, "energy", e, c.Column("energy"), exact)
		fixtures.Compare(t, "log-likelihood", ll, c.Column("logpdf"), exact)
	})
}

func TestRank1CovarianceMatchesTheDenseGaussian(t *testing.T) {
	fixtures.Each(t, "rank1_cov_*", func(t *testing.T, c fixtures.Case) {
		e, ll := mixture(t, c.Array("v"), c.Array("d").Map(math.Log), fixtures.Zeros(1, 1), c.Array("x"))
		fixtures.Compare(t, "energy", e, c.Column("energy"), exact)
		fixtures.Compare(t, "log-likelihood", ll, c.Column("logpdf"), exact)
	})
}

func TestMixtureMatchesTheDenseMixture(t *testing.T) {
	c := fixtures.Open(t, "rank1_mix_truth_a")
	v, logDiagonals, logits, x := c.Array("v"), c.Array("log_diagonals"), c.Array("logits"), c.Array("x")
	e, ll := mixture(t, v, logDiagonals, logits, x)
	fixtures.Compare(t, "energy", e, c.Column("energy"), exact)
	fixtures.Compare(t, "log-likelihood", ll, c.Column("loglik"), exact)

	gradients := mixtureGradients(t, v, logDiagonals, logits, x)
	for i, name := range []string{"v", "log_diagonals", "logits"} {
		// Recorded by finite differences of the dense mixture.
		fixtures.Compare(t, "gradient of "+name, gradients[i], c.Array("fd_grad_"+name), 1e-7)
	}
}

// mixtureGradients are those of the mean log-likelihood with respect to v, the log diagonals and the logits.
func mixtureGradients(t *testing.T, v, logDiagonals, logits, x fixtures.Array) []fixtures.Array {
	t.Helper()
	return fixtures.Evaluate(t, dtypes.Float64, mixtureValues(v, logDiagonals, logits, x), nil,
		func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
			return graph.Gradient(graph.ReduceAllMean(withComponents(v).Dense(s.In("energy"), in["x"]).LogLikelihood),
				in["/energy/factors"], in["/energy/log_diagonals"], in["/energy/mixture_logits"])
		})
}

// Bayesian linear regression with prior precision alpha and noise precision
// beta predicts with the exact variance
//
//	1/beta + 2/(beta N) E(x),   E the energy of N(0, Sigma),   Sigma = X^T X / N + alpha/(beta N) I,
//
// which is the identity that density uncertainty layers rest on (section 2.1).
func TestBayesianLinearRegressionVarianceIsAnEnergy(t *testing.T) {
	for _, known := range []struct {
		name        string
		alpha, beta float64
	}{{"bayes_linreg_a", 0.7, 2.5}, {"bayes_linreg_b", 2.0, 0.4}} {
		t.Run(known.name, func(t *testing.T) {
			c := fixtures.Open(t, known.name)
			x := c.Array("X")
			n, d := x.Dims[0], x.Dims[1]
			inputs := mat.NewDense(n, d, x.Values)
			sigma := mat.NewSymDense(d, nil)
			sigma.SymOuterK(1/float64(n), inputs.T())
			for j := range d {
				sigma.SetSym(j, j, sigma.At(j, j)+known.alpha/(known.beta*float64(n)))
			}
			lower, logVariance := precisionFactors(t, sigma)
			e, _ := ldl(t, lower, logVariance, c.Array("X_test"))
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
