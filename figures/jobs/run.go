// Package jobs carries out the experiments that a store still lacks: it groups them into batches,
// hands each batch to a Runner and stores what comes back, batch by batch, so that a run that is
// stopped or killed goes on where it was. It also writes job arrays for Slurm.
package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"gonum.org/v1/gonum/floats"

	"densityuncertainty/environment"
	"densityuncertainty/figures/results"
)

// Runner trains and evaluates experiments.
type Runner interface {
	// Run carries out a batch of at least one experiment, which differ in Split and Seed only, and returns one result
	// for each. When ctx is done it stops soon and returns ctx's error, together with the results of
	// the experiments that are complete; likewise with an error that is some experiments' alone, the
	// results of the others. It may call progress, from one goroutine at a time, with the fraction of
	// the batch that is done, from 0 to 1, and a few words on what it is doing.
	Run(ctx context.Context, batch []results.Experiment, progress func(done float64, note string)) ([]results.Result, error)

	// Cost is a run's expected effort, in training examples of a small network: good enough to tell an hour from a minute.
	Cost(e results.Experiment) float64
}

// WorkFolder is the folder of one experiment in progress below a folder of work. What keeps its result may remove it.
func WorkFolder(work string, e results.Experiment) string { return filepath.Join(work, e.ID()) }

// Studies is the Runner of experiments of several studies: each batch goes to that of its study, by the names
// results.Toy, results.UCI and results.Images.
type Studies map[string]Runner

// Run implements Runner.
func (s Studies) Run(ctx context.Context, batch []results.Experiment, progress func(done float64, note string)) ([]results.Result, error) {
	if len(batch) == 0 {
		return nil, errors.New("jobs: an empty batch")
	}
	runner, has := s[batch[0].Study]
	if !has {
		return nil, fmt.Errorf("jobs: %v is of no study that can be run here", batch[0])
	}
	return runner.Run(ctx, batch, progress)
}

// Cost implements Runner.
func (s Studies) Cost(e results.Experiment) float64 {
	runner, has := s[e.Study]
	if !has {
		return 0
	}
	return runner.Cost(e)
}

// cost is that of a batch; at least a little, so that shares of it are numbers.
func cost(runner Runner, batch []results.Experiment) float64 {
	total := 1e-9
	for _, e := range batch {
		total += runner.Cost(e)
	}
	return total
}

// Batches groups experiments that differ in split and seed only, at most size of them in a batch;
// a size of 0 or less sets no limit. An image experiment takes long, and is a batch of its own.
// Batches come in the order of their first experiments.
func Batches(experiments []results.Experiment, size int) [][]results.Experiment {
	var batches [][]results.Experiment
	current := make(map[string]int) // the group's batch that still has room
	for _, e := range experiments {
		group := e.Group()
		i, ok := current[group]
		if !ok || e.Study == results.Images || size > 0 && len(batches[i]) == size {
			i = len(batches)
			batches = append(batches, nil)
			current[group] = i
		}
		batches[i] = append(batches[i], e)
	}
	return batches
}

// Store keeps results; *results.Store is one.
type Store interface {
	Append(results.Result) (added bool, note string, err error)
	// Missing lists the experiments that it has no result of now. Other processes may add some at any time.
	Missing([]results.Experiment) ([]results.Experiment, error)
	// Claim sets experiments apart for this process until release is called, or the process ends: free are those that no
	// other has claimed.
	Claim([]results.Experiment) (free []results.Experiment, release func() error, err error)
}

// Alone is the Claim of a Store that no other process writes to.
type Alone struct{}

// Claim implements Store: all are free.
func (Alone) Claim(list []results.Experiment) (free []results.Experiment, release func() error, err error) {
	return list, func() error { return nil }, nil
}

// maxFailures is how many batches in a row may fail before the rest is given up: one failure is
// often one data set's or method's, several in a row are everyone's.
const maxFailures = 3

