package methods

import (
	"math"

	"densityuncertainty/dul"
	"densityuncertainty/dul/stochastic"
)

// Options are the hyperparameters of layer families, and what a method may change of its training. They are a
// part of every protocol, so that one set of names serves all experiments; a family takes those that it has.
//
// A number that is 0 is the method's own (see Method.Own), and text that is "" too. A value that differs from
// that of the protocol's fidelity becomes an option of the experiment, by the name in the tag.
type Options struct {
	Noise    Noise   `option:"noise" choices:"gaussian uniform01 student-t5" doc:"distribution of the density layer's noise"`
	InitStd  float64 `option:"init_std" range:"positive" doc:"posterior standard deviation at the start; the text states 0.1 for UCI, which suits U[0,1) noise with its deviation of 0.289 but is much for N(0,1), and with which MFVI does not fit"`
	PriorStd float64 `option:"prior_std" range:"positive" doc:"standard deviation of the method's prior"`

	Clip       bool      `option:"clip" doc:"energies are clipped to [0, D], in convolutions to [0, channels]; those of rank-1 mixtures never are"`
	MeanEnergy bool      `option:"mean_energy" doc:"the noise follows the mean of the energies over the training examples in the place of E(h): as much noise, in no particular place; a control that neither text nor code has"`
	Gradients  Gradients `option:"gradients" choices:"paper detached attached" doc:"which parameters the two objectives move: as in the paper, where that of the network also moves what comes before the energy but not the energy model; detached, where input and energy are constants; or attached, where everything moves"`
	Variance   Variance  `option:"variance" choices:"plain half-d" doc:"gamma E + beta as the text has it (plain), or gamma E + beta D/2 (half-d)"`

	VarianceD VarianceD `only:"images" option:"variance_d" choices:"energy channels" doc:"the D of half-d in convolutions: dimensions of the energy, or channels, which for the rank-1 mixture of a window are 9 times fewer"`
	BetaPrior BetaPrior `only:"images" option:"beta_prior" choices:"prior_std e" doc:"prior variance of the noise that does not depend on the energy, in convolutions: that of the other, or e whatever prior_std is"`
	Padding   Padding   `only:"images" option:"padding" choices:"zero replicate" doc:"what the masked convolution of the LDL energy sees beyond the border; with copies of the border the likelihood is wrong"`

	MixtureFactors  Factors `option:"mixture_factors" choices:"orthogonal zeros" doc:"start of the rank-1 factors; in the released code they start at zero in dense layers, where their gradient is zero too, so that they never move"`
	MixtureFraction float64 `option:"mixture_fraction" range:"positive" doc:"rank-1 components as a fraction of the layer's width or channels, at least one"`
	LogDet          LogDet  `only:"images" option:"log_det" choices:"right negated" doc:"sign of the log-determinant in the likelihood of the rank-1 mixture in convolutions"`

	GenerativeWeights bool `only:"toy images" option:"generative_weights" doc:"an example's part of the generative objective is weighed by p(1-p) of its predicted classes, as Bayes' rule has it in a linear classifier (appendix of the paper, which leaves it off); for classification alone"`

	DropoutRate   float64   `option:"dropout_rate" range:"rate" doc:"of MC dropout"`
	Alpha         float64   `option:"alpha" range:"positive" doc:"noise variance of variational dropout"`
	ConvAlpha     ConvAlpha `only:"images" option:"conv_alpha" choices:"same doubled" doc:"noise variance of variational dropout in convolutions"`
	AdaptiveAlpha bool      `option:"adaptive_alpha" doc:"variational dropout trains its noise variance"`
	Rank1Noise    PerImage  `only:"images" option:"rank1_noise" choices:"pixel channel" doc:"rank-1 factors of a convolution are drawn for each pixel, or once for a channel and example as in the original method"`

	Inducing     int     `only:"images" option:"inducing_points" range:"count" doc:"inducing points of DUE, which decide how much memory it takes"`
	LengthScale  float64 `only:"images" option:"length_scale" range:"positive" doc:"of the kernel of SNGP's random features, whose inputs are 128 numbers with mean 0 and variance 1: 1 in the DUE authors' code, 20 in that of SNGP's"`
	BlockDropout float64 `only:"images" option:"block_dropout" range:"rate" doc:"dropout between the two convolutions of a block, in training alone, as the DUE authors' code has it for the Wide ResNet"`

	Optimizer    Optimizer `only:"uci images" option:"optimizer" choices:"sgd adam" doc:"of weights and variational parameters: SGD with momentum 0.9, or Adam (on images AdamW); the text says ADAM for images, which with its learning rate of 0.1 must be a slip"`
	LearningRate float64   `option:"learning_rate" range:"step" doc:"at the first step; for MFVI with the Wide ResNet the text can be read either way"`
	BatchSize    int       `only:"uci images" option:"batch_size" range:"count" doc:"examples of a training step"`
	WeightDecay  float64   `only:"uci images" option:"weight_decay" range:"positive" doc:"of what the option decay names"`
}

