package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment"
)

// A fit trains the networks of some experiments and predicts by them: all networks of several experiments as replicas
// of one graph, or the members of a single experiment one after the other.
type fit struct {
	*run
	unit
	data    []Data // of each experiment
	backend compute.Backend
	info    environment.Info
	folder  string // for checkpoints; "" keeps none

	models      []*nets.Model // one with replicas, or one for each member
	keepOutputs bool          // whether the head of a Gaussian process asks for it
	diverged    []string      // of each experiment, at which step and why; "" if it did not
	round       int           // of a Decision
	speed       float64       // training examples a second, of all replicas together; 0 while it is not known
	failed      []error       // of each experiment, why its trained networks give no result
}

// first is an experiment that tells all but split and seed.
func (f *fit) first() Experiment { return f.list[0].Experiment }

func (f *fit) members() int { return f.first().Method.members() }

// forEachNetwork is a value of each experiment's data, once for each of its networks.
func forEachNetwork[T any](f *fit, value func(d Data) T) []T {
	var all []T
	for _, d := range f.data {
		for range f.members() {
			all = append(all, value(d))
		}
	}
	return all
}

// seeds are the seeds of all networks. The members of an ensemble follow each other.
func (f *fit) seeds() []uint64 {
	var all []uint64
	for _, e := range f.list {
		for member := range f.members() {
			all = append(all, e.networkSeed(f.round*f.members()+member))
		}
	}
	return all
}

// fits divides a unit into what can be trained together: replicas of one graph must have epochs of the same number of
// batches, and where a Gaussian process counts them, of examples, and the same sets. Experiments whose data cannot be
// loaded fail.
func (r *run) fits(ctx context.Context, backend compute.Backend, u unit) []*fit {
	var all []*fit
	alike := map[string]*fit{}
	for _, e := range u.list {
		d, err := e.load(ctx)
		if err != nil {
			r.fail(ctx, e, e.problem(err))
			continue
		}
		length := (d.Train.Len()-1)/e.Recipe.BatchSize + 1 // rounded up, for any BatchSize
		if e.Method.Process != nil && e.Method.Process.CountsExamples() {
			length = d.Train.Len()
		}
		key := fmt.Sprint(length)
		for _, set := range d.Sets {
			key += fmt.Sprintf(" %q %t %t", set.Name, set.Targets != nil, set.Labels != nil)
		}
		f := alike[key]
		if f == nil || !u.replicas {
			f = &fit{run: r, unit: unit{group: u.group}, backend: backend, info: environment.Describe(backend)}
			alike[key], all = f, append(all, f)
		}
		f.list, f.data = append(f.list, e), append(f.data, d)
	}
	return all
}

// carryOut trains, predicts and measures. Each experiment has a result, or an error that says why it has none.
func (f *fit) carryOut(ctx context.Context) ([]Result, []error) {
	began := time.Now()
	all, err := f.trainAndPredict(ctx)
	lines, failures := make([]Result, len(f.list)), make([]error, len(f.list))
	for i, e := range f.list {
		if err != nil {
			failures[i] = err
			continue
		}
		lines[i] = Result{
			ID: e.id, Group: f.line.Group, Split: e.Split, Seed: e.Seed, Diverged: all[i].Diverged, Reason: all[i].Reason, predictions: all[i],
			Backend: f.info.Backend, Device: f.info.Device, Version: f.info.Version, Batched: len(f.list), ExamplesPerSecond: f.speed,
			WallSeconds: time.Since(began).Seconds() / float64(len(f.list)), Finished: time.Now().UTC().Truncate(time.Second),
		}
		failures[i] = f.measure(i, &lines[i])
	}
	return lines, failures
}

// trainAndPredict turns what GoMLX panics with into an error, too.
func (f *fit) trainAndPredict(ctx context.Context) (all []*Predictions, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("experiment: %v: %w", f.unit, err)
		}
	}()
	defer recovered(&err)
	if f.first().Task.Decision != nil {
		return f.decide(ctx)
	}
	if f.Store != nil {
		f.folder = f.Store.work(f.list)
		if err := os.MkdirAll(f.folder, 0o755); err != nil {
			return nil, fmt.Errorf("making the folder for work in progress: %w", err)
		}
	}
	if err := f.train(ctx); err != nil {
		return nil, fmt.Errorf("training: %w", err)
	}
	if err := f.keepNetworks(); err != nil {
		return nil, err
	}
	if all, err = f.predictions(ctx); err != nil {
		return nil, fmt.Errorf("predicting: %w", err)
	}
	return all, nil
}

