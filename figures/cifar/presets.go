// Package cifar has the paper's study of images (section 4): how well classifiers of CIFAR-10 and CIFAR-100 are calibrated,
// and how well they detect out-of-distribution images.
//
//	list, err := experiment.Cross(cifar.Paper, []experiment.Source{cifar.Images{Name: cifar.CIFAR10}}, methods.Density)
package cifar

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"densityuncertainty/baselines"
	"densityuncertainty/datasets"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/tables"
)

// Paper trains a ResNet-14 as the paper's text says (section 4, "Experimental details"), with choices of this project
// where it is silent or does not work: 200 epochs of SGD on images that are shifted and mirrored, 25 draws, energy models
// with an Adam of their own and one epoch of pretraining. Images.Sets, if it is empty, becomes all that the method has a
// use for.
func Paper(data experiment.Source, m experiment.Method) (experiment.Experiment, error) {
	return paper.experiment(data, m)
}

// Wide is Paper with the Wide ResNet-28-10, for which the paper has settings of its own.
func Wide(data experiment.Source, m experiment.Method) (experiment.Experiment, error) {
	return onWide.experiment(data, m)
}

// Released trains as the authors' code does, whose ResNet-14 has 20 layers. See methods.Released for the layers.
func Released(data experiment.Source, m experiment.Method) (experiment.Experiment, error) {
	return released.experiment(data, m)
}

// Small is Paper within reach of a processor, with numbers that mean something, though not what the paper's do: 5 epochs
// of 5,000 images.
func Small(data experiment.Source, m experiment.Method) (experiment.Experiment, error) {
	return onSmall.experiment(data, m)
}

// Processor is Paper at the scale of a processor with two cores, with numbers by which methods can be compared with each
// other, though not with the paper's: 10 epochs of all training images but the 5,000 that are held out. The weight decay
// is on all parameters, since in so few epochs posteriors stay where they start without it. The authors' code has it on all
// parameters but energy models and the log-variances of density layers, which it decays by 1e-5.
func Processor(data experiment.Source, m experiment.Method) (experiment.Experiment, error) {
	return onProcessor.experiment(data, m)
}

// ProcessorGrid is Processor in small, to choose a hyperparameter by the held-out images: 3 epochs of 20,000 images, 10
// draws.
func ProcessorGrid(data experiment.Source, m experiment.Method) (experiment.Experiment, error) {
	s := onProcessor
	s.preset, s.epochs, s.samples, s.sizes.TrainN, s.sizes.Validation = "cifar.ProcessorGrid", 3, 10, 20000, true
	return s.experiment(data, m)
}

// paperDraws is how many draws the paper predicts from; heldOut the number of training images that Processor holds out.
const paperDraws, heldOut = 25, 5000

// The settings of presets.
var (
	paper       = settings{preset: "cifar.Paper", network: nets.ResNet14(nil), epochs: 200, samples: paperDraws, svhn: true}
	onWide      = settings{preset: "cifar.Wide", network: nets.WideResNet28x10(nil), wide: true, epochs: 200, samples: paperDraws, svhn: true}
	released    = settings{preset: "cifar.Released", network: nets.ResNet20(nil), released: true, epochs: 200, samples: paperDraws, svhn: true}
	onSmall     = settings{preset: "cifar.Small", network: nets.ResNet14(nil), epochs: 5, samples: paperDraws, sizes: Images{TrainN: 5000, TestN: 1000, HeldOut: 1000}}
	onProcessor = settings{preset: "cifar.Processor", network: nets.ResNet14(nil), epochs: 10, samples: paperDraws, decayAll: true, sizes: Images{HeldOut: heldOut}}
)

// settings are what presets differ in.
type settings struct {
	preset   string
	network  nets.ResNet
	wide     bool // the network is the Wide ResNet
	released bool
	decayAll bool // decay variational parameters too
	epochs   int
	samples  int    // draws of a prediction
	svhn     bool   // predict the test part of SVHN too, which the paper's tables have
	sizes    Images // TrainN, TestN, HeldOut and Validation for data that leave them 0
}

// withDecay is the preset with weight decay on all parameters, or on weights alone.
func (s settings) withDecay(all bool) experiment.Preset {
	if s.decayAll != all {
		s.decayAll, s.preset = all, s.preset+", changed"
	}
	return s.experiment
}

