package nets_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/stochastic"
)

// recordedBlock is a recorded block: its parameters by their names there, the
// paths they have here, and the noise of its convolutions.
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

// array is a recorded array; those of a batch normalisation are columns.
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
			if c.Has("gout__" + name) { // those of the energy models are zero
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
		mean := 0.0
		for _, v := range out[1].Values {
			mean += v / float64(len(out[1].Values))
		}
		// "sum" is that over layers.
		fixtures.Compare(t, "log-likelihood", fixtures.Matrix(1, 1, mean), fixtures.Matrix(1, 1, c.Array("loglik_sum").Values[0]), forValues)
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
