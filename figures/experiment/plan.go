package experiment

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"densityuncertainty/dul/nets"
	"densityuncertainty/figures/spec"
)

// An Engine carries out experiments, on the backend that the environment chooses. The zero value keeps nothing.
type Engine struct {
	// Store, if not nil, keeps results and predictions, and what is in progress. An experiment that it has a result of is
	// not trained again, one that was stopped resumes, and processes with one store share the work.
	Store *Store
	// Networks is the folder in which trained networks are kept, each in a file of its own; "" keeps none. See Open. An experiment that
	// differs from one whose networks are there only in what its predictions depend on, such as Recipe.Samples, PredictBatch or the
	// Sets, is predicted by these networks, without training.
	Networks string
	// Curves is the folder in which learning curves are kept, epoch by epoch; "" keeps none. See Curve.
	Curves string
	// CheckpointEvery is the most time that a killed training loses, given a Store; 0 means two minutes.
	CheckpointEvery time.Duration
	// Progress, if not nil, is called with the part of the work that is done, from 0 to 1, and a note on it, by one
	// goroutine at a time.
	Progress func(done float64, note string)
	// Notes, if not nil, is called with warnings; by one goroutine at a time.
	Notes func(text string)
}

// A planned is an experiment of a run with its identity, which for your own data takes time to find.
type planned struct {
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

// A group is the planned experiments that differ in split and seed alone.
type group struct {
	traits   Traits
	cost     float64 // of training one experiment, in examples of a small network
	images   bool
	replicas bool // whether its experiments can be replicas of one graph
	line     groupLine
	list     []*planned // none if the first one was refused
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
		if err != before { // which neighbours of one group have in common
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
	if i := slices.IndexFunc(g.list, func(o *planned) bool { return o.Split == e.Split && o.Seed == e.Seed }); i >= 0 {
		one := g.list[i]
		if a, b := reflect.TypeOf(one.Task.Likelihood), reflect.TypeOf(e.Task.Likelihood); a != b {
			return fmt.Errorf("it has a likelihood of type %s with the loss of type %s, with which it is listed too; run them one after the other", b, a)
		}
		if !slices.EqualFunc(one.Task.Metrics, e.Task.Metrics, func(a, b Metric) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }) {
			return errors.New("it is listed twice, with other Task.Metrics; list it once, with all of them")
		}
		if a := one.Method.Name; a != e.Method.Name {
			return fmt.Errorf("it is the same experiment as that of the method %q, field by field; leave one of them out", a)
		}
		return nil
	}
	// A category that no training row of a split has, or a single class, is seen before any split is trained.
	if table, is := e.Task.Data.(Table); is && (table.Set.Columns != nil || table.Classes > 0) && !slices.ContainsFunc(g.list, func(o *planned) bool { return o.Split == e.Split }) {
		if _, err := e.load(ctx); err != nil {
			return err
		}
	}
	one := &planned{Experiment: e, group: g, id: idOf(identity, e.Split, e.Seed)}
	r.cost += g.cost
	g.list, r.order = append(g.list, one), append(r.order, one)
	return nil
}

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
	if e.Recipe.Coherent && (g.images || e.Method.IsProcess()) {
		return errors.New("Recipe.Coherent is neither for images nor for Gaussian processes; leave it out")
	}
	return nil
}

// A run is the state of Engine.Run.
type run struct {
	Engine
	order   []*planned // each once
	groups  []*group
	byGroup map[string]*group
	cost    float64           // of everything, also of what a store has
	said    sync.Map          // the notes, and the names of the tasks whose data were remarked on
	lacking int               // how many stored results are without predictions
	changed map[string]Result // stored results with other metrics than the store has

	reading sync.Mutex
	parsed  map[string]parsed // files of the store

	mu       sync.Mutex        // of what follows, of what has come of each experiment, and of calls of Progress and Notes
	seen     map[string]bool   // the files in Networks that were looked at
	kept     map[string]string // some of them, by a digest of their training
	done     float64           // the cost of what is done
	reported float64           // to Progress
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
func (r *run) finished(e *planned, part float64) {
	r.done += e.group.cost * (part - e.part)
	e.part = part
}

// fail notes why an experiment has no result. What was stopped has not failed.
func (r *run) fail(ctx context.Context, e *planned, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() == nil {
		e.failed = err
	}
}
