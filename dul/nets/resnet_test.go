package nets_test

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/floats/scalar"
	"gonum.org/v1/gonum/stat"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/environment/must"
)

var families = map[string]nets.ConvLayers{
	"Deterministic":   baselines.Deterministic{},
	"MCDropout":       baselines.MCDropout{},
	"VDropout":        baselines.VDropout{},
	"MFVI":            baselines.MFVI{},
	"Rank1":           baselines.Rank1{},
	"Density, rank 1": dul.Density{Energy: energy.Rank1Mixture{}},
	"Density, LDL":    dul.Density{},
}

// tiny is a network of all kinds of blocks that takes no time.
func tiny(layers nets.ConvLayers) nets.ResNet {
	return nets.ResNet{Layers: layers, Blocks: []int{2, 1, 1}, Widths: []int{2, 3, 4}, Stem: 2}
}

// A layer is one that a network asks of a family, with the rest as a plain
// number of parameters: those of the batch normalisations.
type layer struct {
	in, out, size int
	bias, dense   bool
	height        int // of the input, as its width
	stride        int
}

// layersOf lists the layers of a network on images of 32 x 32 pixels, as the
// architecture is described, and counts the parameters of its normalisations.
func layersOf(blocks int, widths []int, classes int) (all []layer, norms int) {
	in, height := 16, 32
	all = append(all, layer{in: 3, out: in, size: 3, bias: true, height: height, stride: 1})
	for stage, width := range widths {
		for i := range blocks {
			stride := 1
			if stage > 0 && i == 0 {
				stride = 2
			}
			norms += 2*in + 2*width
			if stride == 2 || in != width {
				all = append(all, layer{in: in, out: width, size: 1, bias: true, height: height, stride: stride})
			}
			all = append(all, layer{in: in, out: width, size: 3, height: height, stride: stride})
			height /= stride
			all = append(all, layer{in: width, out: width, size: 3, height: height, stride: 1})
			in = width
		}
	}
	all = append(all, layer{in: in, out: classes, size: 1, bias: true, dense: true, height: 1, stride: 1})
	return all, norms + 2*in
}

// parametersOf counts a layer's parameters by role.
func parametersOf(family nets.ConvLayers, l layer) map[params.Role]int {
	product := l.out * l.in * l.size * l.size
	n := map[params.Role]int{params.Weight: product}
	if l.bias {
		n[params.Weight] += l.out
	}
	switch f := family.(type) {
	case baselines.MFVI:
		n[params.Variational] = 2 * product
		n[params.Weight] -= product
	case baselines.Rank1:
		n[params.Variational] = 2 * (l.in + l.out)
	case dul.Density:
		n[params.Variational] = 2 * l.out
		d := l.in * l.size * l.size
		if m, isMixture := f.Energy.(energy.Rank1Mixture); isMixture {
			k := m.ConvComponents(l.in)
			if l.dense {
				k = m.Components(l.in)
			}
			n[params.Generative] = k * (2*d + 1)
		} else {
			n[params.Generative] = l.in*d + l.in
		}
	}
	return n
}

// networks are the presets with the numbers that their comments give.
var networks = []struct {
	name       string
	build      func(nets.ConvLayers) nets.ResNet
	blocks     int
	widths     []int
	parameters map[string]int // for 10 classes
}{
	{"ResNet-14", nets.ResNet14, 2, []int{16, 32, 64}, map[string]int{
		"Deterministic": 175_178, "MCDropout": 175_178, "VDropout": 175_178, "MFVI": 349_306, "Rank1": 177_348,
		"Density, rank 1": 206_608, "Density, LDL": 341_266,
	}},
	{"ResNet-20", nets.ResNet20, 3, []int{16, 32, 64}, map[string]int{
		"Deterministic": 272_394, "MCDropout": 272_394, "VDropout": 272_394, "MFVI": 543_290, "Rank1": 275_460,
		"Density, rank 1": 322_148, "Density, LDL": 535_922,
	}},
	{"WRN-28-10", nets.WideResNet28x10, 4, []int{160, 320, 640}, map[string]int{
		"Deterministic": 36_480_330, "MCDropout": 36_480_330, "VDropout": 36_480_330, "MFVI": 72_941_562, "Rank1": 36_519_492,
		"Density, rank 1": 43_613_653, "Density, LDL": 72_071_058,
	}},
}

