package runner

import (
	"fmt"
	"math"

	"densityuncertainty/baselines"
	"densityuncertainty/datasets"
	"densityuncertainty/dul"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/experiment"
)

// An ImageRecipe is everything that turns an image experiment into a network and
// a training run, with one field for each place where the paper's text and the
// authors' released code differ. Fields without a remark are those of the same
// name in dul and baselines.
type ImageRecipe struct {
	train.Recipe
	// LikelihoodScale multiplies the generative objective; 0 means what the
	// training recipe has, 1, or 0.01 with JointEnergies.
	LikelihoodScale float64

	InitStd  float64 // posterior standard deviation at the start
	PriorStd float64 // of the method's prior; 0 is its own default

	Uniform        bool // density noise is U[0,1) instead of N(0,1)
	Clip           bool
	Attached       bool
	PlainBias      bool
	ChannelBias    bool
	FixedBetaPrior bool

	ReplicatePadding bool
	ZeroFactors      bool
	NegatedLogDet    bool
	Rank1            float64 // rank-1 components as a fraction of the width

	DropoutRate      float64
	Alpha            float64
	Adaptive         bool
	DoubledConvAlpha bool
	Tied             bool

	ReleasedStats bool // channel means and deviations are those of the released code
	Unaugmented   bool // training images are neither shifted nor mirrored
	Inducing      int  // inducing points of DUE; 0 means as many as classes
	// BlockDropout is the rate of nets.ResNet.Dropout.
	BlockDropout float64
	BFloat16     bool // convolutions multiply in bfloat16 while training
}

// ImageDifferences lists every option of the image experiments: the places where
// the paper's text and the released code disagree, and the hyperparameters that
// the text searches. The blocks of ResNet-14, [2,2,2] in the text and [3,3,3] in
// the code, are not an option but the experiment's network.
func ImageDifferences() []Difference { return differences(imageOptions()) }

