package train

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
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
