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
	"densityuncertainty/figures/results"
)

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
	Precision                 Precision
}

// An energyRecipe is how energy models are trained.
type energyRecipe struct {
	Joint, ByName   bool
	Rate            float64 // of an Adam of their own
	Decay           float64
	LikelihoodScale float64
	PretrainEpochs  int
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
		ChannelStats: p.ChannelStats, Augmentation: p.Augmentation, Precision: p.Precision,
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
		Schedule: schedule(r.LearningRate), LogLikelihoodScale: r.Energies.LikelihoodScale,
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
