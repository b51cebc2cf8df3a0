package train_test

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/checkpoint"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/environment/must"
)

// gained multiplies the outputs of a network by a variable that GoMLX makes, so
// that it has no role.
type gained struct{ nets.Network }

func (n gained) Apply(s *model.Scope, x *graph.Node, outputs int) *graph.Node {
	y := n.Network.Apply(s, x, outputs)
	gain := s.WithInitializer(graph.Ones).VariableWithShape("gain", shapes.Make(y.DType(), 1, outputs))
	return graph.Mul(y, gain.NodeValue(x))
}

// A keptGraph is a graph of predictions that is built once.
type keptGraph struct {
	exec  *model.Exec
	noise *stochastic.NoiseBuffers
}

func newKeptGraph(t *testing.T, m *nets.Model) *keptGraph {
	t.Helper()
	k := &keptGraph{}
	if m.Host != nil {
		k.noise = m.Host.NewBuffers()
	}
	k.exec = must.Get(model.NewExec(m.Backend, m.Store, func(root *model.Scope, x *graph.Node) *graph.Node {
		if k.noise != nil {
			stochastic.SetNoiseSource(x.Graph(), k.noise)
		}
		return m.Apply(m.Scope(root), x)
	}))(t)
	return k
}

func (k *keptGraph) outputs(t *testing.T, images *tensors.Tensor) fixtures.Array {
	t.Helper()
	if k.noise != nil {
		must.Do(t, k.noise.Refresh())
	}
	return fixtures.FromTensor(t, must.Get(k.exec.Call1(images))(t))
}

// A graph of predictions that is kept reads the weights, running statistics and
// noise of the moment, whatever changes them. On the pure Go backend GoMLX would
// compile those of the first execution in.
func TestKeptGraphReadsWhatHasChanged(t *testing.T) {
	const n, side = 4, 8
	rng := rand.New(rand.NewPCG(3, 3))
	pixels := make([]float64, 3*n*side*side)
	for i := range pixels {
		pixels[i] = rng.NormFloat64()
	}
	x := params.FromFloat64(shapes.Make(dtypes.Float32, 3, n, side, side), pixels)
	resnet := func(layers nets.ConvLayers) func(dul.Density) nets.Network {
		return func(dul.Density) nets.Network {
			return gained{nets.ResNet{Layers: layers, Blocks: []int{1}, Widths: []int{2}, Stem: 2}}
		}
	}
	c := named(t, "images")
	c.network = resnet(baselines.Deterministic{})
	c.PretrainEpochs = 0
	m := c.model(t, dtypes.Float32)
	kept := newKeptGraph(t, m)
	before := kept.outputs(t, x)
	changed := func(t *testing.T, kept *keptGraph, m *nets.Model) {
		t.Helper()
		got := kept.outputs(t, x)
		if slices.Equal(got.Values, before.Values) {
			t.Error("the outputs are the old ones")
		}
		fixtures.Compare(t, "a new graph", got, newKeptGraph(t, m).outputs(t, x), 1e-6)
		fixtures.Compare(t, "the second execution", kept.outputs(t, x), got, 0)
		before = got
	}
	// A graph that is built when the variables have values is the one in danger.
	second := newKeptGraph(t, m)
	fixtures.Compare(t, "before training", second.outputs(t, x), before, 1e-6)

	t.Run("training", func(t *testing.T) { c.fit(t, m); changed(t, second, m) })
	t.Run("training again", func(t *testing.T) {
		c.Epochs++
		c.fit(t, m)
		changed(t, second, m)
	})
	t.Run("running statistics", func(t *testing.T) {
		for v := range m.Store.IterVariables() {
			if params.RoleOf(v, m.Store) == params.Running {
				moved := must.Get(params.ToFloat64(must.Get(v.Value())(t)))(t)
				for i := range moved {
					moved[i]++
				}
				must.Do(t, params.SetStatistic(m.Store, v.Path(), params.FromFloat64(v.Shape(), moved)))
			}
		}
		changed(t, second, m)
	})
	t.Run("a variable of GoMLX", func(t *testing.T) {
		v := m.Store.GetVariable("/model/network/gain")
		must.Do(t, v.SetValue(params.FromFloat64(v.Shape(), slices.Repeat([]float64{2}, v.Shape().Size()))))
		changed(t, second, m)
	})
	t.Run("checkpoint", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "network.safetensors")
		c.seeds = []uint64{77}
		trained := c.model(t, dtypes.Float32)
		c.fit(t, trained)
		must.Do(t, checkpoint.Export(trained.Store, file, nil))
		named, _, err := checkpoint.ReadTensors(file)
		must.Do(t, err)
		must.Do(t, checkpoint.SetTensors(m.Store, named))
		changed(t, second, m)
	})
	t.Run("noise", func(t *testing.T) {
		c.network = resnet(dul.Density{})
		m := c.model(t, dtypes.Float32)
		newKeptGraph(t, m).outputs(t, x) // the parameters get their values
		kept := newKeptGraph(t, m)
		first, second, third := kept.outputs(t, x), kept.outputs(t, x), kept.outputs(t, x)
		if slices.Equal(first.Values, second.Values) || slices.Equal(second.Values, third.Values) {
			t.Error("two executions have the same noise")
		}
	})
}
