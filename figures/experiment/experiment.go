// Package experiment carries out experiments. An Experiment is a task, a method, a recipe, a split and a seed: plain values,
// on which alone the numbers depend. An Engine checks, trains, predicts, keeps the predictions and measures them:
//
//	task := experiment.Task{
//		Name: "my sequences", Data: experiment.Arrays{Train: train, Sets: tests}, Network: nets.Func{Build: transformer},
//		Likelihood: likelihood.Categorical{Classes: 3}, Metrics: []experiment.Metric{experiment.Classification},
//	}
//	list, err := task.Experiments(experiment.Adam(60, 64, 3e-3), 25, experiment.Method{Name: "density", Layers: dul.Density{InitStd: 0.01}})
//	results, err := experiment.Engine{Store: &experiment.Store{Folder: "runs"}}.Run(ctx, list...)
package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/checkpoint"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
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

// A Task has the data, the network, and the likelihood, which says what the network's outputs mean.
type Task struct {
	// Name is the heading of the task's rows. It is shown, and is no part of the identity.
	Name       string `experiment:"-"`
	Data       Source
	Network    nets.Architecture
	Likelihood likelihood.Likelihood
	// Metrics are computed from the predictions, and are no part of the identity. Run computes those that a stored result
	// lacks from its kept predictions, without training.
	Metrics []Metric `experiment:"-"`
	// AfterTraining, if not nil, measures the trained networks, which are the members of an ensemble or one. metrics are kept
	// with the predictions (Predictions.Metrics). perExample[set][name] has a number for each example of a set, [N], kept as
	// Prediction.PerExample; other sets and lengths are errors. It must not draw from the networks' noise if Recipe.SharedNoise is set. Only the name of a
	// function of your own is part of the identity: a stored result keeps its numbers. A stored result without them is an
	// error, since its networks are gone.
	AfterTraining func(ctx context.Context, members []*nets.Model, d Data) (metrics map[string]float64, perExample map[string]map[string][]float64, err error) `experiment:"-"`
}

// A Source gives the data of each split. Its fields are its identity, so that identities can be compared without
// reading data: a published data set has its name and a checksum, other data have a digest (see Digest). It may have the methods
// TestTrain and MeanError of Table, too, by which tests are corrected, and runs without use count as diverged.
type Source interface {
	// Splits is the number of splits.
	Splits() int
	// Load reads a split, numbered from 0. The same split has the same data whenever it is loaded.
	Load(ctx context.Context, split int) (Data, error)
}

// Data are the data of one split.
type Data struct {
	Train train.Dataset
	// HeldOut are examples that are not trained on, by which early stopping chooses an epoch. They may be empty.
	HeldOut train.Dataset
	// Sets are predicted, in this order.
	Sets []Set
	// Inputs, if not nil, is how the Source has standardised the inputs. Files of trained networks have it; see package trained.
	Inputs *datasets.Scaler
	// Columns, if not nil, are the columns of a table before they became inputs. Files of trained networks have them.
	Columns datasets.Columns
	// A target t of the network stands for t Unit + Zero in the data's own units. A Unit of 0 means 1.
	Unit, Zero float64

	noUnit     bool                  // whether the source gave none
	likelihood likelihood.Likelihood // that of the task, rescaled for this split
	by         *job                  // what carries out a Program; see FitOne
}

// A Set is named examples to predict. Without Targets and Labels it can be predicted, but not compared with answers.
type Set struct {
	// Name is "test", or the prefix of the set's metrics, such as "svhn".
	Name string
	train.Dataset
}

// A Method is a way to get uncertain predictions.
type Method struct {
	// Key is what tables, files and flags call the method, such as "density"; see ID. It is no part of the identity.
	Key string `experiment:"-"`
	// Name is the heading of the method's columns. It is shown, and is no part of the identity.
	Name string `experiment:"-"`
	// Layers are the family of all layers. Of a nets.Process, such as baselines.SNGP, the last one is a Gaussian process.
	Layers nets.Layers
	// Members is the number of networks whose mixture is the prediction, each with its own seed: at least 2, or 0 for a
	// single network.
	Members int
	// Program, if not nil, carries out the experiment instead of the engine; Task.AfterTraining must then be nil.
	Program Program `experiment:"Sampler"`
}

