package nets

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
)

// ConvLayers is a family of layers with convolutions, for networks of images.
type ConvLayers interface {
	Layers
	// Conv maps images [channels, batch, height, width] to images
	// [Filters, batch, Out(height), Out(width)].
	Conv(s *model.Scope, x *graph.Node, c conv.Spec) *graph.Node
}

// A Network maps inputs to outputs, [..., batch, outputs], where "..." is the replica axis of a model with replicas.
// MLP takes [..., batch, features] and ResNet [channels, batch, height, width].
type Network interface {
	// Apply builds the network in the scope s and returns its outputs for the inputs x.
	Apply(s *model.Scope, x *graph.Node, outputs int) *graph.Node
}

// A Model is p(y | x) = Likelihood(y | Network(x)), with its parameters and its source of noise. New returns one;
// package train fits it and package predict predicts by it.
type Model struct {
	Network Network
	// Likelihood may be nil if the model is not trained.
	Likelihood likelihood.Likelihood
	Backend    compute.Backend
	Store      *model.Store
	// Replicas is the number of replicas, 0 for a model without a replica axis.
	Replicas int
	// Host draws the noise; if nil, noise is drawn in the graph.
	Host *stochastic.HostSampler
	// outputs is the number of outputs without a likelihood; 0 means 1.
	outputs int
	// lock makes those who execute graphs of the store take turns; nil in a model that was not made by this package.
	lock *sync.Mutex
	// DType is the type of parameters and activations; New sets Float32. You may change it to Float64 before the first
	// use. Training and predicting refuse any other type.
	DType dtypes.DType
}

// New returns an untrained model. The seed determines its initial parameters, its noise and the order of its training
// examples. On the pure Go backend the host draws the noise; on other backends the graph draws it. A nil network or
// backend and an invalid likelihood are errors.
func New(backend compute.Backend, network Network, l likelihood.Likelihood, seed uint64) (*Model, error) {
	m, err := newModel(backend, network, l, seed)
	if err == nil && ops.IsGo(backend) {
		m.Host = stochastic.NewHostSampler(seed)
	}
	return m, err
}

// SeedOf returns the seed for one member of an ensemble (0 without an ensemble) on one split. Seeds of neighbouring
// splits and members are far apart: the multipliers are 2^64 times the golden ratio and a multiplier of a linear
// congruential generator (Steele & Vigna 2021).
func SeedOf(seed uint64, split, member int) uint64 {
	return seed + uint64(split+1)*0x9e3779b97f4a7c15 + uint64(member)*0xd1342543de82ef95
}

// NewReplicas returns an untrained model of len(seeds) independent replicas, which is faster than one model after the
// other: they share a graph, in which activations and parameters have a leading replica axis. The host draws the noise
// on all backends, so that a replica depends neither on the other replicas nor on the backend. It is an error if there
// is no seed or if TakesReplicas(network) is false.
func NewReplicas(backend compute.Backend, network Network, l likelihood.Likelihood, seeds ...uint64) (*Model, error) {
	if len(seeds) == 0 {
		return nil, errors.New("a model of no replicas was asked for; give each replica a seed")
	}
	if network != nil && !TakesReplicas(network) {
		return nil, fmt.Errorf("replicas of a network of type %T were asked for, which does not say that its inputs may have a leading axis of replicas (see nets.TakesReplicas); make a model for each seed by nets.New", network)
	}
	m, err := newModel(backend, network, l, seeds...)
	if err == nil {
		m.Replicas, m.Host = len(seeds), stochastic.NewReplicatedHostSampler(seeds)
	}
	return m, err
}

