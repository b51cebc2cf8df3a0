package dul_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/floats"

	"densityuncertainty/dul"
	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/layertest"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/environment/must"
)

// A family is a density layer under a name.
type family struct {
	name  string
	layer dul.Density
}

// denseFamilies and convFamilies are density layers with every energy.
var (
	denseFamilies = []family{
		{"LDL", dul.Density{}},
		{"Rank1Mixture", dul.Density{Energy: energy.Rank1Mixture{Fraction: 0.5}}},
		{"Rank1Mixture 1", dul.Density{Energy: energy.Rank1Mixture{Fraction: 0.1}}},
		{"Diagonal", dul.Density{Energy: energy.Diagonal{}}},
		{"Constant", dul.Density{Energy: energy.Constant{}}},
		{"an energy of your own", dul.Density{Energy: isotropic{}}},
		{"HalfD", dul.Density{HalfD: true, PriorStd: 0.3}},
		{"StudentT", dul.Density{Noise: stochastic.StudentT{Nu: 3, UnitVariance: true}}},
		{"MeanEnergy", dul.Density{MeanEnergy: true}},
	}
	convFamilies = []family{
		{"LDL", dul.Density{}},
		{"LDL replicate", dul.Density{Energy: energy.LDL{ReplicatePadding: true}}},
		{"Rank1Mixture", dul.Density{Energy: energy.Rank1Mixture{Fraction: 1}}},
		{"Rank1Mixture 1", dul.Density{Energy: energy.Rank1Mixture{}, HalfD: true, HalfChannels: true}},
		{"Diagonal", dul.Density{Energy: energy.Diagonal{}}},
		{"Constant", dul.Density{Energy: energy.Constant{}}},
		{"an energy of your own", dul.Density{Energy: isotropic{}}},
		{"HalfD", dul.Density{HalfD: true, PriorStd: 0.3, ConvEtaPriorStd: 2}},
		{"SharedNoise", dul.Density{SharedNoise: true}},
		{"MeanEnergy", dul.Density{MeanEnergy: true}},
	}
)

// convSpecs are the layers of the networks.
var convSpecs = []struct {
	name string
	spec conv.Spec
}{
	{"3x3", conv.Spec{Filters: 2, Window: conv.Same(3, 1), NoBias: true}},
	{"3x3, stride 2", conv.Spec{Filters: 3, Window: conv.Same(3, 2)}},
	{"1x1, stride 2", conv.Spec{Filters: 2, Window: conv.Same(1, 2)}},
}

// An applied layer maps x to its output in the scope "layer".
type applied func(s *model.Scope, x *graph.Node) *graph.Node

func dense(l dul.Density, units int) applied {
	return func(s *model.Scope, x *graph.Node) *graph.Node {
		params.FactsOf(x.Graph()).Replicas = x.Shape().Dimensions[:x.Rank()-2]
		return l.Dense(s.In("layer"), x, units)
	}
}

func convolved(l dul.Density, c conv.Spec) applied {
	return func(s *model.Scope, x *graph.Node) *graph.Node { return l.Conv(s.In("layer"), x, c) }
}

// output is the layer's output as a function of the values.
func (a applied) output(s *model.Scope, in fixtures.Nodes) *graph.Node { return a(s, in["x"]) }

// eachLayer runs a test for every family as a dense layer, alone and with
// replicas, and as a convolution: LDL and the mixture of every kind, the others of one.
func eachLayer(t *testing.T, flow dul.GradientFlow, test func(t *testing.T, layer applied, x fixtures.Array)) {
	t.Helper()
	rng := rand.New(rand.NewPCG(41, 43))
	run := func(name string, layer applied, dims ...int) {
		x := fixtures.Random(rng, dims...)
		t.Run(name, func(t *testing.T) { test(t, layer, x) })
	}
	for _, f := range denseFamilies {
		f.layer.Gradients = flow
		run("dense/"+f.name, dense(f.layer, 2), 3, 4)
		run("replicas/"+f.name, dense(f.layer, 2), 2, 3, 4)
	}
	for i, f := range convFamilies {
		f.layer.Gradients = flow
		for k, c := range convSpecs {
			if f.name == "LDL" || f.name == "Rank1Mixture" || k == i%len(convSpecs) {
				run("conv/"+f.name+"/"+c.name, convolved(f.layer, c.spec), 2, 2, 4, 3)
			}
		}
	}
}

