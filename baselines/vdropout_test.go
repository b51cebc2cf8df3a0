package baselines_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/layertest"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/environment/must"
)

// The output has mean m = x W + b and variance min(alpha, 1) m^2.
func TestVDropout(t *testing.T) {
	const inImages, both = 2, 1 // what DoubledConvAlpha multiplies alpha by
	fixed := func(alpha, factor float64) func(l linear, i int) (float64, float64) {
		return func(l linear, i int) (float64, float64) {
			m, alpha := l.mean(i), alpha
			if len(l.at["x"].Dims) == 4 {
				alpha *= factor
			}
			return m, min(alpha, 1) * m * m
		}
	}
	relative := layertest.Checks{RelativeKL: true} // from a prior that is improper
	checkFamilies(t, []variant{
		{name: "default", layers: baselines.VDropout{}, hasKL: true, checks: relative, moments: fixed(0.1, both)},
		{name: "doubled alpha", layers: baselines.VDropout{DoubledConvAlpha: true}, hasKL: true, checks: relative, moments: fixed(0.1, inImages)},
		{name: "clipped at 1", layers: baselines.VDropout{Alpha: 3}, hasKL: true, checks: relative, moments: fixed(3, both)},
		{
			name: "adaptive", layers: baselines.VDropout{Adaptive: true}, hasKL: true, checks: relative,
			moments: func(l linear, i int) (float64, float64) {
				m := l.mean(i)
				return m, min(math.Exp(l.get("log_alpha").Values[l.unit(i)]), 1) * m * m
			},
		},
	})
}

// At alpha = 1, where a training may start, the noise has a gradient: that on the inside of the bound.
func TestVDropoutStartsAtItsBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	for _, c := range []struct {
		name string
		x    fixtures.Array
		y    func(s *model.Scope, x *graph.Node) *graph.Node
	}{
		{"dense", fixtures.Random(rng, 6, 2), func(s *model.Scope, x *graph.Node) *graph.Node {
			return baselines.VDropout{Alpha: 1, Adaptive: true}.Dense(s, x, 3)
		}},
		{"convolution", fixtures.Random(rng, 2, 1, 3, 3), func(s *model.Scope, x *graph.Node) *graph.Node {
			return baselines.VDropout{Alpha: 1, Adaptive: true}.Conv(s, x, conv.Spec{Filters: 3, Window: conv.Same(1, 1)})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			output := func(s *model.Scope, in fixtures.Nodes) *graph.Node { return c.y(s.In("layer"), in["x"]) }
			values, noise := fixtures.Explore(t, fixtures.Values{"x": c.x}, output)
			slope := func(logAlpha float64) []float64 {
				values["/layer/log_alpha"] = values["/layer/log_alpha"].Map(func(float64) float64 { return logAlpha })
				return fixtures.Evaluate(t, dtypes.Float64, values, noise, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
					y := output(s, in)
					return graph.Gradient(graph.ReduceAllSum(graph.Mul(y, y)), in["/layer/log_alpha"])
				})[0].Values
			}
			at, inside := slope(0), slope(-1e-9)
			for i := range at {
				must.Near(t, at[i]/inside[i], 1, 1e-6, "gradient %d of log alpha at 0 over that just below", i)
			}
		})
	}
}

// The layer's KL is the cubic approximation; it is within 0.04 of the exact
// divergence for alpha in (0, 1] (whose additive constant is the recorded one).
func TestVDropoutKL(t *testing.T) {
	c := fixtures.Open(t, "vdropout_kl_truth")
	alphas, approximate, exact := c.Array("alpha"), c.Array("neg_kl_poly_plus_const"), c.Array("neg_kl_exact_plus_const")
	for i, alpha := range alphas.Values {
		kl := fixtures.Evaluate(t, dtypes.Float64, fixtures.Values{
			"x":                fixtures.Zeros(2, 3),
			"/layer/log_alpha": fixtures.Matrix(1, 1, math.Log(alpha)),
			"/layer/weights":   fixtures.Zeros(3, 1),
			"/layer/bias":      fixtures.Zeros(1, 1),
		}, []fixtures.Array{fixtures.Zeros(2, 1)}, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
			y := baselines.VDropout{Adaptive: true}.Dense(s.In("layer"), in["x"], 1)
			return []*graph.Node{stochastic.LayerLossesOf(y.Graph()).KL}
		})[0]
		fixtures.Compare(t, "KL", kl.Scale(-1), fixtures.Matrix(1, 1, approximate.Values[i]), 1e-10)
		if alpha <= 1 {
			must.Near(t, -kl.Values[0], exact.Values[i], 0.04, "alpha = %g: the cubic", alpha)
		}
	}
}
