package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/floats"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/dul/train"
)

// Check returns an error that names everything about the experiment that cannot be, as far as it is seen without
// reading data: settings that are missing, infinite, of no use or contradict each other. An Engine calls it for all
// experiments, and then looks at data and networks, before it trains any. A part with a method Check() error, such as a
// Source, a likelihood, a Process or an optimizer, is asked.
func (e Experiment) Check() error {
	var all problems
	t, m := e.Task, e.Method
	all.add(checkSource(t.Data))
	all.need(t.Network != nil, "Task.Network is nil; give one, such as nets.MLP{Widths: []int{50, 50}}")
	all.need(t.Likelihood != nil, "Task.Likelihood is nil; give one, such as likelihood.Gaussian{}")
	all.need(m.Layers != nil || m.Process != nil, "Method has neither Layers nor a Process")
	all.need(m.Layers == nil || m.Process == nil, "Method has Layers and a Process; a process brings its own layers, so leave Layers out")
	all.need(m.Members == 0 || m.Members > 1, "Method.Members is %d; leave it out for a single network, or set it to at least 2", m.Members)
	if t.Data != nil {
		splits := t.Data.Splits()
		all.need(e.Split >= 0 && e.Split < splits, "Split is %d; the data have %d splits, numbered from 0", e.Split, splits)
	}
	all.add(checkItself(m.Process))
	all.add(checkItself(m.Sampler))
	all.need(m.Sampler == nil || t.After == nil, "Task.After asks trained networks, and Method.Sampler draws others; leave it out")
	all.need(m.Sampler == nil || m.Layers != nil, "Method.Sampler is set, but there are no Layers; it draws the parameters of a network, and not those of a Process")
	all.add(e.checkDecision())
	all.need(m.Process == nil || !e.Recipe.EarlyStopping, "Recipe.EarlyStopping is set, but a Gaussian process is finished only after training, and cannot be scored before")
	if m.Process != nil && t.Likelihood != nil {
		_, gaussian := t.Likelihood.(likelihood.Gaussian)
		all.need(gaussian || isClassification(t.Likelihood), "a Gaussian process is for likelihood.Gaussian or for classes, not for a %T", t.Likelihood)
	}
	if m.Process != nil && t.Network != nil {
		all.need(hasClosedForm(t.Network) || isClassification(t.Likelihood), "a Gaussian process predicts a regression in closed form, for which the network must be a nets.MLP or a nets.ResidualMLP; it is a %T", t.Network)
	}
	all.add(checkItself(t.Likelihood))
	for i, metric := range t.Metrics {
		all.need(metric != nil, "Task.Metrics[%d] is nil", i)
	}
	all.add(checkArchitecture(t.Network))
	if m.Layers != nil && t.Network != nil {
		_, err := t.Network.Over(m.Layers)
		all.add(err)
	}
	all.add(e.Recipe.check(t.Likelihood))
	_, err := treeOf(e)
	all.add(err)
	return e.problem(all.err())
}

// checkSource says what is wrong with a source, as far as it knows without reading data.
func checkSource(data Source) error {
	if data == nil {
		return errors.New("Task.Data is nil; give a source, such as experiment.Table or experiment.Arrays")
	}
	return checkItself(data)
}

// checkItself asks a value what is wrong with it, if it can say so.
func checkItself(v any) error {
	if c, has := v.(likelihood.Checker); has {
		return c.Check()
	}
	return nil
}

// problems collects what is wrong, so that all of it is said at once.
type problems []error

// add notes an error; nil is none.
func (p *problems) add(err error) { *p = append(*p, err) }

// need notes an error, unless ok.
func (p *problems) need(ok bool, format string, args ...any) {
	if !ok {
		p.add(fmt.Errorf(format, args...))
	}
}

// value is a number, whose error is noted.
func (p *problems) value(v float64, err error) float64 {
	p.add(err)
	return v
}

// err is all that is wrong as one error; nil if nothing is.
func (p problems) err() error { return errors.Join(p...) }

// problem is an error about the experiment; nil for none.
func (e Experiment) problem(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("experiment: %v: %w", e, err)
}

