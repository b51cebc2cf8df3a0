package experiment_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/datasets"
	"densityuncertainty/dul"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/uci"
)

// nothing returns nothing, as a layer that was forgotten to be written.
type nothing struct{}

func (nothing) Dense(*model.Scope, *graph.Node, int) *graph.Node { return nil }

// oneNumber is a likelihood whose NLL lost the examples.
type oneNumber struct{ likelihood.Gaussian }

func (oneNumber) NLL(s *model.Scope, outputs, targets *graph.Node) *graph.Node {
	return graph.ReshapeWithShape(graph.ReduceAllSum(graph.Sub(outputs, targets)), graph.Const(outputs.Graph(), [][]float32{{0}}).Shape())
}

// panicking is a source with a mistake.
type panicking struct{}

func (panicking) Splits() int { return 1 }

func (panicking) Load(context.Context, int) (experiment.Data, error) {
	var columns [][]float64
	return experiment.Data{Train: train.Dataset{Targets: columns[0]}}, nil
}

// line is n examples of one input, all with the same target.
func line(n int, target float64) train.Dataset {
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(i)
	}
	return train.Dataset{Inputs: nets.Rows(x, 1), Targets: slices.Repeat([]float64{target}, n)}
}

// noisyRows adds noise to each example that is its own, also where draws are to be coherent.
type noisyRows struct{ baselines.Deterministic }

func (noisyRows) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	y := params.Dense(s, x, units)
	return graph.Add(y, stochastic.Draw(s, y, stochastic.Gaussian(), y.Shape().Dim(-2), units))
}

// randomStart starts elsewhere each time.
type randomStart struct{}

func (randomStart) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	return ops.Affine(x, params.New(s, x, "weights", params.Weight, params.Constant(rand.Float64()), x.Shape().Dim(-1), units), params.Bias(s, x, units))
}

func (randomStart) Rate(int, int) float64 { return rand.Float64() }

// unnoted is a network that builds its layers by themselves.
type unnoted struct{ layers nets.Layers }

func (unnoted) Over(layers nets.Layers) (nets.Network, error) { return unnoted{layers}, nil }

func (u unnoted) Apply(s *model.Scope, x *graph.Node, outputs int) *graph.Node {
	return u.layers.Dense(s.In("output"), x, outputs)
}

// former is a likelihood with the method Correct, which classifications had in earlier versions.
type former struct{ likelihood.Gaussian }

func (former) Correct(outputs, _ *graph.Node) *graph.Node { return outputs }