// A Recipe says how networks are trained and how predictions are drawn. A zero is taken literally, except in PredictBatch
// and where train.Settings says so.
type Recipe struct {
	train.Settings `experiment:"+"`

	// EarlyStopping keeps the best of at most a hundred epochs, by the negative log-likelihood of Data.HeldOut.
	EarlyStopping bool

	// Samples is the number of draws from each network. It is 1 for a network without noise.
	Samples int
	// PredictBatch is how many examples are predicted at once. 0 means 4096 at most, and for images 128 on the pure Go backend,
	// and 500 on any other; a data set of this module is predicted as a whole, as it was for the stored results. Noise is drawn
	// batch by batch, so that other batches have other draws.
	PredictBatch int
	// SharedNoise draws the noise of all predicted sets from the stream that training left, one set after the other.
	// Which sets there are, and their order, then changes the draws. Without it each set has a stream of its own, made
	// from the seed and the set's name.
	SharedNoise bool
	// Coherent makes each draw one function of the input, in all sets; see predict.Options.Coherent.
	Coherent bool
	// SeedWithoutSplit starts networks from Seed alone. Without it networks of different splits have different seeds,
	// also where Seed is equal.
	SeedWithoutSplit bool
}

// A Metric measures predictions. It returns numbers by their names, such as "rmse". For another set than "test"
// the names begin with the set's name, as in "shifted_rmse" (see SetMetric). It is an error if a Metric changes the predictions.
type Metric func(p *Predictions) (map[string]float64, error)

// Predictions are the predictions of one experiment on all its sets: everything that a Metric needs.
type Predictions struct {
	Experiment string       `json:"experiment"` // the experiment's identity
	Split      int          `json:"split"`      // the split of the data
	Sets       []Prediction `json:"-"`
	// Diverged says that training or prediction gave numbers that are not finite. Sets may then be missing.
	Diverged bool `json:"diverged,omitempty"`
	// Reason says at which step, or at which row of which set.
	Reason string `json:"reason,omitempty"`
	// A target t stands for t Unit + Zero in the data's own units.
	Unit float64 `json:"unit"`
	Zero float64 `json:"zero"`
	// Metrics are from Task.AfterTraining or a Program: they need more than the predictions.
	Metrics map[string]float64 `json:"inspected"`

	experiment *Experiment // nil where it is not known
	partial    bool        // see predictionsHead
}

// A Prediction is the prediction of one set, in the network's units, with the answers where the set has some.
type Prediction struct {
	Set     string
	Targets []float64
	Labels  []int
	// Prediction has the draws: a mixture of Gaussians, the parameters of another distribution, class probabilities, or the
	// outputs of the networks, whichever the likelihood says of its outputs. See predict.Prediction.
	predict.Prediction
	// PerExample are the numbers of Task.AfterTraining, by their names, [N] each.
	PerExample map[string][]float64
	// LogLikelihood has the LogDensities, [N], of a likelihood that has only an NLL: it needs the model, which is not kept.
	LogLikelihood []float64
}

// ErrNotFinite is wrapped by the error for a metric that is NaN or infinite.
var ErrNotFinite = errors.New("the metric is not finite")

