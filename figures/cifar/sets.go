package cifar

import (
	"slices"

	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
)

// Sets are the experiments of the paper's six image tables, and of small runs.
//
// The classification tables train on all 50,000 training images, which is what their numbers in the literature mean,
// and hold none out. The energy statistic of the table of detection needs training images that the model has not
// seen, so its density models are trained once more, on 45,000; the other methods' rows, which need none, come from
// the classification runs.
//
// The sets with "gp" in their names are of methods that the paper's tables of the same network leave out: last-layer
// Gaussian processes, a deep ensemble, and the single network that it is made of. The latter is trained once more on
// 45,000 images, since a temperature must be fitted on images that the network has not seen.
func Sets() []results.Set {
	return []results.Set{
		{
			Name:        "cifar10-resnet14",
			Doc:         "CIFAR-10 with ResNet-14, 3 seeds: accuracy, ECE, NLL; also a single network, and the variational methods with decay=all",
			Experiments: resnet14Experiments(CIFAR10),
		},
		{
			Name:        "cifar100-resnet14",
			Doc:         "CIFAR-100 with ResNet-14, 3 seeds; also a single network, and the variational methods with decay=all",
			Experiments: resnet14Experiments(CIFAR100),
		},
		{Name: "cifar10-wrn", Doc: "CIFAR-10 with WRN-28-10, 3 seeds", Experiments: wideExperiments(CIFAR10)},
		{Name: "cifar100-wrn", Doc: "CIFAR-100 with WRN-28-10, 3 seeds", Experiments: wideExperiments(CIFAR100)},
		{
			Name:        "rank1-ablation",
			Doc:         "number of rank-1 mixture components, CIFAR-10 with WRN-28-10, 3 seeds",
			Experiments: ablationExperiments(),
		},
		detectionSet(),
		gaussianProcessSet(),
		{
			Name:        "cifar-gp-wrn",
			Doc:         "WRN-28-10 with methods that the paper's tables of it leave out: a deep ensemble, a single network and its temperature, 3 seeds",
			Experiments: slices.Concat(withTemperature(CIFAR10, WRN28x10, singleNetworks...), withTemperature(CIFAR100, WRN28x10, singleNetworks...)),
		},
		{
			Name:        "cifar-released",
			Doc:         "CIFAR-10 and CIFAR-100 with the released settings, whose ResNet-14 has 20 layers, 3 seeds",
			Experiments: slices.Concat(Released(CIFAR10, ResNet20).Experiments(papersFive...), Released(CIFAR100, ResNet20).Experiments(papersFive...)),
		},
		{
			Name:        "cifar-small",
			Doc:         "ResNet-14 on 5,000 images for 5 epochs, 3 seeds: real data within reach of a processor, never compared with the paper",
			Experiments: slices.Concat(smallExperiments(CIFAR10), smallExperiments(CIFAR100)),
		},
		{
			Name:        "grid",
			Doc:         "the paper's grid search: prior and noise of each method, CIFAR-10 with ResNet-14, measured on 5,000 held-out images",
			Experiments: gridExperiments(),
		},
		processorGridSet(),
		processorSet(committedChoice()),
		processorSet100(committedChoice()),
		gpuSet(),
	}
}

var (
	// papersFive are the methods of the paper's ResNet-14 tables.
	papersFive = methods.List{methods.MFVI, methods.MCDropout, methods.VDropout, methods.Rank1, methods.Density}
	// variationals are those of them whose posterior a weight decay on all parameters moves. Without it their
	// posteriors stay near their start, which the paper does not speak of.
	variationals = methods.List{methods.MFVI, methods.Rank1, methods.Density}
	// singleNetworks and processes are what the paper's ResNet-14 tables leave out.
	singleNetworks = methods.List{methods.Deterministic, methods.Ensemble}
	processes      = methods.List{methods.SNGP, methods.DUE}
)

// ablationFractions are the numbers of mixture components of the paper's ablation, as fractions of the layers' width.
var ablationFractions = []float64{0.0125, 0.025, 0.05, 0.1, 0.2}

// withFraction is the protocol with a number of mixture components.
func (p Protocol) withFraction(fraction float64) Protocol {
	p.MixtureFraction = fraction
	return p
}

