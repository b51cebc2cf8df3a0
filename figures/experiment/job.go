package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gomlx/compute"
	"gonum.org/v1/gonum/floats"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment"
	"densityuncertainty/figures/spec"
)

// A job carries out experiments of a group together. It trains all networks of several experiments as replicas of one
// graph, or the members of a single experiment one after the other, and predicts by them.
type job struct {
	run     *run
	list    []*entry
	backend compute.Backend
	info    environment.Info
	folder  string   // for checkpoints; "" keeps none
	kept    []string // each member's file, if networks were trained before; nil trains

	// Of FitOne, nil for an experiment of the engine's own.
	progress func(done float64, note string)
	each     func(m *nets.Model, at train.Progress)
	fitted   int         // how many trainings a Program has asked for
	fitting  atomic.Bool // whether one is running

	models []*nets.Model // one with replicas, or one for each member
	speed  float64       // training examples a second, of all replicas together; 0 while it is not known
}

func (j *job) cost() float64 { return j.first().group.cost * float64(len(j.list)) }

func (j *job) ids() (all []string) {
	for _, e := range j.list {
		all = append(all, e.id)
	}
	return all
}

func (j *job) String() string {
	if len(j.list) == 1 {
		return j.first().String()
	}
	return fmt.Sprintf("%s on %s, %d splits and seeds", j.first().group.line.Method, j.first().group.line.Task, len(j.list))
}

// first is an experiment that tells all but split and seed.
func (j *job) first() *entry { return j.list[0] }

// likelihood is for the networks' targets, which may be standardised.
func (j *job) likelihood() likelihood.Likelihood { return j.first().data.likelihood }

func (j *job) members() int { return j.first().Method.members() }

// forEachNetwork lists a value for each network of each experiment. The members of an ensemble follow each other.
func forEachNetwork[T any](j *job, value func(experiment, member int) T) []T {
	var all []T
	for i := range j.list {
		for member := range j.members() {
			all = append(all, value(i, member))
		}
	}
	return all
}

// share carries out the experiments of a job that no other process has reserved. It is an error if results cannot be kept.
func (j *job) share(ctx context.Context, backend compute.Backend) (err error) {
	if r := j.run; r.Store != nil {
		free, release, reserveErr := r.Store.reserve(j.ids())
		if reserveErr != nil {
			return reserveErr
		}
		defer func() { err = errors.Join(err, release()) }()
		// Another process may have finished some meanwhile.
		if err := r.readStore(); err != nil {
			return err
		}
		r.mu.Lock()
		j.list = slices.DeleteFunc(slices.Clone(j.list), func(e *entry) bool { return e.result != nil || !slices.Contains(free, e.id) })
		r.mu.Unlock()
	}
	for _, part := range j.parts(ctx, backend) {
		if err := part.carryOut(ctx); err != nil {
			return err
		}
	}
	return nil
}

