package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/spec"
)

// Check returns an error that lists everything wrong with the experiment that shows without reading data: settings that are
// missing, infinite, useless or contradict each other. It calls the method Check() error of each part that has one, such as a
// Source, a likelihood or an optimizer. An Engine checks all experiments, and then their data and networks, before
// it trains any.
func (e Experiment) Check() error {
	var all errorList
	t, m, r := e.Task, e.Method, e.Recipe
	all.add(checkSource(t.Data))
	all.need(t.Network != nil, "Task.Network is nil; give one, such as nets.MLP{Widths: []int{50, 50}}")
	all.need(t.Likelihood != nil, "Task.Likelihood is nil; give one, such as likelihood.Gaussian{}")
	all.need(m.Layers != nil, "Method has no Layers; give some, such as dul.Density{}")
	all.need(m.Members == 0 || m.Members > 1, "Method.Members is %d; leave it out for a single network, or set it to at least 2", m.Members)
	if t.Data != nil {
		splits := t.Data.Splits()
		all.need(e.Split >= 0 && e.Split < splits, "Split is %d; the data have %d splits, numbered from 0", e.Split, splits)
	}
	if m.Program != nil {
		all.add(attempt(func() error { return m.Program.Check(e) }))
	}
	all.need(m.Program == nil || t.AfterTraining == nil, "Task.AfterTraining asks trained networks, and Method.Program has others; leave it out")
	for i, metric := range t.Metrics {
		all.need(metric != nil, "Task.Metrics[%d] is nil", i)
	}
	if m.IsProcess() {
		_, mlp := t.Network.(nets.MLP)
		_, residual := t.Network.(nets.ResidualMLP)
		classes := isClassification(t.Likelihood)
		all.need(mlp || residual || classes || t.Network == nil, "a Gaussian process predicts a regression in closed form, for which the network must be a nets.MLP or a nets.ResidualMLP; it is a %T", t.Network)
		all.need(!r.EarlyStopping, "Recipe.EarlyStopping is set, but a Gaussian process is finished only after training, and cannot be scored before")
	}
	if m.Layers != nil && t.Network != nil {
		_, err := t.Network.Over(m.Layers)
		all.need(err == nil, "Task.Network: %w", err)
	}
	err := r.Settings.Check(t.Likelihood)
	all.need(err == nil, "Recipe: %w", err)
	all.need(r.Epochs >= 1, "Recipe.Epochs is %d; at least 1 is needed", r.Epochs)
	all.need(r.Samples >= 1, "Recipe.Samples is %d; at least 1 is needed", r.Samples)
	all.need(r.PredictBatch >= 0, "Recipe.PredictBatch is %d; it must not be negative", r.PredictBatch)
	all.need(!r.Coherent || !r.SharedNoise, "Recipe.Coherent and SharedNoise are both set; coherent draws are drawn by a seed, so leave SharedNoise out")
	_, _, err = spec.Of(e, "Experiment")
	all.add(err)
	return e.wrap(all.err())
}

// unsteady says which part of an experiment is another one each time that its identity is looked for.
func (e Experiment) unsteady(ctx context.Context) error {
	one, _ := e.code(ctx)
	two, _ := e.code(ctx) // without errors, as before
	switch {
	case one["graphs"] != two["graphs"]:
		return errors.New("its code builds another graph, or gives other initial values, each time: look for a random number or the order of a map in Task.Network (Build), the Method's layers, the likelihood and the optimizers; random numbers come from stochastic.Draw and params.New")
	case one["recipe"] != two["recipe"]:
		return errors.New("its Schedule, Order or Augmentation answers otherwise each time: look for a random number that is not made of the arguments, or the order of a map")
	case one["data"] != two["data"]:
		return errors.New("its Source loads other data each time: look for a random number, the order of a map, or files that change")
	}
	return errors.New("its identity changed while its data were read or its network was built: give fields that change, such as a cache, the tag `experiment:\"-\"`")
}

