package train

import (
	"path"
	"slices"

	"densityuncertainty/dul/params"
)

// A Recipe is the numbers with which image classifiers are trained, with one
// field for each place where the paper's text and the authors' released code
// differ. ResNet14 and WideResNet28 are the paper's, for CIFAR.
type Recipe struct {
	Epochs, BatchSize int
	// LearningRate is that of the first step; it decays along half a cosine.
	LearningRate float64
	Momentum     float64
	// Adam trains by AdamW with betas 0.9 and 0.99 in the place of SGD with
	// momentum. The text says ADAM, which with its learning rate of 0.1 must be a
	// slip: the released code defaults to SGD, and this is its option.
	Adam bool
	// WeightDecay applies to weights, biases and batch normalisation.
	WeightDecay float64
	// DecayAll applies it to variational parameters too, also to log-variances,
	// whose decay then outweighs the KL divergence.
	DecayAll bool
	// PretrainEpochs are spent on the energy models alone, before. Set it to 0 for
	// a network that has none.
	PretrainEpochs int
	// JointEnergies trains the energy models by the weights' optimizer, with the
	// generative objective times 0.01. Otherwise they have an Adam of their own
	// and the objective as it is.
	JointEnergies bool
	// EnergiesByName chooses what the energy models' optimizer and decay are for by
	// the names that parameters have in the released code. It takes the density
	// layers' noise log-variances too, and leaves rank-1 factors and mixture logits
	// to the optimizer of the weights; pretraining does not train these two.
	EnergiesByName bool
	// EnergyRate is the learning rate of that Adam at the first step.
	EnergyRate float64
	// EnergyDecay is the weight decay of the energy models, an implicit Gaussian
	// prior p(omega), which the paper leaves open; 1e-5 in the released code.
	EnergyDecay float64
}

// ResNet14 is the recipe of the paper's ResNet-14 on CIFAR with 10 or 100
// classes (section 4, "Experimental details"): 200 epochs with batches of 128, a
// learning rate of 0.1 and a weight decay of 1e-4 for 10 classes and 2e-4 for
// more. For MFVI the text lowers the learning rate to 0.01, which is not here, as
// a recipe is for all methods: set LearningRate, as ImageRecipeOf of
// figures/runner does.
func ResNet14(classes int) Recipe {
	r := Recipe{
		Epochs: 200, BatchSize: 128, LearningRate: 0.1, Momentum: 0.9, WeightDecay: 1e-4,
		PretrainEpochs: 1, EnergyRate: 1e-2, EnergyDecay: 1e-5,
	}
	if classes > 10 {
		r.WeightDecay = 2e-4
	}
	return r
}

// WideResNet28 is the recipe of the paper's WRN-28-10 on CIFAR: as ResNet14, but
// batches of 64, a learning rate of 0.05 and a weight decay of 5e-4.
func WideResNet28() Recipe {
	r := ResNet14(10)
	r.BatchSize, r.LearningRate, r.WeightDecay = 64, 0.05, 5e-4
	return r
}

// Released is the recipe as the authors' released code has it: weight decay on
// all parameters, energy models trained with the weights and told from them by name.
func (r Recipe) Released() Recipe {
	r.DecayAll, r.JointEnergies, r.EnergiesByName = true, true, true
	return r
}

// releasedScale multiplies the generative objective in the released code.
const releasedScale = 0.01

// Trainer is the training run of the recipe. The caller fills in order,
// augmentation and where to save.
func (r Recipe) Trainer() Trainer {
	optimizer := func(decay float64) Optimizer {
		if r.Adam {
			return Adam{Beta1: 0.9, Beta2: 0.99, Decay: decay, Decoupled: true}
		}
		return SGD{Momentum: r.Momentum, Decay: decay}
	}
	variationalDecay := 0.0
	if r.DecayAll {
		variationalDecay = r.WeightDecay
	}
	scale := 1.0
	energies := Group{Roles: []params.Role{params.Generative}, Optimizer: Adam{Decay: r.EnergyDecay}, Rate: r.EnergyRate / r.LearningRate}
	if r.JointEnergies {
		scale = releasedScale
		energies.Optimizer, energies.Rate = optimizer(r.EnergyDecay), 0
	}
	weights := Group{Roles: []params.Role{params.Weight}, Optimizer: optimizer(r.WeightDecay)}
	groups := []Group{energies}
	if r.EnergiesByName {
		energies.Match = func(path string) bool { return !named(path, "factors", "mixture_logits") }
		noise := energies
		noise.Roles = []params.Role{params.Variational}
		noise.Match = func(path string) bool { return named(path, "gamma_log_variance", "beta_log_variance") }
		groups = []Group{energies, noise}
		weights.Roles = append(weights.Roles, params.Generative) // those that are left
	}
	return Trainer{
		Epochs: r.Epochs, BatchSize: r.BatchSize, PretrainEpochs: r.PretrainEpochs,
		Schedule: Cosine(r.LearningRate), LogLikelihoodScale: scale,
		Groups:         append(groups, weights, Group{Roles: []params.Role{params.Variational}, Optimizer: optimizer(variationalDecay)}),
		PretrainGroups: []Group{energies},
	}
}

// named says whether a parameter has one of the names, whatever its scope.
func named(parameter string, names ...string) bool {
	return slices.Contains(names, path.Base(parameter))
}

// SNGP is the training run of SNGP on CIFAR by the DUE authors' code, with which
// the paper ran it: 200 epochs with batches of 128, a learning rate of 0.05 that
// falls to a fifth after 60, 120 and 160 epochs, and a weight decay of 5e-4.
func SNGP() Trainer { return lastLayerProcess(0.05) }

// DUE is the same for DUE, with a learning rate of 0.1.
func DUE() Trainer { return lastLayerProcess(0.1) }

func lastLayerProcess(rate float64) Trainer {
	run := Recipe{Epochs: 200, BatchSize: 128, LearningRate: rate, Momentum: 0.9, WeightDecay: 5e-4}.Trainer()
	run.Schedule = Steps(rate, 0.2, 60./200, 120./200, 160./200)
	return run
}
