package experiment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/gomlx/compute"
	"gonum.org/v1/gonum/floats"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment"
)

// A fit trains the networks of some experiments and predicts by them: all networks of several experiments as replicas
// of one graph, or the members of a single experiment one after the other.
type fit struct {
	run     *run
	list    job
	backend compute.Backend
	info    environment.Info
	folder  string   // for checkpoints; "" keeps none
	kept    []string // the files of networks that were trained before, of each member; nil trains

	// Of FitOne, nil for an experiment of the engine's own.
	progress func(done float64, note string)
	each     func(m *nets.Model, at train.Progress)
	fitted   int         // how many trainings a Program has asked for
	fitting  atomic.Bool // whether one is running

	models []*nets.Model // one with replicas, or one for each member
	speed  float64       // training examples a second, of all replicas together; 0 while it is not known
}

// first is an experiment that tells all but split and seed.
func (f *fit) first() *planned { return f.list[0] }

// likelihood is that of the networks, whose targets may be standardised.
func (f *fit) likelihood() likelihood.Likelihood { return f.first().data.likelihood }

func (f *fit) members() int { return f.first().Method.members() }

// forEachNetwork lists a value for each network of each experiment. The members of an ensemble follow each other.
func forEachNetwork[T any](f *fit, value func(experiment, member int) T) []T {
	var all []T
	for i := range f.list {
		for member := range f.members() {
			all = append(all, value(i, member))
		}
	}
	return all
}

// train makes and trains the networks.
func (f *fit) train(ctx context.Context) error {
	if f.first().Recipe.BFloat16 && f.info.PureGo() {
		return fmt.Errorf("Recipe.BFloat16 is set, which the pure Go backend has no use for; leave it out, or choose an accelerator (%s)", environment.ConfigVariable)
	}
	seeds := forEachNetwork(f, func(i, member int) uint64 { return f.list[i].networkSeed(member) })
	sets := forEachNetwork(f, func(i, _ int) train.Dataset { return f.list[i].data.Train })
	for i := 0; i < len(seeds) && !f.first().predictions.Diverged; i += f.together() {
		if err := f.trainModel(ctx, seeds[i:i+f.together()], sets[i:i+f.together()], i); err != nil {
			return err
		}
	}
	return nil
}

// replicas says whether the networks are replicas of one graph. Those that were trained before are models of their own.
func (f *fit) replicas() bool { return f.first().group.replicas && f.kept == nil }

// together is how many networks are one model: all of them as its replicas, or a single one.
func (f *fit) together() int {
	if f.replicas() {
		return len(f.list) * f.members()
	}
	return 1
}

// trainModel trains one model: all networks as its replicas, or one member.
func (f *fit) trainModel(ctx context.Context, seeds []uint64, sets []train.Dataset, member int) error {
	e := f.first()
	network, err := e.Task.Network.Over(e.Method.Layers)
	if err != nil {
		return err
	}
	m, err := f.newModel(network, f.likelihood(), seeds)
	if err != nil {
		return err
	}
	err = f.trainer(ctx, m, member).Fit(ctx, m, sets...)
	var diverged *train.DivergedError
	var failed baselines.FailedReplicas
	hasDiverged, hasFailed := errors.As(err, &diverged), errors.As(err, &failed)
	if err != nil && !hasDiverged && !hasFailed {
		return err
	}
	f.models = append(f.models, m)
	if hasDiverged {
		for _, d := range diverged.Diverged {
			f.list[d.Replica/f.members()].predictions.diverge(fmt.Sprintf("step %d of training: %s", d.Step, d.Reason))
		}
	}
	for replica, why := range failed {
		e := f.list[replica/f.members()]
		e.unfinished = e.problem(why)
	}
	return nil
}

