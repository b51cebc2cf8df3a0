package dul_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul"
	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/layertest"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
)

// windowOf are the windows of the recorded convolutions, by a part of the name.
var windowOf = map[string]conv.Window{
	"_k1s1": conv.Same(1, 1), "_k1s2": conv.Same(1, 2), "_k3s1": conv.Same(3, 1), "_k3s2": conv.Same(3, 2),
}

// recordedConv is a convolutional density layer with the parameters and prior of
// a recorded one.
func recordedConv(t *testing.T, c fixtures.Case, l dul.Density) fixtures.Layer {
	t.Helper()
	paths := map[string]string{
		"s_logvar":     "/layer/gamma_log_variance",
		"b_logvar":     "/layer/beta_log_variance",
		"conv__weight": "/layer/weights",
	}
	masks := map[string]fixtures.Array{}
	if _, isMixture := l.Energy.(energy.Rank1Mixture); isMixture {
		paths["energy_model__mixture_logits"] = "/layer/energy/mixture_logits"
		paths["energy_model__v"] = "/layer/energy/factors"
		paths["energy_model__log_diagonals"] = "/layer/energy/log_diagonals"
	} else {
		paths["masked_conv__conv__weight"] = "/layer/energy/kernel"
		paths["logvar"] = "/layer/energy/log_variance"
		masks["masked_conv__conv__weight"] = c.Array("b_masked_conv__mask")
	}
	hasBias := c.Has("p_conv__bias")
	if hasBias {
		paths["conv__bias"] = "/layer/bias"
	}
	l.PriorStd, l.FixedBetaPrior = c.PriorStd("b_s_prior_logvar"), true
	spec := conv.Spec{Filters: c.Array("out").Dims[0], Window: fixtures.ByName(t, c, windowOf), NoBias: !hasBias}
	return fixtures.Layer{
		Apply: func(s *model.Scope, x *graph.Node) *graph.Node { return l.Conv(s.In("layer"), x, spec) },
		Paths: paths,
		Noise: []fixtures.Array{c.Array("eps").Channels()},
		Masks: masks,
	}
}

func TestConvMatchesTheReleasedLayer(t *testing.T) {
	released := energy.LDL{ReplicatePadding: true}
	for _, variant := range []struct {
		prefix string
		layer  dul.Density
	}{
		{"", dul.Density{Clip: true, Energy: released}},
		{"noclip__", dul.Density{Energy: released}},
		{"nodetach_noclip__", dul.Density{Attached: true, Energy: released}},
	} {
		t.Run(fmt.Sprintf("variant=%q", variant.prefix), func(t *testing.T) {
			fixtures.Each(t, "density_conv_*", func(t *testing.T, c fixtures.Case) {
				c.CheckLayer(t, variant.prefix, recordedConv(t, c, variant.layer))
			})
		})
	}
}

func TestRank1ConvMatchesTheReleasedLayer(t *testing.T) {
	fixtures.Each(t, "rank1_density_conv_*", func(t *testing.T, c fixtures.Case) {
		negated := fixtures.ByName(t, c, map[string]bool{"_corrected": false, "_released": true})
		model := energy.Rank1Mixture{Fraction: fractionOf(c), NegatedLogDet: negated}
		c.CheckLayer(t, "", recordedConv(t, c, dul.Density{Energy: model, ChannelBias: true, Clip: true})) // Clip is of energy.LDL alone
		c.CheckLayer(t, "nodetach__", recordedConv(t, c, dul.Density{Energy: model, ChannelBias: true, Attached: true}))
	})
}

// convFamilies are density layers with both energies.
var convFamilies = []struct {
	name  string
	layer dul.Density
}{
	{"LDL", dul.Density{}},
	{"LDL replicate", dul.Density{Energy: energy.LDL{ReplicatePadding: true}}},
	{"Rank1Mixture", dul.Density{Energy: energy.Rank1Mixture{Fraction: 1}}},
	{"Rank1Mixture of 1", dul.Density{Energy: energy.Rank1Mixture{}, ChannelBias: true}},
	{"PlainBias", dul.Density{PlainBias: true, PriorStd: 0.3, FixedBetaPrior: true}},
}