func imageOptions() []option[ImageRecipe] {
	return []option[ImageRecipe]{
		{Difference{"noise", "gaussian", "uniform01", "distribution of the density layer's noise"}, either(func(r *ImageRecipe) *bool { return &r.Uniform }, "uniform01", "gaussian")},
		{Difference{"init_std", "0.001", "0.0001", "posterior standard deviation at the start"}, positive(func(r *ImageRecipe) *float64 { return &r.InitStd })},
		{Difference{experiment.OptionPriorStd, "density 1, rank1 and mfvi 0.1", "density 1, rank1 and mfvi 0.1", "standard deviation of the method's prior"}, positive(func(r *ImageRecipe) *float64 { return &r.PriorStd })},
		{Difference{experiment.OptionClip, "false", "true", "the LDL energy is clipped to [0, channels]"}, either(func(r *ImageRecipe) *bool { return &r.Clip }, "true", "false")},
		{Difference{"detach", "true", "true", "input and energy are constants for the gradients of noise and generative objective; the text does not say"}, either(func(r *ImageRecipe) *bool { return &r.Attached }, "false", "true")},
		{Difference{"variance", "half-d", "half-d", "gamma E + beta D/2, or gamma E + beta as the text has it (plain)"}, either(func(r *ImageRecipe) *bool { return &r.PlainBias }, "plain", "half-d")},
		{Difference{"variance_d", "energy", "channels", "the D of half-d: dimensions of the energy, or channels, which for the rank-1 mixture of a window are 9 times fewer"}, either(func(r *ImageRecipe) *bool { return &r.ChannelBias }, "channels", "energy")},
		{Difference{"beta_prior", "prior_std", "e", "prior variance of the noise that does not depend on the energy: that of the other, or e whatever prior_std is"}, either(func(r *ImageRecipe) *bool { return &r.FixedBetaPrior }, "e", "prior_std")},
		{Difference{"padding", "zero", "replicate", "what the masked convolution of the LDL energy sees beyond the border; with copies of the border the likelihood is wrong"}, either(func(r *ImageRecipe) *bool { return &r.ReplicatePadding }, "replicate", "zero")},
		{Difference{"mixture_factors", "orthogonal", "orthogonal", "start of the rank-1 factors; in the released code they start at zero in the last layer alone, where this project has them orthogonal too"}, either(func(r *ImageRecipe) *bool { return &r.ZeroFactors }, "zeros", "orthogonal")},
		{Difference{experiment.OptionMixtureFraction, "0.1", "0.1", "rank-1 components as a fraction of the layer's channels, at least one; the tables name it"}, positive(func(r *ImageRecipe) *float64 { return &r.Rank1 })},
		{Difference{"log_det", "right", "negated", "sign of the log-determinant in the mixture's likelihood"}, either(func(r *ImageRecipe) *bool { return &r.NegatedLogDet }, "negated", "right")},
		{Difference{experiment.OptionDropoutRate, "0.1", "0.1", "of MC dropout"}, positive(func(r *ImageRecipe) *float64 { return &r.DropoutRate })},
		{Difference{experiment.OptionAlpha, "0.1", "resnet 0.001, wrn 0.1", "noise variance of variational dropout"}, positive(func(r *ImageRecipe) *float64 { return &r.Alpha })},
		{Difference{"conv_alpha", "same", "doubled", "noise variance of variational dropout in convolutions"}, either(func(r *ImageRecipe) *bool { return &r.DoubledConvAlpha }, "doubled", "same")},
		{Difference{"adaptive_alpha", "false", "false", "variational dropout trains its noise variance"}, either(func(r *ImageRecipe) *bool { return &r.Adaptive }, "true", "false")},
		{Difference{optionInducing, "as many as classes", "as many as classes", "inducing points of DUE, which decide how much memory it takes"}, atLeastOne(func(r *ImageRecipe) *int { return &r.Inducing })},
		{Difference{"block_dropout", "sngp and due with wrn 0.3, else 0", "sngp and due with wrn 0.3, else 0", "dropout between the two convolutions of a block, in training alone, as the DUE authors' code has it"}, rate(func(r *ImageRecipe) *float64 { return &r.BlockDropout })},
		{Difference{"rank1_noise", "pixel", "pixel", "rank-1 factors of a convolution are drawn for each pixel, or once for a channel and example as in the original method"}, either(func(r *ImageRecipe) *bool { return &r.Tied }, "channel", "pixel")},
		{Difference{experiment.OptionOptimizer, "sgd", "sgd", "SGD with momentum 0.9, or AdamW; the text says ADAM, which with its learning rate of 0.1 must be a slip"}, either(func(r *ImageRecipe) *bool { return &r.Adam }, "adam", "sgd")},
		{Difference{"learning_rate", "resnet 0.1, wrn 0.05, mfvi 0.01", "resnet 0.1, wrn 0.05, mfvi 0.01", "at the first step; for MFVI with the Wide ResNet the text can be read either way"}, positive(func(r *ImageRecipe) *float64 { return &r.LearningRate })},
		{Difference{"batch_size", "resnet 128, wrn 64", "resnet 128, wrn 64", "images of a training step"}, atLeastOne(func(r *ImageRecipe) *int { return &r.BatchSize })},
		{Difference{"weight_decay", "cifar10 1e-4, cifar100 2e-4, wrn 5e-4", "cifar10 1e-4, cifar100 2e-4, wrn 5e-4", "of what the option decay names"}, positive(func(r *ImageRecipe) *float64 { return &r.WeightDecay })},
		{Difference{experiment.OptionDecay, "weights", "all", "what the weight decay applies to; on log-variances it outweighs the KL"}, either(func(r *ImageRecipe) *bool { return &r.DecayAll }, "all", "weights")},
		{Difference{"energy_optimizer", "own", "joint", "the energy models have an Adam of their own, or the weights' optimizer and the generative objective times 0.01; the text does not say"}, either(func(r *ImageRecipe) *bool { return &r.JointEnergies }, "joint", "own")},
		{Difference{"energy_groups", "explicit", "by-name", "what the energy models' optimizer and decay are for: the energy models, or what parameter names suggest, which is the density noise's variances too and neither rank-1 factors nor mixture logits"}, either(func(r *ImageRecipe) *bool { return &r.EnergiesByName }, "by-name", "explicit")},
		{Difference{"energy_rate", "0.01", "that of the weights", "learning rate of the energy models' own Adam"}, positive(func(r *ImageRecipe) *float64 { return &r.EnergyRate })},
		{Difference{"energy_decay", "1e-5", "1e-5", "weight decay of the energy models, an implicit prior p(omega), which the text leaves open"}, positive(func(r *ImageRecipe) *float64 { return &r.EnergyDecay })},
		{Difference{"likelihood_scale", "1", "0.01", "factor of the generative objective"}, positive(func(r *ImageRecipe) *float64 { return &r.LikelihoodScale })},
		{Difference{"pretrain_epochs", "1", "1", "epochs of generative pretraining; the text has none"}, count(func(r *ImageRecipe) *int { return &r.PretrainEpochs })},
		{Difference{"channel_stats", "computed", "released", "channel means and deviations: of all training images not held out, or the constants of the released code"}, either(func(r *ImageRecipe) *bool { return &r.ReleasedStats }, "released", "computed")},
		{Difference{"augmentation", "true", "true", "training images are shifted by up to 4 pixels and mirrored"}, either(func(r *ImageRecipe) *bool { return &r.Unaugmented }, "false", "true")},
		{Difference{"precision", "float32", "float32", "of the convolutions while training; bfloat16 needs an accelerator"}, either(func(r *ImageRecipe) *bool { return &r.BFloat16 }, "bfloat16", "float32")},
	}
}

// optionInducing names the option for DUE's memory.
const optionInducing = "inducing_points"

// mfviRate is the learning rate of MFVI in the text.
const mfviRate = 0.01

