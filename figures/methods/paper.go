package methods

import (
	"densityuncertainty/baselines"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/results"
)

// EnsembleMembers is the number of networks of a deep ensemble, as in Lakshminarayanan et al. (2017).
const EnsembleMembers = 5

// The scores by which methods tell images out of distribution besides the maximum probability, by the endings of
// the metrics' names.
const (
	ByEntropy           = "_entropy"           // entropy of the averaged probabilities
	ByMutualInformation = "_mutualinformation" // between label and sample
	ByDempsterShafer    = "_dempstershafer"    // of the logits, as SNGP
	ByEnergy            = "_energy"            // squared distance from the mean held-out energy, as the paper's method
)

// The noise scales.
const (
	InitStd     = "init_std"     // posterior standard deviation at the start
	DropoutRate = "dropout_rate" // of MC dropout
	Alpha       = "alpha"        // noise variance of variational dropout
)

// The methods that the paper compares.
var (
	// MFVI is mean-field variational inference (Blundell et al. 2015).
	MFVI = Method{
		Name: "mfvi", Title: "MFVI", Paper: PaperNames{Images: "MFVI"},
		NoiseScale: InitStd,
		Layers:     func(o Options) nets.Layers { return baselines.MFVI{InitStd: o.InitStd, PriorStd: o.PriorStd} },
		Own: func(s Setting, o *Options) {
			switch {
			case s.Study == results.Toy:
				// Its default of 0.1 is too tight for 50 units to bend into a
				// cubic: MFVI then misses the data, which is not what Figure 1a shows.
				own(&o.PriorStd, 1)
			case s.Study == results.Images:
				own(&o.LearningRate, 0.01) // in the text
			}
			own(&o.PriorStd, 0.1)
		},
	}
	// MCDropout is Monte Carlo dropout (Gal & Ghahramani 2016).
	MCDropout = Method{
		Name: "mcdropout", Title: "MC Dropout", Paper: PaperNames{UCI: "MCDropout", Images: "MCDropout"},
		NoiseScale: DropoutRate,
		Layers:     func(o Options) nets.Layers { return baselines.MCDropout{Rate: o.DropoutRate} },
		Own:        func(_ Setting, o *Options) { own(&o.DropoutRate, 0.1) },
	}
	// VDropout is variational dropout (Kingma et al. 2015).
	VDropout = Method{
		Name: "vdropout", Title: "Variational Dropout", Paper: PaperNames{UCI: "VDropout", Images: "VDropout"},
		NoiseScale: Alpha,
		Layers: func(o Options) nets.Layers {
			return baselines.VDropout{Alpha: o.Alpha, Adaptive: o.AdaptiveAlpha, DoubledConvAlpha: o.ConvAlpha == DoubledAlpha}
		},
		Own: func(s Setting, o *Options) {
			if s.Study == results.Images && s.Fidelity == results.Released && s.Network != WRN28x10 {
				own(&o.Alpha, 1e-3) // the released code's default, which its Wide ResNet does not use
			}
			own(&o.Alpha, 0.1)
		},
	}
	// Rank1 is the rank-1 Bayesian neural network (Dusenberry et al. 2020).
	Rank1 = Method{
		Name: "rank1", Title: "Rank-1 BNN", Paper: PaperNames{UCI: "Rank1-BNN", Images: "Rank-1 BNN"},
		NoiseScale: InitStd,
		Layers: func(o Options) nets.Layers {
			return baselines.Rank1{InitStd: o.InitStd, PriorStd: o.PriorStd, Tied: o.Rank1Noise == PerChannel}
		},
		Own: func(_ Setting, o *Options) { own(&o.PriorStd, 0.1) },
	}
	// Density is the paper's method with its full-rank LDL energy.
	Density = Method{
		Name: "density", Title: "Density Uncertainty", Paper: PaperNames{UCI: "Density Uncertainty", Images: "Density Uncertainty"},
		NoiseScale: InitStd,
		Layers: func(o Options) nets.Layers {
			return o.density(energy.LDL{ReplicatePadding: o.Padding == ReplicatePadding})
		},
		HasEnergies: true, Detects: []string{ByEnergy}, Own: ownPrior,
	}
	// DensityMixture is the paper's method with a mixture of rank-1 Gaussians as energy model.
	DensityMixture = Method{
		Name: "density-rank1mix", Title: "Density, rank-1 mixture",
		NoiseScale: InitStd,
		Layers: func(o Options) nets.Layers {
			l := o.density(energy.Rank1Mixture{Fraction: o.MixtureFraction, ZeroFactors: o.MixtureFactors == ZeroFactors, NegatedLogDet: o.LogDet == NegatedLogDet})
			l.Clip = false // the released code clips LDL alone
			return l
		},
		HasEnergies: true, Detects: []string{ByEnergy},
		Own: func(s Setting, o *Options) {
			own(&o.MixtureFraction, 0.1)
			ownPrior(s, o)
		},
	}
	// SNGP is the spectral-normalised neural Gaussian process (Liu et al. 2020).
	SNGP = Method{
		Name: "sngp", Title: "SNGP", Paper: PaperNames{Images: "SNGP"},
		Layers: processLayers, Process: sngp{}, SamplesOnce: true, ImageSamples: 1, Detects: []string{ByDempsterShafer},
		ImageSchedule: fallingInSteps, Own: ownProcess(0.05),
	}
	// DUE is deterministic uncertainty estimation (van Amersfoort et al. 2021).
	DUE = Method{
		Name: "due", Title: "DUE", Paper: PaperNames{Images: "DUE"},
		Layers: processLayers, Process: due{}, ImageSamples: 1, Detects: []string{ByEntropy},
		ImageSchedule: fallingInSteps, Own: ownProcess(0.1),
	}
)

