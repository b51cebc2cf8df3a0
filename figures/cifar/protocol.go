// Package cifar is the image study, the paper's section 4: classifiers of CIFAR-10 and CIFAR-100 with each method,
// and how well they tell other images from those that they know.
//
// A Protocol says how classifiers are trained and tested. Run carries one out for any methods and returns the
// results; Runner does so for the stored experiments, which Sets lists, and Tables shows them beside the paper's
// numbers. TrainClassifier trains a single classifier to look into.
package cifar

import (
	"cmp"
	"fmt"
	"path"
	"slices"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// A Protocol says how image classifiers are trained and tested. Paper and Released make one; what is changed
// afterwards becomes an option of the experiments, by the name in the field's tag.
//
// A number of methods.Options that is 0 is the method's own, and where it has none: a learning rate of 0.1, with the
// Wide ResNet 0.05, that falls along half a cosine; batches of 128, with the Wide ResNet 64; a weight decay of 1e-4
// on CIFAR-10, 2e-4 on CIFAR-100 and 5e-4 with the Wide ResNet; and posteriors that start with a standard deviation
// of 1e-3, in the released code 1e-4.
type Protocol struct {
	Fidelity string   // results.Paper or results.Released
	Dataset  string   // CIFAR10 or CIFAR100
	Network  string   // ResNet14, ResNet20 or WRN28x10
	Scale    string   // results.Full, Quick, Small, Grid, Processor, ProcessorGrid or GPU
	Seeds    []uint64 // of one experiment each
	Epochs   int      // of the joint training
	Samples  int      // of a prediction, for methods that do not ask for a number of their own
	TrainN   int      // images to train on; 0 means all that are not held out
	TestN    int      // images of the test set, and of each set out of distribution; 0 means all
	HeldOut  int      // training images kept out of training: see results.Experiment

	methods.Options

	// Decay is what the weight decay applies to. On log-variances, where the released code puts it too, it outweighs
	// the KL divergence; the text does not say.
	Decay methods.Decay `option:"decay" choices:"weights all" doc:"what the weight decay applies to; on log-variances it outweighs the KL"`
	// EnergyOptimizer trains the energy models: an Adam of their own, or as in the released code the optimizer of the
	// weights, with a generative objective that is a hundred times smaller. The text does not say.
	EnergyOptimizer methods.EnergyOptimizer `option:"energy_optimizer" choices:"own joint" doc:"of the energy models: an Adam of their own, or the weights' and 0.01 of the objective"`
	// EnergyGroups says which parameters that optimizer and its decay are for: the energy models, or those with the
	// names by which the released code tells them, which take in the variances of the density layers' noise, and
	// leave out rank-1 factors and mixture logits.
	EnergyGroups EnergyGroups `option:"energy_groups" choices:"explicit by-name" doc:"what is trained as energy models: they, or what the names of parameters suggest"`
	// EnergyRate is a choice of this project: at the weights' 0.1 Adam does not settle.
	EnergyRate float64 `option:"energy_rate" range:"step" doc:"learning rate of the energy models' own Adam"`
	// EnergyDecay is p(omega) of the paper's objective, which it leaves open; the number is that of the released code.
	EnergyDecay float64 `option:"energy_decay" range:"positive" doc:"weight decay of the energy models, an implicit prior p(omega), which the text leaves open"`
	// LikelihoodScale is 1 in the text; 0 means what goes with EnergyOptimizer.
	LikelihoodScale float64 `option:"likelihood_scale" range:"positive" doc:"factor of the generative objective"`
	// ProcessRate makes the parameters of a Gaussian process follow faster. A whitened process starts with a mean of 0,
	// through which no gradient reaches the network, and its mean moves by kernel values below 1 where that of a dense
	// layer moves by features: in a short training the network else hardly learns. 0 means 1.
	ProcessRate float64 `option:"process_rate" range:"positive" doc:"factor of the learning rate for the parameters of DUE's Gaussian process"`
	// PretrainEpochs is 1 in the released code. The text has none, but energies of untrained models are noise.
	PretrainEpochs int `option:"pretrain_epochs" range:"whole" doc:"epochs of generative pretraining; the text has none"`
	// ChannelStats are what images are standardised by.
	ChannelStats ChannelStats `option:"channel_stats" choices:"computed released" doc:"channel means and deviations: of the training images, or the released constants"`
	// Augmentation is the usual one for CIFAR.
	Augmentation bool `option:"augmentation" doc:"training images are shifted by up to 4 pixels and mirrored"`
	// Precision saves time on accelerators; prediction stays in float32.
	Precision Precision `option:"precision" choices:"float32 bfloat16" doc:"of the convolutions while training; bfloat16 needs an accelerator"`

	// Sample takes the images that come with the program in the place of the official files: of CIFAR-10 1000 to train
	// on and hold out, and 1000 to test on. Of CIFAR-100 there are none to train on.
	Sample bool `option:"sample" doc:"the images that come with the program, 1000 of CIFAR-10 to train on and 1000 to test on, in the place of the official files"`

	// WithoutSVHN lets Run go on with experiments of the table of out-of-distribution detection where the test part of
	// SVHN cannot be had. Like Progress it is no part of experiments.
	WithoutSVHN bool
	// Progress, if not nil, hears from Run and TrainClassifier how much is done, from 0 to 1, and how it goes.
	Progress func(done float64, note string)
}

// The choices, by the text that stands for them on the command line and in result lines.
type (
	EnergyGroups string // of Protocol.EnergyGroups
	ChannelStats string // of Protocol.ChannelStats
	Precision    string // of Protocol.Precision
)

const (
	ExplicitGroups EnergyGroups = "explicit"
	GroupsByName   EnergyGroups = "by-name"

	ComputedStats ChannelStats = "computed"
	ReleasedStats ChannelStats = "released"

	Float32  Precision = "float32"
	BFloat16 Precision = "bfloat16"
)

// Paper is the protocol of the paper's text (section 4, "Experimental details"), with choices of this project where
// it is silent or does not work, for a data set and a network by their names: 200 epochs on all training images,
// 25 samples, 3 seeds.
func Paper(dataset, network string) Protocol {
	return Protocol{
		Fidelity: results.Paper, Dataset: dataset, Network: network, Scale: results.Full, Seeds: []uint64{0, 1, 2}, Epochs: 200, Samples: 25,
		Options: methods.PaperOptions(),
		Decay:   methods.DecayWeights, EnergyOptimizer: methods.OwnAdam, EnergyGroups: ExplicitGroups, EnergyRate: 1e-2, EnergyDecay: 1e-5, PretrainEpochs: 1,
		ChannelStats: ComputedStats, Augmentation: true, Precision: Float32,
	}
}

// Released is the protocol as the authors' released code has it. Its ResNet-14 has 20 layers: ResNet20.
func Released(dataset, network string) Protocol {
	p := Paper(dataset, network)
	p.Fidelity, p.Options = results.Released, methods.ReleasedOptions()
	p.Decay, p.EnergyOptimizer, p.EnergyGroups, p.ChannelStats = methods.DecayAll, methods.JointOptimizer, GroupsByName, ReleasedStats
	return p
}

// Quick is the protocol at a scale that shows the pipeline at work, in minutes on a processor: an epoch of 512
// images, 5 samples, one seed.
func (p Protocol) Quick() Protocol {
	p.Scale, p.Seeds, p.Epochs, p.Samples, p.TrainN, p.TestN, p.HeldOut = results.Quick, []uint64{0}, 1, 5, 512, 256, 256
	return p
}

// Small is the protocol at a scale within reach of a processor, with numbers that mean something, though not what
// the paper's do: 5 epochs of 5,000 images.
func (p Protocol) Small() Protocol {
	p.Scale, p.Epochs, p.TrainN, p.TestN, p.HeldOut = results.Small, 5, 5000, 1000, 1000
	return p
}

// WithHeldOut keeps 5,000 of the 50,000 training images out of training.
func (p Protocol) WithHeldOut() Protocol {
	p.HeldOut = 5000
	return p
}

// Experiments are those of methods, for each of them one of every seed. An option that a method has no use for is not
// among its experiments' options.
func (p Protocol) Experiments(list ...methods.Method) []results.Experiment {
	var all []results.Experiment
	for _, m := range list {
		samples := p.Samples
		if m.ImageSamples > 0 {
			samples = m.ImageSamples
		}
		of := p
		of.Options = m.Changed(p.Options)
		options := methods.DeparturesOf(of, of.ofFidelity(), func(q Protocol) any { return q.resolve(m) })
		for _, seed := range p.Seeds {
			all = append(all, results.Experiment{
				Study: results.Images, Method: m.Name, Dataset: p.Dataset, Network: p.Network, Seed: seed, Epochs: p.Epochs, Samples: samples,
				Fidelity: p.Fidelity, Scale: p.Scale, Options: options, TrainN: p.TrainN, TestN: p.TestN, HeldOut: p.HeldOut,
			})
		}
	}
	return all
}

// departures are the options by which the protocol differs from that of its fidelity.
func (p Protocol) departures() map[string]string { return methods.Departures(p, p.ofFidelity()) }

// ofFidelity is the protocol of the same fidelity, data set and network.
func (p Protocol) ofFidelity() Protocol {
	if p.Fidelity == results.Released {
		return Released(p.Dataset, p.Network)
	}
	return Paper(p.Dataset, p.Network)
}

// ProtocolOf is the protocol of an experiment, the inverse of Experiments. An experiment of another study, or with
// a data set, network or option that there is not, is an error.
func ProtocolOf(e results.Experiment) (Protocol, error) {
	fail := func(err error) (Protocol, error) { return Protocol{}, fmt.Errorf("cifar: %v: %w", e, err) }
	if e.Study != results.Images {
		return fail(fmt.Errorf("it is of the study %q, not of %q", e.Study, results.Images))
	}
	p := Protocol{Fidelity: e.Fidelity, Dataset: e.Dataset, Network: e.Network}.ofFidelity()
	p.Scale, p.Seeds, p.Epochs, p.Samples = e.Scale, []uint64{e.Seed}, e.Epochs, e.Samples
	p.TrainN, p.TestN, p.HeldOut = e.TrainN, e.TestN, e.HeldOut
	if _, err := datasetNamed(e.Dataset); err != nil {
		return fail(err)
	}
	if _, err := networkNamed(e.Network); err != nil {
		return fail(err)
	}
	if err := methods.Set(&p, e.Options); err != nil {
		return fail(err)
	}
	return p, nil
}

// Check says why a method cannot be run by the protocol: a family of layers without convolutions, an option that
// makes no difference to the method, a data set or a network that there is not, or more images than there are.
func (p Protocol) Check(m methods.Method) error {
	train, test := p.available()
	if err := enough(p.TrainN, p.HeldOut, p.TestN, train, test); err != nil {
		return err
	}
	p.Options = m.Changed(p.Options)
	_, _, err := p.recipe(m)
	return err
}

// available is how many images there are to train on and hold out, and to test on.
func (p Protocol) available() (train, test int) {
	if p.Sample {
		return sampleSize, sampleSize
	}
	return trainingImages, testImages
}

// unusedError names the options of the protocol that change nothing for a method.
func (p Protocol) unusedError(m methods.Method) error {
	return methods.RefuseUnused(p, p.departures(), m, func(q Protocol) any { return q.resolve(m) })
}

// Filled is the protocol with the numbers filled in that are the method's own.
func (p Protocol) Filled(m methods.Method) Protocol {
	r := p.resolve(m)
	p.Options = m.Fill(p.setting(), p.Options, p.defaults())
	p.Inducing, p.LengthScale, p.ProcessRate, p.LikelihoodScale = r.Inducing, r.LengthScale, r.ProcessRate, r.Energies.LikelihoodScale
	return p
}

// OptionsTable lists every option of the protocol in both fidelities: on CIFAR-10 with the network that each names
// ResNet-14, and what is different for 100 classes and for the Wide ResNet.
func OptionsTable() report.Table {
	version := func(name string, p Protocol) methods.Version {
		return methods.Version{Setting: name, Protocol: p, Filled: func(m methods.Method) any {
			return p.Filled(m)
		}}
	}
	var versions []methods.Version
	for _, f := range []struct {
		protocol func(dataset, network string) Protocol
		resnet   string
	}{{Paper, ResNet14}, {Released, ResNet20}} {
		v := version("", f.protocol(CIFAR10, f.resnet))
		v.Also = []methods.Version{version(CIFAR100, f.protocol(CIFAR100, f.resnet)), version(WRN28x10, f.protocol(CIFAR10, WRN28x10))}
		versions = append(versions, v)
	}
	columns := []string{"option", "`paper` fidelity", "`released` fidelity", "what it is"}
	return report.PlainTable("images-options", "", columns, methods.DescribeOptions(results.Images, versions...))
}

// A recipe is what a protocol comes to with a method: numbers without gaps, and 0 for those that the method does not
// use.
type recipe struct {
	Layers       nets.Layers
	Inducing     int // inducing points that a Gaussian process of the method has; 0 for other methods
	BlockDropout float64
	ProcessRate  float64 // factor of the learning rate of DUE's process; 0 for other methods
	LengthScale  float64 // of a kernel whose length scale is not trained, SNGP's; 0 for other methods

	Optimizer                 methods.Optimizer
	BatchSize                 int
	LearningRate, WeightDecay float64
	Decay                     methods.Decay
	Energies                  energyRecipe
	ChannelStats              ChannelStats
	Augmentation              bool
	Sample                    bool
	Precision                 Precision
}

// An energyRecipe is how energy models are trained.
type energyRecipe struct {
	Joint, ByName   bool
	Rate            float64 // of an Adam of their own
	Decay           float64
	LikelihoodScale float64
	PretrainEpochs  int
	Weighted        bool // the generative objective
}

// jointScale multiplies the generative objective in the released code, where energy models are trained with the
// weights.
const jointScale = 0.01

// defaults are the numbers that methods do not have of their own.
func (p Protocol) defaults() methods.Options {
	o := methods.Options{Optimizer: methods.SGD, InitStd: 1e-3, LearningRate: 0.1, BatchSize: 128, WeightDecay: 1e-4}
	switch {
	case p.Network == WRN28x10:
		o.LearningRate, o.BatchSize, o.WeightDecay = 0.05, 64, 5e-4
	case p.Dataset == CIFAR100:
		o.WeightDecay = 2e-4
	}
	if p.Fidelity == results.Released {
		o.InitStd = 1e-4
	}
	return o
}

// resolve fills in what the protocol leaves to the method and to its own defaults.
func (p Protocol) resolve(m methods.Method) recipe {
	o := m.Fill(p.setting(), p.Options, p.defaults())
	r := recipe{
		Layers: m.Layers(o), BlockDropout: o.BlockDropout,
		Optimizer: o.Optimizer, BatchSize: o.BatchSize, LearningRate: o.LearningRate, WeightDecay: o.WeightDecay, Decay: p.Decay,
		ChannelStats: p.ChannelStats, Augmentation: p.Augmentation, Sample: p.Sample, Precision: p.Precision,
	}
	if process, has := m.Process.(methods.InducingProcess); has {
		r.Inducing = process.InducingPoints(methods.Task{Kind: methods.Pictures, Classes: p.classes(), Inducing: o.Inducing})
		r.ProcessRate = cmp.Or(p.ProcessRate, 1)
	}
	if process, has := m.Process.(methods.ScaledProcess); has {
		r.LengthScale = process.LengthScale(methods.Task{Kind: methods.Pictures, LengthScale: o.LengthScale})
	}
	if !m.HasEnergies {
		return r
	}
	r.Energies = energyRecipe{
		Joint: p.EnergyOptimizer == methods.JointOptimizer, ByName: p.EnergyGroups == GroupsByName,
		Decay: p.EnergyDecay, LikelihoodScale: p.LikelihoodScale, PretrainEpochs: p.PretrainEpochs,
		Weighted: p.GenerativeWeights,
	}
	if !r.Energies.Joint {
		r.Energies.Rate = p.EnergyRate
	}
	if p.LikelihoodScale == 0 {
		r.Energies.LikelihoodScale = 1
		if r.Energies.Joint {
			r.Energies.LikelihoodScale = jointScale
		}
	}
	return r
}

// setting is what methods have values of their own for.
func (p Protocol) setting() methods.Setting {
	return methods.Setting{Study: results.Images, Fidelity: p.Fidelity, Dataset: p.Dataset, Network: p.Network}
}

// classes is the number of classes of the data set; 0 for one that there is not.
func (p Protocol) classes() int {
	set, err := datasetNamed(p.Dataset)
	if err != nil {
		return 0
	}
	return set.classes
}

// recipe is resolve, and the network of the method's layers, with all that can be wrong.
func (p Protocol) recipe(m methods.Method) (recipe, nets.ResNet, error) {
	fail := func(err error) (recipe, nets.ResNet, error) { return recipe{}, nets.ResNet{}, err }
	if err := m.Validate(); err != nil {
		return fail(err)
	}
	if _, err := datasetNamed(p.Dataset); err != nil {
		return fail(err)
	}
	network, err := networkNamed(p.Network)
	if err != nil {
		return fail(err)
	}
	r := p.resolve(m)
	layers, has := r.Layers.(nets.ConvLayers)
	if !has {
		return fail(fmt.Errorf("the layers of %s, of type %T, have no convolution, so that no image network can be made of them; "+
			"give them a method Conv (see nets.ConvLayers)", m.Name, r.Layers))
	}
	if err := p.unusedError(m); err != nil {
		return fail(err)
	}
	made := network.of(layers)
	made.Dropout = r.BlockDropout
	return r, made, nil
}

// shiftBy is the padding of the usual augmentation for CIFAR.
const shiftBy = 4

// training is the training of so many epochs, without seed, progress and checkpoints. schedule is the method's own;
// nil is a cosine.
func (r recipe) training(epochs int, schedule func(rate float64) train.Schedule) train.Trainer {
	if schedule == nil {
		schedule = train.Cosine
	}
	t := train.Trainer{
		Epochs: epochs, PretrainEpochs: r.Energies.PretrainEpochs, BatchSize: r.BatchSize,
		Schedule: schedule(r.LearningRate), LogLikelihoodScale: r.Energies.LikelihoodScale, WeightEnergies: r.Energies.Weighted,
		Groups: append(r.energyGroups(), r.weightGroups()...), Order: datasets.Order, BFloat16: r.Precision == BFloat16,
	}
	if energies := r.energyGroups(); len(energies) > 0 {
		t.PretrainGroups = energies[:1]
	}
	if r.Augmentation {
		t.Augmentation, t.Padding = datasets.Augmentation{Pad: shiftBy, Flip: true}, shiftBy
	}
	return t
}

// optimizer is that of the weights, with a weight decay: SGD with momentum, or with the option the AdamW of the
// released code.
func (r recipe) optimizer(decay float64) train.Optimizer {
	if r.Optimizer == methods.Adam {
		return train.Adam{Beta1: 0.9, Beta2: 0.99, Decay: decay, Decoupled: true}
	}
	return train.SGD{Momentum: 0.9, Decay: decay}
}

// weightGroups are the weights and the variational parameters.
func (r recipe) weightGroups() []train.Group {
	weights := train.Group{Roles: []params.Role{params.Weight}, Optimizer: r.optimizer(r.WeightDecay)}
	if r.Energies.ByName {
		weights.Roles = append(weights.Roles, params.Generative) // those that energyGroups leaves out
	}
	decay := 0.0
	if r.Decay == methods.DecayAll {
		decay = r.WeightDecay
	}
	return []train.Group{weights, {Roles: []params.Role{params.Variational}, Optimizer: r.optimizer(decay), Rate: r.ProcessRate}}
}

// energyGroups are the energy models, which are pretrained, and what else is trained as they are.
func (r recipe) energyGroups() []train.Group {
	e := r.Energies
	if e == (energyRecipe{}) {
		return nil
	}
	models := train.Group{Roles: []params.Role{params.Generative}, Optimizer: train.Adam{Decay: e.Decay}, Rate: e.Rate / r.LearningRate}
	if e.Joint {
		models.Optimizer, models.Rate = r.optimizer(e.Decay), 0
	}
	if !e.ByName {
		return []train.Group{models}
	}
	models.Match = func(path string) bool { return !named(path, "factors", "mixture_logits") }
	noise := models
	noise.Roles = []params.Role{params.Variational}
	noise.Match = func(path string) bool { return named(path, "gamma_log_variance", "beta_log_variance") }
	return []train.Group{models, noise}
}

// named says whether a parameter has one of the names, whatever its scope.
func named(parameter string, names ...string) bool {
	return slices.Contains(names, path.Base(parameter))
}