func TestParameters(t *testing.T) {
	for _, c := range networks {
		layers, norms := layersOf(c.blocks, c.widths, 10)
		for name, family := range families {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				want := map[params.Role]int{params.Weight: norms}
				for _, l := range layers {
					for role, n := range parametersOf(family, l) {
						want[role] += n
					}
				}
				got := must.Get(nets.Parameters(fixtures.Backend(t), c.build(family), 3, 32, 32, 10))(t)
				if !maps.Equal(got, want) {
					t.Errorf("the parameters by role are %v, by hand %v", got, want)
				}
				total := 0
				for _, n := range got {
					total += n
				}
				if total != c.parameters[name] {
					t.Errorf("%d parameters, documented are %d", total, c.parameters[name])
				}
			})
		}
	}
}

func TestParametersOfABadNetwork(t *testing.T) {
	layers := baselines.Deterministic{}
	for want, network := range map[string]nets.ResNet{
		"0 numbers of blocks and 0 of filters":         {Layers: layers},
		"2 numbers of blocks and 1 of filters":         {Layers: layers, Blocks: []int{1, 1}, Widths: []int{2}},
		"stage 0 has 0 blocks of width 2":              {Layers: layers, Blocks: []int{0}, Widths: []int{2}},
		"stage 1 has 1 blocks of width 0":              {Layers: layers, Blocks: []int{1, 1}, Widths: []int{2, 0}},
		"stage 0 has 1 blocks of width 2, the stem -1": {Layers: layers, Blocks: []int{1}, Widths: []int{2}, Stem: -1},
		"Layers is nil; give a family of layers":       {Blocks: []int{1}, Widths: []int{2}},
	} {
		must.GetErr(nets.Parameters(fixtures.Backend(t), network, 3, 8, 8, 2))(t, want)
	}
}

// The cost of a network is that of its layers by hand, and in GFLOP that which
// the comment of CostOf gives.
func TestCostOf(t *testing.T) {
	inGFLOP := map[string]map[string]float64{
		"ResNet-14": {"Deterministic": 0.160, "Density, LDL": 0.333},
		"WRN-28-10": {"Deterministic": 31.5, "Density, LDL": 64.4},
	}
	for _, c := range networks {
		layers, _ := layersOf(c.blocks, c.widths, 10)
		for name, family := range families {
			forward, training := 0.0, 0.0
			for _, l := range layers {
				out := float64(l.height / l.stride * (l.height / l.stride))
				taps := float64(l.in * l.size * l.size)
				weights := 2 * float64(l.out) * taps * out
				inEnergy := 0.0
				if density, ok := family.(dul.Density); ok {
					inEnergy = 2 * float64(l.in) * taps * float64(l.height*l.height)
					if m, ok := density.Energy.(energy.Rank1Mixture); ok {
						inEnergy = 4 * float64(m.ConvComponents(l.in)) * taps * out
					}
				}
				forward, training = forward+weights+inEnergy, training+3*weights+3*inEnergy
			}
			got := c.build(family).CostOf(3, 32, 32, 10)
			if got.Forward != forward || got.Training != training {
				t.Errorf("%s, %s: %v, by hand %v and %v", c.name, name, got, forward, training)
			}
			if want, documented := inGFLOP[c.name][name]; documented {
				must.Near(t, got.Training/1e9, want, 0.004*want, "%s, %s: GFLOP", c.name, name)
			}
		}
	}
	through, detached := tiny(dul.Density{}).CostOf(3, 8, 8, 2), tiny(dul.Density{Gradients: dul.Detached}).CostOf(3, 8, 8, 2)
	if through.Training <= detached.Training || through.Forward != detached.Forward {
		t.Errorf("the cost is %v, with gradients through the energy %v", detached, through)
	}
}