// Every family under the checks for any layer. The zero value stops some gradients; density_fixture_test.go checks
// them.
func TestLayers(t *testing.T) {
	checks := layertest.Checks{CutGradients: true}
	run := func(kind, family string, check func(t *testing.T)) {
		t.Run(kind+"/"+family, func(t *testing.T) {
			if family != "LDL" && family != "Rank1Mixture" {
				fixtures.SkipShortOffGo(t)
			}
			check(t)
		})
	}
	for _, f := range denseFamilies {
		run("dense", f.name, func(t *testing.T) { checks.Dense(t, f.layer) })
	}
	for _, f := range convFamilies {
		run("conv", f.name, func(t *testing.T) { checks.Conv(t, f.layer) })
	}
}

// roundedBelow is an energy of 0 that rounding has taken a little below it, as that of
// a mixture may be, which is a difference.
type roundedBelow struct{ energy.Constant }

func (m roundedBelow) Conv(s *model.Scope, x *graph.Node, w conv.Window) energy.ConvTerms {
	terms := m.Constant.Conv(s, x, w)
	terms.Energy = graph.AddScalar(graph.MulScalar(terms.Energy, 0), -1e-12)
	return terms
}

// Noise that is shared by all positions is sqrt(gamma E) eps + sqrt(beta) eta, with one eps and one eta for each image and
// filter. An energy below 0 by rounding counts as 0, and gradients are numbers.
func TestSharedNoise(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	for _, m := range []dul.EnergyModel{energy.LDL{}, roundedBelow{}} {
		layer := convolved(dul.Density{Energy: m, SharedNoise: true}, conv.Spec{Filters: 1, Window: conv.Same(1, 1)})
		values, noise := fixtures.Explore(t, fixtures.Values{"x": fixtures.Random(rng, 2, 1, 2, 2)}, layer.output)
		out := fixtures.Evaluate(t, dtypes.Float64, values, noise, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
			y := layer.output(s, in)
			mean := conv.Convolve(in["x"], in["/layer/weights"], conv.Same(1, 1))
			e := m.Conv(s.At("layer").At("energy"), in["x"], conv.Same(1, 1)).Energy
			return append([]*graph.Node{y, mean, e}, graph.Gradient(graph.ReduceAllSum(y), in["x"], in["/layer/gamma_log_variance"])...)
		})
		deviation := func(name string) float64 { return math.Exp(values["/layer/"+name].Values[0] / 2) }
		for i, y := range out[0].Values {
			want := out[1].Values[i] + values["/layer/bias"].Values[0] + noise[1].Values[0]*deviation("beta_log_variance") +
				noise[0].Values[0]*deviation("gamma_log_variance")*math.Sqrt(max(0, out[2].Values[i]))
			must.Near(t, y, want, 1e-7, "%T: the output at position %d", m, i)
		}
		for _, gradient := range out[3:] {
			if slices.ContainsFunc(gradient.Values, math.IsNaN) {
				t.Errorf("%T: a gradient is %v", m, gradient.Values)
			}
		}
	}
}

// A window that does not fit is refused by its name, whatever the energy model.
func TestConvRejectsWindows(t *testing.T) {
	for _, m := range []dul.EnergyModel{energy.LDL{}, energy.Rank1Mixture{}, energy.Diagonal{}, energy.Constant{}} {
		for _, w := range []conv.Window{{Size: 3, Padding: 1}, {Size: 9, Stride: 1}, {Stride: 1}, {Size: 1, Stride: 1, Padding: -1}} {
			t.Run(fmt.Sprintf("%T, %+v", m, w), func(t *testing.T) {
				must.GetErr(model.CallOnce(fixtures.Backend(t), model.NewStore(), func(s *model.Scope, x *graph.Node) *graph.Node {
					return dul.Density{Energy: m}.Conv(s, x, conv.Spec{Filters: 1, Window: w})
				}, [][][][]float32{{{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}}}}))(t, "conv: window of size")
			})
		}
	}
}