// measure adds the metrics of experiment number i to its result, unless it diverged.
func (f *fit) measure(i int, line *Result) (err error) {
	e := f.list[i]
	switch {
	case line.Diverged:
		f.note(fmt.Sprintf("%v diverged, and has no metrics: %s", e, line.Reason))
		return nil
	case f.failed[i] != nil:
		return e.problem(f.failed[i])
	}
	line.Metrics, line.NotFinite, err = measure(e.Experiment, line.predictions, e.Task.Metrics)
	if len(line.NotFinite) > 0 {
		f.note(fmt.Sprintf("%v: left out of the result, as they are not finite: %s", e, strings.Join(line.NotFinite, ", ")))
	}
	return err
}

// train makes and trains the networks.
func (f *fit) train(ctx context.Context) error {
	f.diverged, f.failed = make([]string, len(f.list)), make([]error, len(f.list))
	seeds, sets := f.seeds(), forEachNetwork(f, func(d Data) train.Dataset { return d.Train })
	for i := 0; i < len(seeds) && f.diverged[0] == ""; i += f.together() {
		if err := f.trainModel(ctx, seeds[i:i+f.together()], sets[i:i+f.together()], i); err != nil {
			return err
		}
	}
	return nil
}

// together is how many networks are one model: all of them as its replicas, or a single one.
func (f *fit) together() int {
	if f.replicas {
		return len(f.list) * f.members()
	}
	return 1
}

// trainModel trains one model: all networks as its replicas, or one member.
func (f *fit) trainModel(ctx context.Context, seeds []uint64, sets []train.Dataset, member int) error {
	network, finish, err := f.network(ctx, seeds, sets)
	if err != nil {
		return err
	}
	m, err := f.newModel(network, f.first().Task.Likelihood, seeds)
	if err != nil {
		return err
	}
	models := len(f.list) * f.members() / f.together()
	rounds := 1
	if decision := f.first().Task.Decision; decision != nil {
		rounds = decision.Rounds()
	}
	trainer, err := f.trainer(m, f.round*models+member, rounds*models)
	if err != nil {
		return err
	}
	err = trainer.Fit(ctx, m, sets...)
	var diverged *train.DivergedError
	if err != nil && !errors.As(err, &diverged) {
		return err
	}
	f.models = append(f.models, m)
	if diverged != nil {
		for _, d := range diverged.Diverged {
			i := d.Replica / f.members()
			f.diverged[i] = cmp.Or(f.diverged[i], fmt.Sprintf("step %d of training: %s", d.Step, d.Reason))
		}
		if len(diverged.Diverged) == f.together() {
			return nil
		}
	}
	return f.finish(m, finish)
}

// A finisher does what a Gaussian process needs after training; see Head.Finish.
type finisher func(store *model.Store, noiseVariances ...float64) error

// finish does what a Gaussian process needs after training. Replicas whose process has no Cholesky factor predict
// nothing.
func (f *fit) finish(m *nets.Model, finish finisher) error {
	if finish == nil {
		return nil
	}
	var noise []float64
	if _, is := m.Likelihood.(likelihood.Gaussian); is {
		var err error
		if noise, err = m.NoiseVariances(); err != nil {
			return err
		}
	}
	err := finish(m.Store, noise...)
	var failed baselines.FailedReplicas
	if !errors.As(err, &failed) {
		return err
	}
	for replica, why := range failed {
		f.failed[replica/f.members()] = why
	}
	return nil
}

// trainer is the training of one of so many models.
func (f *fit) trainer(m *nets.Model, model, models int) (train.Trainer, error) {
	recipe := f.first().Recipe
	t := train.Trainer{Settings: recipe.Settings}
	if recipe.BFloat16 && f.info.PureGo() {
		return t, fmt.Errorf("Recipe.BFloat16 is set, which the pure Go backend has no use for; leave it out, or choose an accelerator (%s)", environment.ConfigVariable)
	}
	if f.images && m.Host == nil {
		t.StepsPerExecution = f.stepsPerExecution()
	}
	t.Progress = func(at train.Progress) {
		f.speed = at.ExamplesPerSecond
		if f.Progress == nil {
			return
		}
		what := "training"
		if at.Pretraining {
			what = "generative pretraining"
		}
		note := fmt.Sprintf("%s, epoch %d of %d, loss %.3g", what, min(at.Epoch+1, at.Epochs), at.Epochs, at.Losses.Total)
		if at.Remaining > time.Minute {
			note += fmt.Sprintf(", about %v to train", at.Remaining.Round(time.Second))
		}
		f.report(f.unit, (float64(model)+float64(at.Step)/float64(at.Steps))/float64(models), note)
	}
	t.Notes = func(text string) { f.note(fmt.Sprintf("%v: %s", f.unit, text)) }
	if f.folder != "" {
		t.Checkpoints = train.Checkpoints{Folder: filepath.Join(f.folder, fmt.Sprintf("model-%d", model)), Every: f.CheckpointEvery, Version: f.info.Version}
	}
	if recipe.EarlyStopping {
		t.EarlyStopping = f.earlyStopping()
	}
	return t, nil
}