// trainer is the training of m, one of the models.
func (f *fit) trainer(ctx context.Context, m *nets.Model, model int) train.Trainer {
	recipe, models := f.first().Recipe, len(f.list)*f.members()/f.together()
	t := train.Trainer{Settings: recipe.Settings}
	t.Progress = func(at train.Progress) {
		f.speed = at.ExamplesPerSecond
		if f.each != nil {
			f.each(m, at)
		}
		if err := f.keepEpoch(ctx, m, model, at); err != nil {
			f.run.note(fmt.Sprintf("%v: the learning curve lacks epoch %d: %v", f.list, at.Epoch, err))
		}
		what := "training"
		if at.Pretraining {
			what = "generative pretraining"
		}
		note := fmt.Sprintf("%s, epoch %d of %d, loss %.3g", what, min(at.Epoch+1, at.Epochs), at.Epochs, at.Losses.Total)
		f.report(f.trainPart()*(float64(model)+float64(at.Step)/float64(at.Steps))/float64(models), note)
	}
	t.Notes = func(text string) { f.run.note(fmt.Sprintf("%v: %s", f.list, text)) }
	if f.folder != "" {
		t.Checkpoints = train.Checkpoints{Folder: filepath.Join(f.folder, fmt.Sprintf("model-%d", model)), Every: f.run.CheckpointEvery, Version: f.info.Version}
	}
	if recipe.EarlyStopping {
		t.KeepBest = train.KeepBest{Every: f.scoredEvery(), Score: func(ctx context.Context, m *nets.Model) ([]float64, error) {
			return f.heldOut(ctx, m, f.options())
		}}
	}
	return t
}

// trainPart is about which part of the work training is; predictions are the rest. A step of training takes about three times as
// long as a prediction of its examples.
func (f *fit) trainPart() float64 {
	e := f.first()
	trained := 3 * float64(e.data.Train.Len()*(e.Recipe.Epochs+e.Recipe.PretrainEpochs))
	return trained / (trained + float64(e.data.toPredict()*e.Recipe.Samples))
}

// keepEpoch adds an epoch, if a training has just finished one, to the file of each of its experiments.
func (f *fit) keepEpoch(ctx context.Context, m *nets.Model, model int, at train.Progress) error {
	if f.run.Curves == "" || at.Step*at.Epochs%at.Steps != 0 {
		return nil
	}
	var held []float64
	e := f.first()
	if epoch := at.Epoch - e.Recipe.PretrainEpochs; !at.Pretraining && e.data.HeldOut.Inputs != nil && !e.Method.IsProcess() && (epoch%f.scoredEvery() == 0 || epoch == e.Recipe.Epochs) {
		options := f.options()
		options.Seed = new(uint64)
		var err error
		if held, err = f.heldOut(ctx, m, options); err != nil && ctx.Err() == nil {
			return err
		}
	}
	for i, e := range f.list {
		point := train.Epoch{Model: model, Epoch: at.Epoch, Pretraining: at.Pretraining, Losses: at.Losses, HeldOut: math.NaN()}
		if n := len(held) / len(f.list); n > 0 { // of the experiment's networks in this model
			point.HeldOut = floats.Sum(held[i*n:(i+1)*n]) / float64(n)
		}
		if err := point.Append(filepath.Join(f.run.Curves, e.id+csvExtension)); err != nil {
			return err
		}
	}
	return nil
}

// report passes on how much is done.
func (f *fit) report(done float64, note string) {
	if f.progress != nil {
		f.progress(done, note)
		return
	}
	if f.run.Progress == nil {
		return
	}
	f.run.mu.Lock()
	defer f.run.mu.Unlock()
	for _, e := range f.list {
		f.run.finished(e, done)
	}
	f.run.reported = min(max(f.run.reported, f.run.done/f.run.cost), 1)
	f.run.Progress(f.run.reported, fmt.Sprintf("%v: %s", f.list, note))
}

// scoredEpochs is how many epochs early stopping chooses from at most.
const scoredEpochs = 100

// scoredEvery is after how many epochs networks are scored by held-out examples.
func (f *fit) scoredEvery() int { return (f.first().Recipe.Epochs + scoredEpochs - 1) / scoredEpochs }

// heldOut is the negative log-likelihood of the held-out examples by each network of a model, or the loss of quantiles; NaN where it
// is not finite.
func (f *fit) heldOut(ctx context.Context, m *nets.Model, options predict.Options) ([]float64, error) {
	held := forEachNetwork(f, func(i, _ int) train.Dataset { return f.list[i].data.HeldOut })
	found, err := predict.SampleReplicas(ctx, m, inputsOf(held[:f.together()]), options)
	if err != nil {
		return nil, fmt.Errorf("predicting held-out examples: %w", err)
	}
	scores := make([]float64, len(found))
	for i := range found {
		p, err := predictionOf(Set{Dataset: held[i]}, found[i])
		if scores[i] = math.NaN(); err == nil && p.notFinite() == "" {
			scores[i], err = p.loss()
		}
		if err != nil {
			return nil, err
		}
	}
	return scores, nil
}