// checkArchitecture refuses an architecture with a family of layers of its own, which the method's would replace.
func checkArchitecture(a nets.Architecture) error {
	var layers nets.Layers
	switch a := a.(type) {
	case nets.MLP:
		layers = a.Layers
	case nets.ResidualMLP:
		if layers = a.Layers; layers == nil {
			layers = a.Head
		}
	case nets.ResidualSum:
		layers = a.Layers
	case nets.ResNet:
		if a.Layers != nil {
			layers = a.Layers
		}
	}
	if layers != nil {
		return fmt.Errorf("Task.Network has Layers of type %T; leave them out, since the Method's take their place", layers)
	}
	return nil
}

func isClassification(l likelihood.Likelihood) bool {
	_, is := l.(likelihood.Classification)
	return is
}

// inspected is what the engine knows of a group of experiments before it trains them.
type inspected struct {
	traits   Traits
	cost     float64 // of training one experiment, in examples of a small network
	images   bool
	replicas bool // whether its experiments can be replicas of one graph
}

// imageCost compares training steps: an image costs a plain ResNet-14 about 2.5 ms of a processor's time, and an example
// costs a small network, as for UCI, about 0.018 ms.
const imageCost = 140

// inspect loads the data of an experiment and builds its network, to see what is wrong with them. It trains nothing.
func (e Experiment) inspect(ctx context.Context) (found inspected, err error) {
	d, err := e.load(ctx)
	if err != nil {
		return found, err
	}
	if found.traits, err = traitsWith(e, d); err != nil {
		return found, err
	}
	if err := found.traits.suit(e); err != nil {
		return found, err
	}
	found.cost = float64(e.Method.members()) * float64(d.Train.Len()) * float64(e.Recipe.Epochs+e.Recipe.PretrainEpochs)
	if e.Task.Decision != nil {
		found.cost *= float64(e.Task.Decision.Rounds())
	}
	switch d.Train.Inputs.(type) {
	case nets.Pixels:
		found.images = true
		found.cost *= imageCost
	case nets.Floats:
		if found.replicas, err = e.takesReplicas(); err != nil {
			return found, err
		}
	}
	if err := found.checkDraws(ctx, e, d); err != nil {
		return found, err
	}
	if e.Recipe.Augmentation != nil && !found.images {
		return found, errors.New("Recipe.Augmentation is for images, and the inputs are none")
	}
	return found, nil
}

// checkDraws draws once from the untrained network, where that can show what its graph does not: layers that have no
// coherent draws, and a function that mixes the examples of a batch.
func (found *inspected) checkDraws(ctx context.Context, e Experiment, d Data) error {
	if e.Recipe.Coherent && (found.images || e.Method.Process != nil) {
		return errors.New("Recipe.Coherent is neither for images nor for Gaussian processes; leave it out")
	}
	_, function := e.Task.Network.(nets.Func)
	if !e.Recipe.Coherent && !function {
		return nil
	}
	inputs := firstInputs(d.Train.Inputs, 4)
	outputs, err := e.untrainedOutputs(ctx, inputs, 0)
	if err != nil || !function {
		return err
	}
	alone, err := e.untrainedOutputs(ctx, inputs, 1)
	if err == nil && !closeTo(outputs, alone) {
		err = errors.New("Task.Network mixes the examples of a batch: its outputs for one example change with the others, so that predictions would depend on Recipe.PredictBatch; look for an operation over the axis of the batch")
	}
	return err
}

// untrainedOutputs draws the outputs of the untrained network once, with so many inputs in a batch; 0 means all. A network
// for a Gaussian process has plain layers here.
func (e Experiment) untrainedOutputs(ctx context.Context, x nets.Inputs, batch int) ([]float64, error) {
	backend, err := gobackend.New("")
	if err != nil {
		return nil, err
	}
	defer backend.Finalize()
	var layers nets.Layers = baselines.Deterministic{}
	if e.Method.Process == nil {
		layers = e.Method.Layers
	}
	network, err := e.Task.Network.Over(layers)
	if err != nil {
		return nil, err
	}
	m, err := nets.New(backend, network, bareLikelihood{e.Task.Likelihood}, 1)
	if err != nil {
		return nil, err
	}
	p, err := predict.Sample(ctx, m, x, predict.Options{Samples: 1, Seed: new(uint64), BatchSize: batch, Coherent: e.Recipe.Coherent})
	if err != nil {
		return nil, err
	}
	return p.Outputs[0], nil
}