// A block drops pixels in training alone, each by itself, and keeps their mean.
func TestBlockDropout(t *testing.T) {
	const rate, size = 0.3, 40000
	ones := fixtures.Zeros(4, 100, 10, 10).Map(func(float64) float64 { return 1 })
	for _, training := range []bool{true, false} {
		for _, rate := range []float64{rate, 0} {
			c := newModel(t, tiny(baselines.Deterministic{}), likelihood.Categorical{Classes: 2}, 3)
			out := must.Get(model.CallOnce(c.Backend, c.Store, func(root *model.Scope, x *graph.Node) *graph.Node {
				root.Store().SetTraining(x.Graph(), training)
				return nets.Drop(root.In("dropout"), x, rate)
			}, fixtures.Tensor(c.DType, ones)))(t)
			dropped := 0
			for i, v := range fixtures.FromTensor(t, out).Values {
				switch {
				case v == 0:
					dropped++
				case training && rate > 0 && !scalar.EqualWithinAbs(v, 1/(1-rate), 1e-6), (!training || rate == 0) && v != 1:
					t.Fatalf("training %v, rate %g: pixel %d is %g", training, rate, i, v)
				}
			}
			want := 0.0
			if training {
				want = rate
			}
			// Five standard deviations of the number of pixels that are dropped.
			must.Near(t, float64(dropped)/size, want, 5*math.Sqrt(want*(1-want)/size), "training %v, rate %g: the share of dropped pixels", training, rate)
		}
	}
}

// The features before the last layer have the family's own normalisation. Large scales reach its bound.
func TestHeadlessResNet(t *testing.T) {
	family := baselines.SpectralNormed{}
	apply := func(network nets.Network) func(s *model.Scope, in fixtures.Nodes) *graph.Node {
		return func(s *model.Scope, in fixtures.Nodes) *graph.Node {
			return network.Apply(s.In("model").In("network"), in["x"], 5)
		}
	}
	values, _ := fixtures.Explore(t, fixtures.Values{"x": fixtures.Random(rand.New(rand.NewPCG(4, 4)), 3, 2, 8, 8)}, apply(tiny(family)))
	for path, v := range values {
		if strings.HasSuffix(path, "/scale") {
			values[path] = v.Scale(100)
		}
	}
	outputs := func(f func(s *model.Scope, in fixtures.Nodes) *graph.Node) fixtures.Array {
		return fixtures.Evaluate(t, dtypes.Float64, values, nil, func(s *model.Scope, in fixtures.Nodes) []*graph.Node { return []*graph.Node{f(s, in)} })[0]
	}
	whole := outputs(apply(tiny(family)))
	values["x"] = outputs(apply(nets.Headless{Network: tiny(family)}))
	fixtures.Compare(t, "outputs", outputs(func(s *model.Scope, in fixtures.Nodes) *graph.Node {
		return family.Dense(s.In("model").In("network").In("output"), in["x"], 5)
	}), whole, 1e-12)
}

// recordedBlock is a recorded block: its parameters by their recorded names, their
// paths here, and the noise of its convolutions.
type recordedBlock struct {
	fixtures.Case
	paths           map[string]string
	noise           []fixtures.Array
	filters, stride int
}

func readBlock(c fixtures.Case) recordedBlock {
	b := recordedBlock{Case: c, paths: map[string]string{}, filters: c.Array("ct").Dims[0], stride: 1}
	convolutions := map[string]string{"conv1": "conv_1", "conv2": "conv_2"}
	if c.Has("eps2") {
		convolutions["shortcut__0"] = "shortcut"
		b.stride = 2
	}
	for recorded, here := range convolutions {
		for name, path := range map[string]string{
			"s_logvar": "gamma_log_variance", "b_logvar": "beta_log_variance", "conv__weight": "weights", "conv__bias": "bias",
			"masked_conv__conv__weight": "energy/kernel", "logvar": "energy/log_variance",
		} {
			if c.Has("p_" + recorded + "__" + name) {
				b.paths[recorded+"__"+name] = "/block/" + here + "/" + path
			}
		}
	}
	for recorded, here := range map[string]string{"bn1": "norm_1", "bn2": "norm_2"} {
		b.paths[recorded+"__weight"] = "/block/" + here + "/scale"
		b.paths[recorded+"__bias"] = "/block/" + here + "/shift"
	}
	for _, name := range []string{"eps0", "eps1", "eps2"} {
		if c.Has(name) {
			b.noise = append(b.noise, c.Array(name).Channels())
		}
	}
	return b
}