// A gradient of the layer's gradient is right, or is refused: with the text's
// gradients, where the energy reaches the input and not its model.
func TestSecondDerivatives(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 18))
	for _, gradients := range []dul.GradientFlow{dul.Attached, dul.Detached} {
		steepness := func(s *model.Scope, in fixtures.Nodes) *graph.Node {
			y := dense(dul.Density{Gradients: gradients}, 2).output(s, in)
			slope := graph.Gradient(graph.ReduceAllSum(graph.Mul(y, y)), in["x"])[0]
			return graph.ReduceAllSum(graph.Mul(slope, slope))
		}
		values, noise := fixtures.Explore(t, fixtures.Values{"x": fixtures.Random(rng, 3, 2)}, steepness)
		if gradients == dul.Attached {
			fixtures.CheckGradient(t, values, noise, steepness)
		} else { // the slope is that of a linear layer
			fixtures.CheckGradient(t, values, noise, steepness, "/layer/weights")
		}
	}
	_, err := model.CallOnce(fixtures.Backend(t), model.NewStore(), func(s *model.Scope, x *graph.Node) *graph.Node {
		y := dul.Density{}.Dense(s, x, 2)
		slope := graph.Gradient(graph.ReduceAllSum(y), x)[0]
		return graph.Gradient(graph.ReduceAllSum(graph.Mul(slope, slope)), x)[0]
	}, [][]float64{{1, 2}, {3, 4}})
	must.Err(t, err, "a second derivative of an operation of this project")
}

// Clip limits the energy to D, for every energy model: the standard deviation of
// a new layer, with gamma and beta 1, is at most sqrt(D + 1).
func TestClip(t *testing.T) {
	const d = 4
	std := func(t *testing.T, layer applied, x fixtures.Array, at int) float64 {
		t.Helper()
		values, noise := fixtures.Explore(t, fixtures.Values{"x": x}, layer.output)
		for _, path := range values.Parameters() {
			values[path] = fixtures.Zeros(values[path].Dims...)
		}
		for i, draw := range noise {
			noise[i] = draw.Map(func(float64) float64 { return 1 })
		}
		return fixtures.Evaluate(t, dtypes.Float64, values, noise,
			func(s *model.Scope, in fixtures.Nodes) []*graph.Node { return []*graph.Node{layer.output(s, in)} })[0].Values[at]
	}
	near, far := fixtures.Matrix(1, d, 1, 1, 0, 0), fixtures.Matrix(1, d, 30, 0, 0, 0)
	// One pixel of 8 gives z^2/2 = 32 at the pixel, and its mean over a window is
	// 32/9 < 4 channels. The mixture's window of 3 x 3 has 36 dimensions.
	pixel := fixtures.Zeros(d, 1, 3, 3)
	pixel.Values[4] = 8
	mixture := energy.Rank1Mixture{} // with parameters of zero N(0, I)
	one, three := conv.Spec{Filters: 1, Window: conv.Same(1, 1), NoBias: true}, conv.Spec{Filters: 1, Window: conv.Same(3, 1), NoBias: true}
	for _, c := range []struct {
		name   string
		layer  applied
		x      fixtures.Array
		at     int
		energy float64
	}{
		{"near", dense(dul.Density{Clip: true}, 1), near, 0, 1},
		{"far", dense(dul.Density{Clip: true}, 1), far, 0, d},
		{"far, not clipped", dense(dul.Density{}, 1), far, 0, 450},
		{"far, mixture", dense(dul.Density{Clip: true, Energy: mixture}, 1), far, 0, d},
		{"far, diagonal", dense(dul.Density{Clip: true, Energy: energy.Diagonal{}}, 1), far, 0, d},
		{"constant", dense(dul.Density{Clip: true, Energy: energy.Constant{}}, 1), far, 0, d / 2},
		{"1x1", convolved(dul.Density{Clip: true}, one), pixel, 4, d},
		{"1x1, not clipped", convolved(dul.Density{}, one), pixel, 4, 32},
		{"1x1, mixture", convolved(dul.Density{Clip: true, Energy: mixture}, one), pixel, 4, d},
		{"3x3", convolved(dul.Density{Clip: true}, three), pixel, 4, 32.0 / 9},
		{"3x3, mixture", convolved(dul.Density{Clip: true, Energy: mixture}, three), pixel, 4, 32},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := math.Sqrt(c.energy + 1)
			must.Near(t, std(t, c.layer, c.x, c.at), want, 1e-12*want, "the standard deviation")
		})
	}
}