// checkRows draws from the untrained network. It is an error if code of your own mixes the examples of a batch, so that
// the outputs for some examples change if each is alone, or if Coherent is set and a layer draws for each example. A network
// for a Gaussian process has plain layers here. The CheckData of a Program comes first.
func (e Experiment) checkRows(ctx context.Context, d Data) error {
	_, own := e.Task.Network.(nets.Func)
	if _, custom, _ := spec.Of(struct{ Network, Layers any }{e.Task.Network, e.Method.Layers}, ""); !own && !custom && !e.Recipe.Coherent {
		return nil
	}
	if p, is := e.Method.Program.(interface {
		CheckData(ctx context.Context, e Experiment, d Data) error
	}); is {
		if err := p.CheckData(ctx, e, d); err != nil {
			return err
		}
	}
	if e.Method.IsProcess() {
		e.Method.Layers = baselines.Deterministic{}
	}
	network, err := e.Task.Network.Over(e.Method.Layers)
	backend, noBackend := spec.Backend()
	if err := errors.Join(err, noBackend); err != nil {
		return err
	}
	m, err := nets.New(backend, network, e.Task.Likelihood, 1)
	if err != nil {
		return err
	}
	mixed, err := predict.MixesExamples(ctx, m, d.Train.Inputs, e.Recipe.Coherent, e.Recipe.BatchSize, max(e.Recipe.PredictBatch, 128))
	if mixed {
		err = errors.New("Task.Network mixes the examples of a batch: its outputs for one example change with the others, so that predictions would depend on Recipe.PredictBatch; look for an operation over the axis of the batch in it and in the Method's layers")
	}
	return err
}

// takesReplicas says whether networks of the experiment can be replicas of one graph. Gaussian processes draw the outputs
// of a classification in training, which replicas do not; a Program and an AfterTraining are for one experiment.
func (e Experiment) takesReplicas() bool {
	if e.Method.Program != nil || e.Task.AfterTraining != nil || e.Method.IsProcess() && isClassification(e.Task.Likelihood) {
		return false
	}
	network, err := e.Task.Network.Over(e.Method.Layers)
	return err == nil && nets.TakesReplicas(network)
}

// checkRecipe says what of an experiment's recipe does not suit its network.
func (t Traits) checkRecipe(e Experiment) error {
	r := e.Recipe
	var all errorList
	for name, groups := range map[string][]train.Group{"Groups": r.Groups, "PretrainGroups": r.PretrainGroups} {
		groupOf := func(p parameter) int {
			return slices.IndexFunc(groups, func(g train.Group) bool { return g.Contains(p.name, p.role) })
		}
		for _, p := range t.parameters {
			all.need(groupOf(p) >= 0 || name != "Groups", "parameter %s, of the role %s, is in no group of Recipe.Groups; add one, without an Optimizer if it is to stay as it is", p.name, p.role)
		}
		for i, g := range groups {
			some := slices.ContainsFunc(t.parameters, func(p parameter) bool { return groupOf(p) == i })
			all.need(some, "Recipe.%s[%d] contains no parameter, with the roles %v: the network has none, or groups before it contain them; leave the group out", name, i, g.Roles)
		}
	}
	all.need(t.Noise || r.Samples == 1, "Recipe.Samples is %d, but all draws would be equal: the network has no noise, or a closed form; set it to 1", r.Samples)
	return all.err()
}

// Traits are facts about a network, found by building it.
type Traits struct {
	Energies   bool // whether layers have energy models
	Noise      bool // whether predictions differ from draw to draw
	parameters []parameter
}

// A parameter is a trainable parameter of a network.
type parameter struct {
	name string // its path below the model's, such as "network/output/bias"
	role params.Role
}

// Has says whether there are parameters of a role.
func (t Traits) Has(role params.Role) bool {
	return slices.ContainsFunc(t.parameters, func(p parameter) bool { return p.role == role })
}

// methodTraits remembers what MethodTraits found out, by the method and the likelihood.
var methodTraits sync.Map