// A rates is how a method is trained.
type rates struct {
	rate, decay float64
	batch       int
	steps       bool // falls in steps, not along a cosine
}

// ByEpoch orders the examples of each epoch anew, whatever came before. It implements train.Order.
type ByEpoch struct{}

// Of implements train.Order.
func (ByEpoch) Of(seed uint64, epoch, n int) []int { return datasets.Order(seed, epoch, n) }

// shift is the most pixels that training images are shifted by.
const shift = 4

// experiment is the experiment of a method.
func (s settings) experiment(data experiment.Source, m experiment.Method) (experiment.Experiment, error) {
	d, is := data.(Images)
	if !is {
		return experiment.Experiment{}, fmt.Errorf("%s is for cifar.Images, not for %T", s.preset, data)
	}
	if err := (Images{Name: d.Name, Sets: []string{TestSet}}).Check(); err != nil {
		return experiment.Experiment{}, fmt.Errorf("%s: %w", s.preset, err)
	}
	m = s.filled(m, d)
	l := likelihood.Categorical{Classes: d.classes()}
	t, err := experiment.MethodTraits(m, l)
	if err != nil {
		return experiment.Experiment{}, fmt.Errorf("%s: %s: %w", s.preset, m.Name, err)
	}
	r := s.rates(d, m)
	recipe := experiment.Recipe{Samples: 1, SharedNoise: true, Settings: train.Settings{
		Epochs: s.epochs, BatchSize: r.batch, Schedule: train.Cosine{Start: r.rate}, Groups: s.groups(t, r),
		Augmentation: datasets.Augmentation{Pad: shift, Flip: true}, Padding: shift, Order: ByEpoch{},
	}}
	if r.steps {
		recipe.Schedule = train.Steps{Start: r.rate, Factor: 0.2, At: []float64{60. / 200, 120. / 200, 160. / 200}}
	}
	if t.Noise && !m.IsProcess() { // a process averages over draws of its own
		recipe.Samples = s.samples
	}
	if t.Energies {
		recipe.PretrainEpochs, recipe.PretrainGroups, recipe.LogLikelihoodScale = 1, recipe.Groups[:1], 1
		if s.released {
			recipe.LogLikelihoodScale = 0.01
		}
	}
	network := s.network
	if s.wide && m.IsProcess() {
		network.Dropout = 0.3
	}
	task := experiment.Task{Name: d.Name, Data: s.images(d, m, t), Network: network, Likelihood: l, Metrics: []experiment.Metric{Scores}}
	if m.Program != nil { // its networks are gone
		return experiment.Experiment{Task: task, Method: m, Recipe: recipe, Preset: s.preset}, nil
	}
	task.AfterTraining = func(ctx context.Context, members []*nets.Model, d experiment.Data) (numbers map[string]float64, each map[string]map[string][]float64, err error) {
		if numbers, err = posteriorStd(members); err == nil && isPlain(m) {
			each, err = featureGaussians(ctx, members[0], d)
		}
		return numbers, each, err
	}
	return experiment.Experiment{Task: task, Method: m, Recipe: recipe, Preset: s.preset}, nil
}

// isPlain says whether a method is a single network without noise, with or without a bound on its spectral norms. It gets
// Gaussians that are fitted to its features, and held-out predictions to fit a temperature to.
func isPlain(m experiment.Method) bool {
	_, bounded := m.Layers.(baselines.SpectralNormed)
	return (bounded || m.Layers == baselines.Deterministic{}) && m.Members < 2
}

// images are the data with the sizes of the preset, and all sets that the method has a use for.
func (s settings) images(d Images, m experiment.Method, t experiment.Traits) Images {
	d.TrainN, d.TestN, d.HeldOut = cmp.Or(d.TrainN, s.sizes.TrainN), cmp.Or(d.TestN, s.sizes.TestN), cmp.Or(d.HeldOut, s.sizes.HeldOut)
	d.Validation, d.ReleasedStats = d.Validation || s.sizes.Validation, d.ReleasedStats || s.released
	if d.Sets != nil {
		return d
	}
	if d.Sets = []string{TestSet}; d.Validation {
		return d
	}
	if d.HeldOut > 0 && (t.Energies || isPlain(m)) {
		d.Sets = append(d.Sets, HeldOutSet)
	}
	d.Sets = append(d.Sets, d.other(), SVHNExcerpt)
	if s.svhn && !d.Sample { // which does not have it
		d.Sets = append(d.Sets, SVHN)
	}
	return d
}

