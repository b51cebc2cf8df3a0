// Package methods has the ways to get uncertain predictions that the experiments compare: the paper's, those that
// this project adds, and any that a notebook or another module makes with New.
//
// A Method is a value that holds everything an experiment must know of it. No other package asks for a method by
// its name; what makes a method special is a field here.
package methods

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/results"
)

// A Method is one way to get uncertain predictions: a family of layers that networks are built of, and what an
// experiment must know to train it and to show it. The zero value is not a method; New makes one of any family.
type Method struct {
	// Name stands for the method in result lines, file names and on the command line: lower-case letters, digits,
	// hyphens and underscores. It is part of the identity of experiments.
	Name string
	// Title is the heading of its columns and rows in tables, and of its panels.
	Title string
	// Paper is what the paper calls it in its tables; the zero value is a method that the paper does not have.
	Paper PaperNames

	// Layers makes the family of layers with the options, whose numbers are filled in (see Own). Image networks
	// need nets.ConvLayers; a family without is for the toy and UCI.
	Layers func(o Options) nets.Layers
	// Process, if not nil, is the Gaussian process that takes the place of the networks' last layer.
	Process Process
	// Members is the number of networks whose mixture is the prediction, each from a seed of its own; 0 means 1.
	Members int

	// SamplesOnce says that a network's predictions do not differ from sample to sample, so that one is enough.
	SamplesOnce bool
	// HasEnergies says that the layers have energy models: these are trained by themselves first (generative
	// pretraining), and tell images out of distribution.
	HasEnergies bool
	// FitsTemperature says that image classifiers get a temperature, fitted on held-out images.
	FitsTemperature bool
	// FitsGaussian says that image classifiers get Gaussians, fitted to the features of the training images afterwards,
	// by which images out of distribution are told too: the control for energy models that are trained with the network.
	FitsGaussian bool
	// Detects are the scores of its own by which it tells images out of distribution, besides the maximum
	// probability that all methods have; see package cifar.
	Detects []string

	// ImageSamples is the number of samples that image experiments with the method ask for; 0 means the protocol's.
	ImageSamples int
	// ImageSchedule, if not nil, is the learning rate of image classifiers from the first step's on, in the place
	// of the protocol's.
	ImageSchedule func(rate float64) train.Schedule

	// NoiseScale is the option that says how strong the method's noise is at the start, such as InitStd, which a choice
	// of hyperparameters tries values of; "" for a method without one.
	NoiseScale string

	// Own fills in options that are 0 or "" with what the method has of its own in a setting. What is still not
	// filled in then is the setting's. Nil has nothing of its own.
	Own func(s Setting, o *Options)
	// Change, if not nil, is what runs with the method have otherwise than the protocol that asks for them; see Variant.
	Change func(o *Options)

	family *nets.Layers // of New, which tells two methods apart that it made under one name
}

// PaperNames are the paper's names of a method.
type PaperNames struct {
	UCI    string // the column of its UCI tables
	Images string // the row of its classification and detection tables
}

// Setting is where a method's options are asked for.
type Setting struct {
	Study    string // results.Toy, results.UCI or results.Images
	Fidelity string // results.Paper or results.Released
	Dataset  string
	Network  string // of images
}

// New is a method of a family of layers that notebooks and other modules define: every field that is not given
// has the usual value, and the name is the title too. Its layers are the ones given, whatever the options; set
// Layers for a family that takes some. That an option changes nothing for it is noticed only of a family that
// reflect.DeepEqual finds equal to itself: one without functions in its fields.
//
// Whether its layers have energy models, and so want generative pretraining and tell images out of distribution by
// their energies, is found out by building one of them.
func New(name string, family nets.Layers) Method {
	m := Method{Name: name, Title: name, Layers: func(Options) nets.Layers { return family }, family: &family}
	if m.HasEnergies = hasEnergies(family); m.HasEnergies {
		m.Detects = []string{ByEnergy}
	}
	return m
}

// hasEnergies builds a dense layer, of a single unit, and looks whether it has a log-likelihood. A family that
// cannot be built has none; what is wrong with it is said where it is trained.
func hasEnergies(family nets.Layers) (has bool) {
	backend, err := gobackend.New("")
	if err != nil {
		return false
	}
	defer backend.Finalize()
	exec, err := model.NewExec(backend, model.NewStore(), func(s *model.Scope, x *graph.Node) *graph.Node {
		s.Store().SetTraining(x.Graph(), true)
		y := (&nets.Model{Network: nets.MLP{Layers: family}}).Apply(s, x)
		has = stochastic.LayerLossesOf(x.Graph()).LogLikelihood != nil
		return y
	})
	if err != nil {
		return false
	}
	defer exec.Finalize()
	if _, err := exec.Compile(shapes.Make(dtypes.Float32, 1, 1)); err != nil {
		return false
	}
	return has
}