// All runs the batches one after the other and stores each one's results as soon as it ends.
//
// An experiment that cannot be is an error before the first batch. When ctx is done All stores what the runner hands back
// and returns ctx's error. A batch that fails does not stop the others, unless maxFailures fail in a row; the report says
// why, and the error at the end which failed. A batch whose results another process has stored meanwhile has not failed. A
// result that cannot be stored ends the run at once, since what follows would be lost too.
//
// Processes with one store share the work: what another is at is passed over, tried once more after all others, since it
// may have failed or been stopped there, and then left to it.
func All(ctx context.Context, runner Runner, store Store, batches [][]results.Experiment, report *Reporter) error {
	if err := validate(batches); err != nil {
		return err
	}
	a := allRun{runner: runner, store: store, report: report, failed: failures{batches: len(batches)}}
	for _, note := range []string{"another run is at it, so it comes later", "another run is still at it, and it is left to that"} {
		var left [][]results.Experiment
		for _, batch := range batches {
			busy, err := a.batch(ctx, batch)
			if err != nil {
				return errors.Join(a.failed.still(store, report), err)
			}
			if len(busy) > 0 {
				report.Note(describe(busy) + ": " + note)
				left = append(left, busy)
			}
		}
		batches = left
	}
	return a.failed.still(store, report)
}

// allRun is what All has at hand for each batch.
type allRun struct {
	runner Runner
	store  Store
	report *Reporter
	failed failures
	inARow int // of these
}

// batch carries out those experiments of a batch that no other run is at, and returns those that one is. An error ends
// everything.
func (a *allRun) batch(ctx context.Context, batch []results.Experiment) (busy []results.Experiment, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	free, release, err := a.store.Claim(batch)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	busy = without(batch, free)
	if len(free) == 0 {
		return busy, nil
	}
	batch = free
	a.report.begin(batch)
	left, err := a.store.Missing(batch)
	if err != nil {
		return nil, err
	}
	if len(left) == 0 {
		a.report.Note(describe(batch) + ": another run has finished it")
		a.report.end(nil, nil)
		return busy, nil
	}
	batch = left
	found, runErr := a.runner.Run(ctx, batch, a.report.update)
	if err := keep(a.store, batch, found, a.report); err != nil {
		return nil, err
	}
	if runErr == nil {
		runErr = allPresent(batch, found)
	}
	var missing []results.Experiment
	if runErr != nil {
		if missing, err = a.store.Missing(batch); err != nil {
			return nil, errors.Join(runErr, err)
		}
		if len(missing) == 0 {
			a.report.Note(fmt.Sprintf("%s: another run has finished it (%v)", describe(batch), runErr))
			runErr = nil
		}
	}
	a.report.end(missing, runErr)
	switch {
	case runErr == nil:
		a.inARow = 0
	case ctx.Err() != nil:
		return nil, ctx.Err()
	default:
		a.failed.list = append(a.failed.list, failure{batch, missing, runErr})
		if a.inARow++; a.inARow == maxFailures {
			return nil, fmt.Errorf("jobs: gave up after %d failures in a row", maxFailures)
		}
	}
	return busy, nil
}

// without are the experiments of a list that another lacks.
func without(list, other []results.Experiment) []results.Experiment {
	there := identities(other)
	return slices.DeleteFunc(slices.Clone(list), func(e results.Experiment) bool { return there[e.ID()] })
}

func identities(list []results.Experiment) map[string]bool {
	ids := make(map[string]bool, len(list))
	for _, e := range list {
		ids[e.ID()] = true
	}
	return ids
}

// A failure is a batch that failed, with those of its experiments that had no results then, and why.
type failure struct {
	batch, missing []results.Experiment
	err            error
}

// failures are those of some batches. As an error they are named: the report said why each failed.
type failures struct {
	list    []failure
	batches int // of all that were to be carried out
}

// still is an error for the failures whose results no other run has stored meanwhile; nil if there are none.
func (f failures) still(store Store, report *Reporter) error {
	var left []failure
	for _, one := range f.list {
		switch missing, err := store.Missing(one.batch); {
		case err != nil:
			return errors.Join(f, err)
		case len(missing) > 0:
			left = append(left, one)
		default:
			report.later(one.batch, one.missing)
		}
	}
	if len(left) == 0 {
		return nil
	}
	return failures{left, f.batches}
}

