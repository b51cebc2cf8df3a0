package train

import (
	"context"
	"errors"
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/stochastic"
)

// Regression trains a network as the mean of a Gaussian with a trained,
// constant variance.
type Regression struct {
	Network nets.Network
	// LogLikelihoodScale multiplies the generative objective (see Objective).
	LogLikelihoodScale float64
	// Groups say how each kind of parameter is trained. A parameter belongs to
	// the first group that contains it; one in no group stays as it is.
	Groups []Group
	// Schedule gives the learning rate of each step.
	Schedule  Schedule
	Epochs    int
	BatchSize int
	// PretrainEpochs are spent on the generative objective alone, at the
	// schedule's first learning rate, before the joint training.
	PretrainEpochs int
	// PretrainGroups take the place of Groups there; nil means Groups.
	PretrainGroups []Group
	// Seeds, one for each training set, fix initial values, order and noise.
	Seeds []uint64
	// Progress, if not nil, hears of every finished epoch.
	Progress func(Progress)
	// Float64 trains in double precision.
	Float64 bool
}

// Progress is the state of a run after an epoch.
type Progress struct {
	// Done and Total count epochs, those of the pretraining included.
	Done, Total int
	// Pretraining says whether the epoch was one of the generative pretraining.
	Pretraining bool
	// Loss is the objective of the epoch's last batch, the mean over replicas.
	Loss float64
}

// Fit trains one model. The result is determined by the data and Seeds[0] on
// one backend. A network that cannot be built is an error, not a panic.
func (t Regression) Fit(ctx context.Context, backend compute.Backend, set Set) (*nets.Regression, error) {
	return t.fit(ctx, backend, []Set{set}, false)
}

// FitReplicas trains len(sets) independent models in one graph, which is faster
// than one after the other. Sets may differ in size as long as their epochs
// have the same number of batches; shorter batches are padded with examples of
// weight zero. Replica r sees the same initial values and order as Fit with
// Seeds[r] alone and, on the pure Go backend, the same noise where none of its
// batches is padded; other backends draw the noise of all replicas from
// Seeds[0].
func (t Regression) FitReplicas(ctx context.Context, backend compute.Backend, sets []Set) (*nets.Regression, error) {
	return t.fit(ctx, backend, sets, true)
}

func (t Regression) fit(ctx context.Context, backend compute.Backend, sets []Set, replicated bool) (*nets.Regression, error) {
	if t.Network == nil || t.Schedule == nil || len(t.Groups) == 0 {
		return nil, errors.New("train.Regression needs a Network, a Schedule and Groups")
	}
	if t.Epochs < 0 || t.PretrainEpochs < 0 {
		return nil, fmt.Errorf("train.Regression has %d epochs and %d for pretraining; neither may be negative", t.Epochs, t.PretrainEpochs)
	}
	dtype := dtypes.Float32
	if t.Float64 {
		dtype = dtypes.Float64
	}
	data, err := newBatches(sets, t.Seeds, replicated, dtype, t.BatchSize)
	if err != nil {
		return nil, err
	}
	f, err := nets.NewRegression(backend, t.Network, t.Seeds, replicated, dtype)
	if err != nil {
		return nil, err
	}

	run := &run{Regression: t, fitted: f, data: data, total: t.PretrainEpochs + t.Epochs}
	pretraining := phase{epochs: t.PretrainEpochs, groups: t.PretrainGroups, generative: true, name: "pretraining"}
	if pretraining.groups == nil {
		pretraining.groups = t.Groups
	}
	joint := phase{epochs: t.Epochs, groups: t.Groups, name: "training"}
	for _, p := range []phase{pretraining, joint} {
		if err := run.phase(ctx, p); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return f, nil
}

// A run is the state of one call of Fit.
type run struct {
	Regression
	fitted      *nets.Regression
	data        *batches
	done, total int
}

// A phase is a part of a run with an objective of its own.
type phase struct {
	name       string
	epochs     int
	groups     []Group
	generative bool // only the generative objective, at a constant rate
}

func (r *run) phase(ctx context.Context, p phase) error {
	steps := map[int]*compiledStep{}
	defer func() {
		for _, step := range steps {
			step.exec.Finalize()
		}
	}()
	total := p.epochs * r.data.steps
	for epoch := range p.epochs {
		r.data.shuffle()
		var losses *tensors.Tensor
		for k := range r.data.steps {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("stopped after %d of %d epochs: %w", r.done, r.total, err)
			}
			t := epoch*r.data.steps + k
			rate := r.Schedule(t, total)
			if p.generative {
				rate = r.Schedule(0, total)
			}
			b, err := r.data.next(k)
			if err != nil {
				return err
			}
			step, found := steps[r.data.rows(k)]
			if !found {
				step = r.compile(p)
				steps[r.data.rows(k)] = step
			}
			if losses, err = step.execute(b, r.fitted.DType, rate, t+1); err != nil {
				return fmt.Errorf("epoch %d, batch %d: %w", epoch, k, err)
			}
		}
		r.done++
		if r.Progress != nil {
			r.Progress(Progress{Done: r.done, Total: r.total, Pretraining: p.generative, Loss: meanOf(losses)})
		}
	}
	return nil
}