// A mixture has no energy of an input that is too far for float32. The output says so for any number of inputs, also
// where they fill no vector, and is not a prediction without noise.
func TestEnergiesTooFar(t *testing.T) {
	for _, rows := range []int{1, 2, 15, 16, 17} {
		x := fixtures.Matrix(rows, 2, slices.Repeat([]float64{1e20}, 2*rows)...)
		for _, clip := range []bool{false, true} {
			layer := dense(dul.Density{Energy: energy.Rank1Mixture{}, Clip: clip}, 50)
			values, noise := fixtures.Explore(t, fixtures.Values{"x": x}, layer.output)
			y := fixtures.Evaluate(t, dtypes.Float32, values, noise,
				func(s *model.Scope, in fixtures.Nodes) []*graph.Node { return []*graph.Node{layer.output(s, in)} })[0]
			if i := slices.IndexFunc(y.Values, func(v float64) bool { return !math.IsNaN(v) }); i >= 0 {
				t.Errorf("%d rows, clip %v: output %d is %g, want NaN", rows, clip, i, y.Values[i])
			}
		}
	}
}

// With MeanEnergy the noise of every input has the variance gamma m + beta, where m
// is the mean energy of the batch, of each replica by itself, in training, and the
// running mean in evaluation.
func TestMeanEnergy(t *testing.T) {
	rng := rand.New(rand.NewPCG(61, 67))
	mean := func(x fixtures.Array) float64 { // of z^2/2 over D = 2 features and all examples
		return floats.Dot(x.Values, x.Values) / float64(len(x.Values))
	}
	one, two := fixtures.Random(rng, 1, 3, 2), fixtures.Random(rng, 1, 3, 2)
	both := fixtures.Array{Dims: []int{2, 3, 2}, Values: append(slices.Clone(one.Values), two.Values...)}
	image := fixtures.Random(rng, 2, 2, 3, 2)
	for _, c := range []struct {
		name    string
		layer   applied
		x       fixtures.Array
		means   []float64 // of each replica
		running fixtures.Array
	}{
		{"dense", dense(dul.Density{MeanEnergy: true}, 1), fixtures.Array{Dims: []int{3, 2}, Values: one.Values}, []float64{mean(one)}, fixtures.Matrix(1, 1, 0.7)},
		{"replicas", dense(dul.Density{MeanEnergy: true}, 1), both, []float64{mean(one), mean(two)}, fixtures.Array{Dims: []int{2, 1, 1}, Values: []float64{0.7, 0.3}}},
		{"conv", convolved(dul.Density{MeanEnergy: true}, conv.Spec{Filters: 1, Window: conv.Same(1, 1), NoBias: true}), image, []float64{mean(image)}, fixtures.Matrix(1, 1, 0.7)},
	} {
		for _, training := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/training=%t", c.name, training), func(t *testing.T) {
				output := func(s *model.Scope, in fixtures.Nodes) *graph.Node {
					s.Store().SetTraining(in["x"].Graph(), training)
					return c.layer.output(s, in)
				}
				values, noise := fixtures.Explore(t, fixtures.Values{"x": c.x}, output)
				for _, path := range values.Parameters() {
					values[path] = fixtures.Zeros(values[path].Dims...) // gamma = beta = 1
				}
				values["/layer/mean_energy"] = c.running
				for i, draw := range noise {
					noise[i] = draw.Map(func(float64) float64 { return 1 })
				}
				want := c.running.Values
				if training {
					want = c.means
				}
				out := fixtures.Evaluate(t, dtypes.Float64, values, noise,
					func(s *model.Scope, in fixtures.Nodes) []*graph.Node { return []*graph.Node{output(s, in)} })[0].Values
				for i, got := range out {
					must.Near(t, got, math.Sqrt(want[i*len(want)/len(out)]+1), 1e-12, "entry %d has the deviation", i)
				}
			})
		}
	}

	// The running mean follows the batches from D/2 on.
	store := model.NewStore()
	params.SetSeeds(store, 1)
	must.Get(model.CallOnce(fixtures.Backend(t), store, func(s *model.Scope, x *graph.Node) *graph.Node {
		s.Store().SetTraining(x.Graph(), true)
		return dense(dul.Density{MeanEnergy: true}, 1)(s, x)
	}, fixtures.Tensor(dtypes.Float64, fixtures.Array{Dims: []int{3, 2}, Values: one.Values})))(t)
	running := must.Get(store.GetVariable("/layer/mean_energy").Value())(t)
	fixtures.Compare(t, "running mean", fixtures.FromTensor(t, running), fixtures.Matrix(1, 1, 0.9*1+0.1*mean(one)), 1e-13)
}