// parts divides a job into jobs that can be trained together: replicas of one graph must have equally many examples in each
// set, so that no replica's noise depends on the others. Experiments whose data cannot be loaded fail.
func (j *job) parts(ctx context.Context, backend compute.Backend) (all []*job) {
	r, list, loaded := j.run, j.list, map[int]Data{}
	list = slices.DeleteFunc(list, func(e *entry) bool {
		var has bool
		var err error
		if e.data, has = loaded[e.Split]; !has {
			if e.data, err = e.load(ctx); err == nil {
				loaded[e.Split] = e.data
			}
		}
		return r.fail(ctx, e, e.wrap(err))
	})
	if len(list) > 0 {
		err := list[0].group.checkData(ctx, list[0].Task.Data, loaded)
		list = slices.DeleteFunc(list, func(e *entry) bool { return r.fail(ctx, e, e.wrap(err)) })
	}
	alike, info, networks := map[string]*job{}, environment.Describe(backend), r.keptNetworks()
	for _, e := range list {
		if _, known := r.said.LoadOrStore("data of "+e.Task.Name, true); !known && r.Notes != nil {
			for _, set := range e.data.Sets {
				for _, text := range e.data.Train.Remarks(set.Name, set.Dataset) {
					r.note(fmt.Sprintf("%s, split %d: %s", e.Task.Name, e.Split, text))
				}
			}
		}
		key, kept := "", e.keptIn(networks, info.Version)
		if _, is := e.data.likelihood.(likelihood.Rescaler); is {
			key = spec.TextOf(e.data.likelihood)
		}
		for _, set := range e.data.all() {
			key += fmt.Sprintf(" %q %d %t %t", set.Name, set.Len(), set.Targets != nil, set.Labels != nil)
		}
		if kept != nil {
			key = e.id // alone
		}
		if alike[key] == nil {
			alike[key] = &job{run: r, backend: backend, info: info, kept: kept}
			all = append(all, alike[key])
		}
		alike[key].list = append(alike[key].list, e)
		e.predictions = &Predictions{Experiment: e.id, Split: e.Split, Unit: e.data.Unit, Zero: e.data.Zero}
	}
	return all
}

// carryOut trains, predicts, measures and keeps the results. Each experiment then has a result, or an error that says why
// it has none. It is an error if a result cannot be kept.
func (j *job) carryOut(ctx context.Context) error {
	began := time.Now()
	defer func() {
		for _, e := range j.list {
			e.data, e.predictions = Data{}, nil // the memory is free
		}
	}()
	if err := j.trainAndPredict(ctx); err != nil {
		err = fmt.Errorf("experiment: %v: %w", j, err)
		for _, e := range j.list {
			j.run.fail(ctx, e, err)
		}
		return nil
	}
	finished := true
	for _, e := range j.list {
		p, err := e.predictions, e.unfinished
		line := Result{
			ID: e.id, Group: e.group.line.Group, Split: e.Split, Seed: e.Seed, Diverged: p.Diverged, predictions: p,
			Backend: j.info.Backend, Device: j.info.Device, Version: j.info.Version, Batched: len(j.list), ExamplesPerSecond: j.speed,
			WallSeconds: time.Since(began).Seconds() / float64(len(j.list)), Finished: time.Now().UTC().Truncate(time.Second),
		}
		if p.Diverged {
			line.Reason = cmp.Or(p.Reason, "a program did not say why")
			j.run.note(fmt.Sprintf("%v diverged, and has no metrics: %s", e, line.Reason))
			err = nil
		} else if err == nil {
			line.Metrics, err = measure(e.Experiment, p, e.Task.Metrics)
		}
		if bad := line.NotFinite(); len(bad) > 0 {
			j.run.note(fmt.Sprintf("%v: not finite are %v", e, bad))
		}
		if j.run.fail(ctx, e, err) {
			finished = false
			continue
		}
		if j.run.Store != nil {
			if err := j.run.Store.keep(&line, e.group.line); err != nil {
				return fmt.Errorf("the result could not be kept: %w", err)
			}
		}
		j.run.mu.Lock()
		e.result = &line
		j.run.mu.Unlock()
	}
	if j.folder != "" && finished {
		if err := os.RemoveAll(j.folder); err != nil {
			j.run.note(fmt.Sprintf("what is left of the work on %v cannot be removed: %v", j, err))
		}
	}
	return nil
}