// withDecayAll is the protocol with weight decay on all parameters.
func (p Protocol) withDecayAll() Protocol {
	p.Decay = methods.DecayAll
	return p
}

func resnet14Experiments(dataset string) []results.Experiment {
	p := Paper(dataset, ResNet14)
	return slices.Concat(p.Experiments(papersFive...), p.Experiments(methods.Deterministic), p.withDecayAll().Experiments(variationals...),
		p.Quick().Experiments(papersFive...))
}

func wideExperiments(dataset string) []results.Experiment {
	p := Paper(dataset, WRN28x10)
	return slices.Concat(p.Experiments(papersFive...), p.withFraction(0.0125).Experiments(methods.DensityMixture), p.Experiments(processes...))
}

func ablationExperiments() []results.Experiment {
	var all []results.Experiment
	p := Paper(CIFAR10, WRN28x10)
	for _, fraction := range ablationFractions {
		all = append(all, p.withFraction(fraction).Experiments(methods.DensityMixture)...)
	}
	return append(all, p.Experiments(methods.Density)...)
}

func detectionSet() results.Set {
	ten, hundred := Paper(CIFAR10, ResNet14), Paper(CIFAR100, ResNet14)
	return results.Set{
		Name: "ood-svhn",
		Doc:  "OOD detection with ResNet-14 trained on CIFAR-10 and CIFAR-100, 3 seeds; density trained with 5,000 images held out",
		Experiments: slices.Concat(
			ten.Experiments(papersFive...), hundred.Experiments(papersFive...),
			ten.WithHeldOut().Experiments(methods.Density), hundred.WithHeldOut().Experiments(methods.Density),
			ten.Quick().Experiments(papersFive...), hundred.Quick().Experiments(papersFive...)),
	}
}

func gaussianProcessSet() results.Set {
	all := slices.Concat(singleNetworks, processes)
	return results.Set{
		Name: "cifar-gp",
		Doc:  "ResNet-14 with methods that the paper's tables of it leave out: SNGP, DUE, a deep ensemble, a single network and its temperature, 3 seeds",
		Experiments: slices.Concat(withTemperature(CIFAR10, ResNet14, all...), withTemperature(CIFAR100, ResNet14, all...),
			Paper(CIFAR10, ResNet14).Quick().Experiments(all...), Paper(CIFAR100, ResNet14).Quick().Experiments(all...)),
	}
}

// withTemperature are full runs of methods, and those of the single network with images held out, on which its
// temperature is fitted.
func withTemperature(dataset, network string, list ...methods.Method) []results.Experiment {
	p := Paper(dataset, network)
	return slices.Concat(p.Experiments(list...), p.WithHeldOut().Experiments(methods.Deterministic))
}

// smallExperiments always hold images out: there are enough.
func smallExperiments(dataset string) []results.Experiment {
	p := Paper(dataset, ResNet14).Small()
	return slices.Concat(p.Experiments(methods.Deterministic), p.Experiments(papersFive...), p.withFraction(0.1).Experiments(methods.DensityMixture),
		p.Experiments(methods.Ensemble), p.Experiments(processes...))
}

// A papersSearch is one of the paper's (section 4, "Experimental details"), with the value that it chose.
type papersSearch struct {
	search
	chosen string
}

// papersSearches do not have the posterior standard deviation at the start.
var papersSearches = []papersSearch{
	{search{methods.MCDropout, methods.DropoutRate, []string{"0.1", "0.2", "0.3"}}, "0.1"},
	{search{methods.VDropout, methods.Alpha, []string{"0.1", "0.25", "0.5"}}, "0.1"},
	{search{methods.Rank1, "prior_std", []string{"0.01", "0.1", "1"}}, "0.1"},
	{search{methods.Density, "prior_std", []string{"0.1", "1", "10"}}, "1"},
}

func gridExperiments() []results.Experiment {
	var all []results.Experiment
	p := Paper(CIFAR10, ResNet14).WithHeldOut()
	p.Scale, p.Seeds = results.Grid, []uint64{0}
	for _, s := range papersSearches {
		for _, value := range s.values {
			all = append(all, s.with(p, value).Experiments(s.method)...)
		}
	}
	return all
}