// firstInputs are at most the first n of several inputs.
func firstInputs(x nets.Inputs, n int) nets.Inputs {
	n = min(n, x.Len())
	switch x := x.(type) {
	case nets.Floats:
		x.Values = x.Values[:n*x.Size()]
		return x
	case nets.Pixels:
		x.Bytes = x.Bytes[:n*x.Size()]
		return x
	}
	return x
}

// A bareLikelihood says nothing of outputs but their number.
type bareLikelihood struct{ likelihood.Likelihood }

// closeTo says whether two lists are equal but for the rounding of float32.
func closeTo(a, b []float64) bool {
	return floats.Distance(a, b, math.Inf(1)) <= 1e-4*floats.Norm(a, math.Inf(1))
}

// load loads the data of an experiment, whose Unit is then never 0, and checks them.
func (e Experiment) load(ctx context.Context) (d Data, err error) {
	defer recovered(&err)
	d, err = e.Task.Data.Load(ctx, e.Split)
	d.Unit = cmp.Or(d.Unit, 1)
	if err == nil {
		err = d.check(e.Task.Likelihood)
	}
	if err != nil {
		return d, err
	}
	if _, counts := e.Task.Likelihood.(likelihood.TargetChecker); !counts && allEqual(d.Train.Targets) {
		return d, fmt.Errorf("all %d training targets of the split are %g, so that there is nothing to learn; leave the split out, or give other data", len(d.Train.Targets), d.Train.Targets[0])
	}
	if due, is := e.Method.Process.(DUE); is && due.Inducing > d.Train.Len() {
		return d, fmt.Errorf("experiment.DUE has %d inducing points, which start among the training examples, and there are %d; set Inducing to at most that", due.Inducing, d.Train.Len())
	}
	if e.Recipe.EarlyStopping && d.HeldOut.Inputs == nil {
		return d, errors.New("Recipe.EarlyStopping needs held-out examples, and the data have none; set the HeldOut of the source")
	}
	return d, nil
}

// takesReplicas says whether networks of the experiment can be replicas of one graph. Gaussian processes draw the outputs
// of a classification in training, which replicas do not; a Sampler and an After are for one experiment.
func (e Experiment) takesReplicas() (bool, error) {
	if e.Method.Sampler != nil || e.Task.After != nil {
		return false, nil
	}
	if e.Method.Process != nil {
		return !isClassification(e.Task.Likelihood), nil
	}
	network, err := e.Task.Network.Over(e.Method.Layers)
	return err == nil && nets.TakesReplicas(network), err
}

// allEqual says whether several values are all the same.
func allEqual(values []float64) bool {
	return len(values) > 1 && slices.Min(values) == slices.Max(values)
}

// suit says what of an experiment's recipe does not suit its network.
func (t Traits) suit(e Experiment) error {
	r := e.Recipe
	var all problems
	for name, groups := range map[string][]train.Group{"Groups": r.Groups, "PretrainGroups": r.PretrainGroups} {
		trained := make([]bool, len(groups))
		for _, p := range t.Parameters {
			i := slices.IndexFunc(groups, func(g train.Group) bool { return g.Contains(p.Name, p.Role) })
			if i >= 0 {
				trained[i] = true
			}
			all.need(i >= 0 || name != "Groups", "parameter %s, of the role %s, is in no group of Recipe.Groups; add one, without an Optimizer if it is to stay as it is", p.Name, p.Role)
		}
		for i, some := range trained {
			all.need(some, "Recipe.%s[%d] contains no parameter, with the roles %v: the network has none, or groups before it contain them; leave the group out", name, i, groups[i].Roles)
		}
	}
	generative := slices.ContainsFunc(r.Groups, func(g train.Group) bool {
		return g.Optimizer != nil && slices.Contains(g.Roles, params.Generative)
	})
	all.need(t.Energies || r.PretrainEpochs == 0 && !r.WeightEnergies && r.LogLikelihoodScale == 0,
		"Recipe has PretrainEpochs, WeightEnergies or a LogLikelihoodScale, but no layer of the network has an energy model; leave them 0 for this method")
	all.need(!t.Energies || !generative || r.LogLikelihoodScale != 0, "Recipe.LogLikelihoodScale is 0, so that the energy models of the layers would not be trained; it is 1 in the paper")
	all.need(t.Noise || r.Samples == 1, "Recipe.Samples is %d, but all draws would be equal: the network has no noise, or a closed form; set it to 1", r.Samples)
	return all.err()
}