// The zero value cuts the gradient of the energy off, see TestConvDetachedGradients.
func TestConv(t *testing.T) {
	for _, f := range convFamilies {
		t.Run(f.name, func(t *testing.T) {
			layertest.Checks{CutGradients: true}.Conv(t, f.layer)
			f.layer.Attached = true
			t.Run("Attached", func(t *testing.T) { layertest.Conv(t, f.layer) })
		})
	}
}

// convLayer applies a layer in the scope "layer".
func convLayer(l dul.Density, c conv.Spec) func(s *model.Scope, x *graph.Node) *graph.Node {
	return func(s *model.Scope, x *graph.Node) *graph.Node { return l.Conv(s.In("layer"), x, c) }
}

// By default the energy is a constant for the output's gradient, and the input
// one for the generative objective.
func TestConvDetachedGradients(t *testing.T) {
	spec := conv.Spec{Filters: 2, Window: conv.Same(3, 2)}
	x := fixtures.Random(rand.New(rand.NewPCG(1, 5)), 2, 2, 4, 3)
	for _, f := range convFamilies {
		l := f.layer
		t.Run(f.name, func(t *testing.T) {
			output := func(s *model.Scope, in fixtures.Nodes) *graph.Node { return convLayer(l, spec)(s, in["x"]) }
			likelihood := func(s *model.Scope, in fixtures.Nodes) *graph.Node {
				return stochastic.TallyOf(output(s, in).Graph()).LogLikelihood
			}
			values, noise := fixtures.Explore(t, fixtures.Values{"x": x}, output)
			var ofEnergy, ofLayer []string
			for _, path := range values.Parameters() {
				if strings.HasPrefix(path, "/layer/energy/") {
					ofEnergy = append(ofEnergy, path)
				} else {
					ofLayer = append(ofLayer, path)
				}
			}
			fixtures.CheckGradient(t, values, noise, output, ofLayer...)
			fixtures.CheckGradient(t, values, noise, likelihood, ofEnergy...)

			out := fixtures.Evaluate(t, dtypes.Float64, values, noise, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
				y := graph.ReduceAllSum(output(s, in))
				ll := graph.ReduceAllSum(stochastic.TallyOf(y.Graph()).LogLikelihood)
				linear := graph.ReduceAllSum(conv.Convolve(in["x"], in["/layer/weights"], spec.Window))
				wrt := []*graph.Node{in["x"]}
				for _, path := range ofEnergy {
					wrt = append(wrt, in[path])
				}
				gradients := []*graph.Node{graph.Gradient(linear, in["x"])[0], graph.Gradient(ll, in["x"])[0]}
				return append(gradients, graph.Gradient(y, wrt...)...)
			})
			fixtures.Compare(t, "gradient of the output with respect to x", out[2], out[0], 1e-14)
			fixtures.Compare(t, "gradient of the log-likelihood with respect to x", out[1], fixtures.Zeros(x.Dims...), 0)
			for i, path := range ofEnergy {
				fixtures.Compare(t, "gradient of the output with respect to "+path, out[3+i], fixtures.Zeros(values[path].Dims...), 0)
			}
		})
	}
}