// The choices, by the text that stands for them on the command line and in result lines, and in the tags of the fields.
type (
	Noise     string // of Options.Noise
	Gradients string // of Options.Gradients
	Variance  string // of Options.Variance
	VarianceD string // of Options.VarianceD
	BetaPrior string // of Options.BetaPrior
	Padding   string // of Options.Padding
	Factors   string // of Options.MixtureFactors
	LogDet    string // of Options.LogDet
	ConvAlpha string // of Options.ConvAlpha
	PerImage  string // of Options.Rank1Noise
	Optimizer string // of Options.Optimizer

	// Those of protocols that train in batches.
	Decay           string // what the weight decay applies to
	EnergyOptimizer string // how the energy models are trained
)

const (
	Gaussian  Noise = "gaussian"
	Uniform01 Noise = "uniform01"  // U[0, 1), as the released code draws
	StudentT5 Noise = "student-t5" // with 5 degrees of freedom, scaled to variance 1: the paper's "heavy-tailed" remark

	PaperGradients Gradients = "paper"
	Detached       Gradients = "detached"
	Attached       Gradients = "attached"

	Plain Variance = "plain"
	HalfD Variance = "half-d"

	DimensionsOfEnergy VarianceD = "energy"
	Channels           VarianceD = "channels"

	BetaPriorStd BetaPrior = "prior_std"
	BetaPriorE   BetaPrior = "e"

	ZeroPadding      Padding = "zero"
	ReplicatePadding Padding = "replicate"

	OrthogonalFactors Factors = "orthogonal"
	ZeroFactors       Factors = "zeros"

	RightLogDet   LogDet = "right"
	NegatedLogDet LogDet = "negated"

	SameAlpha    ConvAlpha = "same"
	DoubledAlpha ConvAlpha = "doubled"

	PerPixel   PerImage = "pixel"
	PerChannel PerImage = "channel"

	SGD  Optimizer = "sgd"
	Adam Optimizer = "adam"

	DecayWeights Decay = "weights" // weights, biases and batch normalisation
	DecayAll     Decay = "all"     // also variational parameters and the observation variance

	OwnAdam        EnergyOptimizer = "own"
	JointOptimizer EnergyOptimizer = "joint" // that of the weights
)

// PaperOptions are the options as the paper's text has them, with choices of this project where it is silent.
func PaperOptions() Options {
	return Options{
		Noise: Gaussian, Gradients: PaperGradients, Variance: Plain, VarianceD: DimensionsOfEnergy, BetaPrior: BetaPriorStd, Padding: ZeroPadding,
		MixtureFactors: OrthogonalFactors, LogDet: RightLogDet, ConvAlpha: SameAlpha, Rank1Noise: PerPixel,
	}
}

// ReleasedOptions are those of the authors' released code.
func ReleasedOptions() Options {
	o := PaperOptions()
	o.Noise, o.Clip, o.Gradients, o.Variance, o.VarianceD = Uniform01, true, Detached, HalfD, Channels
	o.Padding, o.BetaPrior, o.LogDet = ReplicatePadding, BetaPriorE, NegatedLogDet
	o.ConvAlpha = DoubledAlpha
	return o
}

// density is the family of density layers with these options and an energy model.
func (o Options) density(model dul.EnergyModel) dul.Density {
	l := dul.Density{Energy: model, InitStd: o.InitStd, PriorStd: o.PriorStd, Clip: o.Clip, MeanEnergy: o.MeanEnergy, HalfD: o.Variance == HalfD}
	l.HalfChannels = l.HalfD && o.VarianceD == Channels
	switch o.Gradients {
	case Detached:
		l.Gradients = dul.Detached
	case Attached:
		l.Gradients = dul.Attached
	}
	if o.BetaPrior == BetaPriorE {
		l.ConvEtaPriorStd = math.Exp(0.5)
	}
	switch o.Noise {
	case Uniform01:
		l.Noise = stochastic.Uniform01()
	case StudentT5:
		l.Noise = stochastic.StudentT{Nu: 5, UnitVariance: true}
	}
	return l
}