// closedForm says whether predictions are the marginals of a Gaussian process.
func closedForm(e Experiment) bool {
	_, gaussian := e.Task.Likelihood.(likelihood.Gaussian)
	return e.Method.Process != nil && gaussian
}

// Traits are what is found out about a network by building it.
type Traits struct {
	Energies   bool // whether layers have energy models
	Noise      bool // whether predictions differ from draw to draw
	Parameters []Parameter
}

// A Parameter is a trainable parameter of a network.
type Parameter struct {
	Name  string // its path below the model's, such as "network/output/bias"
	Role  params.Role
	Shape []int // without replicas
}

// Has says whether there are parameters of a role.
func (t Traits) Has(role params.Role) bool {
	return slices.ContainsFunc(t.Parameters, func(p Parameter) bool { return p.Role == role })
}

// methodTraits remembers what MethodTraits found out, by the method and the likelihood.
var methodTraits sync.Map

// MethodTraits are the traits of a method's networks, found out on a small perceptron: what a preset must know to choose
// groups and samples. A Gaussian process may be for a likelihood. They are found out once.
func MethodTraits(m Method, l likelihood.Likelihood) (Traits, error) {
	var w treeWriter
	spec, err := w.tree(reflect.ValueOf(Experiment{Task: Task{Likelihood: l}, Method: m}), "Experiment")
	if err != nil || w.outside { // what has no identity of its own is not remembered
		return newMethodTraits(m, l)
	}
	if known, has := methodTraits.Load(textOf(spec)); has {
		return known.(Traits), nil
	}
	t, err := newMethodTraits(m, l)
	if err == nil {
		methodTraits.Store(textOf(spec), t)
	}
	return t, err
}

func newMethodTraits(m Method, l likelihood.Likelihood) (Traits, error) {
	if m.Layers == nil && m.Process == nil {
		return Traits{}, errors.New("experiment: there are no layers; give some, such as dul.Density{}")
	}
	answers := train.Dataset{Inputs: nets.Rows([]float64{1, 2, 3, 4, 5, 6}, 2), Targets: []float64{1, 2, 3}}
	if isClassification(l) {
		answers.Targets, answers.Labels = nil, []int{0, 1, 0}
	}
	e := Experiment{Task: Task{Network: nets.MLP{Widths: []int{2}}, Likelihood: l}, Method: m}
	return traitsWith(e, Data{Train: answers})
}

// traitsWith builds the network of an experiment for data as these. An error says what is wrong with the layers, the
// network or the likelihood.
func traitsWith(e Experiment, d Data) (t Traits, err error) {
	backend, err := gobackend.New("")
	if err != nil {
		return t, err
	}
	defer backend.Finalize()
	b := building{backend, d}
	network, err := b.network(e)
	if err != nil {
		return t, err
	}
	err = b.build(network, e.Task.Likelihood, true, false, func(m *nets.Model, _ *model.Scope, outputs, _ *graph.Node) {
		t.Energies = stochastic.LayerLossesOf(outputs.Graph()).LogLikelihood != nil
		for v := range m.Store.IterVariables() {
			if role := params.RoleOf(v, m.Store); role != "" && v.Trainable {
				t.Parameters = append(t.Parameters, Parameter{strings.TrimPrefix(v.Path(), "/model/"), role, v.Shape().Dimensions})
			}
		}
	})
	if err != nil {
		return t, err
	}
	slices.SortFunc(t.Parameters, func(a, b Parameter) int { return cmp.Compare(a.Name, b.Name) })
	if e.Method.Process != nil { // it predicts only once it was finished
		t.Noise = e.Method.Process.Draws() && isClassification(e.Task.Likelihood)
		return t, nil
	}
	err = b.build(network, e.Task.Likelihood, false, false, func(_ *nets.Model, _ *model.Scope, outputs, _ *graph.Node) {
		t.Noise = stochastic.HasNoise(outputs.Graph())
	})
	return t, err
}

