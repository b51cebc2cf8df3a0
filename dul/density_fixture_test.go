package dul_test

import (
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul"
	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/layertest"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/stochastic"
)

// energyPaths are the paths of the parameters of a recorded energy model, by the
// recorded names.
func energyPaths(l dul.Density, conv bool) map[string]string {
	switch _, isMixture := l.Energy.(energy.Rank1Mixture); {
	case isMixture:
		return map[string]string{
			"energy_model__mixture_logits": "/layer/energy/mixture_logits",
			"energy_model__v":              "/layer/energy/factors",
			"energy_model__log_diagonals":  "/layer/energy/log_diagonals",
		}
	case conv:
		return map[string]string{"masked_conv__conv__weight": "/layer/energy/kernel", "logvar": "/layer/energy/log_variance"}
	}
	return map[string]string{"L": "/layer/energy/lower", "logvar": "/layer/energy/log_variance"}
}

// fractionOf is the Fraction that gives a recorded mixture its number of
// components: the recorded one where that is known, else half a component more
// than there are.
func fractionOf(c fixtures.Case) float64 {
	for name, fraction := range map[string]float64{
		"linear_k1.":      0.01,
		"linear_k2.":      0.3,
		"linear_k5.":      0.5,
		"conv_k3s1p1_c3_": 0.0125,
		"conv_k3s2p1_":    0.4,
		"conv_k1s2_":      0.5,
	} {
		if strings.Contains(c.Name, name) {
			return fraction
		}
	}
	components, x := c.Array("p_energy_model__v").Dims[0], c.Array("x").Dims
	features := x[len(x)-1]
	if len(x) == 4 {
		features = x[0]
	}
	return (float64(components) + 0.5) / float64(features)
}

// withFraction is the layer with as many components as were recorded, if its energy is a mixture.
func withFraction(c fixtures.Case, l dul.Density) dul.Density {
	if mixture, is := l.Energy.(energy.Rank1Mixture); is {
		mixture.Fraction = fractionOf(c)
		l.Energy = mixture
	}
	return l
}

// recordedDense is a density layer with the parameters and prior of a recorded one.
func recordedDense(_ *testing.T, c fixtures.Case, l dul.Density) fixtures.Layer {
	paths := energyPaths(l, false)
	paths["s_logvar"], paths["b_logvar"] = "/layer/gamma_log_variance", "/layer/beta_log_variance"
	paths["linear__weight"], paths["linear__bias"] = "/layer/weights", "/layer/bias"
	l.PriorStd = c.PriorStd("b_s_prior_logvar")
	return fixtures.Layer{Apply: dense(l, c.Array("out").Dims[1]), Paths: paths, Noise: []fixtures.Array{c.Array("eps")}}
}

// windowOf are the windows of the recorded convolutions, by a part of the name.
var windowOf = map[string]conv.Window{
	"_k1s1": conv.Same(1, 1), "_k1s2": conv.Same(1, 2), "_k3s1": conv.Same(3, 1), "_k3s2": conv.Same(3, 2),
}

// recordedConv is a convolutional density layer with the parameters and priors of
// a recorded one.
func recordedConv(t *testing.T, c fixtures.Case, l dul.Density) fixtures.Layer {
	paths := energyPaths(l, true)
	paths["s_logvar"], paths["b_logvar"] = "/layer/gamma_log_variance", "/layer/beta_log_variance"
	paths["conv__weight"] = "/layer/weights"
	masks := map[string]fixtures.Array{}
	if c.Has("b_masked_conv__mask") {
		masks["masked_conv__conv__weight"] = c.Array("b_masked_conv__mask")
	}
	hasBias := c.Has("p_conv__bias")
	if hasBias {
		paths["conv__bias"] = "/layer/bias"
	}
	l.PriorStd, l.ConvEtaPriorStd = c.PriorStd("b_s_prior_logvar"), c.PriorStd("b_b_prior_logvar")
	spec := conv.Spec{Filters: c.Array("out").Dims[0], Window: fixtures.ByName(t, c, windowOf), NoBias: !hasBias}
	return fixtures.Layer{Apply: convolved(l, spec), Paths: paths, Noise: []fixtures.Array{c.Array("eps").Channels()}, Masks: masks}
}

// The released layers are those of HalfD, with the energy of LDL clipped and
// detached; the energies of mixtures are never clipped.
func TestReleasedLayers(t *testing.T) {
	replicate := energy.LDL{ReplicatePadding: true}
	type build func(t *testing.T, c fixtures.Case, l dul.Density) fixtures.Layer
	for _, recorded := range []struct {
		cases  string
		build  build
		energy dul.EnergyModel
		clip   bool
	}{
		{"density_linear_*", recordedDense, energy.LDL{}, true},
		{"density_conv_*", recordedConv, replicate, true},
		{"rank1_density_linear_*", recordedDense, energy.Rank1Mixture{}, false},
		{"rank1_density_conv_*_corrected.*", recordedConv, energy.Rank1Mixture{}, false},
		{"rank1_density_conv_*_released.*", recordedConv, energy.Rank1Mixture{NegatedLogDet: true}, false},
	} {
		layer := dul.Density{Energy: recorded.energy, HalfD: true, HalfChannels: true}
		for _, variant := range []struct {
			name, prefix string
			clip         bool
			gradients    dul.GradientFlow
			skip         bool
		}{
			{"released", "", recorded.clip, dul.Detached, false},
			{"not clipped", "noclip__", false, dul.Detached, !recorded.clip},
			{"attached, not clipped", "nodetach_noclip__", false, dul.Attached, !recorded.clip},
			{"attached", "nodetach__", false, dul.Attached, recorded.clip},
		} {
			if variant.skip { // recorded are two variants more of a layer that clips, and one of others
				continue
			}
			layer.Clip, layer.Gradients = variant.clip, variant.gradients
			t.Run(variant.name, func(t *testing.T) {
				fixtures.Each(t, recorded.cases, func(t *testing.T, c fixtures.Case) {
					c.CheckLayer(t, variant.prefix, recorded.build(t, c, withFraction(c, layer)))
				})
			})
		}
	}
}

