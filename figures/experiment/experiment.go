// Package experiment carries out experiments. An Experiment is a task, a method, a recipe, a split and a seed, all of
// them plain values that say everything the numbers depend on. An Engine checks experiments, trains, predicts, keeps
// the predictions and measures what is kept:
//
//	task := experiment.Task{
//		Name: "my sequences", Data: experiment.Arrays{Train: train, Sets: tests}, Network: nets.Func{Build: transformer},
//		Likelihood: likelihood.Categorical{Classes: 3}, Metrics: []experiment.Metric{experiment.Classification},
//	}
//	list, err := task.Experiments(experiment.Adam(60, 64, 3e-3), 25, experiment.Method{Name: "density", Layers: dul.Density{InitStd: 0.01}})
//	results, err := experiment.Engine{Store: &experiment.Store{Folder: "runs"}}.Run(ctx, list...)
//
// Packages figures/uci, figures/toy and figures/cifar have the data and the recipes of the paper as such values.
package experiment

import (
	"context"
	"fmt"
	"slices"

	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/train"
)

// An Experiment is one method, trained once, on one split of a task, with one seed. Nothing is left to a default
// elsewhere: two experiments with equal values give equal numbers.
type Experiment struct {
	Task   Task
	Method Method
	Recipe Recipe
	Split  int    // the number of the split, from 0
	Seed   uint64 // every random choice is made from it
	// Preset names the function that made the experiment, such as "uci.Paper". It is shown, and is no part of the
	// identity.
	Preset string `experiment:"-"`
}

// A Task is what to predict: the data, the network, and what the network's outputs mean.
type Task struct {
	// Name is the heading of the task's rows. It is shown, and is no part of the identity.
	Name       string `experiment:"-"`
	Data       Source
	Network    nets.Architecture
	Likelihood likelihood.Likelihood
	// Metrics are computed from the predictions, and are no part of the identity. Run computes those that a stored result
	// lacks from its kept predictions, without training.
	Metrics []Metric `experiment:"-"`
	// After, if not nil, asks the trained networks for more than their predictions. It is no part of the identity. Networks
	// are gone after a run, so that a stored result without it is an error.
	After After `experiment:"-"`
	// Decision, if not nil, chooses what to train on, and trains again and again.
	Decision Decision
}

// An After asks the trained networks of an experiment, its members. The numbers are kept with the predictions, are among
// the metrics and must be finite. each has numbers about the examples of sets, [N], by the name of the set and their own;
// they are kept as Prediction.Extra. An After must not draw from the networks' noise if Recipe.SharedNoise is set.
type After func(ctx context.Context, members []*nets.Model, d Data) (numbers map[string]float64, each map[string]map[string][]float64, err error)

// A Source gives the data of each split. Its fields are its identity, so that identities can be compared without
// reading data: a published data set has its name and a checksum, other data have a digest (see Digest).
type Source interface {
	// Splits is the number of splits.
	Splits() int
	// Load reads a split, numbered from 0. The same split has the same data whenever it is loaded.
	Load(ctx context.Context, split int) (Data, error)
}

// Scaled is a Source of a regression that knows how large the error of a useless prediction is.
type Scaled interface {
	Source
	// MeanError is the root mean squared error on the test part of predicting the mean of the training targets, in the
	// unit of the metric "rmse"; +Inf if it is not known.
	MeanError(split int) float64
}

// Data are the data of one split.
type Data struct {
	Train train.Dataset
	// HeldOut are examples that are not trained on, by which early stopping chooses an epoch. They may be empty.
	HeldOut train.Dataset
	// Sets are predicted, in this order.
	Sets []Set
	// A target t of the network stands for t Unit + Zero in the data's own units. A Unit of 0 means 1.
	Unit, Zero float64
}

// A Set is named examples to predict. Without Targets and Labels it can be predicted, but not compared with answers.
type Set struct {
	// Name is "test", or the prefix of the set's metrics, such as "svhn".
	Name string
	train.Dataset
}