// Error names the batches.
func (f failures) Error() string {
	text := fmt.Sprintf("jobs: %d of %d batches failed, as said above:", len(f.list), f.batches)
	for _, one := range f.list {
		text += "\n  " + describe(one.batch)
	}
	return text
}

// Unwrap returns the reasons.
func (f failures) Unwrap() []error {
	reasons := make([]error, len(f.list))
	for i, one := range f.list {
		reasons[i] = one.err
	}
	return reasons
}

// validate returns an error for the first experiment that cannot be, which one wants to know before hours of training.
func validate(batches [][]results.Experiment) error {
	for _, batch := range batches {
		for _, e := range batch {
			if err := e.Validate(); err != nil {
				return fmt.Errorf("jobs: %v: %w", e, err)
			}
		}
	}
	return nil
}

// Distinct returns an error for a value that a list has twice, of which each is to be carried out once; what says what
// it is.
func Distinct[T comparable](what string, list []T) error {
	for i, value := range list {
		if slices.Contains(list[:i], value) {
			return fmt.Errorf("the %s %v is there twice; name it once", what, value)
		}
	}
	return nil
}

// keep stores a batch's results, each of which must belong to the batch.
func keep(store Store, batch []results.Experiment, found []results.Result, report *Reporter) error {
	ids := identities(batch)
	for _, r := range found {
		if !ids[r.ID] {
			return fmt.Errorf("jobs: the runner returned a result of %v, which is not in the batch %s", r.Experiment, describe(batch))
		}
		_, note, err := store.Append(r)
		if note != "" {
			report.Note(note)
		}
		if err != nil {
			return fmt.Errorf("jobs: storing %v: %w", r.Experiment, err)
		}
	}
	return nil
}

// allPresent reports the first experiment of a batch without a result.
func allPresent(batch []results.Experiment, found []results.Result) error {
	if missing := results.ByID(found).Missing(batch); len(missing) > 0 {
		return fmt.Errorf("the runner returned no result for %d of %d experiments, first %v", len(missing), len(batch), missing[0])
	}
	return nil
}

// worthCompiling is how many examples the networks of a batch see at least where XLA is worth its compiler. It compiles a
// batch for about 18 seconds of a processor's time and then takes 4 microseconds for an example of a UCI set; the pure Go
// backend, which need not compile, takes 6 with AVX-512 and 25 without: between 1 and 10 million examples they are level.
const worthCompiling = 2e6

// WorkOf is what kind of work the batches are: images where any are, as they take nearly all of the time, else short
// trainings or longer ones, by what runner says of their cost.
func WorkOf(runner Runner, batches [][]results.Experiment) environment.Work {
	total := 0.0
	for _, batch := range batches {
		if slices.ContainsFunc(batch, func(e results.Experiment) bool { return e.Study == results.Images }) {
			return environment.Images
		}
		total += cost(runner, batch)
	}
	if total < worthCompiling*float64(len(batches)) {
		return environment.ShortTrainings
	}
	return environment.SmallNetworks
}

// LiveFor is Live on a machine that it opens for the work, with the backend that the environment chooses, and closes. On
// the pure Go backend, whose small networks fill a single core, as many batches run at a time as there are cores, each on
// a machine of its own. What each took of the processor is then not known, and CPUSeconds of the results is 0.
func LiveFor(ctx context.Context, on func(Machine) Runner, experiments []results.Experiment, progress func(done float64, note string)) ([]results.Result, error) {
	batches := liveBatches(experiments)
	work := WorkOf(on(Machine{}), batches)
	var runners []Runner
	atOnce := 1
	for len(runners) < atOnce {
		machine, err := OpenMachine(work)
		if err != nil {
			return nil, err
		}
		defer machine.Backend.Finalize()
		if work != environment.Images && machine.Info.PureGo() {
			atOnce = min(runtime.GOMAXPROCS(0), len(batches))
		}
		runners = append(runners, on(machine))
	}
	return live(ctx, runners, experiments, batches, progress)
}

