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
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
)

// A run trains a density uncertainty layer by gradient descent with momentum.
type run struct {
	store *model.Store
	host  *stochastic.HostSampler // nil for noise that is drawn in the graph
	sheet *stochastic.NoiseBuffers
	exec  *model.Exec
	done  int // steps
}

func newRun(t *testing.T, seed uint64, host bool) *run {
	t.Helper()
	r := &run{store: model.NewStore()}
	params.SetSeeds(r.store, seed)
	if err := r.store.SetRNGStateFromSeed(int64(seed)); err != nil {
		t.Fatal(err)
	}
	if host {
		r.host = stochastic.NewHostSampler(seed)
	}
	return r
}

// train does the given number of steps and returns their losses.
func (r *run) train(t *testing.T, steps int) (losses []float32) {
	t.Helper()
	for range steps {
		if r.exec == nil {
			r.build(t)
		} else if r.sheet != nil {
			if err := r.sheet.Refresh(); err != nil {
				t.Fatal(err)
			}
		}
		x := fixtures.Random(rand.New(rand.NewPCG(uint64(r.done), 0)), 16, 3)
		loss, err := r.exec.Call1(fixtures.Tensor(dtypes.Float32, x))
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
	r.exec, err = model.NewExec(fixtures.Backend(t), r.store, func(root *model.Scope, x *graph.Node) *graph.Node {
		if r.host != nil {
			r.sheet = r.host.NewBuffers()
			stochastic.SetNoiseSource(x.Graph(), r.sheet)
		}
		y := dul.Density{InitStd: 0.1}.Dense(root.In("layer"), x, 2)
		losses := stochastic.LayerLossesOf(x.Graph())
		loss := graph.Sub(graph.ReduceAllMean(graph.Mul(y, y)), graph.MulScalar(graph.ReduceAllMean(losses.LogLikelihood), 0.01))
		loss = graph.Add(loss, graph.MulScalar(graph.ReduceAllSum(losses.KL), 0.01))
		var variables []*model.Variable
		var values []*graph.Node
		for v := range r.store.IterVariables() {
			if params.RoleOf(v, r.store) != "" {
				variables, values = append(variables, v), append(values, v.NodeValue(x))
			}
		}
		slots := root.In("optimizer").WithInitializer(graph.Zeros)
		for i, gradient := range graph.Gradient(loss, values...) {
			slot := slots.VariableWithShape(model.EscapeScopeName(variables[i].Path()), gradient.Shape())
			slot.SetTrainable(false)
			momentum := graph.Add(graph.MulScalar(slot.NodeValue(x), 0.9), gradient)
			slot.SetNodeValue(momentum)
			variables[i].SetNodeValue(graph.Sub(values[i], graph.MulScalar(momentum, 0.05)))
		}
		return loss
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Ten steps are five steps, a checkpoint, and five steps of another run: to the
// last bit, in losses, parameters, optimizer and noise, whether that run's graph
// is built before or after. Without a part of the state the runs differ.
func TestResumedTrainingIsTheSame(t *testing.T) {
	for _, c := range []struct {
		name  string
		host  bool                            // noise of the host
		built int                             // steps of the other run before the checkpoint is restored
		spoil func(t *testing.T, second *run) // what is done to the restored run; nil leaves it right
	}{
		{name: "noise of the host", host: true},
		{name: "noise of the graph"},
		{name: "built before", built: 2},
		{name: "without the noise's position", host: true, spoil: func(_ *testing.T, r *run) { r.host = stochastic.NewHostSampler(1) }},
		{name: "without the optimizer", host: true, spoil: func(t *testing.T, r *run) {
			if err := r.store.DeleteVariablesInScope("/optimizer"); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			whole := newRun(t, 1, c.host)
			want := whole.train(t, 10)

			first := newRun(t, 1, c.host)
			got := first.train(t, 5)
			f := open(t, t.TempDir(), 1)
			if err := f.Save(first.done, checkpoint.State{Store: first.store, Noise: first.host}); err != nil {
				t.Fatal(err)
			}

			// The other run starts with another seed, so that nothing agrees by itself.
			second := newRun(t, 2, c.host)
			second.train(t, c.built)
			found, err := f.Restore(checkpoint.State{Store: second.store, Noise: second.host})
			if err != nil {
				t.Fatal(err)
			}
			if role := params.RoleOf(second.store.GetVariable("/layer/weights"), second.store); role != params.Weight {
				t.Errorf("the weights have the role %q", role)
			}
			if second.done = found.Step; c.spoil != nil {
				c.spoil(t, second)
			}
			got = append(got, second.train(t, 5)...)
			if c.spoil != nil {
				if slices.Equal(got, want) {
					t.Error("the losses are the same")
				}
				return
			}
			if !slices.Equal(got, want) {
				t.Errorf("losses %v, want %v", got, want)
			}
			requireEqualStores(t, second.store, whole.store)
		})
	}
}