// statistics are the paths of the block's running statistics by their names.
var statistics = map[string]string{
	"bn1__running_mean": "/block/norm_1/running_mean", "bn1__running_var": "/block/norm_1/running_variance",
	"bn2__running_mean": "/block/norm_2/running_mean", "bn2__running_var": "/block/norm_2/running_variance",
}

// array is a recorded array; a batch normalisation's are columns.
func (b recordedBlock) array(name string) fixtures.Array {
	if strings.Contains(name, "bn") {
		return b.Column(name)
	}
	return b.Array(name)
}

// apply is the block with the layers of the authors' code.
func (b recordedBlock) apply(s *model.Scope, in fixtures.Nodes) *graph.Node {
	layers := dul.Density{Energy: energy.LDL{ReplicatePadding: true}, Clip: true, Gradients: dul.Detached, HalfD: true}
	return nets.Block(s.In("block"), layers, in["x"], b.filters, b.stride)
}

func (b recordedBlock) parameters() fixtures.Values {
	values := fixtures.Values{"x": b.Array("x"), "ct": b.Array("ct")}
	for name, path := range b.paths {
		values[path] = b.array("p_" + name)
	}
	return values
}

// A block of density layers has the outputs, gradients, running statistics and
// log-likelihood of the authors' code's, in training and in evaluation.
func TestBlockMatchesTheReleasedBlock(t *testing.T) {
	fixtures.Each(t, "basic_block_density_*", func(t *testing.T, c fixtures.Case) {
		b := readBlock(c)
		forValues, forGradients := c.Tolerances()
		compare := func(what string, got fixtures.Array, tolerance float64) {
			t.Helper()
			fixtures.Compare(t, what, got, b.array(what), tolerance)
		}

		var wrt []string
		for _, name := range slices.Sorted(maps.Keys(b.paths)) {
			if c.Has("gout__" + name) { // the energy models' are zero
				wrt = append(wrt, name)
			}
		}
		names := slices.Sorted(maps.Keys(statistics))
		out := fixtures.Evaluate(t, c.DType, b.parameters(), b.noise, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
			g := in["x"].Graph()
			s.Store().SetTraining(g, true)
			y := b.apply(s, in)
			nodes := []*graph.Node{in["x"]}
			for _, name := range wrt {
				nodes = append(nodes, in[b.paths[name]])
			}
			loss := graph.ReduceAllSum(graph.Mul(y, in["ct"]))
			outputs := append([]*graph.Node{y, stochastic.LayerLossesOf(g).LogLikelihood}, graph.Gradient(loss, nodes...)...)
			for _, name := range names {
				outputs = append(outputs, s.Store().GetVariable(statistics[name]).NodeValue(g))
			}
			return outputs
		})
		compare("out_train", out[0], forValues)
		// "sum" is that over layers.
		fixtures.Compare(t, "log-likelihood", fixtures.Matrix(1, 1, stat.Mean(out[1].Values, nil)), fixtures.Matrix(1, 1, c.Array("loglik_sum").Values[0]), forValues)
		compare("gout__x", out[2], forGradients)
		for i, name := range wrt {
			compare("gout__"+name, out[3+i], forGradients)
		}

		values := b.parameters()
		for i, name := range names {
			compare("after__"+name, out[3+len(wrt)+i], forValues)
			values[statistics[name]] = b.array("after__" + name)
		}
		evaluated := fixtures.Evaluate(t, c.DType, values, b.noise, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
			return []*graph.Node{b.apply(s, in)}
		})
		compare("out_eval", evaluated[0], forValues)
	})
}
