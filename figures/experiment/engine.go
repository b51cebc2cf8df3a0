package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"densityuncertainty/dul/nets"
	"densityuncertainty/environment"
	"densityuncertainty/figures/spec"
)

// An Engine carries out experiments, on the backend that the environment chooses. The zero value keeps nothing.
type Engine struct {
	// Store, if not nil, keeps results and predictions, and what is in progress. An experiment with a stored result is
	// not trained again, a stopped one resumes, and processes with one store share the work.
	Store *Store
	// Networks is the folder in which trained networks are kept, each in a file of its own; "" keeps none. See trained.Open. If an experiment
	// differs from one with kept networks only in how or what it predicts, such as Recipe.Samples, PredictBatch or the Sets, these
	// networks predict it without training.
	Networks string
	// Curves is the folder in which learning curves are kept, epoch by epoch; "" keeps none. See Experiment.Curve.
	Curves string
	// CheckpointEvery is the most time that a killed training loses, given a Store; 0 means two minutes.
	CheckpointEvery time.Duration
	// Progress, if not nil, is called with the part of the work that is done, from 0 to 1, and a note on it, by one
	// goroutine at a time.
	Progress func(done float64, note string)
	// Notes, if not nil, is called with warnings; by one goroutine at a time.
	Notes func(text string)
}

// Run carries out experiments with the zero Engine: it trains them all and keeps nothing.
func Run(ctx context.Context, list ...Experiment) ([]Result, error) {
	return Engine{}.Run(ctx, list...)
}

// Run returns one result for each experiment, in order; repeated experiments have one. If anything is wrong with an
// experiment, Run returns an error before it trains any. If one fails later, the others go on, and Run returns their results
// with an error that names what failed.
//
// Small networks of one group are trained together, as replicas of one graph. The pure Go backend trains several groups at
// once, one on each core, but one after the other if some are of images. Run waits for experiments that another process with
// the same store carries out, and takes over what that leaves unfinished.
func (en Engine) Run(ctx context.Context, list ...Experiment) ([]Result, error) {
	en.CheckpointEvery = cmp.Or(en.CheckpointEvery, 2*time.Minute)
	r := &run{Engine: en, byGroup: map[string]*group{}, trainings: map[string]string{}, changed: map[string]Result{}, parsed: map[string]parsed{}}
	if err := r.plan(ctx, list); err != nil {
		return nil, err
	}
	if err := r.readStore(); err != nil {
		return nil, err
	}
	r.noteStored(environment.Version())
	if err := errors.Join(r.failures(), r.checkKept(), r.checkVersion(environment.Version)); err != nil {
		return nil, err
	}
	r.keepMeasured()
	err := r.carryOut(ctx)
	r.keepMeasured() // what another process has kept meanwhile
	var found []Result
	for _, e := range r.order {
		if e.result != nil {
			found = append(found, e.result.Of(e.Experiment))
		}
	}
	return found, errors.Join(err, r.failures())
}

// An entry is an experiment of a run with its identity, which for your own data takes time to find.
type entry struct {
	Experiment
	group *group
	id    string

	// While it is carried out.
	data        Data
	predictions *Predictions
	unfinished  error // why its trained networks give no result

	// What has come of it; see run.mu.
	result *Result // nil while there is none
	failed error   // why there is no result, or why a stored result cannot be measured
	part   float64 // how much is done, from 0 to 1
}

// A group is the entries that differ in split and seed alone.
type group struct {
	traits   Traits
	cost     float64 // of training one experiment, in examples of a small network
	images   bool
	replicas bool // whether its experiments can be replicas of one graph
	answers  bool // whether a set has targets or labels
	line     groupLine
	list     []*entry // none if the first one was refused
}

// A run is the state of Engine.Run.
type run struct {
	Engine
	order   []*entry // each once
	groups  []*group
	byGroup map[string]*group
	cost    float64           // of all experiments, also the stored ones
	said    sync.Map          // the notes, and the names of the tasks whose data were remarked on
	lacking int               // how many stored results are without predictions
	changed map[string]Result // stored results whose metrics are now different

	reading sync.Mutex
	parsed  map[string]parsed // files of the store

	mu        sync.Mutex        // for what follows, the outcome of each experiment, and calls of Progress and Notes
	trainings map[string]string // the digest of the training of each file in Networks that was read; "" for none
	done      float64           // the cost of what is done
	reported  float64           // to Progress
}

