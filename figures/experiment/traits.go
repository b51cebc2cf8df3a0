package experiment

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/spec"
)

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
	if _, outside, failed := spec.Of(e, "Experiment"); key != nil && !outside && failed == nil && err == nil { // what has no identity of its own is not remembered
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

// traitsWith builds the network of an experiment for data as these. An error says what is wrong with the layers, the
// network or the likelihood.
func traitsWith(e Experiment, d Data) (t Traits, err error) {
	network, err := e.Task.Network.Over(e.Method.Layers)
	if err == nil {
		t, err = e.look(d, network)
	}
	return t, err
}

// graph builds graphs of a network of the experiment.
func (e Experiment) graph(network nets.Network, d Data) spec.Graph {
	return spec.Graph{Network: network, Likelihood: e.Task.Likelihood, Data: d.Train, Coherent: e.Recipe.Coherent && !e.Method.IsProcess()}
}

// look builds the graphs of training and of prediction, to see what there is in them.
func (e Experiment) look(d Data, network nets.Network) (t Traits, err error) {
	b := e.graph(network, d)
	b.Training = true
	err = b.Build(func(m *nets.Model, _ *model.Scope, outputs, _ *graph.Node) {
		t.Energies = stochastic.LayerLossesOf(outputs.Graph()).LogLikelihood != nil
		for _, v := range spec.Trained(m.Store) {
			t.parameters = append(t.parameters, parameter{strings.TrimPrefix(v.Path(), "/model/"), params.RoleOf(v, m.Store)})
		}
		// A Gaussian process predicts only once it was finished: a regression in closed form, and classes by draws if it trains by them.
		t.Noise = e.Method.IsProcess() && isClassification(e.Task.Likelihood) && stochastic.HasNoise(outputs.Graph())
	})
	if err != nil || e.Method.IsProcess() {
		return t, err
	}
	b.Training = false
	err = b.Build(func(_ *nets.Model, _ *model.Scope, outputs, _ *graph.Node) {
		t.Noise = stochastic.HasNoise(outputs.Graph())
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
