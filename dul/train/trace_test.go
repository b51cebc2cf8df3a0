package train

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/datasets"
	"densityuncertainty/dul"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/environment/must"
)

// fed is noise that is handed to the graph as inputs.
type fed struct{ draws []*graph.Node }

func (f *fed) Draw(_ *model.Scope, _ *graph.Graph, _ stochastic.Distribution, shape shapes.Shape) *graph.Node {
	next := f.draws[0]
	f.draws = f.draws[1:]
	next.AssertDims(shape.Dimensions...)
	return next
}

// recordedStd is a prior's standard deviation as it was recorded: of the
// log-variance, rounded to single precision.
func recordedStd(std float64) float64 {
	return math.Exp(float64(float32(2*math.Log(std))) / 2)
}

// A trace is a family of layers of which four training steps were recorded.
type trace struct {
	layers nets.Layers
	paths  map[string]string // of a layer's parameters
	draws  int               // of noise, in each layer
	scale  float64           // of the generative objective
}

var traces = map[string]trace{
	"density": {
		layers: dul.Density{PriorStd: recordedStd(1), Clip: true, Gradients: dul.Detached, HalfD: true},
		paths: map[string]string{
			"s_logvar": "gamma_log_variance", "b_logvar": "beta_log_variance",
			"L": "energy/lower", "logvar": "energy/log_variance",
			"linear__weight": "weights", "linear__bias": "bias",
		},
		draws: 1, scale: 0.01,
	},
	"mfvi": {
		layers: baselines.MFVI{PriorStd: recordedStd(0.1)},
		paths: map[string]string{
			"weight_mu": "weights_mean", "weight_logvar": "weights_log_variance", "bias": "bias",
		},
		draws: 1,
	},
	"rank1": {
		layers: baselines.Rank1{PriorStd: recordedStd(0.1)},
		paths: map[string]string{
			"r_mu": "input_factor_mean", "r_logvar": "input_factor_log_variance",
			"s_mu": "output_factor_mean", "s_logvar": "output_factor_log_variance",
			"linear__weight": "weights", "linear__bias": "bias",
		},
		draws: 2,
	},
}

// The recorded names of the four layers and their scopes here.
var traceLayers = [][2]string{
	{"input_proj", "hidden_0"}, {"hidden1", "hidden_1"}, {"hidden2", "hidden_2"}, {"linear", "output"},
}

// variables gives the path of each recorded parameter of the network.
func (tr trace) variables() map[string]string {
	paths := map[string]string{"logvar": "/model/observation_log_variance"}
	for _, layer := range traceLayers {
		for recorded, name := range tr.paths {
			paths[layer[0]+"__"+recorded] = "/model/network/" + layer[1] + "/" + name
		}
	}
	return paths
}