// newModel makes the parts that all models have. The first seed is for the
// noise that is drawn in the graph.
func newModel(backend compute.Backend, network Network, l likelihood.Likelihood, seeds ...uint64) (m *Model, err error) {
	if network == nil || backend == nil {
		return nil, errors.New("a model without a network or without a backend was asked for; package environment opens backends")
	}
	if c, is := l.(likelihood.Checker); is {
		if err := c.Check(); err != nil {
			return nil, err
		}
	}
	type former interface { // Classification was, and says nothing of probabilities
		Correct(outputs, labels *graph.Node) *graph.Node
	}
	if _, is := l.(likelihood.Classification); !is {
		if _, is := l.(former); is {
			return nil, fmt.Errorf("a likelihood of type %T has the method Correct, by which nothing is predicted any more; replace it by LogProbabilities (likelihood.Classification)", l)
		}
	}
	if l != nil && l.Outputs() < 1 {
		return nil, fmt.Errorf("a likelihood of type %T has %d outputs; at least 1 is needed", l, l.Outputs())
	}
	store := model.NewStore()
	params.SetSeeds(store, seeds...)
	if err := store.SetRNGStateFromSeed(int64(seeds[0])); err != nil {
		return nil, err
	}
	return &Model{Network: network, Likelihood: l, Backend: backend, Store: store, DType: dtypes.Float32, lock: new(sync.Mutex)}, nil
}

// StartNoise restarts the noise of the model. The draws that follow depend only on the model's seeds and on name.
func (m *Model) StartNoise(name string) error {
	seeds := slices.Clone(m.Seeds())
	for i, seed := range seeds {
		sum := sha256.Sum256(fmt.Appendf(nil, "noise of %q by %d", name, seed))
		seeds[i] = binary.LittleEndian.Uint64(sum[:])
	}
	if m.Host == nil {
		return m.Store.SetRNGStateFromSeed(int64(seeds[0]))
	}
	state, err := stochastic.NewReplicatedHostSampler(seeds).State()
	if err != nil {
		return err
	}
	return m.Host.SetState(state)
}

// Seeds returns the seeds that New or NewReplicas was given, one for each replica.
func (m *Model) Seeds() []uint64 { return params.Seeds(m.Store) }

// Count returns the number of replicas, 1 for a model without a replica axis.
func (m *Model) Count() int { return max(m.Replicas, 1) }

// LeadingAxes returns the leading axes of the model's activations: [Replicas], or nil for a model without a replica axis.
func (m *Model) LeadingAxes() []int {
	if m.Replicas == 0 {
		return nil
	}
	return []int{m.Replicas}
}

// BatchShape returns the shape of a batch of as many rows of Inputs like x: [..., rows, Shape...] of type DType for Floats,
// [rows, channels, height, width] of bytes for Pixels.
func (m *Model) BatchShape(x Inputs, rows int) (batch shapes.Shape) {
	switch x := x.(type) {
	case Floats:
		batch = shapes.Make(m.DType, slices.Concat(m.LeadingAxes(), []int{rows}, x.Shape)...)
	case Pixels:
		batch = shapes.Make(dtypes.Uint8, rows, x.Channels(), x.Height, x.Width)
	}
	return batch
}

// Check returns an error if DType is neither Float32 nor Float64.
func (m *Model) Check() error {
	if err := params.CheckType(m.DType); err != nil {
		return fmt.Errorf("nets.Model.DType: %w", err)
	}
	return nil
}

// Replica returns the Copy of replica r. For a model without replicas, Replica(0) returns the model itself.
func (m *Model) Replica(r int) (*Model, error) {
	if m.Replicas == 0 && r == 0 {
		return m, nil
	}
	return m.Copy(r)
}

