package checkpoint_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul"
	"densityuncertainty/dul/checkpoint"
	"densityuncertainty/dul/internal/fixtures"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/dul/train"
)

// A run trains a small network of density uncertainty layers.
type run struct {
	store     *model.Store
	host      *stochastic.Host // nil for noise that is drawn in the graph
	optimizer train.Optimizer
	sheet     *stochastic.Sheet
	exec      *model.Exec
	done      int // steps
}

func newRun(t *testing.T, seed uint64, host bool, optimizer train.Optimizer) *run {
	t.Helper()
	r := &run{store: model.NewStore(), optimizer: optimizer}
	params.SetSeeds(r.store, seed)
	if err := r.store.SetRNGStateFromSeed(int64(seed)); err != nil {
		t.Fatal(err)
	}
	if host {
		r.host = stochastic.NewHost(seed)
	}
	return r
}

// train does the given number of steps and returns their losses.
func (r *run) train(t *testing.T, steps int) (losses []float32) {
	t.Helper()
	const batch, features, total = 16, 3, 10
	for range steps {
		if r.exec == nil {
			r.build(t)
		} else if r.sheet != nil {
			if err := r.sheet.Refresh(); err != nil {
				t.Fatal(err)
			}
		}
		data := rand.New(rand.NewPCG(uint64(r.done), 0))
		weights := fixtures.Zeros(batch, 1).Map(func(float64) float64 { return 1.0 / batch })
		var args []any
		for _, input := range []fixtures.Array{
			fixtures.Random(data, batch, features), fixtures.Random(data, batch, 1), weights,
			fixtures.Matrix(1, 1, train.Cosine(0.05)(r.done, total)), fixtures.Matrix(1, 1, float64(r.done+1)),
		} {
			args = append(args, fixtures.Tensor(dtypes.Float32, input))
		}
		loss, err := r.exec.Call1(args...)
		if err != nil {
			t.Fatal(err)
		}
		losses = append(losses, tensors.ToScalar[float32](loss))
		r.done++
	}
	return losses
}

func (r *run) build(t *testing.T) {
	t.Helper()
	var err error
	if r.host != nil {
		r.sheet = r.host.NewSheet()
	}
	r.exec, err = model.NewExec(fixtures.Backend(t), r.store, func(root *model.Scope, in []*graph.Node) *graph.Node {
		x, y, weights, rate, step := in[0], in[1], in[2], in[3], in[4]
		g := x.Graph()
		if r.sheet != nil {
			stochastic.SetNoise(g, r.sheet)
		}
		network := nets.Model{Network: nets.MLP{Layers: dul.Density{}, Widths: []int{4}}, Likelihood: likelihood.Gaussian{}}
		s := network.Scope(root)
		nll := network.Likelihood.NLL(s, network.Apply(s, x), y)
		loss := train.Objective{N: []float64{100}, LogLikelihoodScale: 0.01}.Of(nll, weights).Total
		var variables []*model.Variable
		var values []*graph.Node
		for v := range s.IterVariables() {
			if params.RoleOf(v, r.store) != "" {
				variables, values = append(variables, v), append(values, v.NodeValue(g))
			}
		}
		gradients := graph.Gradient(graph.ReduceAllSum(loss), values...)
		state := root.In("optimizer")
		for i, v := range variables {
			slots := state.In("%s", model.EscapeScopeName(v.Path()))
			v.SetNodeValue(r.optimizer.Update(slots, values[i], gradients[i], rate, step))
		}
		return graph.ReduceAllSum(loss)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Ten steps are five steps, a checkpoint, and five steps of another run: to the
// last bit, in losses, parameters, optimizer and noise.
func TestResumedTrainingIsTheSame(t *testing.T) {
	for name, c := range map[string]struct {
		host      bool
		optimizer train.Optimizer
	}{
		"SGD, noise of the host":  {true, train.SGD{Momentum: 0.9, Decay: 1e-3}},
		"Adam, noise of the host": {true, train.Adam{}},
		"SGD, noise of the graph": {false, train.SGD{Momentum: 0.9}},
	} {
		t.Run(name, func(t *testing.T) {
			whole := newRun(t, 1, c.host, c.optimizer)
			want := whole.train(t, 10)

			path := t.TempDir()
			first := newRun(t, 1, c.host, c.optimizer)
			got := first.train(t, 5)
			f := open(t, path, 1)
			if err := f.Save(first.done, checkpoint.State{Store: first.store, Noise: first.host}); err != nil {
				t.Fatal(err)
			}

			// The other run starts with another seed, so that nothing agrees by itself.
			second := newRun(t, 2, c.host, c.optimizer)
			found, err := f.Restore(checkpoint.State{Store: second.store, Noise: second.host})
			if err != nil {
				t.Fatal(err)
			}
			if role := params.RoleOf(second.store.GetVariable("/model/network/output/weights"), second.store); role != params.Weight {
				t.Errorf("before the graph is built the weights have the role %q", role)
			}
			second.done = found.Step
			got = append(got, second.train(t, 5)...)
			if !slices.Equal(got, want) {
				t.Errorf("losses %v, want %v", got, want)
			}
			requireEqualStores(t, second.store, whole.store)
		})
	}
}

// The comparison above sees each part of the state: without it the runs differ.
func TestResumedTrainingNeedsTheWholeState(t *testing.T) {
	want := newRun(t, 1, true, train.SGD{Momentum: 0.9}).train(t, 10)
	for name, spoil := range map[string]func(t *testing.T, r *run){
		"the noise's position": func(t *testing.T, r *run) {
			r.host = stochastic.NewHost(1)
		},
		"the optimizer": func(t *testing.T, r *run) {
			if err := r.store.DeleteVariablesInScope("/optimizer"); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t, 1, true, train.SGD{Momentum: 0.9})
			r.train(t, 5)
			f := open(t, t.TempDir(), 1)
			if err := f.Save(5, checkpoint.State{Store: r.store, Noise: r.host}); err != nil {
				t.Fatal(err)
			}
			second := newRun(t, 2, true, r.optimizer)
			if _, err := f.Restore(checkpoint.State{Store: second.store, Noise: second.host}); err != nil {
				t.Fatal(err)
			}
			spoil(t, second)
			second.done = 5
			if slices.Equal(second.train(t, 5), want[5:]) {
				t.Errorf("without %s the losses are the same", name)
			}
		})
	}
}

// A graph that was built and executed before Restore goes on from the saved
// values, too.
func TestRestoreIntoABuiltModel(t *testing.T) {
	f := open(t, t.TempDir(), 1)
	optimizer := train.SGD{Momentum: 0.9}
	saved := newRun(t, 1, false, optimizer)
	saved.train(t, 3)
	if err := f.Save(3, checkpoint.State{Store: saved.store}); err != nil {
		t.Fatal(err)
	}
	built := newRun(t, 2, false, optimizer)
	built.train(t, 2)
	if _, err := f.Restore(checkpoint.State{Store: built.store}); err != nil {
		t.Fatal(err)
	}
	built.done = 3
	if got, want := built.train(t, 3), saved.train(t, 3); !slices.Equal(got, want) {
		t.Errorf("losses %v, want %v", got, want)
	}
	requireEqualStores(t, built.store, saved.store)
}