// The methods that this project adds.
var (
	// DensityDiagonal is the density layer with a Gaussian of independent inputs as energy model.
	DensityDiagonal = Method{
		Name: "density-diagonal", Title: "Density, diagonal", HasEnergies: true, Detects: []string{ByEnergy}, Own: ownPrior,
		NoiseScale: InitStd,
		Layers:     func(o Options) nets.Layers { return o.density(energy.Diagonal{}) },
	}
	// DensityConstant is the density layer whose energy is the same for all inputs: its noise follows nothing. It is
	// the control that says whether the energy matters.
	DensityConstant = Method{
		Name: "density-constant", Title: "Density, constant", Own: ownPrior,
		NoiseScale: InitStd,
		Layers:     func(o Options) nets.Layers { return o.density(energy.Constant{}) },
	}
	// DensityMean is the density layer with the mean of its energies in the place of each: as much noise as its, which
	// follows nothing. It is the control that says whether the energy matters by where the noise goes.
	DensityMean = Density.Variant("Density, mean energy", func(o *Options) { o.MeanEnergy = true })
	// Deterministic is a single network without weight noise.
	Deterministic = Method{
		Name: "deterministic", Title: "Deterministic", Layers: deterministicLayers, SamplesOnce: true, FitsTemperature: true, FitsGaussian: true,
	}
	// Ensemble is a deep ensemble of deterministic networks (Lakshminarayanan et al. 2017), trained apart from seeds of
	// their own, whose prediction is the mixture of theirs: in regression as replicas of one graph (Regressions.Fit), on
	// images one by one (cifar.Classifier).
	Ensemble = Method{
		Name: "ensemble", Title: "Deep Ensemble", Layers: deterministicLayers, SamplesOnce: true, ImageSamples: 1, Members: EnsembleMembers,
		Detects: []string{ByMutualInformation},
	}
)

// WRN28x10 is the name of the Wide ResNet in experiments, whose settings some methods depend on.
const WRN28x10 = "wrn28x10"

// All are the methods in the order of the paper's tables, then those with which it compares images only, or not
// at all.
func All() List {
	return List{Deterministic, MFVI, MCDropout, VDropout, Rank1, Density, DensityMixture, Ensemble, SNGP, DUE, DensityDiagonal, DensityConstant}
}

func deterministicLayers(Options) nets.Layers { return baselines.Deterministic{} }

// processLayers are those of an image network whose head is still to come.
func processLayers(Options) nets.Layers { return baselines.Headless{} }

// own sets a number that is not given.
func own(option *float64, value float64) {
	if *option == 0 {
		*option = value
	}
}

func ownPrior(_ Setting, o *Options) { own(&o.PriorStd, 1) }

// ownProcess trains SNGP and DUE as the DUE authors' code does, with which the paper ran them: regressions with
// Adam, since with momentum they do not fit in as many epochs; images with batches of 128, a weight decay of 5e-4
// and a learning rate of its own, and the Wide ResNet with its dropout. A ResNet-14 is a tenth as wide, and goes
// without.
func ownProcess(imageRate float64) func(Setting, *Options) {
	return func(s Setting, o *Options) {
		switch s.Study {
		case results.UCI:
			if o.Optimizer == "" {
				o.Optimizer = Adam
			}
		case results.Images:
			own(&o.LearningRate, imageRate)
			own(&o.WeightDecay, 5e-4)
			if o.BatchSize == 0 {
				o.BatchSize = 128
			}
			if s.Network == WRN28x10 {
				own(&o.BlockDropout, 0.3)
			}
		}
	}
}

// fallingInSteps is the learning rate of that code for images: a fifth after 60, 120 and 160 of 200 epochs.
func fallingInSteps(rate float64) train.Schedule {
	return train.Steps(rate, 0.2, 60./200, 120./200, 160./200)
}