// Live carries out experiments and returns their results in the order of the experiments, without a
// store: for runs that are short enough to be watched, as in a notebook. It calls progress, which may
// be nil, from one goroutine at a time, with the fraction of all the work that is done, from 0 to 1, and a few words on
// what it is doing. The first batch that fails ends it; beside the error are the results until then. No experiments,
// and one that cannot be, are errors before anything is carried out.
func Live(ctx context.Context, runner Runner, experiments []results.Experiment, progress func(done float64, note string)) ([]results.Result, error) {
	return live(ctx, []Runner{runner}, experiments, liveBatches(experiments), progress)
}

// liveBatches are the batches of experiments, each of which is carried out once.
func liveBatches(experiments []results.Experiment) [][]results.Experiment {
	return Batches(results.Union(results.Set{Experiments: experiments}), 0)
}

// live is Live by several runners, each with a batch of the experiments at a time.
func live(ctx context.Context, runners []Runner, experiments []results.Experiment, batches [][]results.Experiment, progress func(done float64, note string)) ([]results.Result, error) {
	if len(experiments) == 0 {
		return nil, errors.New("jobs: there are no experiments to carry out: the protocol has no seeds or no splits, or no method was given")
	}
	r := liveRun{batches: batches, progress: progress, byID: make(map[string]results.Result, len(experiments))}
	if err := validate(r.batches); err != nil {
		return nil, err
	}
	if len(runners) > 1 { // begun last, the longest would have the end to itself
		slices.SortStableFunc(r.batches, func(a, b []results.Experiment) int { return cmp.Compare(cost(runners[0], b), cost(runners[0], a)) })
	}
	tasks := make(chan int, len(r.batches))
	for i, batch := range r.batches {
		r.costs = append(r.costs, cost(runners[0], batch))
		tasks <- i
	}
	close(tasks)
	r.parts = make([]float64, len(r.batches))

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	for _, runner := range runners {
		wg.Go(func() {
			for i := range tasks {
				found, err := runner.Run(ctx, r.batches[i], func(part float64, note string) { r.report(i, part, note) })
				if len(runners) > 1 {
					for k := range found {
						found[k].CPUSeconds = 0
					}
				}
				if r.end(i, found, err) {
					stop()
					return
				}
			}
		})
	}
	wg.Wait()
	return inOrder(experiments, r.byID), r.failed
}

// liveRun is what the runners of live share.
type liveRun struct {
	batches  [][]results.Experiment
	costs    []float64 // of the batches
	progress func(done float64, note string)

	mu     sync.Mutex // of what follows, and of calls of progress
	parts  []float64  // of each batch that is done
	said   float64    // to progress
	byID   map[string]results.Result
	failed error // of the first batch that did
}

// report passes on how much of a batch is done.
func (r *liveRun) report(i int, part float64, note string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parts[i] = min(max(part, 0), 1)
	r.said = max(r.said, floats.Dot(r.parts, r.costs)/floats.Sum(r.costs))
	if r.progress != nil {
		r.progress(r.said, describe(r.batches[i])+": "+note)
	}
}

// end keeps what came of a batch, and says whether some batch has failed.
func (r *liveRun) end(i int, found []results.Result, err error) bool {
	if err == nil {
		err = allPresent(r.batches[i], found)
	}
	if err == nil {
		r.report(i, 1, "done")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, line := range found {
		r.byID[line.ID] = line
	}
	if err != nil && r.failed == nil {
		r.failed = fmt.Errorf("jobs: %s: %w", describe(r.batches[i]), err)
	}
	return r.failed != nil
}

// inOrder are the results of experiments in their order, of those that have one.
func inOrder(experiments []results.Experiment, byID map[string]results.Result) []results.Result {
	var lines []results.Result
	for _, e := range experiments {
		if line, has := byID[e.ID()]; has {
			lines = append(lines, line)
		}
	}
	return lines
}