// trainAndPredict turns what GoMLX panics with into an error, too.
func (j *job) trainAndPredict(ctx context.Context) (err error) {
	defer recovered(&err)
	if j.run.Store != nil {
		j.folder = j.run.Store.work(j.ids())
	}
	if program := j.first().Method.Program; program != nil {
		return j.carryOutBy(ctx, program)
	}
	train := j.train
	if j.kept != nil {
		train = j.readKept
	}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{{"training", train}, {"keeping the trained networks", j.keepNetworks}, {"predicting", j.predict}} {
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

// train makes and trains the networks.
func (j *job) train(ctx context.Context) error {
	if j.first().Recipe.BFloat16 && j.info.PureGo() {
		return fmt.Errorf("Recipe.BFloat16 is set, which the pure Go backend has no use for; leave it out, or choose an accelerator (%s)", environment.ConfigVariable)
	}
	seeds := forEachNetwork(j, func(i, member int) uint64 { return j.list[i].networkSeed(member) })
	sets := forEachNetwork(j, func(i, _ int) train.Dataset { return j.list[i].data.Train })
	for i := 0; i < len(seeds) && !j.first().predictions.Diverged; i += j.together() {
		if err := j.trainModel(ctx, seeds[i:i+j.together()], sets[i:i+j.together()], i); err != nil {
			return err
		}
	}
	return nil
}

// replicas says whether the networks are replicas of one graph. Networks that were trained before are single models.
func (j *job) replicas() bool { return j.first().group.replicas && j.kept == nil }

// together is how many networks are one model: all of them as its replicas, or a single one.
func (j *job) together() int {
	if j.replicas() {
		return len(j.list) * j.members()
	}
	return 1
}

// network is a trained network, by its number in forEachNetwork.
func (j *job) network(number int) (*nets.Model, error) {
	return j.models[number/j.together()].Replica(number % j.together())
}

// trainModel trains one model: all networks as its replicas, or one member.
func (j *job) trainModel(ctx context.Context, seeds []uint64, sets []train.Dataset, member int) error {
	e := j.first()
	network, err := e.Task.Network.Over(e.Method.Layers)
	if err != nil {
		return err
	}
	var m *nets.Model
	if j.replicas() {
		m, err = nets.NewReplicas(j.backend, network, j.likelihood(), seeds...)
	} else {
		m, err = nets.New(j.backend, network, j.likelihood(), seeds[0])
	}
	if err != nil {
		return err
	}
	err = j.trainer(ctx, m, member).Fit(ctx, m, sets...)
	diverged, hasDiverged := errors.AsType[*train.DivergedError](err)
	failed, hasFailed := errors.AsType[baselines.FailedReplicas](err)
	if err != nil && !hasDiverged && !hasFailed {
		return err
	}
	j.models = append(j.models, m)
	if hasDiverged {
		for _, d := range diverged.Diverged {
			j.list[d.Replica/j.members()].predictions.diverge(fmt.Sprintf("step %d of training: %s", d.Step, d.Reason))
		}
	}
	for replica, why := range failed {
		e := j.list[replica/j.members()]
		e.unfinished = e.wrap(why)
	}
	return nil
}

// trainer is the training of m, one of the models.
func (j *job) trainer(ctx context.Context, m *nets.Model, model int) train.Trainer {
	recipe, models := j.first().Recipe, len(j.list)*j.members()/j.together()
	t := train.Trainer{Settings: recipe.Settings}
	t.Progress = func(at train.Progress) {
		j.speed = at.ExamplesPerSecond
		if j.each != nil {
			j.each(m, at)
		}
		if err := j.keepEpoch(ctx, m, model, at); err != nil {
			j.run.note(fmt.Sprintf("%v: the learning curve lacks epoch %d: %v", j, at.Epoch, err))
		}
		what := "training"
		if at.Pretraining {
			what = "generative pretraining"
		}
		note := fmt.Sprintf("%s, epoch %d of %d, loss %.3g", what, min(at.Epoch+1, at.Epochs), at.Epochs, at.Losses.Total)
		j.report(j.trainPart()*(float64(model)+float64(at.Step)/float64(at.Steps))/float64(models), note)
	}
	t.Notes = func(text string) { j.run.note(fmt.Sprintf("%v: %s", j, text)) }
	if j.folder != "" {
		t.Checkpoints = train.Checkpoints{Folder: filepath.Join(j.folder, fmt.Sprintf("model-%d", model)), Every: j.run.CheckpointEvery, Version: j.info.Version}
	}
	if recipe.EarlyStopping {
		t.KeepBest = train.KeepBest{Every: j.scoredEvery(), Score: func(ctx context.Context, m *nets.Model) ([]float64, error) {
			return j.heldOut(ctx, m, j.options())
		}}
	}
	return t
}

// trainPart is the approximate share of training in the work; predictions are the rest. A step of training takes about three times as
// long as a prediction of its examples.
func (j *job) trainPart() float64 {
	e := j.first()
	trained := 3 * float64(e.data.Train.Len()*(e.Recipe.Epochs+e.Recipe.PretrainEpochs))
	return trained / (trained + float64(e.data.toPredict()*e.Recipe.Samples))
}

// keepEpoch adds an epoch, if a training has just finished one, to the file of each of its experiments.
func (j *job) keepEpoch(ctx context.Context, m *nets.Model, model int, at train.Progress) error {
	if j.run.Curves == "" || !at.EndsEpoch() {
		return nil
	}
	var held []float64
	e := j.first()
	if epoch := at.Epoch - e.Recipe.PretrainEpochs; !at.Pretraining && e.data.HeldOut.Inputs != nil && !e.Method.IsProcess() && (epoch%j.scoredEvery() == 0 || epoch == e.Recipe.Epochs) {
		options := j.options()
		options.Seed = new(uint64)
		var err error
		if held, err = j.heldOut(ctx, m, options); err != nil && ctx.Err() == nil {
			return err
		}
	}
	for i, e := range j.list {
		point := train.Epoch{Model: model, Epoch: at.Epoch, Pretraining: at.Pretraining, Losses: at.Losses, HeldOut: math.NaN()}
		if n := len(held) / len(j.list); n > 0 { // of the experiment's networks in this model
			point.HeldOut = floats.Sum(held[i*n:(i+1)*n]) / float64(n)
		}
		if err := point.Append(filepath.Join(j.run.Curves, e.id+csvExtension)); err != nil {
			return err
		}
	}
	return nil
}

// report passes on how much is done.
func (j *job) report(done float64, note string) {
	if j.progress != nil {
		j.progress(done, note)
		return
	}
	if j.run.Progress == nil {
		return
	}
	j.run.mu.Lock()
	defer j.run.mu.Unlock()
	for _, e := range j.list {
		j.run.finished(e, done)
	}
	j.run.reported = min(max(j.run.reported, j.run.done/j.run.cost), 1)
	j.run.Progress(j.run.reported, fmt.Sprintf("%v: %s", j, note))
}

// scoredEpochs is the most epochs that early stopping chooses from.
const scoredEpochs = 100

// scoredEvery is after how many epochs networks are scored by held-out examples.
func (j *job) scoredEvery() int { return (j.first().Recipe.Epochs + scoredEpochs - 1) / scoredEpochs }

// heldOut is the negative log-likelihood of the held-out examples by each network of a model, or the loss of quantiles; NaN where it
// is not finite.
func (j *job) heldOut(ctx context.Context, m *nets.Model, options predict.Options) ([]float64, error) {
	inputs := forEachNetwork(j, func(i, _ int) nets.Inputs { return j.list[i].data.HeldOut.Inputs })
	found, err := predict.SampleReplicas(ctx, m, inputs[:j.together()], options)
	if err != nil {
		return nil, fmt.Errorf("predicting held-out examples: %w", err)
	}
	scores := make([]float64, len(found))
	for i := range found {
		p, err := predictionOf(Set{Dataset: j.list[i/j.members()].data.HeldOut}, found[i])
		if scores[i] = math.NaN(); err == nil && p.notFinite() == "" {
			scores[i], err = p.loss()
		}
		if err != nil {
			return nil, err
		}
	}
	return scores, nil
}

// predictionOf is a prediction of a set beside its answers.
func predictionOf(set Set, p *predict.Prediction) (s Prediction, err error) {
	s = Prediction{Set: set.Name, Targets: set.Targets, Labels: set.Labels, Prediction: *p}
	return s, s.keepDensities()
}

// keepDensities sets the LogLikelihood of a likelihood that has only an NLL.
func (p *Prediction) keepDensities() (err error) {
	_, quantiles := p.Likelihood.(likelihood.Quantiles)
	if p.Outputs != nil && p.LogLikelihood == nil && p.Probabilities == nil && !quantiles && (p.Targets != nil || p.Labels != nil) {
		p.LogLikelihood, err = p.Prediction.LogDensities(p.Targets, p.Labels)
	}
	return err
}

// options are the settings of all predictions.
func (j *job) options() predict.Options {
	e := j.first()
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
func (j *job) predict(ctx context.Context) error {
	if !slices.ContainsFunc(j.list, func(e *entry) bool { return !e.predictions.Diverged }) {
		return nil
	}
	first := j.first()
	var each map[string]map[string][]float64
	if after := first.Task.AfterTraining; after != nil {
		numbers, found, err := after(ctx, j.models, first.data)
		if errors.Is(err, metrics.ErrValue) {
			first.predictions.diverge("Task.AfterTraining: " + err.Error())
			return nil
		}
		if err != nil {
			return fmt.Errorf("Task.AfterTraining: %w", err)
		}
		for set, lists := range found {
			k := slices.IndexFunc(first.data.Sets, func(s Set) bool { return s.Name == set })
			for name, list := range lists {
				if k < 0 || len(list) != first.data.Sets[k].Len() {
					return fmt.Errorf("Task.AfterTraining: %d numbers %q for the set %q; want one for each example of a set of the data", len(list), name, set)
				}
			}
		}
		first.predictions.Metrics, each = maps.Collect(maps.All(numbers)), found // not nil, which says that the networks were asked
	}
	drawn, err := j.draw(ctx)
	if errors.Is(err, metrics.ErrValue) && len(j.list) == 1 {
		first.predictions.diverge("predicting " + err.Error())
		return nil
	}
	for k := range drawn {
		for i, e := range j.list {
			var s Prediction
			found, err := predict.Ensemble(drawn[k][i*j.members() : (i+1)*j.members()]...)
			if err == nil {
				s, err = predictionOf(e.data.Sets[k], found)
			}
			if err != nil {
				return fmt.Errorf("the set %q: %w", e.data.Sets[k].Name, err)
			}
			s.PerExample = each[s.Set]
			e.predictions.Sets = append(e.predictions.Sets, s)
			if text := s.notFinite(); text != "" {
				e.predictions.diverge(text)
			}
		}
	}
	return err
}

// draw predicts all sets of all experiments by each network, [set][network].
func (j *job) draw(ctx context.Context) ([][]*predict.Prediction, error) {
	first := j.first()
	_, gaussian := j.likelihood().(likelihood.Gaussian)
	drawn, all := make([][]*predict.Prediction, len(first.data.Sets)), float64(first.data.toPredict()*len(j.models))
	set, before := Set{}, 0 // examples
	options := j.options()
	options.Progress = func(done, of int) {
		now := float64(before) + float64(set.Len())*float64(done)/float64(of)
		j.report(j.trainPart()+(1-j.trainPart())*now/all, fmt.Sprintf("predicting the set %q", set.Name))
	}
	for i, m := range j.models {
		p, err := predict.NewPredictor(m, options)
		for k := 0; k < len(drawn) && err == nil; k++ {
			set = first.data.Sets[k]
			if options.Progress(0, 1); !first.Recipe.SharedNoise {
				err = m.StartNoise(set.Name)
			}
			inputs := forEachNetwork(j, func(i, _ int) nets.Inputs { return j.list[i].data.Sets[k].Inputs })[i*j.together() : (i+1)*j.together()]
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
