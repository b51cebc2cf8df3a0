package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gomlx/compute"

	"densityuncertainty/dul/likelihood"
	"densityuncertainty/environment"
	"densityuncertainty/figures/spec"
)

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
	r := &run{Engine: en, byGroup: map[string]*group{}, seen: map[string]bool{}, kept: map[string]string{}, changed: map[string]Result{}, parsed: map[string]parsed{}}
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
func (p *planned) measureStored() (changed bool, err error) {
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
		left, together := slices.DeleteFunc(slices.Clone(g.list), func(e *planned) bool { return e.result != nil || e.failed != nil }), 1
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
		j.list = slices.DeleteFunc(slices.Clone(j.list), func(e *planned) bool { return e.result != nil || !slices.Contains(free, e.id) })
		r.mu.Unlock()
	}
	for _, part := range j.parts(ctx, backend) {
		if err := part.carryOut(ctx); err != nil {
			return err
		}
	}
	return nil
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

// parts divides a job into jobs that can be trained together: replicas of one graph must have equally many examples in each
// set, so that no replica's noise depends on the others. Experiments whose data cannot be loaded fail.
func (j *job) parts(ctx context.Context, backend compute.Backend) (all []*job) {
	r, list, loaded := j.run, j.list, map[int]Data{}
	fails := func(e *planned, err error) bool {
		if err != nil {
			r.fail(ctx, e, e.wrap(err))
		}
		return err != nil
	}
	list = slices.DeleteFunc(list, func(e *planned) bool {
		var has bool
		var err error
		if e.data, has = loaded[e.Split]; !has {
			if e.data, err = e.load(ctx); err == nil {
				loaded[e.Split] = e.data
			}
		}
		return fails(e, err)
	})
	if len(list) > 0 {
		err := list[0].group.checkData(ctx, list[0].Task.Data, loaded)
		list = slices.DeleteFunc(list, func(e *planned) bool { return fails(e, err) })
	}
	alike, info := map[string]*job{}, environment.Describe(backend)
	for _, e := range list {
		if _, known := r.said.LoadOrStore("data of "+e.Task.Name, true); !known && r.Notes != nil {
			for _, set := range e.data.Sets {
				for _, text := range e.data.Train.Remarks(set.Name, set.Dataset) {
					r.note(fmt.Sprintf("%s, split %d: %s", e.Task.Name, e.Split, text))
				}
			}
		}
		key, kept := "", r.keptNetworks(e, info.Version)
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
		if err != nil {
			j.run.fail(ctx, e, err)
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
