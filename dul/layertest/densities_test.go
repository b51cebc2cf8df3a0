package layertest_test

import (
	"math"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/stat/distuv"

	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/layertest"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/params"
)

// changed is LDL with a mistake in its terms.
type changed func(terms *energy.Terms)

func (c changed) Dense(s *model.Scope, h *graph.Node) energy.Terms {
	terms := energy.LDL{}.Dense(s, h)
	c(&terms)
	return terms
}

func TestEnergyFindsMistakes(t *testing.T) {
	for want, wrong := range map[string]changed{
		"":                                   func(*energy.Terms) {},
		"it must be finite and not negative": func(terms *energy.Terms) { terms.Energy, terms.Root = graph.AddScalar(terms.Energy, -1), nil },
		"it must be a constant":              func(terms *energy.Terms) { terms.Energy = graph.MulScalar(terms.Energy, 2); terms.Root = nil },
		"add up to": func(terms *energy.Terms) {
			root := terms.Root()
			terms.Root = func() *graph.Node { return graph.MulScalar(root, math.Sqrt2) }
		},
		"the integral of the density is": func(terms *energy.Terms) { terms.LogLikelihood = graph.AddScalar(terms.LogLikelihood, 0.5) },
	} {
		err := layertest.Failures(func(t testing.TB) { layertest.Energy(t, wrong) })
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), "dimensions=1: ") || !strings.Contains(err.Error(), want)) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// wrong is StudentT with a mistake in its loss or in its distribution.
type wrong struct {
	likelihood.StudentT
	nll   func(nll, target *graph.Node) *graph.Node
	given func(d likelihood.Univariate) likelihood.Univariate
}

func (w wrong) NLL(s *model.Scope, outputs, targets *graph.Node) *graph.Node {
	nll := w.StudentT.NLL(s, outputs, targets)
	if w.nll != nil {
		nll = w.nll(nll, graph.SliceAxis(w.Parameters(s, outputs), -1, graph.AxisElem(1)))
	}
	return nll
}

func (w wrong) Given(parameters []float64) likelihood.Univariate {
	d := w.StudentT.Given(parameters)
	if w.given != nil {
		d = w.given(d)
	}
	return d
}

// another is a distribution with another distribution function and variance.
type another struct {
	likelihood.Univariate
	cdf      func(f float64) float64
	variance float64
}

func (a another) CDF(y float64) float64 { return a.cdf(a.Univariate.CDF(y)) }
func (a another) Variance() float64     { return a.variance * a.Univariate.Variance() }

// twice is Categorical whose probabilities add up to 2.
type twice struct{ likelihood.Categorical }

func (l twice) NLL(s *model.Scope, logits, labels *graph.Node) *graph.Node {
	return graph.AddScalar(l.Categorical.NLL(s, logits, labels), -math.Ln2)
}

// sharpened is a softmax of the outputs times a trained factor; its LogProbabilities may have forgotten that.
type sharpened struct {
	likelihood.Categorical
	forgotten bool
}

func (l sharpened) LogProbabilities(s *model.Scope, outputs *graph.Node) *graph.Node {
	if !l.forgotten {
		outputs = graph.Mul(outputs, params.New(s, outputs, "factor", params.Likelihood, params.Constant(3), 1, 1))
	}
	return l.Categorical.LogProbabilities(s, outputs)
}

func (l sharpened) NLL(s *model.Scope, outputs, labels *graph.Node) *graph.Node {
	return l.Categorical.NLL(s, sharpened{}.LogProbabilities(s, outputs), labels)
}

// A laplace has a density with a kink.
type laplace struct{}

func (laplace) Outputs() int { return 1 }

func (laplace) NLL(_ *model.Scope, outputs, targets *graph.Node) *graph.Node {
	return graph.Abs(graph.Sub(targets, outputs))
}

func (laplace) Parameters(_ *model.Scope, outputs *graph.Node) *graph.Node { return outputs }

func (laplace) Given(p []float64) likelihood.Univariate { return distuv.Laplace{Mu: p[0], Scale: 1} }

func TestLikelihoodFindsMistakes(t *testing.T) {
	same := func(f float64) float64 { return f }
	with := func(cdf func(f float64) float64, variance float64) wrong {
		return wrong{StudentT: likelihood.StudentT{Nu: 12}, given: func(d likelihood.Univariate) likelihood.Univariate { return another{d, cdf, variance} }}
	}
	for _, c := range []struct {
		want string
		l    likelihood.Likelihood
	}{
		{"", with(same, 1)},
		{"", laplace{}},
		{"", wrong{StudentT: likelihood.StudentT{Nu: 12}, nll: func(nll, _ *graph.Node) *graph.Node { return graph.AddScalar(nll, 3) }}},
		{"the sum must be a constant", wrong{StudentT: likelihood.StudentT{Nu: 12}, nll: func(nll, v *graph.Node) *graph.Node { return graph.Sub(nll, v) }}}, // e^v is forgotten
		{"the sum must be a constant", wrong{StudentT: likelihood.StudentT{Nu: 12}, nll: func(nll, _ *graph.Node) *graph.Node { return graph.MulScalar(nll, 2) }}},
		{"it must ascend from 0 to 1", with(func(f float64) float64 { return 1 - f }, 1)},
		{"the density below it has", with(func(f float64) float64 { return f * f }, 1)},
		{"mean and variance", with(same, 1.01)},
		{"degrees of freedom", likelihood.StudentT{}},
		{"neither", likelihood.Quantiles{Levels: []float64{0.5}}},
		{"add up to 2", twice{likelihood.Categorical{Classes: 3}}},
		{"", sharpened{Categorical: likelihood.Categorical{Classes: 3}}},
		{"LogProbabilities say", sharpened{likelihood.Categorical{Classes: 3}, true}},
	} {
		err := layertest.Failures(func(t testing.TB) { layertest.Likelihood(t, c.l) })
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}