// notFinite are the metrics that are infinite or NaN.
func notFinite(metrics map[string]float64) map[string]float64 {
	all := maps.Clone(metrics)
	maps.DeleteFunc(all, func(_ string, v float64) bool { return finite(v) })
	return all
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// of tells the predictions which experiment made them, and with it their likelihood and data.
func (p *Predictions) of(e Experiment) {
	p.experiment = &e
	l, err := likelihood.Rescaled(e.Task.Likelihood, cmp.Or(p.Unit, 1), p.Zero)
	if err != nil {
		l = e.Task.Likelihood // which was refused before training
	}
	for i := range p.Sets {
		s := &p.Sets[i]
		s.Likelihood, s.Targets, s.Labels = l, slices.Clone(s.Targets), slices.Clone(s.Labels) // experiments share their data
	}
}

// IsProcess says whether the networks' last layer is a Gaussian process.
func (m Method) IsProcess() bool {
	_, is := m.Layers.(nets.Process)
	return is
}

// members is the number of networks.
func (m Method) members() int { return max(m.Members, 1) }

// ID is the Key, or of a method without one its Name.
func (m Method) ID() string { return cmp.Or(m.Key, m.Name) }

// Equal says whether two methods have one ID, whatever their settings.
func (m Method) Equal(other Method) bool { return m.ID() == other.ID() }

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

// Model returns the model of a member with trained parameters, as checkpoint.ReadTensors reads them, and with the seed that the engine
// gives it. The likelihood is the task's, for targets in the data's own units.
func (e Experiment) Model(backend compute.Backend, member int, trained map[string]*tensors.Tensor) (*nets.Model, error) {
	network, err := e.Task.Network.Over(e.Method.Layers)
	if err != nil {
		return nil, err
	}
	m, err := nets.New(backend, network, e.Task.Likelihood, e.networkSeed(member))
	if err == nil {
		err = checkpoint.SetTensors(m.Store, trained)
	}
	return m, err
}

// wrap names the experiment that an error is about; nil for none.
func (e Experiment) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("experiment: %v: %w", e, err)
}

func isClassification(l likelihood.Likelihood) bool {
	_, is := l.(likelihood.Classification)
	return is
}

// testSet is the name of the set whose metrics have no prefix.
const testSet = "test"

// A Preset makes the experiment of a method on data by known settings, such as the settings of the paper's text. It also
// fills in what the method's layers leave open. Split and Seed are 0.
type Preset func(data Source, m Method) (Experiment, error)

// Experiments are a list of experiments.
type Experiments []Experiment

// OnSplits returns the experiments on the splits with these numbers. A number that no experiment has selects nothing.
func (l Experiments) OnSplits(numbers ...int) Experiments {
	return slices.DeleteFunc(slices.Clone(l), func(e Experiment) bool { return !slices.Contains(numbers, e.Split) })
}