// The noise starts with standard deviation InitStd. The KL is that of one gamma
// and one beta for each unit or filter from its prior, and the layer losses get the
// log-likelihood and the mean energy of each example, where there are any.
func TestLayerLosses(t *testing.T) {
	const units = 5
	spec := conv.Spec{Filters: units, Window: conv.Same(3, 2)}
	// From variance v to 1, each variable has KL (v - 1 - log v)/2.
	toUnit := func(v float64) float64 { return (v - 1 - math.Log(v)) / 2 }
	root := math.Exp(0.5)
	same := 0.0
	if !ops.IsGo(fixtures.Backend(t)) {
		same = 1e-15 // a compiler may round equal parts of a graph differently
	}
	for _, c := range []struct {
		name   string
		energy dul.EnergyModel
		layer  dul.Density
		conv   bool
		want   float64 // KL
	}{
		{"dense, at the prior", energy.LDL{}, dul.Density{InitStd: 0.3, PriorStd: 0.3}, false, 0},
		{"dense, at the start", energy.LDL{}, dul.Density{}, false, 2 * units * toUnit(1e-6)},
		{"dense, ConvEtaPriorStd", energy.LDL{}, dul.Density{InitStd: 1, PriorStd: 1, ConvEtaPriorStd: 2}, false, 0},
		{"dense, constant energy", energy.Constant{}, dul.Density{}, false, 2 * units * toUnit(1e-6)},
		{"conv, at the prior", energy.LDL{}, dul.Density{InitStd: 0.3, PriorStd: 0.3}, true, 0},
		{"conv, at the start", energy.LDL{}, dul.Density{}, true, 2 * units * toUnit(1e-6)},
		{"conv, SharedNoise", energy.LDL{}, dul.Density{SharedNoise: true}, true, 2 * units * toUnit(1e-6)},
		{"conv, ConvEtaPriorStd, at both priors", energy.LDL{}, dul.Density{InitStd: root, PriorStd: root, ConvEtaPriorStd: root}, true, 0},
		{"conv, ConvEtaPriorStd", energy.LDL{}, dul.Density{InitStd: 1, PriorStd: 1, ConvEtaPriorStd: root}, true, units * toUnit(1/math.E)},
		{"conv, constant energy", energy.Constant{}, dul.Density{}, true, 2 * units * toUnit(1e-6)},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.layer.Energy = c.energy
			layer, dims := dense(c.layer, units), []int{3, 2}
			if c.conv {
				layer, dims = convolved(c.layer, spec), []int{2, 3, 4, 4}
			}
			store := model.NewStore()
			params.SetSeeds(store, 1)
			out := must.Get(model.CallOnceN(fixtures.Backend(t), store, func(s *model.Scope, x *graph.Node) []*graph.Node {
				y := layer(s, x)
				losses := stochastic.LayerLossesOf(y.Graph())
				if len(losses.Energies) != 1 {
					t.Errorf("there are %d energies, want 1", len(losses.Energies))
				}
				of := c.energy.Dense
				if c.conv {
					of = func(s *model.Scope, x *graph.Node) energy.Terms {
						terms := c.energy.Conv(s, x, spec.Window)
						return energy.Terms{Energy: terms.MeanEnergy, LogLikelihood: terms.LogLikelihood}
					}
				}
				terms := of(s.In("again"), x)
				nodes := []*graph.Node{y, losses.KL, losses.Energies[0], terms.Energy}
				if (losses.LogLikelihood == nil) != (terms.LogLikelihood == nil) {
					t.Error("the layer and the energy model differ on whether there is a log-likelihood")
				} else if terms.LogLikelihood != nil {
					nodes = append(nodes, losses.LogLikelihood, terms.LogLikelihood)
				}
				return nodes
			}, fixtures.Tensor(dtypes.Float64, fixtures.Random(rand.New(rand.NewPCG(59, 61)), dims...))))(t)
			must.Near(t, fixtures.FromTensor(t, out[1]).Values[0], c.want, 1e-12*max(1, c.want), "the KL")
			for i := 2; i < len(out); i += 2 {
				what := []string{"mean energy", "log-likelihood"}[i/2-1]
				fixtures.Compare(t, what, fixtures.FromTensor(t, out[i]), fixtures.FromTensor(t, out[i+1]), same)
			}
		})
	}
}