// Copy returns a model without replicas that has the present parameters and running statistics of replica r, 0 for a model
// without replicas. Training m further does not change it. It is an error if r is out of range.
func (m *Model) Copy(r int) (*Model, error) {
	if r < 0 || r >= m.Count() {
		return nil, fmt.Errorf("the model has %d replicas, and no replica %d", m.Replicas, r)
	}
	one, err := New(m.Backend, m.Network, m.Likelihood, m.Seeds()[r])
	if err != nil {
		return nil, err
	}
	one.DType = m.DType
	for v := range m.Store.IterVariables() {
		if params.RoleOf(v, m.Store) == "" {
			continue
		}
		values, shape, err := params.Values(m.Store, v.Path())
		if err != nil {
			return nil, err
		}
		size := len(values) / m.Count()
		set, err := params.Set(one.Store, v.Path(), params.FromFloat64(shapes.Make(shape.DType, shape.Dimensions[len(m.LeadingAxes()):]...), values[r*size:][:size]))
		if err != nil {
			return nil, err
		}
		set.SetTrainable(v.Trainable)
		params.SetLoaded(one.Store, v.Path())
	}
	return one, nil
}

// Lock locks the model, and all models that share its parameters (see With), for executing graphs, and returns the
// function that unlocks it. Package predict uses it; training does not.
func (m *Model) Lock() (release func()) {
	if m.lock == nil {
		return func() {}
	}
	m.lock.Lock()
	return m.lock.Unlock
}

// Scope returns the scope of the model's parameters below the store's root.
func (m *Model) Scope(root *model.Scope) *model.Scope { return root.In("model") }

// Apply returns the network's outputs for x, with fresh noise; s is the result of Scope. It panics with an error if the
// network panics, if x has another shape than the network takes, if the outputs are not as many as the likelihood
// needs, or if a loaded file (checkpoint.SetTensors) is of another network.
func (m *Model) Apply(s *model.Scope, x *graph.Node) *graph.Node {
	outputs := m.outputCount()
	s = s.In("network")
	params.FactsOf(x.Graph()).Replicas = m.LeadingAxes()
	if g := x.Graph(); !s.Store().IsTraining(g) {
		for v := range s.IterVariables() { // also of layers that are GoMLX's own
			params.Input(s.Store(), v, g)
		}
	}
	m.checkInput(x)
	facts := m.facts(x)
	heads := headsOf(x.Graph())
	heads.built, heads.process = 0, false
	y := apply(m.Network, s, x, outputs)
	if raw := params.Raw(s); len(raw) > 0 && m.Replicas > 0 {
		panic(fmt.Errorf("the network has variable %s, which its %d replicas would share; make it by params.New, which gives each replica its own, or make a model for each seed by nets.New", raw[0], m.Replicas))
	}
	if m.Likelihood == nil { // of a part of the network, see With
		return y
	}
	if facts.NeedsHead && s.Store().IsTraining(x.Graph()) { // predict.Marginals has another likelihood, and no Process.Head
		if _, gaussian := m.Likelihood.(likelihood.Gaussian); !gaussian && !facts.Classes {
			panic(fmt.Errorf("a Gaussian process is for likelihood.Gaussian or for classes, not for a %T", m.Likelihood))
		}
		heads.check(m.Network)
		if !heads.process {
			panic(fmt.Errorf("the network of type %T has layers for a Gaussian process, and its last layer is none; give all layers as one nets.Process, such as baselines.SNGP{}, or take baselines.SpectralNormed{}; a type around a family hides its methods Head and Moments", m.Network))
		}
		if heads.last != y {
			panic(fmt.Errorf("the outputs of the network of type %T are not those of its Gaussian process, which it changes afterwards; do nothing with the result of layers.Dense(s.In(\"output\"), ...)", m.Network))
		}
	}
	if y.Shape().Dim(-1) != outputs {
		panic(fmt.Errorf("the network of type %T has outputs of shape %s, where the likelihood of type %T needs %d for each input", m.Network, y.Shape(), m.Likelihood, outputs))
	}
	if err := params.CheckLoaded(s, x.Graph()); err != nil {
		panic(err)
	}
	return y
}

