package dul_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/layertest/fixtures"
)

// recordedLayer is a density layer with the parameters and prior of a recorded one.
func recordedLayer(c fixtures.Case, l dul.Density) fixtures.Layer {
	paths := map[string]string{
		"s_logvar":       "/layer/gamma_log_variance",
		"b_logvar":       "/layer/beta_log_variance",
		"linear__weight": "/layer/weights",
		"linear__bias":   "/layer/bias",
	}
	if _, isMixture := l.Energy.(energy.Rank1Mixture); isMixture {
		paths["energy_model__mixture_logits"] = "/layer/energy/mixture_logits"
		paths["energy_model__v"] = "/layer/energy/factors"
		paths["energy_model__log_diagonals"] = "/layer/energy/log_diagonals"
	} else {
		paths["L"] = "/layer/energy/lower"
		paths["logvar"] = "/layer/energy/log_variance"
	}
	l.PriorStd = c.PriorStd("b_s_prior_logvar")
	units := c.Array("out").Dims[1]
	return fixtures.Layer{
		Apply: func(s *model.Scope, x *graph.Node) *graph.Node { return l.Dense(s.In("layer"), x, units) },
		Paths: paths,
		Noise: []fixtures.Array{c.Array("eps")},
	}
}

func TestDensityMatchesTheReleasedLayer(t *testing.T) {
	for _, variant := range []struct {
		prefix string
		layer  dul.Density
	}{
		{"", dul.Density{Clip: true}},
		{"noclip__", dul.Density{}},
		{"nodetach_noclip__", dul.Density{Attached: true}},
	} {
		t.Run(fmt.Sprintf("variant=%q", variant.prefix), func(t *testing.T) {
			fixtures.Each(t, "density_linear_*", func(t *testing.T, c fixtures.Case) {
				c.CheckLayer(t, variant.prefix, recordedLayer(c, variant.layer))
			})
		})
	}
}

// fractionOf is the Fraction that gives a recorded mixture its number of
// components: the recorded one where that is known, else half a component more
// than there are.
func fractionOf(c fixtures.Case) float64 {
	for _, known := range []struct {
		name     string
		fraction float64
	}{
		{"linear_k1.", 0.01}, {"linear_k2.", 0.3}, {"linear_k5.", 0.5},
		{"conv_k3s1p1_c3_", 0.0125}, {"conv_k3s2p1_", 0.4}, {"conv_k1s2_", 0.5},
	} {
		if strings.Contains(c.Name, known.name) {
			return known.fraction
		}
	}
	components, x := c.Array("p_energy_model__v").Dims[0], c.Array("x").Dims
	features := x[len(x)-1]
	if len(x) == 4 {
		features = x[0]
	}
	return (float64(components) + 0.5) / float64(features)
}

func TestRank1DensityMatchesTheReleasedLayer(t *testing.T) {
	for _, variant := range []struct {
		prefix string
		layer  dul.Density
	}{
		{"", dul.Density{Clip: true}}, // Clip is of energy.LDL alone
		{"nodetach__", dul.Density{Attached: true}},
	} {
		t.Run(fmt.Sprintf("variant=%q", variant.prefix), func(t *testing.T) {
			fixtures.Each(t, "rank1_density_linear_*", func(t *testing.T, c fixtures.Case) {
				layer := variant.layer
				layer.Energy = energy.Rank1Mixture{Fraction: fractionOf(c)}
				c.CheckLayer(t, variant.prefix, recordedLayer(c, layer))
			})
		})
	}
}