// Losses, gradients and parameters of four steps of SGD with momentum, weight
// decay on all parameters and cosine learning rate, against the released layers.
func TestTrainingMatchesTheRecordedTraces(t *testing.T) {
	const trainingExamples, steps, totalSteps, decay = 100, 4, 10, 1e-4
	fixtures.Each(t, "mlp_*_trace.*", func(t *testing.T, c fixtures.Case) {
		tr := traces[strings.Split(c.Name, "_")[1]]
		forValues, forGradients := c.Tolerances()
		worst := 0.0
		compare := func(name string, got fixtures.Array, tolerance float64) {
			t.Helper()
			want := c.Array(name)
			worst = max(worst, fixtures.RelativeError(t, name, got, want))
			fixtures.Compare(t, name, got, want, tolerance)
		}

		store := model.NewStore()
		paths := tr.variables()
		var names []string
		for name, path := range paths {
			names = append(names, name)
			store.VariableWithValue(path, fixtures.Tensor(c.DType, c.Array("p_"+name)))
		}
		hasLikelihood := false
		exec := must.Get(model.NewExec(fixtures.Backend(t), store, func(root *model.Scope, in []*graph.Node) []*graph.Node {
			x, y, weights, rate, step := in[0], in[1], in[2], in[3], in[4]
			stochastic.SetNoiseSource(x.Graph(), &fed{in[5:]})
			network := nets.Model{Network: nets.MLP{Layers: tr.layers, Widths: []int{5, 5, 5}}, Likelihood: likelihood.Gaussian{}}
			s := network.Scope(root)
			mean := network.Apply(s, x)
			nll := network.Likelihood.NLL(s, mean, y)
			losses := objective{n: []float64{trainingExamples}, logLikelihoodScale: tr.scale}.of(nll, weights)

			var values []*graph.Node
			for _, name := range names {
				values = append(values, store.GetVariable(paths[name]).NodeValue(x.Graph()))
			}
			gradients := graph.Gradient(graph.ReduceAllSum(losses.total), values...)
			for i, name := range names {
				state := root.In("optimizer_%s", name)
				updated := SGD{Momentum: 0.9, Decay: decay}.Update(state, values[i], gradients[i], rate, step)
				store.GetVariable(paths[name]).SetNodeValue(updated)
			}
			outputs := []*graph.Node{mean, losses.total, losses.nll, losses.kl}
			if hasLikelihood = losses.logLikelihood != nil; hasLikelihood {
				outputs = append(outputs, losses.logLikelihood)
			}
			return append(outputs, gradients...)
		}))(t)

		schedule := Cosine{Start: 0.01}
		examples := len(c.Array("y").Values)
		ones := fixtures.Zeros(examples, 1).Map(func(float64) float64 { return 1 / float64(examples) })
		for step := range steps {
			rate := schedule.Rate(step, totalSteps)
			at := func(name string) string { return fmt.Sprintf("%s_step%d", name, step) }
			compare(at("lr"), fixtures.Matrix(1, 1, rate), forValues)
			args := []any{
				fixtures.Tensor(c.DType, c.Array("x")), fixtures.Tensor(c.DType, c.Column("y")), fixtures.Tensor(c.DType, ones),
				fixtures.Tensor(c.DType, fixtures.Array{Values: []float64{rate}}),
				fixtures.Tensor(c.DType, fixtures.Array{Values: []float64{float64(step + 1)}}),
			}
			for i := range tr.draws * len(traceLayers) {
				eps := c.Array(fmt.Sprintf("eps_step%d_%d", step, i))
				if _, drawsWeights := tr.layers.(baselines.MFVI); drawsWeights {
					eps = eps.Transposed()
				}
				args = append(args, fixtures.Tensor(c.DType, eps))
			}
			results := must.Get(exec.Exec(args...))(t)
			var out []fixtures.Array
			for _, r := range results {
				out = append(out, fixtures.FromTensor(t, r))
			}
			compare(at("out"), out[0], forValues)
			compare(at("loss"), out[1], forValues)
			compare(at("nll"), out[2], forValues)
			compare(at("kl_over_n"), out[3].Scale(1.0/trainingExamples), forValues)
			out = out[4:]
			if hasLikelihood {
				compare(at("loglik"), out[0], forValues)
				out = out[1:]
			}
			if step == 0 {
				for i, name := range names {
					compare("grad0__"+name, out[i], forGradients)
				}
			}
		}
		for _, name := range names {
			value := must.Get(store.GetVariable(paths[name]).Value())(t)
			compare("final__"+name, fixtures.FromTensor(t, value), forGradients)
		}
		t.Logf("%s: worst relative error %.2g", c.Name, worst)
	})
}

// total is the objective of a small network at inputs x, targets y and weights.
func total(layers nets.Layers, o objective) func(s *model.Scope, in fixtures.Nodes) *graph.Node {
	return func(root *model.Scope, in fixtures.Nodes) *graph.Node {
		r := nets.Model{Network: nets.MLP{Layers: layers, Widths: []int{3}}, Likelihood: likelihood.Gaussian{}}
		if x := in["x"].Shape(); x.Rank() == 3 {
			r.Replicas = x.Dim(0)
		}
		s := r.Scope(root)
		nll := r.Likelihood.NLL(s, r.Apply(s, in["x"]), in["y"])
		return o.of(nll, in["weights"]).total
	}
}

// The rows that pad a shorter batch change nothing.
func TestPaddingDoesNotChangeTheObjective(t *testing.T) {
	rng := rand.New(rand.NewPCG(47, 53))
	for _, c := range []struct {
		name   string
		layers nets.Layers
	}{
		{"density", dul.Density{}}, {"MFVI", baselines.MFVI{}}, {"Rank1", baselines.Rank1{}},
		{"VDropout", baselines.VDropout{}}, {"MCDropout", baselines.MCDropout{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := total(c.layers, objective{n: []float64{10}, logLikelihoodScale: 0.3})
			x, y := fixtures.Random(rng, 4, 3), fixtures.Random(rng, 4, 1)
			copy(x.Values[9:], []float64{0, 0, 0})
			y.Values[3] = 0
			padded, noise := fixtures.Explore(t, fixtures.Values{
				"x": x, "y": y, "weights": fixtures.Matrix(4, 1, 1.0/3, 1.0/3, 1.0/3, 0),
			}, f)
			short := fixtures.Values{}
			for path, a := range padded {
				short[path] = a
			}
			firstThree := func(a fixtures.Array) fixtures.Array {
				return fixtures.Matrix(3, a.Dims[1], a.Values[:3*a.Dims[1]]...)
			}
			for _, name := range []string{"x", "y", "weights"} {
				short[name] = firstThree(padded[name])
			}
			shortNoise := make([]fixtures.Array, len(noise))
			for i, draw := range noise {
				shortNoise[i] = draw
				if c.name != "MFVI" { // whose noise is on the weights
					shortNoise[i] = firstThree(draw)
				}
			}
			evaluate := func(values fixtures.Values, noise []fixtures.Array) []fixtures.Array {
				return fixtures.Evaluate(t, dtypes.Float64, values, noise, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
					loss := f(s, in)
					var wrt []*graph.Node
					for _, path := range values.Parameters() {
						wrt = append(wrt, in[path])
					}
					return append([]*graph.Node{loss}, graph.Gradient(graph.ReduceAllSum(loss), wrt...)...)
				})
			}
			want := evaluate(short, shortNoise)
			for i, got := range evaluate(padded, noise) {
				fixtures.Compare(t, "objective or gradient", got, want[i], 1e-13)
			}
		})
	}
}