// NLL returns the likelihood's -log p(answers | outputs) of each example, [..., batch, 1], in the scope of Scope. It panics with
// an error if the likelihood panics or returns another shape.
func (m *Model) NLL(s *model.Scope, outputs, answers *graph.Node) *graph.Node {
	defer PanicWithError("the NLL of the likelihood of type %T", m.Likelihood)
	nll, want := m.Likelihood.NLL(s, outputs, answers), slices.Clone(answers.Shape().Dimensions)
	want[len(want)-1] = 1
	if !slices.Equal(nll.Shape().Dimensions, want) {
		panic(fmt.Errorf("the NLL of the likelihood of type %T has shape %s for answers of shape %s; want one number for each example, %v", m.Likelihood, nll.Shape(), answers.Shape(), want))
	}
	return nll
}

// facts tells the layers about the model.
func (m *Model) facts(x *graph.Node) *params.Facts {
	facts, dims, batch := params.FactsOf(x.Graph()), x.Shape().Dimensions, len(m.LeadingAxes())
	_, facts.Classes = m.Likelihood.(likelihood.Classification)
	if facts.Images {
		batch = 1
	}
	if len(dims) > batch {
		one := slices.Delete(slices.Clone(dims), batch, batch+1) // the number of examples may be open, as in an ONNX file
		facts.Inputs = shapes.Make(x.DType(), one[len(m.LeadingAxes()):]...).Size()
	}
	return facts
}

// outputCount is the number of outputs for each input: that of the likelihood, or of the model that With was called for.
func (m *Model) outputCount() int {
	if m.Likelihood != nil {
		return m.Likelihood.Outputs()
	}
	return max(m.outputs, 1)
}

// CheckOutputs panics unless y, the result of Apply for a batch of so many inputs, is [replicas..., batch, outputs]. In
// training y may have a leading axis of draws (see likelihood.Categorical).
func (m *Model) CheckOutputs(s *model.Scope, y *graph.Node, batch int) {
	dims, want := y.Shape().Dimensions, append(m.LeadingAxes(), batch)
	extra := len(dims) - 1 - len(want)
	if draws := extra == 1 && s.Store().IsTraining(y.Graph()); extra != 0 && !draws || !slices.Equal(dims[extra:len(dims)-1], want) {
		panic(fmt.Errorf("the network of type %T has outputs of shape %s for a batch of %d inputs; want a row for each input, %v and the outputs: an operation of the network lost or changed the batch axis", m.Network, y.Shape(), batch, want))
	}
}

// checkInput panics on inputs that are not of the kind which a network of this package
// takes. An MLP would take the first axes of inputs with too many for those of replicas.
func (m *Model) checkInput(x *graph.Node) {
	switch m.Network.(type) {
	case MLP, *MLP, ResidualMLP, *ResidualMLP, ResidualSum, *ResidualSum, allSums:
		if x.Rank() == 2+len(m.LeadingAxes()) {
			return
		}
		rows := "[batch, features]"
		if m.Replicas > 0 {
			rows = fmt.Sprintf("[%d replicas, batch, features]", m.Replicas)
		}
		panic(fmt.Errorf("the network of type %T takes inputs %s, and these are %s: give nets.Rows(values, features), which are nets.Floats with a Shape of one axis; images are for nets.ResNet",
			m.Network, rows, x.Shape()))
	case ResNet, *ResNet:
		if x.Rank() != 4 {
			panic(fmt.Errorf("the network of type %T takes images [channels, batch, height, width], and these inputs are %s: give nets.Pixels; nets.Floats are for networks such as nets.MLP", m.Network, x.Shape()))
		}
	}
}

// apply applies a network and turns what it panics with into an error.
func apply(network Network, s *model.Scope, x *graph.Node, outputs int) *graph.Node {
	defer PanicWithError("building the network")
	y := network.Apply(s, x, outputs)
	if y == nil {
		panic(fmt.Errorf("the network of type %T returned nil; return the outputs", network))
	}
	return y
}