// With noise of 1 the layer returns mean + sqrt(variance), so the variance can
// be read off and compared with the closed form.
func TestVarianceMatchesTheClosedForm(t *testing.T) {
	c := fixtures.Open(t, "density_variance_a")
	for _, form := range []struct {
		name  string
		layer dul.Density
	}{
		{"var_paper", dul.Density{}},
		{"var_half_d_bias", dul.Density{HalfD: true}},
	} {
		t.Run(form.name, func(t *testing.T) {
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
				y := dense(form.layer, want.Dims[1]).output(s, in)
				losses := stochastic.LayerLossesOf(y.Graph())
				return []*graph.Node{y, losses.KL, losses.Energies[0]}
			})
			variance := fixtures.Zeros(want.Dims...)
			for i, mean := range c.Array("mean").Values {
				std := out[0].Values[i] - mean
				variance.Values[i] = std * std
			}
			fixtures.Compare(t, form.name, variance, want, 1e-10)
			fixtures.Compare(t, "KL", out[1], c.Array("kl_prior1"), 1e-10)
			fixtures.Compare(t, "energy", out[2], c.Column("energy"), 1e-10)
		})
	}
}

// Attached, all gradients are exact.
func TestAttachedGradients(t *testing.T) {
	fixtures.SkipShortOffGo(t)
	eachLayer(t, dul.Attached, func(t *testing.T, layer applied, x fixtures.Array) { layertest.Gradients(t, x, layer) })
}

// By default the output gives exact gradients to the input and to all parameters
// but the energy model's, which get none. The log-likelihood gives the exact
// gradient to the energy model and none to all else.
func TestPaperGradients(t *testing.T) {
	fixtures.SkipShortOffGo(t)
	eachLayer(t, dul.PaperGradients, func(t *testing.T, layer applied, x fixtures.Array) {
		checkSeparation(t, layer, x, func(values fixtures.Values, noise []fixtures.Array, _ fixtures.Array) {
			fixtures.CheckGradient(t, values, noise, layer.output, "x")
		})
	})
}

// Detached, the gradient of the output with respect to the input is the linear
// map's alone.
func TestDetachedGradients(t *testing.T) {
	fixtures.SkipShortOffGo(t)
	eachLayer(t, dul.Detached, func(t *testing.T, layer applied, x fixtures.Array) {
		checkSeparation(t, layer, x, func(values fixtures.Values, noise []fixtures.Array, gradient fixtures.Array) {
			zeros := make([]fixtures.Array, len(noise))
			for i, draw := range noise {
				zeros[i] = fixtures.Zeros(draw.Dims...)
			}
			linear := fixtures.Evaluate(t, dtypes.Float64, values, zeros, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
				return graph.Gradient(graph.ReduceAllSum(layer.output(s, in)), in["x"])
			})[0]
			fixtures.Compare(t, "gradient of the output with respect to x", gradient, linear, 1e-13)
		})
	})
}

// checkSeparation checks that the output gives the exact gradient to the layer's
// own parameters and none to the energy model's. The log-likelihood, if there is
// one, must do the reverse, and give none to the input. checkInput gets the
// gradient of the sum of the output with respect to the input. All gradients are
// of one graph, where one must not change another.
func checkSeparation(t *testing.T, layer applied, x fixtures.Array, checkInput func(fixtures.Values, []fixtures.Array, fixtures.Array)) {
	t.Helper()
	values, noise := fixtures.Explore(t, fixtures.Values{"x": x}, layer.output)
	var ofEnergy, ofLayer []string
	for _, path := range values.Parameters() {
		if strings.HasPrefix(path, "/layer/energy/") {
			ofEnergy = append(ofEnergy, path)
		} else {
			ofLayer = append(ofLayer, path)
		}
	}
	fixtures.CheckGradient(t, values, noise, layer.output, ofLayer...)
	if len(ofEnergy) > 0 {
		fixtures.CheckGradient(t, values, noise, func(s *model.Scope, in fixtures.Nodes) *graph.Node {
			return stochastic.LayerLossesOf(layer.output(s, in).Graph()).LogLikelihood
		}, ofEnergy...)
	}
	out := fixtures.Evaluate(t, dtypes.Float64, values, noise, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
		y := layer.output(s, in)
		nodes := []*graph.Node{in["x"]}
		for _, path := range ofEnergy {
			nodes = append(nodes, in[path])
		}
		gradients := graph.Gradient(graph.ReduceAllSum(y), nodes...)
		if likelihood := stochastic.LayerLossesOf(y.Graph()).LogLikelihood; likelihood != nil {
			for _, path := range ofLayer {
				nodes = append(nodes, in[path])
			}
			ofLikelihood := graph.Gradient(graph.ReduceAllSum(likelihood), nodes...)
			gradients = append(append(gradients, ofLikelihood[0]), ofLikelihood[1+len(ofEnergy):]...)
		}
		return gradients
	})
	checkInput(values, noise, out[0])
	names := append(append(ofEnergy, "x"), ofLayer...)
	for i, gradient := range out[1:] {
		fixtures.Compare(t, "gradient that should be zero, with respect to "+names[i], gradient, fixtures.Zeros(gradient.Dims...), 0)
	}
}