// plan checks experiments and groups them.
func (r *run) plan(ctx context.Context, list []Experiment) error {
	if len(list) == 0 {
		return errors.New("experiment: there are no experiments to carry out")
	}
	groupOf := grouper()
	var all errorList
	var before error
	for _, e := range list {
		if err := e.Check(); err != nil {
			all.add(err)
			continue
		}
		identity, err := groupOf(ctx, e)
		if err == nil {
			err = r.add(ctx, e, identity)
		}
		if err != before { // neighbours of one group have the same error
			all.add(e.wrap(err))
		}
		before = err
	}
	return all.err()
}

// add plans an experiment whose group has an identity.
func (r *run) add(ctx context.Context, e Experiment, identity string) error {
	g, known := r.byGroup[identity]
	if !known {
		g = &group{}
		r.byGroup[identity], r.groups = g, append(r.groups, g)
		d, err := e.load(ctx)
		if err == nil {
			err = g.inspect(e, d)
		}
		if err != nil {
			return err
		}
		text, _, err := e.spec(ctx)
		if err != nil {
			return err
		}
		g.line = groupLine{Group: identity, Task: e.Task.Name, Method: e.Method.Name, Preset: e.Preset, Experiment: text}
		if spec.Digest(text) != identity {
			return e.unsteady(ctx)
		}
		if err := e.checkRows(ctx, d); err != nil {
			return err
		}
	} else if len(g.list) == 0 {
		return nil
	}
	for i, metric := range e.Task.Metrics {
		if classes := same(metric, Classification); e.Method.Program == nil && (classes || same(metric, Regression)) && (!g.answers || classes != isClassification(e.Task.Likelihood)) {
			return fmt.Errorf("no set has the answers, or the kind of predictions, that Task.Metrics[%d] measures; leave it out", i)
		}
	}
	if i := slices.IndexFunc(g.list, func(o *entry) bool { return o.Split == e.Split && o.Seed == e.Seed }); i >= 0 {
		one := g.list[i]
		if a, b := reflect.TypeOf(one.Task.Likelihood), reflect.TypeOf(e.Task.Likelihood); a != b {
			return fmt.Errorf("it has a likelihood of type %s with the loss of type %s, with which it is listed too; run them one after the other", b, a)
		}
		if !slices.EqualFunc(one.Task.Metrics, e.Task.Metrics, same) {
			return errors.New("it is listed twice, with other Task.Metrics; list it once, with all of them")
		}
		if a := one.Method.Name; a != e.Method.Name {
			return fmt.Errorf("it is the same experiment as that of the method %q, field by field; leave one of them out", a)
		}
		return nil
	}
	// A category that no training row of a split has, or a single class, is seen before any split is trained.
	if table, is := e.Task.Data.(Table); is && (table.Set.Columns != nil || table.Classes > 0) && !slices.ContainsFunc(g.list, func(o *entry) bool { return o.Split == e.Split }) {
		if _, err := e.load(ctx); err != nil {
			return err
		}
	}
	one := &entry{Experiment: e, group: g, id: idOf(identity, e.Split, e.Seed)}
	r.cost += g.cost
	g.list, r.order = append(g.list, one), append(r.order, one)
	return nil
}

// same says whether two metrics are one function.
func same(a, b Metric) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }

// imageCost compares training steps: an image costs a plain ResNet-14 about 2.5 ms of a processor's time, and an example
// costs a small network, as for UCI, about 0.018 ms.
const imageCost = 140

// inspect builds the network of an experiment for data, to see what is wrong with it. It notes what the engine must know about the
// group before training, and trains nothing.
func (g *group) inspect(e Experiment, d Data) (err error) {
	e.Task.Likelihood = d.likelihood
	if g.traits, err = traitsWith(e, d); err != nil {
		return err
	}
	if err := g.traits.checkRecipe(e); err != nil {
		if of, traitsErr := MethodTraits(e.Method, e.Task.Likelihood); traitsErr == nil && (of.Energies && !g.traits.Energies || of.Noise && !g.traits.Noise) {
			err = fmt.Errorf("Task.Network has nothing of the Method's layers: build its layers by layers.Dense of the first argument; so %w", err)
		}
		return err
	}
	g.cost = float64(e.Method.members()) * float64(d.Train.Len()) * float64(e.Recipe.Epochs+e.Recipe.PretrainEpochs)
	if _, g.images = d.Train.Inputs.(nets.Pixels); g.images {
		g.cost *= imageCost
	} else {
		g.replicas = e.takesReplicas()
	}
	g.answers = slices.ContainsFunc(d.Sets, func(s Set) bool { return s.Targets != nil || s.Labels != nil })
	if e.Recipe.Coherent && (g.images || e.Method.IsProcess()) {
		return errors.New("Recipe.Coherent is neither for images nor for Gaussian processes; leave it out")
	}
	return nil
}