// rates are the paper's, of its text or the code of SNGP and DUE with which it ran them.
func (s settings) rates(d Images, m experiment.Method) rates {
	r := rates{rate: 0.1, decay: 1e-4, batch: 128}
	switch {
	case s.wide:
		r = rates{rate: 0.05, decay: 5e-4, batch: 64}
	case d.Name == CIFAR100:
		r.decay = 2e-4
	}
	switch m.Layers.(type) {
	case baselines.MFVI:
		r.rate = 0.01
	case baselines.DUE:
		r = rates{rate: 0.1, decay: 5e-4, batch: 128, steps: true}
	case nets.Process:
		r = rates{rate: 0.05, decay: 5e-4, batch: 128, steps: true}
	}
	return r
}

// The settings of energy models.
const (
	energyRate  = 1e-2 // of an Adam of their own; at the weights' 0.1 it does not settle
	energyDecay = 1e-5 // an implicit prior, which the text leaves open; the number is from the authors' code
)

// groups are the groups of parameters. Energy models, if there are some, come first.
func (s settings) groups(t experiment.Traits, r rates) []train.Group {
	sgd := func(decay float64) train.Optimizer { return train.SGD{Momentum: 0.9, Decay: decay} }
	var groups []train.Group
	weights := []params.Role{params.Weight}
	switch {
	case !t.Energies:
	case s.released:
		// The authors' code tells energy models by the names of parameters. That takes in the variances of the density
		// layers' noise, and leaves out rank-1 factors and mixture logits, which it trains as weights.
		weights = append(weights, params.Generative)
		groups = []train.Group{
			{Roles: []params.Role{params.Generative}, Except: []string{"factors", "mixture_logits"}, Optimizer: sgd(energyDecay), Rate: 1},
			{Roles: []params.Role{params.Variational}, Only: noiseNames, Optimizer: sgd(energyDecay), Rate: 1},
		}
	default:
		groups = []train.Group{{Roles: []params.Role{params.Generative}, Optimizer: train.Adam{Decay: energyDecay}, Rate: energyRate / r.rate}}
	}
	groups = append(groups, train.Group{Roles: weights, Optimizer: sgd(r.decay), Rate: 1})
	if !t.Has(params.Variational) || t.Energies && s.released {
		return groups
	}
	decay := 0.0
	if s.released || s.decayAll {
		decay = r.decay
	}
	return append(groups, train.Group{Roles: []params.Role{params.Variational}, Optimizer: sgd(decay), Rate: 1})
}

// filled fills in what a method of this project leaves open. A family of your own stays as it is.
func (s settings) filled(m experiment.Method, d Images) experiment.Method {
	defaults := methods.Defaults{InitStd: 1e-3, MFVIPriorStd: 0.1, VDropoutAlpha: 0.1, Inducing: d.classes(), LengthScale: 1}
	if s.released {
		defaults.InitStd, defaults.VDropoutAlpha = 1e-4, 1e-3 // the defaults of the authors' code
	}
	m = defaults.Fill(m)
	if s.released {
		m.Layers = methods.Released(m.Layers, true)
	}
	return m
}

// The names of hyperparameters.
const (
	initStd     = "init_std"     // standard deviation of the posterior at the start
	dropoutRate = "dropout_rate" // of MC dropout
	alphaOption = "alpha"        // noise variance of variational dropout
	lengthScale = "length_scale" // of SNGP's kernel
	processRate = "process_rate" // factor of the learning rate of DUE's process
)

// A searchSpace has the values to try for a method's hyperparameter.
type searchSpace struct {
	method experiment.Method
	name   string
	values []float64
}