// Distinct returns the experiments in their order, each once.
func (l Experiments) Distinct() (distinct Experiments) {
	seen := map[string]bool{}
	for i, id := range l.IDs() {
		if !seen[id] {
			seen[id] = true
			distinct = append(distinct, l[i])
		}
	}
	return distinct
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

// An errorList collects what is wrong, so that all of it is said at once.
type errorList []error

// add notes an error; nil is none.
func (l *errorList) add(err error) { *l = append(*l, err) }

// need notes an error, unless ok.
func (l *errorList) need(ok bool, format string, args ...any) {
	if !ok {
		l.add(fmt.Errorf(format, args...))
	}
}

// err is all that is wrong as one error; nil if nothing is.
func (l errorList) err() error { return errors.Join(l...) }

// attempt calls f, and turns a panic into an error.
func attempt(f func() error) (err error) {
	defer recovered(&err)
	return f()
}

// recovered turns a panic into an error: GoMLX reports what is wrong with a graph by panicking. A panic of the Go
// runtime is a mistake in a program, so its error says where.
func recovered(err *error) {
	switch problem := recover().(type) {
	case nil:
	case runtime.Error:
		*err = fmt.Errorf("%w, at %s", problem, panicked())
	case error:
		*err = problem
	default:
		*err = fmt.Errorf("%v", problem)
	}
}

// panicked is the place of the code that panicked, for a deferred function of a deferred one.
func panicked() string {
	for skip := 2; ; skip++ {
		place, file, line, ok := runtime.Caller(skip)
		if !ok || !strings.HasPrefix(runtime.FuncForPC(place).Name(), "runtime.") {
			return fmt.Sprintf("%s:%d", file, line)
		}
	}
}

// Adam is a plain recipe for networks of your own: Adam for all parameters, with a learning rate that falls to 0 along
// half a cosine. Recipe.For adapts it to a method.
func Adam(epochs, batch int, rate float64) Recipe {
	return Recipe{Samples: 1, Settings: train.Settings{Epochs: epochs, BatchSize: batch, Schedule: train.Cosine{Start: rate},
		Groups: []train.Group{{Roles: train.AllRoles(), Optimizer: train.Adam{}, Rate: 1}}}}
}

// For returns the recipe adapted to a method. If predictions of the method differ from draw to draw, Samples becomes the
// given number, and else 1. If the method has energy models, zeros of their settings are filled in. LogLikelihoodScale
// becomes 1, as in the paper, and PretrainEpochs a tenth of Epochs, at least 1. PretrainGroups becomes the first group with
// the role params.Generative, for this role alone; without such a group it is an error. Without energy models their
// settings become zero.
func (r Recipe) For(m Method, l likelihood.Likelihood, samples int) (Recipe, error) {
	t, err := MethodTraits(m, l)
	if err != nil {
		return r, err
	}
	if r.Samples = 1; t.Noise {
		r.Samples = samples
	}
	if !t.Energies {
		r.LogLikelihoodScale, r.WeightEnergies, r.PretrainEpochs, r.PretrainGroups = 0, false, 0, nil
		return r, nil
	}
	r.LogLikelihoodScale = cmp.Or(r.LogLikelihoodScale, 1)
	r.PretrainEpochs = cmp.Or(r.PretrainEpochs, max(1, r.Epochs/10))
	if r.PretrainGroups != nil {
		return r, nil
	}
	i := slices.IndexFunc(r.Groups, func(g train.Group) bool { return slices.Contains(g.Roles, params.Generative) })
	if i < 0 {
		return r, fmt.Errorf("experiment: %s has energy models, and no group of the recipe has the role %q", m.Name, params.Generative)
	}
	alone := r.Groups[i]
	alone.Roles = []params.Role{params.Generative}
	r.PretrainGroups = []train.Group{alone}
	return r, nil
}

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
// that the runs of one cell of a table have independent initial values too. Data whose Check fails, such as an unknown data
// set, are an error.
func Cross(preset Preset, data []Source, methods ...Method) (all Experiments, err error) {
	for _, source := range data {
		list, err := Grid{Preset: preset}.Experiments(source, methods...)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// A Grid says which experiments each cell of a table has: of a method on data, on splits and with seeds.
type Grid struct {
	Title  string // of its rows
	Preset Preset
	// List, if not nil, lists the experiments of a method on data. Preset, Splits, Seeds and Change are then not used. It is
	// for experiments that differ in more than split and seed, as in uci.Tuned.
	List func(data Source, m Method) (Experiments, error)

	Data    []Source // of its rows
	Methods []Method // that it is for; nil for all
	Splits  int      // the number of splits, from 0 on; 0 for all
	Seeds   int      // the number of seeds on each split, from 0 on; 0 for a single one, the number of the split
	// Change changes an experiment of the preset; nil for no change.
	Change func(e *Experiment)
}

// Of is Experiments for data and methods that the preset knows: it panics where Experiments returns an error.
func (g Grid) Of(data Source, methods ...Method) Experiments {
	all, err := g.Experiments(data, methods...)
	if err != nil {
		panic(err)
	}
	return all
}

// Experiments lists the experiments of methods on data, which need not be among the rows. A method that the grid is not for
// has none. It is an error if the preset or List returns one.
func (g Grid) Experiments(data Source, methods ...Method) (all Experiments, err error) {
	if data == nil {
		return nil, fmt.Errorf("experiment: %w", checkSource(nil))
	}
	for _, m := range methods {
		if g.Methods != nil && !slices.ContainsFunc(g.Methods, m.Equal) {
			continue
		}
		if g.List != nil {
			list, err := g.List(data, m)
			if err != nil {
				return nil, err
			}
			all = append(all, list...)
			continue
		}
		e, err := g.Preset(data, m)
		if err != nil {
			return nil, err
		}
		if g.Change != nil {
			g.Change(&e)
		}
		if err := checkSource(e.Task.Data); err != nil { // not of the source, which a preset may complete
			return nil, fmt.Errorf("experiment: %w", err)
		}
		splits, seeds := data.Splits(), max(g.Seeds, 1)
		if g.Splits > 0 {
			splits = min(splits, g.Splits)
		}
		all = slices.Grow(all, splits*seeds)
		for e.Split = range splits {
			for seed := range seeds {
				if e.Seed = uint64(seed); g.Seeds == 0 {
					e.Seed = uint64(e.Split)
				}
				all = append(all, e)
			}
		}
	}
	return all, nil
}