func (f *fit) newModel(network nets.Network, l likelihood.Likelihood, seeds []uint64) (*nets.Model, error) {
	if f.replicas() {
		return nets.NewReplicas(f.backend, network, l, seeds...)
	}
	return nets.New(f.backend, network, l, seeds[0])
}

// inputsOf are the inputs of sets.
func inputsOf(sets []train.Dataset) []nets.Inputs {
	var all []nets.Inputs
	for _, set := range sets {
		all = append(all, set.Inputs)
	}
	return all
}

// predictionOf is a prediction of a set beside its answers.
func predictionOf(set Set, p *predict.Prediction) (s Prediction, err error) {
	s = Prediction{Set: set.Name, Targets: set.Targets, Labels: set.Labels, Prediction: *p}
	_, quantiles := p.Likelihood.(likelihood.Quantiles)
	if p.Outputs != nil && p.Probabilities == nil && !quantiles && (set.Targets != nil || set.Labels != nil) {
		s.LogLikelihood, err = p.LogDensities(set.Targets, set.Labels)
	}
	return s, err
}

// options are those of all predictions.
func (f *fit) options() predict.Options {
	e := f.first()
	o := predict.Options{Samples: e.Recipe.Samples, BatchSize: e.Recipe.PredictBatch, Energies: e.group.traits.Energies, Coherent: e.Recipe.Coherent}
	o.KeepOutputs = e.Method.IsProcess() && !e.group.traits.Noise // for scores of classes by the size of their logits
	if o.Coherent {
		o.Seed = new(uint64) // the networks' own seeds tell their draws apart
	}
	if o.BatchSize == 0 && !e.group.images && !e.ownData() {
		o.BatchSize = math.MaxInt
	}
	return o
}

// predict predicts all sets of all experiments.
func (f *fit) predict(ctx context.Context) error {
	if !slices.ContainsFunc(f.list, func(e *planned) bool { return !e.predictions.Diverged }) {
		return nil
	}
	first := f.first()
	var each map[string]map[string][]float64
	if after := first.Task.After; after != nil {
		numbers, found, err := after(ctx, f.models, first.data)
		if errors.Is(err, metrics.ErrValue) {
			first.predictions.diverge("Task.After: " + err.Error())
			return nil
		}
		if err != nil {
			return fmt.Errorf("Task.After: %w", err)
		}
		first.predictions.Inspected, each = map[string]float64{}, found // not nil, which says that the networks were asked
		maps.Copy(first.predictions.Inspected, numbers)
	}
	drawn, err := f.draw(ctx)
	if errors.Is(err, metrics.ErrValue) && len(f.list) == 1 {
		first.predictions.diverge("predicting " + err.Error())
		return nil
	}
	for k := range drawn {
		for i, e := range f.list {
			var s Prediction
			found, err := predict.Ensemble(drawn[k][i*f.members() : (i+1)*f.members()]...)
			if err == nil {
				s, err = predictionOf(e.data.Sets[k], found)
			}
			if err != nil {
				return fmt.Errorf("the set %q: %w", e.data.Sets[k].Name, err)
			}
			s.Extra = each[s.Set]
			e.predictions.Sets = append(e.predictions.Sets, s)
			if text := s.notFinite(); text != "" {
				e.predictions.diverge(text)
			}
		}
	}
	return err
}

// draw predicts all sets of all experiments by each network, [set][network].
func (f *fit) draw(ctx context.Context) ([][]*predict.Prediction, error) {
	first := f.first()
	_, gaussian := f.likelihood().(likelihood.Gaussian)
	drawn, all := make([][]*predict.Prediction, len(first.data.Sets)), float64(first.data.toPredict()*len(f.models))
	set, before := Set{}, 0 // examples
	options := f.options()
	options.Progress = func(done, of int) {
		now := float64(before) + float64(set.Len())*float64(done)/float64(of)
		f.report(f.trainPart()+(1-f.trainPart())*now/all, fmt.Sprintf("predicting the set %q", set.Name))
	}
	for i, m := range f.models {
		p, err := predict.NewPredictor(m, options)
		for k := 0; k < len(drawn) && err == nil; k++ {
			set = first.data.Sets[k]
			if options.Progress(0, 1); !first.Recipe.SharedNoise {
				err = m.StartNoise(set.Name)
			}
			inputs := forEachNetwork(f, func(i, _ int) nets.Inputs { return f.list[i].data.Sets[k].Inputs })[i*f.together() : (i+1)*f.together()]
			var found []*predict.Prediction
			switch {
			case err != nil:
			case gaussian && first.Method.IsProcess():
				found, err = predict.Marginals(ctx, m, inputs...)
			default:
				found, err = p.PredictReplicas(ctx, inputs...)
			}
			if err != nil {
				err = fmt.Errorf("the set %q: %w", set.Name, err)
			}
			drawn[k], before = append(drawn[k], found...), before+set.Len()
		}
		if err == nil {
			err = p.Close()
		}
		if err != nil {
			return nil, err
		}
	}
	return drawn, nil
}

