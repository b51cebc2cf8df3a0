package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gomlx/compute"

	"densityuncertainty/environment"
	"densityuncertainty/figures/results"
)

// An Engine carries out experiments, on the backend that the environment chooses. The zero value keeps nothing.
type Engine struct {
	// Store, if not nil, keeps results and predictions, and what is in progress. An experiment that it has a result of is
	// not trained again, one that was stopped goes on where it was, and processes with one store share the work.
	Store *Store
	// Networks is the folder in which trained networks are kept, each in a file of its own; "" keeps none. See LoadNetwork.
	Networks string
	// CheckpointEvery is the most time that a killed training loses, given a Store; 0 means two minutes.
	CheckpointEvery time.Duration
	// Progress, if not nil, hears which part of the work is done, from 0 to 1, and how it goes. It is called by one
	// goroutine at a time.
	Progress func(done float64, note string)
	// Notes, if not nil, hears what the user should know though the run goes on. It is called by one goroutine at a time.
	Notes func(text string)
}

// Run carries out experiments with the zero Engine: it trains them all and keeps nothing.
func Run(ctx context.Context, list ...Experiment) ([]Result, error) {
	return Engine{}.Run(ctx, list...)
}

// Run returns the results of experiments, in their order and each once. Everything that is wrong with an experiment is
// an error before anything is trained. If an experiment fails later, the
// others go on: Run returns their results together with an error that names what failed.
//
// Small networks of one group are trained together as replicas of one graph. On the pure Go backend, several groups are
// trained at once, one for each core. Images are trained one experiment after the other. If other processes use the same
// store, Run waits for the experiments that they carry out, and takes over what they leave unfinished.
func (en Engine) Run(ctx context.Context, list ...Experiment) ([]Result, error) {
	if en.CheckpointEvery == 0 {
		en.CheckpointEvery = 2 * time.Minute
	}
	p, err := newPlan(ctx, list)
	if err != nil {
		return nil, err
	}
	r := &run{Engine: en, plan: p}
	if en.Store != nil {
		if err := en.Store.open(); err != nil {
			return nil, err
		}
	}
	if err := r.readStore(); err != nil {
		return nil, err
	}
	r.noteStored()
	if err := errors.Join(r.measureStored(), r.checkNetworks(), r.checkVersion(environment.Version)); err != nil {
		return nil, err
	}
	err = errors.Join(r.carryOut(ctx), r.measureStored()) // also what other processes have finished
	return r.results(), errors.Join(err, r.failures())
}

// checkVersion refuses a program whose version nobody can check out, if it would add to the committed results.
func (r *run) checkVersion(version func() string) error {
	units := r.units()
	if r.Store == nil || !results.IsCommitted(r.Store.Folder) || len(units[0])+len(units[1]) == 0 {
		return nil
	}
	if v := version(); v == "devel" || strings.HasSuffix(v, "+dirty") {
		return fmt.Errorf("experiment: the results in %s are committed with the version that made them, and %q is none that can be checked out: commit your changes and run again, or use another store", r.Store.Folder, v)
	}
	return nil
}

// A planned is an experiment of a run with its identity, which for one's own data takes time to find.
type planned struct {
	Experiment
	id string

	// What has come of it; see run.mu.
	result   *Result // nil while there is none
	measured bool    // whether the result has all metrics that the experiment asks for
	failed   error   // why there is no result
	part     float64 // how much is done, from 0 to 1
}

// ID is Experiment.ID.
func (p *planned) ID() string { return p.id }

// A group is the planned experiments that differ in split and seed alone.
type group struct {
	inspected
	line groupLine
	list []*planned // none if the first one was refused
}

// A plan is all that is to be carried out.
type plan struct {
	order   []*planned // each once
	groups  []*group
	byGroup map[string]*group
	byID    map[string]*planned
}

// newPlan checks experiments and groups them.
func newPlan(ctx context.Context, list []Experiment) (*plan, error) {
	if len(list) == 0 {
		return nil, errors.New("experiment: there are no experiments to carry out")
	}
	p, groupOf := &plan{byGroup: map[string]*group{}, byID: map[string]*planned{}}, grouper()
	var all problems
	var before error
	for _, e := range list {
		if err := e.Check(); err != nil {
			all.add(err)
			continue
		}
		identity, err := groupOf(ctx, e)
		if err == nil {
			err = p.add(ctx, e, identity)
		}
		if err != before { // which neighbours of one group have in common
			all.add(e.problem(err))
		}
		before = err
	}
	return p, all.err()
}