// note passes on what the user should know, once.
func (r *run) note(text string) {
	if _, known := r.said.LoadOrStore(text, true); known || r.Notes == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Notes(text)
}

// finished notes which part of an experiment is done, from 0 to 1.
func (r *run) finished(e *entry, part float64) {
	r.done += e.group.cost * (part - e.part)
	e.part = part
}

// fail notes why an experiment has no result, and says whether there is a reason, err. What was stopped has not failed.
func (r *run) fail(ctx context.Context, e *entry, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil && ctx.Err() == nil {
		e.failed = err
	}
	return err != nil
}

// checkVersion refuses a program whose version nobody can check out, if it would add to the committed results.
func (r *run) checkVersion(version func() string) error {
	if r.Store == nil || !r.Store.Committed() || len(r.jobs())+len(r.changed) == 0 {
		return nil
	}
	if v := version(); unclear(v) || strings.HasPrefix(v, "files-") {
		return fmt.Errorf("experiment: the results in %s are committed with the version that made them, and %q is none that can be checked out: commit your changes and run again, or use another store", r.Store.Folder, v)
	}
	return nil
}

// unclear says whether a version stands for code that may differ.
func unclear(version string) bool { return version == "devel" || strings.HasSuffix(version, "+dirty") }

// The run waits so long before it looks again at what other processes are at: longer every time, up to a limit.
const firstWait, longestWait = time.Second, 30 * time.Second