// What cannot be is an error that names it, before anything is trained.
func TestRefused(t *testing.T) {
	none, ctx := baselines.Deterministic{}, context.Background()
	density := small(dul.Density{})
	density.Recipe = must.Get(density.Recipe.For(density.Method, density.Task.Likelihood, 3))(t)
	labels := smallTable("labels")
	labels.Y[5] = 0.5
	for _, c := range []struct {
		name   string
		from   experiment.Experiment
		change func(e *experiment.Experiment)
		want   string
	}{
		{"no data", small(none), func(e *experiment.Experiment) { e.Task.Data = nil }, "Task.Data is nil"},
		{"no layers", small(nil), func(e *experiment.Experiment) {}, "Method has no Layers"},
		{"a split too many", small(none), func(e *experiment.Experiment) { e.Split = 3 }, "Split is 3; the data have 3 splits"},
		{"layers in the network", small(none), func(e *experiment.Experiment) { e.Task.Network = nets.MLP{Layers: none} }, "Task.Network: the network has Layers"},
		{"no epochs", small(none), func(e *experiment.Experiment) { e.Recipe.Epochs = 0 }, "Recipe.Epochs is 0"},
		{"a group that trains nothing", small(none), func(e *experiment.Experiment) {
			e.Recipe.Groups = append(e.Recipe.Groups, train.Group{Roles: []params.Role{params.Variational}, Optimizer: train.Adam{}, Rate: 1})
		}, "Recipe.Groups[1] contains no parameter"},
		{"a parameter that nothing trains", small(none), func(e *experiment.Experiment) { e.Recipe.Groups[0].Except = []string{"bias"} },
			"parameter network/hidden_0/bias, of the role weight, is in no group"},
		{"pretraining without energies", small(none), func(e *experiment.Experiment) {
			e.Recipe.PretrainEpochs, e.Recipe.PretrainGroups, e.Recipe.LogLikelihoodScale = 1, e.Recipe.Groups, 1
		}, "no layer of the network has an energy model"},
		{"samples without noise", small(none), func(e *experiment.Experiment) { e.Recipe.Samples = 10 }, "all draws would be equal"},
		{"augmentation of a table", small(none), func(e *experiment.Experiment) { e.Recipe.Augmentation = datasets.Augmentation{Flip: true} }, "is for images"},
		{"early stopping without held-out data", small(none), func(e *experiment.Experiment) { e.Recipe.EarlyStopping = true }, "the data have none"},
		{"an ensemble of one", small(none), func(e *experiment.Experiment) { e.Method.Members = 1 }, "Method.Members is 1; leave it out"},
		{"more inducing points than examples", small(baselines.DUE{Inducing: 37}), func(e *experiment.Experiment) {}, "need 37 training examples, for their inducing points, and there are 36"},
		{"equal targets", small(none), func(e *experiment.Experiment) {
			e.Task.Data = experiment.Arrays{Train: line(4, 1), Sets: []experiment.Set{{Name: "test", Dataset: line(2, 1)}}}
		}, "all 4 training targets of the split are 1"},
		{"equal labels", small(none), func(e *experiment.Experiment) {
			same := line(4, 1)
			same.Targets, same.Labels = nil, []int{1, 1, 1, 1}
			e.Task.Likelihood, e.Task.Metrics = likelihood.Categorical{Classes: 2}, nil
			e.Task.Data = experiment.Arrays{Train: same, Sets: []experiment.Set{{Name: "test", Dataset: same}}}
		}, "all 4 training labels of the split are 1"},
		{"a held-out part that leaves one row", small(none), func(e *experiment.Experiment) {
			ten := smallTable("ten")
			ten.N, ten.X, ten.Y = 10, ten.X[:20], ten.Y[:10]
			e.Task.Data = experiment.Table{Set: ten, HeldOut: 0.89}
		}, "with HeldOut 0.89 the training part of split 0 has 1 rows to train on and 8 to test"},
		{"no part to calibrate by", small(none), func(e *experiment.Experiment) {
			e.Task.Data = experiment.Table{Set: smallTable("mine"), Calibration: true}
		}, "Calibration without HeldOut"},
		{"noise without a unit", small(none), func(e *experiment.Experiment) { e.Task.Likelihood = likelihood.KnownNoise{Std: 1, Standardised: 1} }, "set one of them"},
		{"data that panic", small(none), func(e *experiment.Experiment) { e.Task.Data = panicking{} }, "index out of range [0] with length 0, at "},
		{"a network without the layers", density, func(e *experiment.Experiment) {
			e.Task.Network = nets.Func{Build: func(_ nets.Layers, s *model.Scope, x *graph.Node, outputs int) *graph.Node {
				return params.Dense(s.In("output"), x, outputs)
			}}
		}, "Task.Network has nothing of the Method's layers: build its layers by layers.Dense"},
		{"no inducing points", small(baselines.DUE{}), func(e *experiment.Experiment) {}, "0 inducing points"},
		{"a class that is no number", small(none), func(e *experiment.Experiment) {
			e.Task.Data, e.Task.Likelihood = experiment.Table{Set: labels, Classes: 9}, likelihood.Categorical{Classes: 9}
		}, "the label of example"},
		{"a classification of an earlier version", small(none), func(e *experiment.Experiment) { e.Task.Likelihood = former{} }, "replace it by LogProbabilities"},
		{"a layer that returns nothing", small(nothing{}), func(e *experiment.Experiment) {}, "layer /model/network/hidden_0 of type experiment_test.nothing, for inputs (Float32)[7, 2]: it returned nil"},
		{"a likelihood that loses the batch", small(none), func(e *experiment.Experiment) { e.Task.Likelihood = oneNumber{} }, "want one number for each example, [7 1]"},
		{"a process for another likelihood", small(baselines.SNGP{}), func(e *experiment.Experiment) { e.Task.Likelihood = likelihood.StudentT{Nu: 4} }, "is for likelihood.Gaussian or for classes, not for a likelihood.StudentT"},
		{"inputs of another shape", small(none), func(e *experiment.Experiment) {
			other := line(2, 1)
			other.Inputs = nets.Rows([]float64{1, 2, 3, 4}, 2)
			e.Task.Data = experiment.Arrays{Train: line(4, 1), Sets: []experiment.Set{{Name: "test", Dataset: other}}}
		}, "the test data: an input is nets.Floats of shape [2], where others are nets.Floats of shape [1]"},
		{"held-out inputs of another shape", small(none), func(e *experiment.Experiment) {
			other := line(2, 1)
			other.Inputs = nets.Rows([]float64{1, 2, 3, 4}, 2)
			e.Task.Data = experiment.Arrays{Train: line(4, 1), HeldOut: other, Sets: []experiment.Set{{Name: "test", Dataset: line(2, 1)}}}
		}, "the held-out data: an input is nets.Floats of shape [2]"},
		{"a scaler for other inputs", small(none), func(e *experiment.Experiment) {
			e.Task.Data = experiment.Arrays{Train: line(4, 1), Sets: []experiment.Set{{Name: "test", Dataset: line(2, 1)}}, Inputs: &datasets.Scaler{Mean: []float64{0, 0}, Std: []float64{1, 1}}}
		}, "the inputs of shape [1] have a Scaler or Columns for another number of inputs"},
		{"draws that are not coherent", small(noisyRows{}), func(e *experiment.Experiment) { e.Recipe.Coherent = true }, "the layer has no coherent draws"},
		{"coherent draws of a process", small(baselines.SNGP{}), func(e *experiment.Experiment) { e.Recipe.Coherent = true }, "nor for Gaussian processes"},
		{"coherent draws in a stream", small(none), func(e *experiment.Experiment) { e.Recipe.Coherent, e.Recipe.SharedNoise = true, true }, "leave SharedNoise out"},
		{"a layer that mixes the examples of a whole batch", small(ghost{}), func(e *experiment.Experiment) {}, "mixes the examples of a batch"},
		{"a random number in a network", small(none), func(e *experiment.Experiment) {
			e.Task.Network = nets.Func{Build: func(l nets.Layers, s *model.Scope, x *graph.Node, outputs int) *graph.Node {
				return l.Dense(s.In("output"), graph.MulScalar(x, rand.Float64()), outputs)
			}}
		}, "look for a random number or the order of a map in Task.Network"},
		{"a random number in a schedule", small(none), func(e *experiment.Experiment) { e.Recipe.Schedule = randomStart{} }, "its Schedule, Order or Augmentation answers otherwise each time"},
		{"a random number in an initial value", small(randomStart{}), func(e *experiment.Experiment) {}, "look for a random number"},
		{"energies that are not noted", density, func(e *experiment.Experiment) { e.Task.Network = unnoted{} }, "build layers by nets.Positions"},
		{"a function that mixes images", small(none), func(e *experiment.Experiment) {
			images := train.Dataset{Labels: []int{0, 1, 0, 1}, Inputs: nets.Pixels{
				Bytes: []byte{1, 2, 3, 4, 50, 60, 70, 80, 9, 9, 9, 9, 200, 100, 0, 7}, Height: 2, Width: 2, Standardization: nets.Standardization{Mean: []float64{0.5}, Std: []float64{0.2}},
			}}
			e.Task.Data, e.Task.Likelihood, e.Task.Metrics = experiment.Arrays{Train: images, Sets: []experiment.Set{{Name: "test", Dataset: images}}}, likelihood.Categorical{Classes: 2}, nil
			e.Task.Network = nets.Func{Name: "mixed", Build: func(layers nets.Layers, s *model.Scope, x *graph.Node, outputs int) *graph.Node {
				x = graph.Sub(x, graph.ReduceAndKeep(x, graph.ReduceMean, 1)) // [channels, batch, height, width]
				return layers.Dense(s.In("output"), graph.Reshape(x, x.Shape().Dim(1), 4), outputs)
			}}
		}, "Task.Network mixes the examples of a batch"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := c.from
			e.Recipe.Groups = append([]train.Group(nil), e.Recipe.Groups...)
			c.change(&e)
			must.GetErr(experiment.Run(ctx, e))(t, c.want)
		})
	}
}

// fewer is a source that counts wrong.
type fewer struct{ experiment.Table }

func (fewer) Check() error { return nil }

func (fewer) Splits() int { return -1 }

// Data that cannot be are not an empty list.
func TestCrossRefuses(t *testing.T) {
	for name, source := range map[string]experiment.Source{"Task.Data is nil": nil, `no UCI data set "yact"`: uci.Data{Name: "yact"}, "has -1 splits": fewer{}} {
		must.GetErr(experiment.Cross(uci.Paper, []experiment.Source{source}, methods.Density))(t, name)
	}
}

// All that is wrong with all experiments is said at once.
func TestAllProblemsAreNamed(t *testing.T) {
	a, b := small(baselines.Deterministic{}), small(baselines.Deterministic{})
	a.Recipe.Epochs, a.Recipe.BatchSize, b.Split = 0, -1, 9
	_, err := experiment.Run(context.Background(), a, b)
	must.Err(t, err, "Recipe.Epochs is 0", "Recipe: BatchSize is -1", "Split is 9")
	must.GetErr(experiment.Run(context.Background()))(t) // no experiments were carried out without an error
}
