package experiment

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/spec"
)

// Traits are what is found out about a network by building it.
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

// MethodTraits are the traits of a method's networks, found out on a small perceptron: what a preset must know to choose
// groups and samples. A Gaussian process may be for a likelihood. They are found out once. A likelihood of your own may be of
// several target columns, up to mostColumns, or of labels.
func MethodTraits(m Method, l likelihood.Likelihood) (Traits, error) {
	if m.Layers == nil && m.Process == nil {
		return Traits{}, errors.New("experiment: there are no layers; give some, such as dul.Density{}")
	}
	if l == nil {
		return Traits{}, errors.New("experiment: Task.Likelihood is nil; give one, such as likelihood.Gaussian{}")
	}
	e := Experiment{Task: Task{Network: nets.MLP{Widths: []int{2}}, Likelihood: l}, Method: m}
	tree, outside, err := spec.Of(e, "Experiment")
	if err != nil || outside { // what has no identity of its own is not remembered
		return probed(e)
	}
	text := spec.Text(tree)
	known, has := methodTraits.Load(text)
	if !has {
		if known, err = probed(e); err == nil {
			methodTraits.Store(text, known)
		}
	}
	return known.(Traits), err
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
	b := buildingOf(e, d)
	network, err := b.network(e)
	if err == nil {
		t, _, err = b.look(e, network, nil)
	}
	return t, err
}

// look builds the graphs of training and of prediction, to see what there is in them. It writes them to h, unless that is nil,
// with gradients and the updates by optimizers from outside, and returns the variables of training.
func (b building) look(e Experiment, network nets.Network, h io.Writer) (t Traits, store *model.Store, err error) {
	err = b.build(network, e.Task.Likelihood, true, h != nil, func(m *nets.Model, s *model.Scope, outputs, nll *graph.Node) {
		g, losses := outputs.Graph(), stochastic.LayerLossesOf(outputs.Graph())
		store, t.Energies = m.Store, losses.LogLikelihood != nil
		var trained []*model.Variable
		var values []*graph.Node
		for _, v := range variables(store) {
			role := params.RoleOf(v, store)
			if role == "" || !v.Trainable {
				continue
			}
			t.parameters = append(t.parameters, parameter{strings.TrimPrefix(v.Path(), "/model/"), role})
			if h != nil && v.InUseByGraph(g) {
				trained, values = append(trained, v), append(values, v.NodeValue(g))
			}
		}
		if h != nil {
			e.Recipe.update(s, trained, values, graph.Gradient(losses.Objective(nll, b.rows), values...))
			write(h, g)
		}
	})
	if err != nil || e.Method.Process != nil { // which predicts only once it was finished
		t.Noise = e.Method.Process != nil && e.Method.Process.Draws() && isClassification(e.Task.Likelihood)
		return t, store, err
	}
	err = b.build(network, e.Task.Likelihood, false, false, func(m *nets.Model, s *model.Scope, outputs, _ *graph.Node) {
		t.Noise = stochastic.HasNoise(outputs.Graph())
		energies := nets.Energies(outputs.Graph())
		if t.Energies && len(energies) == 0 {
			panic(errors.New("the layers' energies are not noted; build layers by nets.Positions"))
		}
		for _, l := range energies {
			if dims := l.Energy.Shape().Dimensions; !slices.Equal(dims, []int{b.rows, 1}) {
				panic(fmt.Errorf("the energy of layer %s has the shape %v for %d examples; want [%d, 1]", l.Layer, dims, b.rows, b.rows))
			}
		}
		if h != nil {
			writePrediction(h, m, s, outputs)
		}
	})
	return t, store, err
}

// variables are the variables of a model, in the order of their paths.
func variables(store *model.Store) []*model.Variable {
	return slices.SortedFunc(store.IterVariables(), func(a, b *model.Variable) int { return cmp.Compare(a.Path(), b.Path()) })
}

// goBackend is the backend of graphs that are only looked at.
var goBackend = sync.OnceValues(func() (compute.Backend, error) { return gobackend.New("") })

// building builds graphs, which are never executed.
type building struct {
	data     Data
	rows     int  // of a batch
	coherent bool // whether draws are to be coherent
}

// fewRows is the number of examples of a batch that is built. 7 is unlikely to be a width, so that a network that confuses axes
// is noticed.
const fewRows = 7

// buildingOf builds an experiment's network for data like these.
func buildingOf(e Experiment, d Data) building {
	return building{data: d, rows: fewRows, coherent: e.Recipe.Coherent && e.Method.Process == nil}
}