// A compiledStep is one training step for one batch shape.
type compiledStep struct {
	exec     *model.Exec
	sheet    *stochastic.NoiseBuffers
	executed bool
}

func (r *run) compile(p phase) *compiledStep {
	step := &compiledStep{sheet: r.fitted.Host.NewBuffers()}
	step.exec = model.MustNewExec(r.fitted.Backend, r.fitted.Store,
		func(root *model.Scope, x, y, weights, rate, t *graph.Node) *graph.Node {
			g := x.Graph()
			stochastic.SetNoiseSource(g, step.sheet)
			root.Store().SetTraining(g, true)
			s := r.fitted.Scope(root)
			loss := r.loss(s, p, x, y, weights)
			applyGroups(root.In("%s", p.name), s, loss, p.groups, rate, t)
			return graph.Reshape(loss, loss.Shape().Size())
		})
	return step
}

// loss is the phase's objective for each replica, [..., 1, 1].
func (r *run) loss(s *model.Scope, p phase, x, y, weights *graph.Node) *graph.Node {
	mean := r.fitted.Mean(s, x)
	logVariance := r.fitted.LogVariance(s, x)
	if p.generative {
		tally := stochastic.LayerLossesOf(x.Graph())
		if tally.LogLikelihood == nil {
			panic(errors.New("generative pretraining was asked for, but no layer of the network has an energy model"))
		}
		return graph.MulScalar(WeightedSum(tally.LogLikelihood, weights), -r.LogLikelihoodScale)
	}
	sizes := make([]float64, len(r.data.sets))
	for i, set := range r.data.sets {
		sizes[i] = float64(set.N())
	}
	objective := Objective{N: sizes, LogLikelihoodScale: r.LogLikelihoodScale}
	return objective.Of(GaussianNLL(mean, y, logVariance), weights).Total
}

// applyGroups updates every parameter of the scope by the optimizer of its group.
func applyGroups(state, s *model.Scope, loss *graph.Node, groups []Group, rate, t *graph.Node) {
	g, store := loss.Graph(), s.Store()
	var variables []*model.Variable
	var values []*graph.Node
	var owners []Group
	for v := range s.IterVariables() {
		if !v.InUseByGraph(g) {
			continue
		}
		for _, group := range groups {
			if group.contains(v, store) {
				if group.Optimizer != nil {
					variables, values, owners = append(variables, v), append(values, v.NodeValue(g)), append(owners, group)
				}
				break
			}
		}
	}
	gradients := graph.Gradient(graph.ReduceAllSum(loss), values...)
	for i, v := range variables {
		groupRate := rate
		if owners[i].Rate != 0 {
			groupRate = graph.MulScalar(rate, owners[i].Rate)
		}
		slots := state.In("%s", model.EscapeScopeName(v.Path()))
		v.SetNodeValue(owners[i].Optimizer.Update(slots, values[i], gradients[i], groupRate, t))
	}
}

func (c *compiledStep) execute(b *batch, dtype dtypes.DType, rate float64, t int) (*tensors.Tensor, error) {
	args := []any{b.x, b.y, b.weights, scalar(dtype, rate), scalar(dtype, float64(t))}
	if c.executed {
		if err := c.sheet.Refresh(); err != nil {
			return nil, err
		}
	}
	c.executed = true
	return c.exec.Call1(args...)
}

func scalar(dtype dtypes.DType, value float64) *tensors.Tensor {
	if dtype == dtypes.Float64 {
		return tensors.FromScalar(value)
	}
	return tensors.FromScalar(float32(value))
}

// meanOf is the mean entry of a small tensor, NaN where there is none.
func meanOf(t *tensors.Tensor) float64 {
	sum, n := 0.0, 0
	add := func(v float64) { sum, n = sum+v, n+1 }
	switch flat := t.Value().(type) {
	case []float32:
		for _, v := range flat {
			add(float64(v))
		}
	case []float64:
		for _, v := range flat {
			add(v)
		}
	}
	return sum / float64(n)
}