// add plans an experiment whose group has an identity.
func (p *plan) add(ctx context.Context, e Experiment, identity string) (err error) {
	g, known := p.byGroup[identity]
	if !known {
		g = &group{}
		p.byGroup[identity], p.groups = g, append(p.groups, g)
		if g.inspected, err = e.inspect(ctx); err != nil {
			return err
		}
		if g.line, err = newGroupLine(ctx, e); err != nil {
			return err
		}
		if g.line.Group != identity {
			return errors.New("its identity changed while its data were read or its network was built; give fields that change, such as a cache, the tag `experiment:\"-\"`")
		}
	} else if len(g.list) == 0 {
		return nil
	}
	id := idOf(identity, e.Split, e.Seed)
	if one := p.byID[id]; one != nil {
		if a, b := reflect.TypeOf(one.Task.Likelihood), reflect.TypeOf(e.Task.Likelihood); a != b {
			return fmt.Errorf("it has a likelihood of type %s with the loss of type %s, with which it is listed too; run them one after the other", b, a)
		}
		if !slices.EqualFunc(one.Task.Metrics, e.Task.Metrics, func(a, b Metric) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }) {
			return errors.New("it is listed twice, with other Task.Metrics; list it once, with all of them")
		}
		return nil
	}
	one := &planned{Experiment: e, id: id}
	p.byID[id] = one
	g.list, p.order = append(g.list, one), append(p.order, one)
	return nil
}

// cost is the cost of everything, also of what a store has.
func (p *plan) cost() float64 {
	total := 0.0
	for _, g := range p.groups {
		total += g.cost * float64(len(g.list))
	}
	return total
}

// A unit is experiments of a group that are carried out together.
type unit struct {
	*group
	list []*planned
}

func (u unit) cost() float64 { return u.group.cost * float64(len(u.list)) }

func (u unit) String() string {
	if len(u.list) == 1 {
		return u.list[0].String()
	}
	return fmt.Sprintf("%s on %s, %d splits and seeds", u.line.Method, u.line.Task, len(u.list))
}

// A run is the state of Engine.Run.
type run struct {
	Engine
	plan    *plan
	choices []string // of backends, as Notes heard them

	mu   sync.Mutex // of what follows, of what has come of each experiment, and of calls of Progress and Notes
	done float64    // the cost of what is done
	said float64    // to Progress
}

// The run waits so long before it looks again at what other processes are at: longer every time, up to a limit.
const firstWait, longestWait = time.Second, 30 * time.Second