// The graph must turn a table of picks, byte for byte, into the images that
// Augmentation promises.
func TestPick(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const n, channels, height, width, batch = 7, 3, 6, 5, 40
	pixels := make([]byte, n*channels*height*width)
	for i := range pixels {
		pixels[i] = byte(rng.Uint32())
	}
	for _, padding := range []int{0, 2} {
		var table []int32
		var want []byte
		for range batch {
			image, top, left, flip := rng.IntN(n), rng.IntN(2*padding+1), rng.IntN(2*padding+1), rng.IntN(2)
			row := make([]int32, pickColumns)
			row[pickImage], row[pickTop], row[pickLeft], row[pickFlip] = int32(image), int32(top), int32(left), int32(flip)
			table = append(table, row...)
			for c := range channels {
				for y := range height {
					for x := range width {
						if flip == 1 {
							x = width - 1 - x
						}
						fromY, fromX, pixel := y+top-padding, x+left-padding, byte(0)
						if fromY >= 0 && fromY < height && fromX >= 0 && fromX < width {
							pixel = pixels[((image*channels+c)*height+fromY)*width+fromX]
						}
						want = append(want, pixel)
					}
				}
			}
		}
		result := must.Get(model.CallOnce(fixtures.Backend(t), model.NewStore(), func(_ *model.Scope, pixels, table *graph.Node) *graph.Node {
			return pick(pixels, table, padding)
		}, tensors.FromFlatDataAndDimensions(pixels, n, channels, height, width), tensors.FromFlatDataAndDimensions(table, batch, pickColumns)))(t)
		got := must.Get(tensors.CopyFlatData[uint8](result))(t)
		if !bytes.Equal(got, want) {
			t.Errorf("padding %d: %v, want %v", padding, got[:width], want[:width])
		}
	}
}

// byEpoch is the order of datasets.Order.
type byEpoch struct{}

func (byEpoch) Of(seed uint64, epoch, n int) []int { return datasets.Order(seed, epoch, n) }

// The default order depends on the seed alone.
func TestOrderOfASeed(t *testing.T) {
	of := func(seed uint64) []int { return slices.Clone(must.Get(newOrder(seed, 50, nil).of(0))(t)) }
	if !slices.Equal(of(1), of(1)) || slices.Equal(of(1), of(2)) {
		t.Error("orders of the seeds 1, 1 and 2")
	}
}

// A table of picks has the images in their order, with the windows that the augmentation draws.
func TestPicksOfAnEpoch(t *testing.T) {
	const seed, epoch, n = 11, 2, 50
	augmentation := datasets.Augmentation{Pad: 4, Flip: true}
	s := &pixelSource{run: &run{
		Trainer: Trainer{Settings: Settings{BatchSize: n, Augmentation: augmentation, Padding: augmentation.Pad}},
		orders:  []*order{newOrder(seed, n, byEpoch{})},
	}}
	tables := must.Get(s.next(batch{n, epoch, 0}))(t)
	got := must.Get(tensors.CopyFlatData[int32](tables[0]))(t)
	for k, i := range datasets.Order(seed, epoch, n) {
		top, left, flip := augmentation.Draw(seed, epoch, i)
		row := got[k*pickColumns : (k+1)*pickColumns]
		if int(row[pickImage]) != i || int(row[pickTop]) != top || int(row[pickLeft]) != left || (row[pickFlip] == 1) != flip {
			t.Errorf("pick %d is %v, want image %d at (%d, %d), mirrored: %t", k, row, i, top, left, flip)
		}
	}
}
