package dul_test

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/stochastic"
)

// With noise of 1 the layer returns mean + sqrt(variance), so the variance can
// be read off and compared with the closed form.
func TestDensityVarianceMatchesTheClosedForm(t *testing.T) {
	c := fixtures.Open(t, "density_variance_a")
	for _, form := range []struct {
		name  string
		layer dul.Density
	}{
		{"var_half_d_bias", dul.Density{}},
		{"var_paper", dul.Density{PlainBias: true}},
	} {
		want := c.Array(form.name)
		ones := fixtures.Zeros(want.Dims...).Map(func(float64) float64 { return 1 })
		out := fixtures.Evaluate(t, dtypes.Float64, fixtures.Values{
			"x":                          c.Array("x"),
			"/layer/energy/lower":        c.Array("L"),
			"/layer/energy/log_variance": c.Array("logvar"),
			"/layer/weights":             c.Array("W").Transposed(),
			"/layer/bias":                c.Array("bias"),
			"/layer/gamma_log_variance":  c.Array("s_logvar"),
			"/layer/beta_log_variance":   c.Array("b_logvar"),
		}, []fixtures.Array{ones}, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
			y := form.layer.Dense(s.In("layer"), in["x"], want.Dims[1])
			tally := stochastic.TallyOf(y.Graph())
			return []*graph.Node{y, tally.KL, tally.Energies[0]}
		})
		variance := fixtures.Zeros(want.Dims...)
		for i, mean := range c.Array("mean").Values {
			std := out[0].Values[i] - mean
			variance.Values[i] = std * std
		}
		fixtures.Compare(t, form.name, variance, want, 1e-10)
		fixtures.Compare(t, "KL", out[1], c.Array("kl_prior1"), 1e-10)
		fixtures.Compare(t, "energy", out[2], c.Column("energy"), 1e-10)
	}
}