// Variant is the method with other options, as in
//
//	methods.Density.Variant("Density, start 0.01", func(o *methods.Options) { o.InitStd = 0.01 })
//
// which has a column or a panel of its own under this title in tables and pictures. Its experiments have the method's
// name and these options, which go before those that were chosen for the method (uci.Tuned). Change can be nil, for
// another title alone; what has other options is nothing that the paper has.
func (m Method) Variant(title string, change func(o *Options)) Method {
	before := m.Change
	m.Title = title
	if change != nil {
		m.Paper = PaperNames{}
	}
	m.Change = func(o *Options) {
		for _, f := range []func(*Options){before, change} {
			if f != nil {
				f(o)
			}
		}
	}
	return m
}

// variantOf says whether one of two methods of the same name is a variant of the other: all but title and options are
// the same. (Of functions it compares the code, and of families that New was given the place.)
func (m Method) variantOf(other Method) bool {
	if m.Change == nil && other.Change == nil || m.family != other.family {
		return false
	}
	code := func(f any) uintptr { return reflect.ValueOf(f).Pointer() }
	if code(m.Layers) != code(other.Layers) || code(m.Own) != code(other.Own) || code(m.ImageSchedule) != code(other.ImageSchedule) {
		return false
	}
	rest := func(m Method) Method {
		m.Title, m.Paper, m.Change, m.Layers, m.Own, m.ImageSchedule = "", PaperNames{}, nil, nil, nil, nil
		return m
	}
	return reflect.DeepEqual(rest(m), rest(other))
}

// Changed are the options of a protocol as experiments with the method have them; see Variant.
func (m Method) Changed(o Options) Options {
	if m.Change != nil {
		m.Change(&o)
	}
	return o
}

// Networks is the number of networks that an experiment with the method trains.
func (m Method) Networks() int { return max(m.Members, 1) }

// SamplesOf is how many samples are drawn of each network where wanted is the experiment's number.
func (m Method) SamplesOf(wanted int) int {
	if m.SamplesOnce {
		return 1
	}
	return wanted
}

// Fill returns the options with the method's own values, and then those of the setting, in the place of what is 0
// or "".
func (m Method) Fill(s Setting, o, setting Options) Options {
	if m.Own != nil {
		m.Own(s, &o)
	}
	to, from := reflect.ValueOf(&o).Elem(), reflect.ValueOf(setting)
	for i := range to.NumField() {
		if to.Field(i).IsZero() && to.Field(i).Kind() != reflect.Bool {
			to.Field(i).Set(from.Field(i))
		}
	}
	return o
}

// Validate returns an error that says what of the method cannot be.
func (m Method) Validate() error {
	if err := results.CheckName("the name of the method", m.Name); err != nil {
		return fmt.Errorf("methods: %w", err)
	}
	if m.Layers == nil {
		return fmt.Errorf("methods: %s has no layers; make it with methods.New, or set Layers", m.Name)
	}
	if m.Members < 0 {
		return fmt.Errorf("methods: %s has %d members; it must not be negative", m.Name, m.Members)
	}
	return nil
}

// List is a list of methods with different names, and of variants of these.
type List []Method

// Names are the names of the methods.
func (l List) Names() []string {
	names := make([]string, len(l))
	for i, m := range l {
		names[i] = m.Name
	}
	return names
}

// Named returns the method with a name, and whether there is one.
func (l List) Named(name string) (Method, bool) {
	i := slices.IndexFunc(l, func(m Method) bool { return m.Name == name })
	if i < 0 {
		return Method{}, false
	}
	return l[i], true
}

// Title is the heading of the method with a name; the name itself of one that is not in the list.
func (l List) Title(name string) string {
	if m, has := l.Named(name); has {
		return m.Title
	}
	return name
}

// Validate returns an error for a method that cannot be, and for two with one name that are not variants of one another.
func (l List) Validate() error {
	for i, m := range l {
		if err := m.Validate(); err != nil {
			return err
		}
		if first, has := l[:i].Named(m.Name); has && !m.variantOf(first) {
			return fmt.Errorf("methods: two methods are named %q; a name is part of the identity of an experiment, so give each its own", m.Name)
		}
	}
	return nil
}

// Seed makes one seed of an experiment's seed and split, and of the number of the network in an ensemble, so that
// splits and members do not share initial values and noise. The first member has that of a single network. (The
// multipliers, the first of which is the golden ratio's of 64 bits, spread neighbouring numbers.)
func Seed(e results.Experiment, member int) uint64 {
	return e.Seed + uint64(e.Split+1)*0x9e3779b97f4a7c15 + uint64(member)*0xd1342543de82ef95
}