// network is the network of an experiment. The head of a Gaussian process is made for features that are made up.
func (b building) network(e Experiment) (nets.Network, error) {
	network, _, err := e.network(b.data.Train, []uint64{1}, func() (all [][]float64, width int, err error) {
		headless, err := e.withHead(baselines.Headless{})
		if err == nil {
			err = b.build(headless, nil, false, false, func(_ *nets.Model, _ *model.Scope, outputs, _ *graph.Node) { width = outputs.Shape().Dim(-1) })
		}
		rng, features := rand.New(rand.NewPCG(1, 1)), make([]float64, max(200, e.Method.Process.Examples())*width)
		for i := range features {
			features[i] = rng.NormFloat64()
		}
		return [][]float64{features}, width, err
	})
	return network, err
}

// network is the network of an experiment. The head of a Gaussian process is made for training data, and for the features
// that the untrained networks with these seeds give to them.
func (e Experiment) network(d train.Dataset, seeds []uint64, features func() ([][]float64, int, error)) (n nets.Network, head Head, err error) {
	if e.Method.Process == nil {
		n, err = e.Task.Network.Over(e.Method.Layers)
		return n, head, err
	}
	if head, err = e.Method.Process.Head(HeadTask{Train: d, Likelihood: e.Task.Likelihood, Seeds: seeds, Features: features}); err == nil {
		n, err = e.withHead(head.Layers)
	}
	return n, head, err
}

// withHead is the network of a Gaussian process with another last layer.
func (e Experiment) withHead(head nets.Layers) (nets.Network, error) {
	return nets.WithHead(e.Task.Network, e.Method.Process.Hidden(), head)
}

// build builds the graph of a model, with initial values or zeros, shows it to look, and throws it away. The graph of
// training has the NLL, too.
func (b building) build(network nets.Network, l likelihood.Likelihood, training, initial bool, look func(m *nets.Model, s *model.Scope, outputs, nll *graph.Node)) error {
	backend, err := goBackend()
	if err != nil {
		return err
	}
	m, err := nets.New(backend, network, l, 1)
	if err != nil {
		return err
	}
	if !initial {
		params.WithoutValues(m.Store)
	}
	x, answers := b.batch()
	return nets.Build(backend, m.Store, func(root *model.Scope, in []*graph.Node) {
		x := in[0]
		root.Store().SetTraining(x.Graph(), training)
		if b.coherent {
			stochastic.SetCoherent(x.Graph())
		}
		if pixels, is := b.data.Train.Inputs.(nets.Pixels); is {
			x = pixels.Standardization.Images(x, dtypes.Float32)
		}
		s := m.Scope(root)
		outputs := m.Apply(s, x)
		m.CheckOutputs(s, outputs, b.rows)
		var nll *graph.Node
		if training { // a Gaussian process has draws of its outputs in training alone
			nll = checkedNLL(s, l, outputs, in[1], b.rows)
		}
		look(m, s, outputs, nll)
	}, x, answers)
}

// checkedNLL applies a likelihood, which may have parameters of its own, and panics if its result has a wrong shape.
func checkedNLL(s *model.Scope, l likelihood.Likelihood, outputs, answers *graph.Node, rows int) *graph.Node {
	defer nets.PanicWithError("the likelihood of type %T", l)
	each := l.NLL(s, outputs, answers)
	if dims := each.Shape().Dimensions; !slices.Equal(dims, []int{rows, 1}) {
		panic(fmt.Errorf("the NLL of the likelihood of type %T has the shape %s for %d examples; want [%d, 1]", l, each.Shape(), rows, rows))
	}
	return each
}

// batch are the shapes of a batch of inputs and of their answers.
func (b building) batch() (x, answers shapes.Shape) {
	switch inputs := b.data.Train.Inputs.(type) {
	case nets.Pixels:
		x = shapes.Make(dtypes.Uint8, b.rows, inputs.Channels(), inputs.Height, inputs.Width)
	case nets.Floats:
		x = shapes.Make(dtypes.Float32, append([]int{b.rows}, inputs.Shape...)...)
	}
	if b.data.Train.Labels != nil {
		return x, shapes.Make(dtypes.Int32, b.rows, 1)
	}
	return x, shapes.Make(dtypes.Float32, b.rows, max(1, len(b.data.Train.Targets)/b.data.Train.Len()))
}