// MethodTraits returns the traits of a method's networks with a likelihood, which a preset needs to choose groups and
// samples. It builds a small perceptron once and remembers the result. A likelihood of your own may be of labels or of up
// to 8 target columns. It is an error if there are no layers or no likelihood, or if no network can be built.
func MethodTraits(m Method, l likelihood.Likelihood) (Traits, error) {
	if m.Layers == nil {
		return Traits{}, errors.New("experiment: there are no layers; give some, such as dul.Density{}")
	}
	if l == nil {
		return Traits{}, errors.New("experiment: Task.Likelihood is nil; give one, such as likelihood.Gaussian{}")
	}
	e := Experiment{Task: Task{Network: nets.MLP{Widths: []int{2}}, Likelihood: l}, Method: m}
	key := spec.Key(e)
	if known, has := methodTraits.Load(key); has {
		return known.(Traits), nil
	}
	t, err := probed(e)
	if _, custom, failed := spec.Of(e, "Experiment"); key != nil && !custom && failed == nil && err == nil { // what has no identity of its own is not remembered
		methodTraits.Store(key, t)
	}
	return t, err
}

// mostColumns is how many target columns a likelihood is probed with at most.
const mostColumns = 8

// probed are the traits with made-up data. A likelihood of your own does not say which answers it is for: the first that
// suit it are taken, from one target column up, and labels last.
func probed(e Experiment) (t Traits, first error) {
	x := nets.Rows([]float64{1, 2, 3, 4, 5, 6}, 2)
	answers := []train.Dataset{{Inputs: x, Labels: []int{0, 1, 0}}}
	for columns := mostColumns; columns > 0 && !isClassification(e.Task.Likelihood); columns-- {
		answers = append([]train.Dataset{{Inputs: x, Targets: make([]float64, 3*columns)}}, answers...)
	}
	for _, d := range answers {
		t, err := traitsWith(e, Data{Train: d})
		if err == nil {
			return t, nil
		}
		first = cmp.Or(first, err)
	}
	return t, first
}

// graph builds graphs of the experiment's network.
func (e Experiment) graph(d Data) (spec.Graph, error) {
	network, err := e.Task.Network.Over(e.Method.Layers)
	return spec.Graph{Network: network, Likelihood: e.Task.Likelihood, Data: d.Train, Coherent: e.Recipe.Coherent && !e.Method.IsProcess()}, err
}

// traitsWith builds an experiment's graphs of training and prediction for data like d, to see what they contain. An
// error says what is wrong with the layers, the network or the likelihood.
func traitsWith(e Experiment, d Data) (t Traits, err error) {
	b, err := e.graph(d)
	if err != nil {
		return t, err
	}
	b.Training = true
	err = b.Build(func(m *nets.Model, _ *model.Scope, outputs, _ *graph.Node) {
		t.Energies = stochastic.LayerLossesOf(outputs.Graph()).LogLikelihood != nil
		for _, v := range spec.Trained(m.Store) {
			t.parameters = append(t.parameters, parameter{strings.TrimPrefix(v.Path(), "/model/"), params.RoleOf(v, m.Store)})
		}
		// A Gaussian process predicts only once it was finished: a regression in closed form, and classes by draws if it trains by them.
		t.Noise = e.Method.IsProcess() && isClassification(e.Task.Likelihood) && params.FactsOf(outputs.Graph()).Noise
	})
	if err != nil || e.Method.IsProcess() {
		return t, err
	}
	b.Training = false
	err = b.Build(func(_ *nets.Model, _ *model.Scope, outputs, _ *graph.Node) {
		t.Noise = params.FactsOf(outputs.Graph()).Noise
		energies := nets.Energies(outputs.Graph())
		if t.Energies && len(energies) == 0 {
			panic(errors.New("the layers' energies are not noted; build layers by nets.Positions"))
		}
		for _, l := range energies {
			if dims := l.Energy.Shape().Dimensions; !slices.Equal(dims, []int{spec.FewRows, 1}) {
				panic(fmt.Errorf("the energy of layer %s has the shape %v for %d examples; want [%d, 1]", l.Layer, dims, spec.FewRows, spec.FewRows))
			}
		}
	})
	return t, err
}