// building builds graphs, which are never executed, for batches of a few examples.
type building struct {
	backend compute.Backend
	data    Data
}

// rows is the number of examples of a batch that is built. It is no usual number of outputs or features, so that a
// network that confuses axes is noticed.
const rows = 7

// network is the network of an experiment. The head of a Gaussian process is made for features that are made up.
func (b building) network(e Experiment) (nets.Network, error) {
	if e.Method.Process == nil {
		return e.Task.Network.Over(e.Method.Layers)
	}
	heads, width := 0, 0
	headless, err := withHead(e.Task.Network, e.Method.Process, countedHead{count: &heads})
	if err == nil {
		err = b.build(headless, nil, false, false, func(_ *nets.Model, _ *model.Scope, outputs, _ *graph.Node) { width = outputs.Shape().Dim(-1) })
	}
	switch {
	case err != nil:
		return nil, err
	case heads != 1:
		return nil, fmt.Errorf("a Gaussian process takes the place of the dense layer at the scope %s, and the network %T has %d there; build its last layer by layers.Dense(s.In(\"output\"), ...)", headScope, e.Task.Network, heads)
	}
	t := headTask(e, b.data, []uint64{1})
	t.Features = func() ([][]float64, int, error) {
		examples := 200
		if due, is := e.Method.Process.(DUE); is {
			examples = max(examples, due.Inducing)
		}
		rng, features := rand.New(rand.NewPCG(1, 1)), make([]float64, examples*width)
		for i := range features {
			features[i] = rng.NormFloat64()
		}
		return [][]float64{features}, width, nil
	}
	head, err := e.Method.Process.Head(t)
	if err != nil {
		return nil, err
	}
	return withHead(e.Task.Network, e.Method.Process, head.Layers)
}

// headTask is what the head of a Gaussian process is made for, without Features.
func headTask(e Experiment, d Data, seeds []uint64) HeadTask {
	t := HeadTask{Examples: d.Train.Len(), Seeds: seeds}
	if isClassification(e.Task.Likelihood) {
		t.Classes = e.Task.Likelihood.Outputs()
	}
	switch x := d.Train.Inputs.(type) {
	case nets.Pixels:
		t.Images, t.Inputs = true, x.Size()
	case nets.Floats:
		t.Inputs = x.Size()
	}
	return t
}

// build builds the graph of a model, with initial values or zeros, shows it to look, and throws it away. The graph of
// training has the NLL, too.
func (b building) build(network nets.Network, l likelihood.Likelihood, training, initial bool, look func(m *nets.Model, s *model.Scope, outputs, nll *graph.Node)) error {
	m, err := nets.New(b.backend, network, l, 1)
	if err != nil {
		return err
	}
	if !initial {
		params.WithoutValues(m.Store)
	}
	x, answers := b.batch()
	return nets.Build(b.backend, m.Store, func(root *model.Scope, in []*graph.Node) {
		x := in[0]
		root.Store().SetTraining(x.Graph(), training)
		if pixels, is := b.data.Train.Inputs.(nets.Pixels); is {
			x = pixels.Standardization.Images(x, dtypes.Float32)
		}
		s := m.Scope(root)
		outputs := m.Apply(s, x)
		m.CheckOutputs(s, outputs, rows)
		var nll *graph.Node
		if training { // a Gaussian process has draws of its outputs in training alone
			nll = checkedNLL(s, l, outputs, in[1])
		}
		look(m, s, outputs, nll)
	}, x, answers)
}

// checkedNLL applies a likelihood, which may have parameters of its own, and panics if its result has a wrong shape.
func checkedNLL(s *model.Scope, l likelihood.Likelihood, outputs, answers *graph.Node) *graph.Node {
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
		x = shapes.Make(dtypes.Uint8, rows, inputs.Channels(), inputs.Height, inputs.Width)
	case nets.Floats:
		x = shapes.Make(dtypes.Float32, append([]int{rows}, inputs.Shape...)...)
	}
	if b.data.Train.Labels != nil {
		return x, shapes.Make(dtypes.Int32, rows, 1)
	}
	return x, shapes.Make(dtypes.Float32, rows, max(1, len(b.data.Train.Targets)/b.data.Train.Len()))
}