// largeNetwork is the number of parameters from which on an accelerator is busy with a single step.
const largeNetwork = 1e7

// stepsPerExecution is how many training steps of a small network an accelerator computes without asking the host in
// between: about 4, and if possible a divisor of the whole batches of an epoch, so that there are no single ones left
// over, which need a graph of their own.
func (f *fit) stepsPerExecution() int {
	size := 0
	for _, p := range f.traits.Parameters {
		count := 1
		for _, n := range p.Shape {
			count *= n
		}
		size += count
	}
	if size > largeNetwork {
		return 0
	}
	batches := f.data[0].Train.Len() / f.first().Recipe.BatchSize
	for _, steps := range []int{4, 5, 3, 6, 7, 8, 2} {
		if batches%steps == 0 {
			return steps
		}
	}
	return 4
}

// scoredEpochs is how many epochs early stopping chooses from at most.
const scoredEpochs = 100

// earlyStopping scores networks by their negative log-likelihood of the held-out examples, or the loss of quantiles.
func (f *fit) earlyStopping() train.EarlyStopping {
	held := forEachNetwork(f, func(d Data) train.Dataset { return d.HeldOut })
	every := (f.first().Recipe.Epochs + scoredEpochs - 1) / scoredEpochs
	return train.EarlyStopping{Every: every, Score: func(ctx context.Context, m *nets.Model) ([]float64, error) {
		found, err := f.draw(ctx, m, held[:f.together()])
		if err != nil {
			return nil, fmt.Errorf("predicting held-out examples: %w", err)
		}
		scores := make([]float64, len(found))
		for i := range found {
			if scores[i] = math.NaN(); found[i].notFinite() != "" {
				continue
			}
			if scores[i], err = found[i].loss(); err != nil {
				return nil, err
			}
		}
		return scores, nil
	}}
}

func (f *fit) newModel(network nets.Network, l likelihood.Likelihood, seeds []uint64) (*nets.Model, error) {
	if f.replicas {
		return nets.NewReplicas(f.backend, network, l, seeds...)
	}
	return nets.New(f.backend, network, l, seeds[0])
}

// network builds the network, with a Gaussian process as its last layer if the method has one. finish, if not nil, is to
// be called after training.
func (f *fit) network(ctx context.Context, seeds []uint64, sets []train.Dataset) (nets.Network, finisher, error) {
	e := f.first()
	if e.Method.Process == nil {
		n, err := e.Task.Network.Over(e.Method.Layers)
		return n, nil, err
	}
	t := headTask(e, Data{Train: sets[0]}, seeds)
	t.Features = func() ([][]float64, int, error) {
		features, width, err := f.features(ctx, seeds, sets)
		if err != nil {
			err = fmt.Errorf("features of the untrained network: %w", err)
		}
		return features, width, err
	}
	head, err := e.Method.Process.Head(t)
	if err != nil {
		return nil, nil, err
	}
	f.keepOutputs = head.KeepOutputs && isClassification(e.Task.Likelihood)
	n, err := withHead(e.Task.Network, e.Method.Process, head.Layers)
	return n, head.Finish, err
}

// Inducing points start among the features of the first startImages training images, computed in batches of startBatch.
const startImages, startBatch = 1000, 100

// features are the features that each replica of the untrained network gives to its training inputs.
func (f *fit) features(ctx context.Context, seeds []uint64, sets []train.Dataset) (features [][]float64, width int, err error) {
	network, err := withHead(f.first().Task.Network, f.first().Method.Process, baselines.Headless{})
	if err != nil {
		return nil, 0, err
	}
	m, err := f.newModel(network, nil, seeds)
	if err != nil {
		return nil, 0, err
	}
	if !f.replicas {
		x, options := sets[0].Inputs, predict.Options{Samples: 1, Training: true}
		if _, images := x.(nets.Pixels); images {
			options.BatchSize = startBatch
			x = firstInputs(x, startImages)
		}
		found, err := predict.Sample(ctx, m, x, options)
		if err != nil {
			return nil, 0, err
		}
		return found.Outputs, found.Width, nil
	}
	found, err := predict.SampleReplicas(ctx, m, floatsOf(sets), predict.Options{Samples: 1})
	if err != nil {
		return nil, 0, err
	}
	for _, p := range found {
		features = append(features, p.Outputs[0])
	}
	return features, found[0].Width, nil
}

// floatsOf are the inputs of sets, which are no images.
func floatsOf(sets []train.Dataset) []nets.Floats {
	var all []nets.Floats
	for _, set := range sets {
		all = append(all, set.Inputs.(nets.Floats))
	}
	return all
}