// carryOut carries out what has no result yet, until everything has one or has failed.
func (r *run) carryOut(ctx context.Context) error {
	jobs := r.jobs()
	for wait := firstWait; len(jobs) > 0; wait = min(2*wait, longestWait) {
		if err := r.workers(ctx, jobs); err != nil {
			return err
		}
		if len(r.jobs()) == 0 { // no other process has reserved any
			return nil
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := r.readStore(); err != nil {
			return err
		}
		if jobs = r.jobs(); len(jobs) > 0 && wait == firstWait {
			r.note(fmt.Sprintf("another process is at %v; this one waits for it", jobs[0]))
		}
	}
	return nil
}

// readStore takes the results from the store, and computes their metrics anew. If that fails, the experiment fails.
func (r *run) readStore() error {
	if r.Store == nil {
		return nil
	}
	r.reading.Lock()
	stored, others, err := r.Store.results(r.parsed)
	r.reading.Unlock()
	if err != nil {
		return err
	}
	for _, name := range others {
		r.note(fmt.Sprintf("%s in the store is none of its own files, and may be the conflict copy of a program that synchronises folders: what it has counts where the store has nothing else; merge it, or remove it", name))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.order {
		line, is := stored[e.id]
		if !is || e.result != nil {
			continue
		}
		line.Metrics = maps.Clone(line.Metrics) // they may be changed
		e.result = &line
		r.finished(e, 1)
		if changed, err := e.measureStored(); errors.Is(err, ErrNoPredictions) {
			r.lacking++
		} else if err != nil {
			e.failed = err
		} else if changed {
			r.changed[e.id] = line
		}
	}
	return nil
}

// keepMeasured puts the metrics of stored results that are others than before into the store.
func (r *run) keepMeasured() {
	if len(r.changed) == 0 {
		return
	}
	text := fmt.Sprintf("%d stored results have other metrics than they had, by the code as it is now, and the store has these now", len(r.changed))
	if err := r.Store.remeasured(r.changed); err != nil {
		text = fmt.Sprintf("%d stored results have other metrics than the store says, which cannot be changed: %v", len(r.changed), err)
	}
	clear(r.changed)
	r.note(text)
}

// noteStored says how many results the store has already, the day of the last one, of which versions of this code, and how many
// cannot be measured again.
func (r *run) noteStored(version string) {
	count, diverged, other, last := 0, 0, 0, time.Time{}
	versions, unseen := map[string]bool{}, map[string]bool{}
	for _, e := range r.order {
		if e.result == nil {
			continue
		}
		count++
		switch v := e.result.Version; {
		case unclear(v):
			versions[v+" (files that may have changed since)"] = true
			other++
		case v != version:
			versions[v] = true
			other++
		}
		for _, name := range e.unseen() {
			unseen[name.(string)] = true
		}
		if e.result.Diverged {
			diverged++
		}
		if e.result.Finished.After(last) {
			last = e.result.Finished
		}
	}
	if count == 0 {
		return
	}
	text := fmt.Sprintf("%d of %d results are from the store, of %s", count, len(r.order), last.Format("January 2, 2006"))
	if other > 0 {
		text += fmt.Sprintf("; %d of them were made by version %s of this project, and this is %s", other, strings.Join(slices.Sorted(maps.Keys(versions)), ", "), version)
	}
	if diverged > 0 {
		text += fmt.Sprintf("; %d of them diverged", diverged)
	}
	r.note(text)
	for _, name := range slices.Sorted(maps.Keys(unseen)) {
		r.note(fmt.Sprintf("the code of %s shows in no identity, so that stored results are as it was when they were made; if you have changed it, use another store", name))
	}
	if r.lacking > 0 {
		r.note(fmt.Sprintf("%d stored results are without predictions, and have only the metrics that they were stored with", r.lacking))
	}
}

// measureStored adds to a stored result the metrics that its experiment asks for, from its predictions, and says whether it has
// others now than the rounding of another processor would give. It is an error if it lacks what only the trained networks could say.
func (p *entry) measureStored() (changed bool, err error) {
	if p.result.Diverged || len(p.Task.Metrics) == 0 && p.Task.AfterTraining == nil {
		return false, nil
	}
	predictions, err := p.result.Predictions()
	switch {
	case err != nil:
		return false, err
	case predictions.partial:
		return false, p.wrap(errPartial)
	case p.Task.AfterTraining != nil && predictions.Metrics == nil:
		return false, p.wrap(errors.New("the stored result is without Task.AfterTraining, and its networks are gone; leave AfterTraining out, or use another store"))
	}
	found, err := measure(p.Experiment, predictions, p.Task.Metrics)
	for name, v := range found {
		if was, has := p.result.Metrics[name]; !has || was != v && !(math.Abs(was-v) <= 1e-9*math.Abs(was)) && !(math.IsNaN(was) && math.IsNaN(v)) {
			p.result.Metrics[name], changed = v, true // its code may have changed
		}
	}
	return changed, err
}

// jobs are the experiments that have no result and have not failed: whole groups if they can be replicas of one graph, and
// single experiments otherwise. The longest come first, so that the last to end do not run alone for long.
func (r *run) jobs() (all []*job) {
	for _, g := range r.groups {
		left, together := slices.DeleteFunc(slices.Clone(g.list), func(e *entry) bool { return e.result != nil || e.failed != nil }), 1
		if g.replicas {
			together = max(1, len(left))
		}
		for list := range slices.Chunk(left, together) {
			all = append(all, &job{run: r, list: list})
		}
	}
	slices.SortStableFunc(all, func(a, b *job) int { return cmp.Compare(b.cost(), a.cost()) })
	return all
}

// workers carry out jobs, each worker with a backend of its own: several of them on the pure Go backend, whose small
// networks fill a single core. If some jobs are of images, or the backend is another, there is one worker. Where results
// cannot be kept, so that all further work would be lost too, all workers stop.
func (r *run) workers(ctx context.Context, jobs []*job) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	next := make(chan *job, len(jobs))
	for _, j := range jobs {
		next <- j
	}
	close(next)
	var all sync.WaitGroup
	work := workOf(jobs)
	for started, wanted := 0, 1; started < wanted; started++ {
		backend, choice, err := environment.OpenFor(work)
		if err != nil {
			stop(err)
			break
		}
		r.note(choice)
		if work != environment.Images && environment.Describe(backend).PureGo() {
			wanted = min(runtime.GOMAXPROCS(0), len(jobs))
		}
		all.Go(func() {
			defer backend.Finalize()
			for j := range next {
				if ctx.Err() != nil {
					return
				}
				if err := j.share(ctx, backend); err != nil {
					stop(err)
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// worthCompiling is the least number of examples, seen by the networks of a job, that makes compiling for XLA worthwhile.
// XLA compiles a job for about 18 seconds of a processor's time, and then takes 4 microseconds for an example of a UCI
// set. The pure Go backend compiles nothing, and takes 6 with AVX-512 and 25 without: they are level between 1 and 10
// million examples.
const worthCompiling = 2e6

// workOf returns the kind of work that jobs are.
func workOf(jobs []*job) environment.Work {
	total := 0.0
	for _, j := range jobs {
		if j.first().group.images {
			return environment.Images
		}
		total += j.cost()
	}
	if total < worthCompiling*float64(len(jobs)) {
		return environment.ShortTrainings
	}
	return environment.SmallNetworks
}

// failures is an error that names what failed, and why; nil where nothing did. Experiments that failed together have one
// reason.
func (r *run) failures() error {
	var all []error
	for _, e := range r.order {
		if e.failed != nil && !slices.Contains(all, e.failed) {
			all = append(all, e.failed)
		}
	}
	return errors.Join(all...)
}