func TestRefusedSettings(t *testing.T) {
	for want, layer := range map[string]dul.Density{
		"PriorStd -1, ":              {PriorStd: -1},
		"InitStd -1 and":             {InitStd: -1},
		"ConvEtaPriorStd -1 must be": {ConvEtaPriorStd: -1},
		"PriorStd NaN":               {PriorStd: math.NaN()},
		"InitStd +Inf":               {InitStd: math.Inf(1)},
		"Gradients is 3":             {Gradients: 3},
		"HalfD, which is not set":    {HalfChannels: true},
	} {
		_, err := model.CallOnce(fixtures.Backend(t), model.NewStore(), func(s *model.Scope, x *graph.Node) *graph.Node {
			return layer.Dense(s.In("layer"), x, 3)
		}, fixtures.Tensor(dtypes.Float64, fixtures.Zeros(2, 4)))
		must.Err(t, err, want)
	}
}

// misshapen is an energy model with terms of other shapes than they should have:
// without the last axis, one for each feature, or one for all examples.
type misshapen struct {
	energy, logLikelihood func(x *graph.Node) *graph.Node
}

func (m misshapen) Dense(_ *model.Scope, h *graph.Node) energy.Terms {
	return energy.Terms{Energy: m.energy(h), LogLikelihood: m.logLikelihood(h)}
}

func (m misshapen) Conv(s *model.Scope, x *graph.Node, w conv.Window) energy.ConvTerms {
	terms := energy.LDL{}.Conv(s, x, w)
	terms.Energy, terms.MeanEnergy = m.energy(terms.Energy), m.logLikelihood(terms.MeanEnergy)
	return terms
}

func TestMisshapenEnergies(t *testing.T) {
	same := func(x *graph.Node) *graph.Node { return x }
	of := func(axes ...int) func(x *graph.Node) *graph.Node {
		return func(x *graph.Node) *graph.Node { return graph.ReduceSum(x, axes...) }
	}
	column := func(x *graph.Node) *graph.Node { return graph.ExpandAxes(graph.ReduceSum(x, -1), -1) }
	none := func(*graph.Node) *graph.Node { return nil }
	for _, c := range []struct {
		name                  string
		energy, logLikelihood func(x *graph.Node) *graph.Node
		dense, conv           string
	}{
		{"no last axis", of(-1), column, "the energy that the energy model dul_test.misshapen gives has shape (Float64)[2], want (Float64)[2, 1]", "energy of each position that"},
		{"an entry each", same, column, "gives has shape (Float64)[2, 4], want (Float64)[2, 1]", ""},
		{"scalar log-likelihood", column, of(), "the log-likelihood that the energy model dul_test.misshapen gives has shape (Float64), want (Float64)[2, 1]", "energy of each position that"},
		{"no energy", none, column, "gives no energy", "gives no energy of each position"},
		{"no mean energy", same, none, "shape (Float64)[2, 4]", "gives no energy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			layer := dul.Density{Energy: misshapen{c.energy, c.logLikelihood}}
			for _, kind := range []struct {
				want  string
				apply applied
				dims  []int
			}{{c.dense, dense(layer, 3), []int{2, 4}}, {c.conv, convolved(layer, convSpecs[0].spec), []int{1, 2, 4, 3}}} {
				if kind.want != "" {
					must.GetErr(model.CallOnce(fixtures.Backend(t), model.NewStore(), (func(*model.Scope, *graph.Node) *graph.Node)(kind.apply), fixtures.Tensor(dtypes.Float64, fixtures.Zeros(kind.dims...))))(t, kind.want)
				}
			}
		})
	}
}