// PanicWithError turns a panic with another value than an error, or with a runtime error, into a panic with an error
// that begins with the given words. Defer it where a graph is built with a user's functions:
//
//	defer nets.PanicWithError("NLL of the likelihood of type %T", l)
//
// GoMLX recovers only from errors. Other values would leave its lock held, and closing the model would hang.
func PanicWithError(format string, args ...any) {
	switch problem := recover().(type) {
	case nil:
	case runtime.Error:
		panic(fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), problem))
	case error:
		panic(problem)
	default:
		panic(fmt.Errorf("%s: %v", fmt.Sprintf(format, args...), problem))
	}
}

// Cause returns the reason why a graph could not be built or executed, without the 250 characters that GoMLX puts
// before it.
func Cause(err error) error {
	for e := err; e != nil; e = errors.Unwrap(e) {
		if cause := errors.Unwrap(e); cause != nil && strings.HasPrefix(e.Error(), "graphFn for ") && strings.HasSuffix(e.Error(), " panicked: "+cause.Error()) {
			return cause
		}
	}
	return err
}

// With returns a model with another network on the same parameters and without a likelihood, such as a network without
// the last layer, which returns features. The network is asked for as many outputs as m has.
func (m *Model) With(network Network) *Model {
	other := *m
	other.Network, other.Likelihood, other.outputs = network, nil, m.outputCount()
	return &other
}

// NoiseVariances returns the variances sigma^2 of likelihood.Gaussian, one for each replica. It is an error with
// another likelihood, or if the model was never used.
func (m *Model) NoiseVariances() ([]float64, error) {
	const path = "/model/" + likelihood.LogVariance
	if m.Store.GetVariable(path) == nil {
		return nil, errors.New("the model has no observation noise yet: train it first, with likelihood.Gaussian")
	}
	variances, _, err := params.Values(m.Store, path)
	if err != nil {
		return nil, fmt.Errorf("reading the observation noise: %w", err)
	}
	for i, logVariance := range variances {
		variances[i] = math.Exp(logVariance)
	}
	return variances, nil
}

// A LayerEnergy is the energy of the input of one layer.
type LayerEnergy struct {
	// Layer is the layer's scope below the network's, such as
	// "stage_2_block_1/conv_2".
	Layer string
	// Window is the window of a convolution, and zero for a dense layer.
	Window conv.Window
	// Energy is the energy E of each example, [batch, 1]; for an image the mean over its positions.
	Energy *graph.Node
}

const energiesKey = "/layer_energies"

// Energies returns the energies of a graph's layers with energy models, in the order in which the network applies the
// layers. If a graph applies the network several times, the list has each layer as often.
func Energies(g *graph.Graph) []LayerEnergy { return *energiesOf(g) }

func energiesOf(g *graph.Graph) *[]LayerEnergy { return params.OfGraph[[]LayerEnergy](g, energiesKey) }

// A normalizer is a family with a batch normalisation of its own.
type normalizer interface {
	// Norm maps images [channels, batch, height, width] to images of the same shape.
	Norm(s *model.Scope, x *graph.Node) *graph.Node
}

// NoiseState returns the state of the model's noise, for SetNoiseState: the position of the host's streams, or the
// random state of the store.
func (m *Model) NoiseState() (state []byte, err error) {
	if m.Host != nil {
		return m.Host.State()
	}
	value, err := m.randomState().Value()
	if err == nil {
		err = value.ConstBytes(func(data []byte) { state = bytes.Clone(data) })
	}
	return state, err
}

// SetNoiseState restores a state that NoiseState of this model returned, so that the same draws follow. A graph that
// was built before may already hold noise for its next execution.
func (m *Model) SetNoiseState(state []byte) error {
	if m.Host != nil {
		return m.Host.SetState(state)
	}
	value := tensors.FromShape(m.randomState().Shape())
	if err := value.MutableBytes(func(data []byte) { copy(data, state) }); err != nil {
		return err
	}
	return m.randomState().SetValue(value)
}

// randomState is the variable of the store that noise in the graph is drawn from.
func (m *Model) randomState() *model.Variable {
	return m.Store.GetVariable(model.JoinPath(model.ScopeSeparator, model.RNGStateVariableName))
}