// searchSpaces have equally many values for every method, of the hyperparameter that matters most in a short training: how much noise
// the method has or, if its last layer is a Gaussian process, how fast that learns.
//
// The standard deviations are of weights; He's initialisation gives weights one of 0.06 to 0.12. For Rank-1 BNN they are
// of factors with the mean 1. The smallest leaves networks almost without noise.
//
// With SNGP's length scale of 1 the kernel of two images is next to 0 until the network has brought them close together,
// since 128 unrelated normalised numbers are 16 apart. What is learned of one image then says nothing of others. Its
// authors' code has 20. A whitened process, such as DUE's, starts with a mean of 0, through which no gradient reaches the
// network. Its mean moves by kernel values below 1, and the mean of a dense layer by features. So in a short training the
// network hardly learns, unless the process learns faster.
var searchSpaces = []searchSpace{
	{methods.Density, initStd, []float64{0.001, 0.003, 0.01, 0.03}},
	{methods.DensityConstant, initStd, []float64{0.001, 0.003, 0.01, 0.03}},
	{methods.Rank1, initStd, []float64{0.001, 0.01, 0.1, 0.3}},
	{methods.MFVI, initStd, []float64{0.001, 0.003, 0.01, 0.03}},
	{methods.MCDropout, dropoutRate, []float64{0.05, 0.1, 0.2, 0.3}},
	{methods.VDropout, alphaOption, []float64{0.03, 0.1, 0.25, 0.5}},
	{methods.DensityMixture, initStd, []float64{0.001, 0.003, 0.01, 0.03}},
	{methods.DensityDiagonal, initStd, []float64{0.001, 0.003, 0.01, 0.03}},
	{methods.SNGP, lengthScale, []float64{1, 5, 20, 50}},
	{methods.DUE, processRate, []float64{1, 3, 10, 30}},
}

// in is a preset with the hyperparameter.
func (h hyperparameter) in(preset experiment.Preset) experiment.Preset {
	return func(data experiment.Source, m experiment.Method) (experiment.Experiment, error) {
		m = methods.Values(m)
		switch h.name {
		case lengthScale:
			m.Layers = baselines.SNGP{LengthScale: h.value}
		case processRate:
		default:
			m.Layers, _ = methods.WithNoise(m.Layers, h.value)
		}
		e, err := preset(data, m)
		for i, g := range e.Recipe.Groups {
			if h.name == processRate && slices.Contains(g.Roles, params.Variational) {
				e.Recipe.Groups[i].Rate = h.value
			}
		}
		return e, err
	}
}

// experiments run ProcessorGrid with each value.
func (s searchSpace) experiments() experiment.Experiments {
	var all experiment.Experiments
	for _, value := range s.values {
		all = append(all, seeded(hyperparameter{s.name, value}.in(ProcessorGrid), 1).Of(ten, s.method)...)
	}
	return all
}

// chosenCSV is the table that tables.Choose makes from the committed results.
//
//go:embed chosen.csv
var chosenCSV []byte

// chosenColumns are the columns of chosen.csv.
const chosenColumns = "method,option,value,held_out_nll"

// A hyperparameter of a method and its value.
type hyperparameter struct {
	name  string
	value float64
}

// chosen are the hyperparameters of chosen.csv by Method.Key.
var chosen = sync.OnceValue(func() map[string]hyperparameter {
	all := map[string]hyperparameter{}
	for _, r := range tables.ReadCSV(chosenCSV, chosenColumns) {
		value, err := strconv.ParseFloat(r[2], 64)
		if err != nil {
			panic(err)
		}
		all[r[0]] = hyperparameter{r[1], value}
	}
	return all
})

// Chosen is a preset, such as Processor, with one hyperparameter of each method at the value that did best on held-out
// images (ProcessorGrid). It is the one that matters most in a short training: how strong the noise is at the start, SNGP's
// length scale, or how fast DUE's process learns. A method without one is trained by the preset as it is.
func Chosen(preset experiment.Preset) experiment.Preset {
	return func(data experiment.Source, m experiment.Method) (experiment.Experiment, error) {
		if h, has := chosen()[m.Key]; has {
			return h.in(preset)(data, m)
		}
		return preset(data, m)
	}
}

// candidates are the experiments of the exhibit cifar-processor-grid.
func candidates() (all []tables.Candidate) {
	for _, s := range searchSpaces {
		for i, e := range s.experiments() {
			all = append(all, tables.Candidate{For: []string{s.method.Key}, Hyperparameters: []string{s.name, strconv.FormatFloat(s.values[i], 'g', -1, 64)}, Experiment: e})
		}
	}
	return all
}
