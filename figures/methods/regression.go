package methods

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/results"
)

// Seed makes one seed of an experiment's seed and split, and of the number of the network in an ensemble, so that
// splits and members do not share initial values and noise. The first member has that of a single network. (The
// multipliers, the first of which is the golden ratio's of 64 bits, spread neighbouring numbers.)
func Seed(e results.Experiment, member int) uint64 {
	return e.Seed + uint64(e.Split+1)*0x9e3779b97f4a7c15 + uint64(member)*0xd1342543de82ef95
}

// Network is the network of dense layers of a method: a multilayer perceptron, or for a Gaussian process a
// residual one of as many layers, whose head is still to come. All widths are equal.
func (m Method) Network(o Options, width, hiddenLayers int) nets.Network {
	if m.Process != nil {
		return nets.ResidualMLP{Layers: m.Process.Hidden(), Width: width, Depth: hiddenLayers}
	}
	return nets.MLP{Layers: guarded{m.Layers(o)}, Widths: slices.Repeat([]int{width}, hiddenLayers)}
}

// guarded turns what a family panics with into an error. GoMLX catches errors alone: anything else would pass it by
// with a lock closed, for which the closing of the model then waits without end.
type guarded struct{ nets.Layers }

// Dense implements nets.Layers.
func (g guarded) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	defer func() {
		problem := recover()
		if problem == nil {
			return
		}
		if _, is := problem.(error); !is {
			problem = fmt.Errorf("%v", problem)
		}
		panic(problem)
	}()
	return g.Layers.Dense(s, x, units)
}

// WithHead is the residual network of Network with a head.
func WithHead(network nets.Network, head nets.Layers) nets.Network {
	n := network.(nets.ResidualMLP)
	n.Head = head
	return n
}

// Regressions are what Fit trains: one model, or one ensemble, for each experiment.
type Regressions struct {
	Method Method
	// Run is the training without network and seeds.
	Run train.Regression
	// Network is that of Method.Network.
	Network nets.Network
	// Experiments have equal groups; each has its own training data and the inputs at which to predict.
	Experiments []results.Experiment
	Sets        []train.Set
	Inputs      [][]float64
}

// Fit trains all models as replicas of one graph and predicts. A prediction whose Gaussian process has no
// Cholesky factor says so in Failed, and does not keep the others from theirs.
func (r Regressions) Fit(ctx context.Context, backend compute.Backend) ([]Prediction, error) {
	members := r.Method.Networks()
	run := r.Run
	run.Network, run.Seeds = r.Network, nil
	var sets []train.Set
	var inputs [][]float64
	for i, e := range r.Experiments {
		for m := range members {
			sets, inputs = append(sets, r.Sets[i]), append(inputs, r.Inputs[i])
			run.Seeds = append(run.Seeds, Seed(e, m))
		}
	}
	if r.Method.Process != nil {
		return r.fitProcess(ctx, backend, run, sets, inputs)
	}
	fitted, err := run.FitReplicas(ctx, backend, sets)
	if err != nil {
		return nil, err
	}
	draws, err := predict.Replicas(ctx, fitted, inputs, sets[0].D, r.Method.SamplesOf(r.Experiments[0].Samples))
	if err != nil {
		return nil, fmt.Errorf("predicting: %w", err)
	}
	var all []Prediction
	for of := range slices.Chunk(draws, members) {
		all = append(all, OfDraws(of...))
	}
	return all, nil
}

// fitProcess trains a Gaussian process on the features of a network together with it.
func (r Regressions) fitProcess(ctx context.Context, backend compute.Backend, run train.Regression, sets []train.Set, inputs [][]float64) ([]Prediction, error) {
	task := Task{Kind: Regression, Inputs: sets[0].D, Examples: sets[0].N(), Seeds: run.Seeds}
	if task.Inputs == 1 {
		task.Kind = FewInputs
	}
	task.Features = func() ([][]float64, int, error) {
		untrained, err := nets.NewRegression(backend, WithHead(run.Network, baselines.Headless{}), run.Seeds, true, dtypes.Float32)
		if err != nil {
			return nil, 0, err
		}
		x := make([][]float64, len(sets))
		for i, set := range sets {
			x[i] = set.X
		}
		features, width, err := predict.Features(ctx, untrained, untrained.Network, x, sets[0].D)
		if err != nil {
			return nil, 0, fmt.Errorf("features of the untrained network: %w", err)
		}
		return features, width, nil
	}
	head, err := r.Method.Process.Head(task)
	if err != nil {
		return nil, err
	}
	run.Network = WithHead(run.Network, head.Layers)
	fitted, err := run.FitReplicas(ctx, backend, sets)
	if err != nil {
		return nil, err
	}
	noise, err := fitted.NoiseVariances()
	if err != nil {
		return nil, err
	}
	var failed baselines.FailedReplicas
	if err := head.Finish(fitted.Store, noise...); err != nil && !errors.As(err, &failed) {
		return nil, err
	}
	each, err := predict.Gaussian(ctx, fitted, inputs, sets[0].D)
	if err != nil {
		return nil, fmt.Errorf("predicting: %w", err)
	}
	all := make([]Prediction, len(each))
	for i, m := range each {
		all[i] = ofMarginals(m)
		all[i].Failed = failed[i]
	}
	return all, nil
}