// carryOutBy has a Program carry out the experiment.
func (f *fit) carryOutBy(ctx context.Context, program Program) error {
	e, d := f.first(), f.first().data
	d.by = f
	p, err := program.Run(ctx, e.Experiment, d, f.report)
	switch {
	case errors.Is(err, train.ErrDiverged):
		e.predictions.diverge(err.Error())
	case err != nil:
		return err
	case p == nil:
		return fmt.Errorf("the Method.Program, a %T, returned neither Predictions nor an error", program)
	default:
		p.Experiment, p.Split, p.Unit, p.Zero = e.id, e.Split, e.data.Unit, e.data.Zero
		e.predictions = p
	}
	return nil
}

// A Fitted experiment has been trained by FitOne.
type Fitted struct{ fit *fit }

// FitOne trains the networks of an experiment for a Program, as the engine does for itself: with its checks, backend and
// checkpoints, and members as replicas of one graph where that is possible. e and d are what the engine gave to the
// Program, or changed, such as with other training data or another Seed.
//
// progress is called with the part of training and prediction that is done, from 0 to 1. each, if not nil, is called
// after every step; that training has no checkpoints, since a resumed one would not repeat the calls. Call FitOne for one
// training after the other, in the same order each time. If networks diverge, the error wraps train.ErrDiverged.
func FitOne(ctx context.Context, e Experiment, d Data, progress func(done float64, note string), each func(m *nets.Model, at train.Progress)) (*Fitted, error) {
	by := d.by
	if by == nil {
		return nil, errors.New("experiment: FitOne trains for a Program, with the Data that an Engine gave it")
	}
	if progress == nil {
		progress = func(float64, string) {}
	}
	if !by.fitting.CompareAndSwap(false, true) {
		return nil, errors.New("experiment: FitOne is called while another FitOne of the same Program trains; call one after the other")
	}
	defer by.fitting.Store(false)
	e.Method.Program = nil
	err := e.Check()
	if err == nil {
		d, err = e.checked(d)
	}
	g := &group{}
	if err == nil {
		err = g.inspect(e, d)
	}
	if err != nil {
		return nil, err
	}
	one := &planned{Experiment: e, group: g, data: d, predictions: &Predictions{}}
	f := &fit{run: by.run, list: job{one}, backend: by.backend, info: by.info, progress: progress, each: each}
	if by.folder != "" && each == nil {
		by.fitted++ // a Program that resumes asks in the same order
		f.folder = filepath.Join(by.folder, fmt.Sprintf("fit-%d", by.fitted))
	}
	if err = f.train(ctx); err == nil {
		err = one.failure()
	}
	return &Fitted{f}, err
}

// failure is the error for networks that diverged, or have a Gaussian process that could not be finished.
func (e *planned) failure() error {
	if e.predictions.Diverged {
		return fmt.Errorf("%w: %s", train.ErrDiverged, e.predictions.Reason)
	}
	return e.unfinished
}

// Members are the trained networks.
func (f *Fitted) Members() (all []*nets.Model, err error) {
	for number := range f.fit.members() {
		m, err := f.fit.models[number/f.fit.together()].Replica(number % f.fit.together())
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// Predict predicts all sets of the data, as the engine does.
func (f *Fitted) Predict(ctx context.Context) ([]Prediction, error) {
	one := f.fit.first()
	one.predictions = &Predictions{}
	if err := f.fit.predict(ctx); err != nil {
		return nil, err
	}
	return one.predictions.Sets, one.failure()
}