// A Method is a way to get uncertain predictions.
type Method struct {
	// Name is the heading of the method's columns. It is shown, and is no part of the identity.
	Name   string `experiment:"-"`
	Layers nets.Layers
	// Members is the number of networks whose mixture is the prediction, each with a seed of its own; 0 is a single
	// network.
	Members int
	// Process, if not nil, is a Gaussian process that replaces the network's last layer.
	Process Process
	// Sampler, if not nil, goes on from the trained networks, and predicts by what it draws.
	Sampler Sampler
}

// A Sampler draws networks from their posterior distribution, such as HMC.
type Sampler interface {
	// Sample returns the prediction of each set of the data, in their order, by networks that are drawn in chains which
	// begin at the trained members. The numbers say how the chains went, and are kept as those of an After. The seed fixes
	// all draws. progress hears which part is done, from 0 to 1.
	Sample(ctx context.Context, members []*nets.Model, d Data, seed uint64, progress func(done float64, note string)) ([]*Prediction, map[string]float64, error)
}

// members is the number of networks.
func (m Method) members() int { return max(m.Members, 1) }

// String says which experiment it is.
func (e Experiment) String() string {
	s := fmt.Sprintf("%s on %s, split %d, seed %d", e.Method.Name, e.Task.Name, e.Split, e.Seed)
	if e.Preset != "" {
		s += " (" + e.Preset + ")"
	}
	return s
}

// networkSeed is the seed of a member's network.
func (e Experiment) networkSeed(member int) uint64 {
	if e.Recipe.SeedWithoutSplit {
		return nets.SeedOf(e.Seed, 0, member)
	}
	return nets.SeedOf(e.Seed, e.Split, member)
}

// A Preset makes the experiment of a method on data by known settings, such as the settings of the paper's text. It also
// fills in what the method's layers leave open. Split and Seed are 0.
type Preset func(data Source, m Method) (Experiment, error)

// Experiments are a list of experiments.
type Experiments []Experiment

// Experiments lists the experiments of methods on the task by a recipe, each on every split and with the recipe adapted to
// its layers; see Recipe.For. The seed is the number of the split.
func (t Task) Experiments(recipe Recipe, samples int, methods ...Method) (Experiments, error) {
	adapted := func(_ Source, m Method) (Experiment, error) {
		r, err := recipe.For(m, t.Likelihood, samples)
		return Experiment{Task: t, Method: m, Recipe: r}, err
	}
	return Cross(adapted, []Source{t.Data}, methods...)
}

// Cross lists the experiments of all methods on all data, each on every split. The seed is the number of the split, so
// that the runs of one cell of a table have independent initial values too. Data that say that they cannot be, such as a
// set that there is not, are an error.
func Cross(preset Preset, data []Source, methods ...Method) (Experiments, error) {
	var all Experiments
	for _, source := range data {
		if source == nil {
			return nil, fmt.Errorf("experiment: %w", checkSource(nil))
		}
		for _, m := range methods {
			e, err := preset(source, m)
			if err != nil {
				return nil, err
			}
			if err := checkSource(e.Task.Data); err != nil { // not of the source, which a preset may complete
				return nil, fmt.Errorf("experiment: %w", err)
			}
			for split := range source.Splits() {
				e.Split, e.Seed = split, uint64(split)
				all = append(all, e)
			}
		}
	}
	return all, nil
}

// OnSplits returns the experiments on the splits with these numbers. A number that no experiment has selects nothing.
func (l Experiments) OnSplits(numbers ...int) Experiments {
	return slices.DeleteFunc(slices.Clone(l), func(e Experiment) bool { return !slices.Contains(numbers, e.Split) })
}

// Change returns a copy of the list in which every experiment was changed. Each gets its own Recipe.Groups and
// PretrainGroups, so that changing one of them changes no other experiment. Other lists and pointers are shared: replace
// them, but leave their entries as they are.
func (l Experiments) Change(change func(e *Experiment)) Experiments {
	changed := slices.Clone(l)
	for i := range changed {
		r := &changed[i].Recipe
		r.Groups, r.PretrainGroups = slices.Clone(r.Groups), slices.Clone(r.PretrainGroups)
		change(&changed[i])
	}
	return changed
}