// At each pixel Var[f] is gamma E + beta D/2, gamma E + beta, or gamma E + beta
// C/2, and the mean that of the convolution; the noise of two pixels, two filters
// and two examples is independent.
func TestConvOutputMoments(t *testing.T) {
	const n, channels, filters = 20000, 2, 2
	x := fixtures.Random(rand.New(rand.NewPCG(47, 53)), channels, 1, 3, 4)
	spec := conv.Spec{Filters: filters, Window: conv.Same(3, 2)}
	mixture := energy.Rank1Mixture{Fraction: 1}
	for _, form := range []struct {
		name  string
		layer dul.Density
		bias  float64
	}{
		{"LDL", dul.Density{Energy: energy.LDL{}}, channels / 2.0},
		{"LDL, PlainBias", dul.Density{Energy: energy.LDL{}, PlainBias: true}, 1},
		{"Rank1Mixture", dul.Density{Energy: mixture}, 9 * channels / 2.0},
		{"Rank1Mixture, ChannelBias", dul.Density{Energy: mixture, ChannelBias: true}, channels / 2.0},
		{"Rank1Mixture, PlainBias", dul.Density{Energy: mixture, PlainBias: true}, 1},
	} {
		layer := convLayer(form.layer, spec)
		values, _ := fixtures.Explore(t, fixtures.Values{"x": x}, func(s *model.Scope, in fixtures.Nodes) *graph.Node { return layer(s, in["x"]) })
		fixed := fixtures.Evaluate(t, dtypes.Float64, values, nil, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
			terms := form.layer.Energy.Conv(s.In("layer").In("energy"), in["x"], spec.Window)
			return []*graph.Node{conv.Convolve(in["x"], in["/layer/weights"], spec.Window), terms.Energy}
		})
		mean, e := fixed[0], fixed[1]
		positions := len(e.Values)
		for _, host := range []bool{true, false} {
			samples := fixtures.ImageSamples(t, layer, values, x, n, host)
			for f := range filters {
				gamma := math.Exp(values["/layer/gamma_log_variance"].Values[f])
				beta := math.Exp(values["/layer/beta_log_variance"].Values[f])
				for p := range positions {
					fixtures.CheckMoments(t, fmt.Sprintf("%s, host=%t, filter %d, position %d", form.name, host, f, p), samples.Pixel(f, p),
						mean.Values[f*positions+p]+values["/layer/bias"].Values[f], gamma*e.Values[p]+beta*form.bias)
				}
			}
			here := samples.Pixel(0, 0)
			fixtures.CheckUncorrelated(t, "noise of two pixels", here, samples.Pixel(0, 1))
			fixtures.CheckUncorrelated(t, "noise of two filters", here, samples.Pixel(1, 0))
			fixtures.CheckUncorrelated(t, "noise of two examples", here[1:], here[:n-1])
		}
	}
}

// Clip limits the pooled energy of energy.LDL to the number of channels.
func TestConvClipLimitsTheEnergy(t *testing.T) {
	// One pixel of 8 gives z^2/2 = 32 at the pixel, and its mean over a window is
	// 32/9 < 4 channels, so that only the energy of the 1 x 1 window is clipped.
	x := fixtures.Zeros(4, 1, 3, 3)
	x.Values[4] = 8
	for _, c := range []struct {
		name  string
		layer dul.Density
		size  int
		want  float64 // sqrt(E + C/2)
	}{
		{"1x1", dul.Density{Clip: true}, 1, math.Sqrt(4 + 2)},
		{"1x1 without clip", dul.Density{}, 1, math.Sqrt(32 + 2)},
		{"3x3", dul.Density{Clip: true}, 3, math.Sqrt(32.0/9 + 2)},
		// The mixture with v = 0 is N(0, I), and is never clipped.
		{"mixture", dul.Density{Clip: true, Energy: energy.Rank1Mixture{}}, 1, math.Sqrt(32 + 2)},
	} {
		layer := convLayer(c.layer, conv.Spec{Filters: 1, Window: conv.Same(c.size, 1), NoBias: true})
		values, _ := fixtures.Explore(t, fixtures.Values{"x": x}, func(s *model.Scope, in fixtures.Nodes) *graph.Node { return layer(s, in["x"]) })
		for _, path := range values.Parameters() {
			values[path] = fixtures.Zeros(values[path].Dims...)
		}
		ones := fixtures.Zeros(1, 9).Map(func(float64) float64 { return 1 })
		std := fixtures.Evaluate(t, dtypes.Float64, values, []fixtures.Array{ones}, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
			return []*graph.Node{layer(s, in["x"])}
		})[0].Values[4]
		if math.Abs(std-c.want) > 1e-12*c.want {
			t.Errorf("%s: the standard deviation is %g, want %g", c.name, std, c.want)
		}
	}
}