// ImageRecipeOf returns an image experiment's recipe: its fidelity's defaults,
// then its options.
func ImageRecipeOf(e experiment.Experiment) (ImageRecipe, error) {
	classes, err := classesOf(e.Dataset)
	if err != nil {
		return ImageRecipe{}, err
	}
	r := ImageRecipe{Recipe: train.ResNet14(classes), InitStd: 1e-3, Rank1: 0.1, DropoutRate: 0.1, Alpha: 0.1}
	if e.Network == experiment.WRN28x10 {
		r.Recipe = train.WideResNet28()
	}
	if e.Fidelity == experiment.Released {
		r.Recipe = r.Released()
		r.InitStd, r.Uniform, r.Clip, r.ReplicatePadding = 1e-4, true, true, true
		r.ChannelBias, r.FixedBetaPrior, r.NegatedLogDet, r.ReleasedStats = true, true, true, true
		r.DoubledConvAlpha = true
		if e.Network != experiment.WRN28x10 {
			r.Alpha = 1e-3
		}
	}
	switch {
	case e.Method == experiment.MFVI:
		r.LearningRate = mfviRate
	case isProcess(e.Method):
		r.processRecipe(e)
	}
	if err := apply(&r, imageOptions(), e); err != nil {
		return ImageRecipe{}, err
	}
	r.Epochs = e.Epochs
	if !hasEnergies(e.Method) {
		r.PretrainEpochs = 0
	}
	return r, nil
}

// hasEnergies reports whether a method has energy models.
func hasEnergies(method string) bool {
	return method == experiment.Density || method == experiment.DensityRank1Mix
}

// classesOf is the number of classes of a data set of the image study.
func classesOf(dataset string) (int, error) {
	switch dataset {
	case experiment.CIFAR10:
		return 10, nil
	case experiment.CIFAR100:
		return 100, nil
	}
	return 0, fmt.Errorf("there is no image data set %q", dataset)
}

// layers is the family of layers of a method.
func (r ImageRecipe) layers(method string) (nets.ConvLayers, error) {
	density := dul.Density{
		Energy:  energy.LDL{ReplicatePadding: r.ReplicatePadding},
		InitStd: r.InitStd, PriorStd: r.PriorStd, Clip: r.Clip, Gradients: gradients(r.Attached),
		HalfD: !r.PlainBias, HalfChannels: r.ChannelBias && !r.PlainBias,
	}
	if r.FixedBetaPrior {
		density.ConvEtaPriorStd = math.Exp(0.5)
	}
	if r.Uniform {
		density.Noise = stochastic.Uniform01()
	}
	switch method {
	case experiment.Deterministic, experiment.Ensemble:
		return baselines.Deterministic{}, nil
	case experiment.SNGP, experiment.DUE: // until withProcess gives it the head
		return baselines.Headless{}, nil
	case experiment.MFVI:
		return baselines.MFVI{InitStd: r.InitStd, PriorStd: r.PriorStd}, nil
	case experiment.MCDropout:
		return baselines.MCDropout{Rate: r.DropoutRate}, nil
	case experiment.VDropout:
		return baselines.VDropout{Alpha: r.Alpha, Adaptive: r.Adaptive, DoubledConvAlpha: r.DoubledConvAlpha}, nil
	case experiment.Rank1:
		return baselines.Rank1{InitStd: r.InitStd, PriorStd: r.PriorStd, Tied: r.Tied}, nil
	case experiment.Density:
		return density, nil
	case experiment.DensityRank1Mix:
		density.Energy = energy.Rank1Mixture{Fraction: r.Rank1, ZeroFactors: r.ZeroFactors, NegatedLogDet: r.NegatedLogDet}
		density.Clip = false // in the released code, and in this option, it is of the LDL energy alone
		return density, nil
	}
	return nil, fmt.Errorf("there is no method %q for images", method)
}

// network is the network of an experiment.
func (r ImageRecipe) network(e experiment.Experiment) (nets.ResNet, error) {
	layers, err := r.layers(e.Method)
	if err != nil {
		return nets.ResNet{}, err
	}
	var network nets.ResNet
	switch e.Network {
	case experiment.ResNet14:
		network = nets.ResNet14(layers)
	case experiment.ResNet20:
		network = nets.ResNet20(layers)
	case experiment.WRN28x10:
		network = nets.WideResNet28x10(layers)
	default:
		return nets.ResNet{}, fmt.Errorf("there is no network %q", e.Network)
	}
	network.Dropout = r.BlockDropout
	return network, nil
}

// shiftBy is the padding of the usual augmentation for CIFAR.
const shiftBy = 4

// classification returns the training run of an experiment, without seed,
// progress and checkpoints.
func (r ImageRecipe) classification(e experiment.Experiment) train.Trainer {
	t := r.Trainer()
	if r.LikelihoodScale > 0 {
		t.LogLikelihoodScale = r.LikelihoodScale
	}
	if isProcess(e.Method) {
		t.Schedule = r.processSchedule(e.Method)
	}
	t.Order = datasets.Order
	t.BFloat16 = r.BFloat16
	if !r.Unaugmented {
		t.Augmentation, t.Padding = datasets.Augmentation{Pad: shiftBy, Flip: true}, shiftBy
	}
	return t
}