// carryOut carries out what has no result yet, until everything has one or has failed.
func (r *run) carryOut(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	for wait := time.Duration(0); ; wait = min(max(firstWait, 2*wait), longestWait) {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := r.readStore(); err != nil {
			return err
		}
		kinds := r.units()
		left := slices.Concat(kinds[:]...)
		if len(left) == 0 {
			return nil
		}
		if wait == firstWait {
			r.note(fmt.Sprintf("another process is at %v; this one waits for it", left[0]))
		}
		for _, units := range kinds {
			if err := r.workers(ctx, stop, units); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if kinds = r.units(); len(slices.Concat(kinds[:]...)) == 0 { // no other process is at anything
			return nil
		}
	}
}

// readStore takes the results that the store has.
func (r *run) readStore() error {
	if r.Store == nil {
		return nil
	}
	stored, err := r.Store.Results()
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, g := range r.plan.groups {
		for _, e := range g.list {
			if line, is := stored[e.id]; is && e.result == nil {
				e.result = &line
				r.finished(g, e, 1)
			}
		}
	}
	return nil
}

// noteStored says how many results the store has already, and of which days.
func (r *run) noteStored() {
	var days []time.Time
	diverged := 0
	for _, e := range r.plan.order {
		if e.result != nil {
			days = append(days, e.result.Finished)
			if e.result.Diverged {
				diverged++
			}
		}
	}
	if days == nil {
		return
	}
	day := func(t time.Time) string {
		if t.Year() != time.Now().Year() {
			return t.Format("January 2, 2006")
		}
		return t.Format("January 2")
	}
	slices.SortFunc(days, time.Time.Compare)
	text := day(days[0])
	if last := day(days[len(days)-1]); last != text {
		text += " to " + last
	}
	if diverged > 0 {
		text += fmt.Sprintf("; %d of them diverged", diverged)
	}
	r.note(fmt.Sprintf("%d of %d results are from the store, of %s", len(days), len(r.plan.order), text))
}

// measureStored computes the metrics that stored results lack from their predictions. It is an error if one lacks what
// only the trained networks could say.
func (r *run) measureStored() error {
	var all problems
	lacking := 0
	for _, e := range r.plan.order {
		if e.result == nil || e.measured || e.result.Diverged {
			continue
		}
		e.measured = true
		err := e.measureStored()
		if errors.Is(err, ErrNoPredictions) {
			lacking++
		} else {
			all.add(err)
		}
	}
	if lacking > 0 {
		r.note(fmt.Sprintf("%d stored results are without predictions, and have only the metrics that they were stored with", lacking))
	}
	return all.err()
}

// measureStored adds to a stored result what its experiment asks for.
func (p *planned) measureStored() error {
	if len(p.Task.Metrics) == 0 && p.Task.After == nil {
		return nil
	}
	said, err := p.result.Predictions()
	switch {
	case err != nil:
		return err
	case said.Partial:
		return p.problem(fmt.Errorf("only a part of them was kept: %w", ErrNoPredictions))
	case p.Task.After != nil && said.Inspected == nil:
		return p.problem(errors.New("the stored result is without Task.After, and its networks are gone; leave After out, or use another store"))
	}
	found, notFinite, err := measure(p.Experiment, said, p.Task.Metrics)
	if err != nil {
		return err
	}
	if p.ownMetrics() { // whose code may have changed
		p.result.Metrics = maps.Clone(p.result.Metrics)
		maps.DeleteFunc(p.result.Metrics, func(name string, _ float64) bool { _, has := found[name]; return has })
	}
	maps.Copy(found, p.result.Metrics) // what is stored counts
	p.result.Metrics, p.result.NotFinite = found, notFinite
	return nil
}

// ownMetrics says whether a metric, or the likelihood that metrics ask, is from outside this module. A metric that SetMetric
// made may be.
func (p *planned) ownMetrics() bool {
	own := outsideValue(p.Task.Likelihood)
	for _, m := range p.Task.Metrics {
		own = own || outsideFunc(m) || strings.Contains(runtime.FuncForPC(reflect.ValueOf(m).Pointer()).Name(), ".SetMetric.")
	}
	return own
}

// units are what has neither a result nor failed: whole groups where they can be replicas of one graph, and else single
// experiments. Those of images are apart, in the second list. The longest come first: begun last, they would have the end
// to themselves.
func (r *run) units() (kinds [2][]unit) {
	for _, g := range r.plan.groups {
		left := slices.DeleteFunc(slices.Clone(g.list), func(e *planned) bool { return e.result != nil || e.failed != nil })
		together, kind := 1, &kinds[0]
		if g.replicas {
			together = max(1, len(left))
		}
		if g.images {
			kind = &kinds[1]
		}
		for list := range slices.Chunk(left, together) {
			*kind = append(*kind, unit{g, list})
		}
	}
	for _, units := range kinds {
		slices.SortStableFunc(units, func(a, b unit) int { return cmp.Compare(b.cost(), a.cost()) })
	}
	return kinds
}

// workers carry out units, each worker with a backend of its own: several of them on the pure Go backend, whose small
// networks fill a single core, and else one.
func (r *run) workers(ctx context.Context, stop context.CancelCauseFunc, units []unit) error {
	if len(units) == 0 {
		return nil
	}
	next := make(chan unit, len(units))
	for _, u := range units {
		next <- u
	}
	close(next)
	var backends []compute.Backend
	defer func() {
		for _, backend := range backends {
			backend.Finalize()
		}
	}()
	for wanted := 1; len(backends) < wanted; {
		backend, choice, err := environment.OpenFor(workOf(units))
		if err != nil {
			return err
		}
		if !slices.Contains(r.choices, choice) {
			r.choices = append(r.choices, choice)
			r.note(choice)
		}
		backends = append(backends, backend)
		if !units[0].images && environment.Describe(backend).PureGo() {
			wanted = min(runtime.GOMAXPROCS(0), len(units))
		}
	}
	var all sync.WaitGroup
	for _, backend := range backends {
		all.Go(func() {
			for u := range next {
				if ctx.Err() != nil {
					return
				}
				r.carryOutUnit(ctx, stop, backend, u)
			}
		})
	}
	all.Wait()
	return nil
}

// worthCompiling is how many examples the networks of a unit see at least where XLA is worth its compiler. It compiles a
// unit for about 18 seconds of a processor's time and then takes 4 microseconds for an example of a UCI set; the pure Go
// backend, which need not compile, takes 6 with AVX-512 and 25 without: between 1 and 10 million examples they are level.
const worthCompiling = 2e6

// workOf is what kind of work units are.
func workOf(units []unit) environment.Work {
	total := 0.0
	for _, u := range units {
		if u.images {
			return environment.Images
		}
		total += u.cost()
	}
	if total < worthCompiling*float64(len(units)) {
		return environment.ShortTrainings
	}
	return environment.SmallNetworks
}

// carryOutUnit carries out what nobody else is at of a unit. What fails is noted; where results cannot be kept, so that
// all further work would be lost too, it stops the run.
func (r *run) carryOutUnit(ctx context.Context, stop context.CancelCauseFunc, backend compute.Backend, u unit) {
	if r.Store != nil {
		free, release, err := r.Store.reserve(u.list)
		if err != nil {
			stop(err)
			return
		}
		u.list = free
		defer func() {
			if err := release(); err != nil {
				stop(err)
			}
		}()
		// Another process may have finished some meanwhile.
		if err := r.readStore(); err != nil {
			stop(err)
			return
		}
	}
	r.mu.Lock()
	u.list = slices.DeleteFunc(slices.Clone(u.list), func(e *planned) bool { return e.result != nil })
	r.mu.Unlock()
	for _, f := range r.fits(ctx, backend, u) {
		lines, failures := f.carryOut(ctx)
		for i, e := range f.list {
			if failures[i] != nil {
				r.fail(ctx, e, failures[i])
			} else if err := r.keep(e, lines[i], u.line); err != nil {
				stop(err)
				return
			}
		}
		if f.folder != "" && errors.Join(failures...) == nil {
			if err := os.RemoveAll(f.folder); err != nil {
				r.note(fmt.Sprintf("what is left of the work on %v cannot be removed: %v", u, err))
			}
		}
	}
}

// keep keeps the result of an experiment.
func (r *run) keep(e *planned, line Result, g groupLine) error {
	if r.Store != nil {
		if err := r.Store.keep(&line, g); err != nil {
			return fmt.Errorf("the result could not be kept: %w", err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e.result, e.measured = &line, true
	return nil
}

// fail notes why an experiment has no result. What was stopped has not failed.
func (r *run) fail(ctx context.Context, e *planned, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() == nil {
		e.failed = err
	}
}

// note passes on what the user should know.
func (r *run) note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Notes != nil {
		r.Notes(text)
	}
}

// report passes on how much of some experiments of a group is done.
func (r *run) report(u unit, done float64, note string) {
	if r.Progress == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range u.list {
		r.finished(u.group, e, done)
	}
	r.said = min(max(r.said, r.done/r.plan.cost()), 1)
	r.Progress(r.said, fmt.Sprintf("%v: %s", u, note))
}

// finished notes which part of an experiment is done, from 0 to 1.
func (r *run) finished(g *group, e *planned, part float64) {
	r.done += g.cost * (part - e.part)
	e.part = part
}

// results are what was found, in the order of the plan, under the names that the experiments have now.
func (r *run) results() []Result {
	var list []Result
	for _, e := range r.plan.order {
		if e.result != nil {
			list = append(list, e.result.Of(e.Experiment))
		}
	}
	return list
}

// failures is an error that names what failed, and why; nil where nothing did. Experiments that failed together have one
// reason.
func (r *run) failures() error {
	var all []error
	for _, e := range r.plan.order {
		if e.failed != nil && !slices.Contains(all, e.failed) {
			all = append(all, e.failed)
		}
	}
	return errors.Join(all...)
}

// recovered turns a panic into an error: GoMLX reports what is wrong with a graph by panicking. A panic of the Go
// runtime is a mistake in a program, so its error says where.
func recovered(err *error) {
	problem := recover()
	if problem == nil {
		return
	}
	cause, is := problem.(error)
	if !is {
		cause = fmt.Errorf("%v", problem)
	}
	*err = cause
	if _, mistake := problem.(runtime.Error); mistake {
		*err = fmt.Errorf("%w\n%s", *err, debug.Stack())
	}
}