// The KL is that of one gamma and one beta for each filter, from N(0, PriorStd^2),
// or for beta from N(0, e); the tally gets the log-likelihood and the mean energy
// of each example.
func TestConvTally(t *testing.T) {
	x := fixtures.Random(rand.New(rand.NewPCG(59, 61)), 2, 3, 4, 4)
	spec := conv.Spec{Filters: 5, Window: conv.Same(3, 2)}
	for _, c := range []struct {
		name  string
		layer dul.Density
		want  float64
	}{
		{"at the prior", dul.Density{InitStd: 0.3, PriorStd: 0.3}, 0},
		// 10 variables: 10 (log(1/0.001) + (1e-6 - 1)/2).
		{"at the start", dul.Density{}, 10 * (math.Log(1000) + (1e-6-1)/2)},
		{"fixed prior of beta, at both priors", dul.Density{InitStd: math.Exp(0.5), PriorStd: math.Exp(0.5), FixedBetaPrior: true}, 0},
		// beta at variance 1: 5 (1/2 + (1/e - 1)/2); gamma at its prior.
		{"fixed prior of beta", dul.Density{InitStd: 1, PriorStd: 1, FixedBetaPrior: true}, 5 * (0.5 + (1/math.E-1)/2)},
	} {
		store := model.NewStore()
		params.SetSeeds(store, 1)
		out, err := model.CallOnceN(fixtures.Backend(t), store, func(s *model.Scope, x *graph.Node) []*graph.Node {
			tally := stochastic.TallyOf(convLayer(c.layer, spec)(s, x).Graph())
			if len(tally.Energies) != 1 {
				t.Errorf("the tally has %d energies, want 1", len(tally.Energies))
			}
			terms := energy.LDL{}.Conv(s.In("again"), x, spec.Window)
			return []*graph.Node{tally.KL, tally.LogLikelihood, tally.Energies[0], terms.LogLikelihood, terms.MeanEnergy}
		}, fixtures.Tensor(dtypes.Float64, x))
		if err != nil {
			t.Fatal(err)
		}
		arrays := make([]fixtures.Array, len(out))
		for i := range out {
			arrays[i] = fixtures.FromTensor(t, out[i])
		}
		if got := arrays[0].Values[0]; math.Abs(got-c.want) > 1e-12*max(1, c.want) {
			t.Errorf("%s: the KL is %g, want %g", c.name, got, c.want)
		}
		fixtures.Compare(t, "log-likelihood", arrays[1], arrays[3], 0)
		fixtures.Compare(t, "mean energy", arrays[2], arrays[4], 0)
	}
}

// One layer at a typical and at an improbable image of 3 channels and 4 x 4
// pixels: at the start the energy of a pixel is half its square.
func ExampleDensity_Conv() {
	backend, err := compute.NewWithConfig("go:ops_sequential")
	if err != nil {
		fmt.Println(err)
		return
	}
	layer := dul.Density{InitStd: 0.1}
	spec := conv.Spec{Filters: 8, Window: conv.Same(3, 2)}
	out, err := model.CallOnceN(backend, model.NewStore(), func(s *model.Scope, pixels *graph.Node) []*graph.Node {
		images := graph.BroadcastToDims(graph.Reshape(pixels, 1, 2, 1, 1), 3, 2, 4, 4)
		y := layer.Conv(s.In("layer"), images, spec)
		return []*graph.Node{y, stochastic.TallyOf(y.Graph()).Energies[0]}
	}, []float64{1, 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("output:", out[0].Shape())
	for _, e := range out[1].Value().([][]float64) {
		fmt.Printf("mean energy %g\n", e[0])
	}
	// Output:
	// output: (Float64)[8, 2, 2, 2]
	// mean energy 1.5
	// mean energy 150
}
