package experiment

import "slices"

// The lengths of the image runs.
const (
	imageEpochs, imageSamples, imageSeeds = 200, 25, 3
	smallEpochs                           = 5
	quickEpochs, quickSamples             = 1, 5
	smallTrainN, smallTestN               = 5000, 1000
	quickTrainN, quickTestN               = 512, 256
)

// heldOutImages of the 50,000 are kept out of training where the energy statistic or a grid search needs
// them.
const heldOutImages = 5000

// The options by which the catalogue's image experiments differ from their fidelity.
const (
	OptionPriorStd        = "prior_std"        // standard deviation of the method's prior
	OptionDropoutRate     = "dropout_rate"     // of MC dropout
	OptionAlpha           = "alpha"            // noise variance of variational dropout
	OptionMixtureFraction = "mixture_fraction" // rank-1 components as a fraction of the layer's width
	OptionDecay           = "decay"            // "weights" or "all": what the weight decay applies to
	OptionOptimizer       = "optimizer"        // "sgd" or "adam"
)

// EnsembleMembers is the number of networks of a deep ensemble, as in Lakshminarayanan et al. (2017).
const EnsembleMembers = 5

// imageSets are those of the paper's six image tables, and of small runs.
//
// The classification tables train on all 50,000 training images, which is what their numbers in the
// literature mean, and hold none out. The energy statistic of the OOD table needs training images that the
// model has not seen, so its density models are trained once more, on 45,000; the other methods' rows,
// which need none, come from the classification runs.
//
// The sets with "gp" in their names are of methods that the paper's tables of the same network leave out:
// last-layer Gaussian processes, a deep ensemble, and the single network that it is made of. The latter
// is trained once more on 45,000 images, since a temperature must be fitted on images that the network
// has not seen.
func imageSets() []Set {
	small := []variant{{Deterministic, nil}, {MFVI, nil}, {MCDropout, nil}, {VDropout, nil}, {Rank1, nil}, {Density, nil}, {DensityRank1Mix, fraction("0.1")},
		{Ensemble, nil}, {SNGP, nil}, {DUE, nil}}
	return []Set{
		{
			Name:        "cifar10-resnet14",
			Doc:         "CIFAR-10 with ResNet-14, 3 seeds: accuracy, ECE, NLL; also a single network, and the variational methods with decay=all",
			Experiments: slices.Concat(fullImages(Paper, CIFAR10, ResNet14, resnet14Methods()), quickImages(CIFAR10, fiveMethods())),
		},
		{
			Name:        "cifar100-resnet14",
			Doc:         "CIFAR-100 with ResNet-14, 3 seeds; also a single network, and the variational methods with decay=all",
			Experiments: slices.Concat(fullImages(Paper, CIFAR100, ResNet14, resnet14Methods()), quickImages(CIFAR100, fiveMethods())),
		},
		{
			Name:        "cifar10-wrn",
			Doc:         "CIFAR-10 with WRN-28-10, 3 seeds",
			Experiments: fullImages(Paper, CIFAR10, WRN28x10, wrnMethods()),
		},
		{
			Name:        "cifar100-wrn",
			Doc:         "CIFAR-100 with WRN-28-10, 3 seeds",
			Experiments: fullImages(Paper, CIFAR100, WRN28x10, wrnMethods()),
		},
		{
			Name:        "rank1-ablation",
			Doc:         "number of rank-1 mixture components, CIFAR-10 with WRN-28-10, 3 seeds",
			Experiments: fullImages(Paper, CIFAR10, WRN28x10, ablation()),
		},
		{
			Name: "ood-svhn",
			Doc:  "OOD detection with ResNet-14 trained on CIFAR-10 and CIFAR-100, 3 seeds; density trained with 5,000 images held out",
			Experiments: slices.Concat(
				fullImages(Paper, CIFAR10, ResNet14, fiveMethods()), fullImages(Paper, CIFAR100, ResNet14, fiveMethods()),
				holdOut(fullImages(Paper, CIFAR10, ResNet14, []variant{{Density, nil}})), holdOut(fullImages(Paper, CIFAR100, ResNet14, []variant{{Density, nil}})),
				quickImages(CIFAR10, fiveMethods()), quickImages(CIFAR100, fiveMethods())),
		},
		{
			Name: "cifar-gp",
			Doc:  "ResNet-14 with methods that the paper's tables of it leave out: SNGP, DUE, a deep ensemble, a single network and its temperature, 3 seeds",
			Experiments: slices.Concat(gpImages(CIFAR10, ResNet14, gpMethods()), gpImages(CIFAR100, ResNet14, gpMethods()),
				quickImages(CIFAR10, gpMethods()), quickImages(CIFAR100, gpMethods())),
		},
		{
			Name:        "cifar-gp-wrn",
			Doc:         "WRN-28-10 with methods that the paper's tables of it leave out: a deep ensemble, a single network and its temperature, 3 seeds",
			Experiments: slices.Concat(gpImages(CIFAR10, WRN28x10, gpMethods()[:2]), gpImages(CIFAR100, WRN28x10, gpMethods()[:2])),
		},
		{
			Name: "cifar-released",
			Doc:  "CIFAR-10 and CIFAR-100 with the released settings, whose ResNet-14 has 20 layers, 3 seeds",
			Experiments: slices.Concat(fullImages(Released, CIFAR10, ResNet20, fiveMethods()),
				fullImages(Released, CIFAR100, ResNet20, fiveMethods())),
		},
		{
			Name:        "cifar-small",
			Doc:         "ResNet-14 on 5,000 images for 5 epochs, 3 seeds: real data within reach of a processor, never compared with the paper",
			Experiments: slices.Concat(smallImages(CIFAR10, small), smallImages(CIFAR100, small)),
		},
		{
			Name:        "grid",
			Doc:         "the paper's grid search: prior and noise of each method, CIFAR-10 with ResNet-14, measured on 5,000 held-out images",
			Experiments: gridSearch(),
		},
	}
}

// A variant is a method with its options.
type variant struct {
	method  string
	options map[string]string
}

func fraction(value string) map[string]string {
	return map[string]string{OptionMixtureFraction: value}
}

// fiveMethods are the rows of the ResNet-14 tables.
func fiveMethods() []variant {
	return []variant{{MFVI, nil}, {MCDropout, nil}, {VDropout, nil}, {Rank1, nil}, {Density, nil}}
}

// resnet14Methods are fiveMethods, a single network, and the variational methods with weight decay on all
// parameters: without it their posteriors stay near their start, which the paper does not speak of.
func resnet14Methods() []variant {
	all := map[string]string{OptionDecay: "all"}
	return append(fiveMethods(), variant{Deterministic, nil}, variant{MFVI, all}, variant{Rank1, all}, variant{Density, all})
}

// wrnMethods are the rows of the WRN-28 tables.
func wrnMethods() []variant {
	return append(fiveMethods(), variant{DensityRank1Mix, fraction("0.0125")}, variant{SNGP, nil}, variant{DUE, nil})
}

// gpMethods are the methods that the paper's ResNet-14 tables leave out.
func gpMethods() []variant {
	return []variant{{Deterministic, nil}, {Ensemble, nil}, {SNGP, nil}, {DUE, nil}}
}

// gpImages are full runs of the variants, and of the single network with images held out, on which its
// temperature is fitted.
func gpImages(dataset, network string, variants []variant) []Experiment {
	return slices.Concat(fullImages(Paper, dataset, network, variants),
		holdOut(fullImages(Paper, dataset, network, []variant{{Deterministic, nil}})))
}

// AblationFractions are the numbers of mixture components of the paper's ablation, as fractions of the
// layers' width.
func AblationFractions() []string { return []string{"0.0125", "0.025", "0.05", "0.1", "0.2"} }

func ablation() []variant {
	var rows []variant
	for _, value := range AblationFractions() {
		rows = append(rows, variant{DensityRank1Mix, fraction(value)})
	}
	return append(rows, variant{Density, nil})
}

// fullImages are the runs that are compared with the paper.
func fullImages(fidelity, dataset, network string, variants []variant) []Experiment {
	var all []Experiment
	for _, v := range variants {
		for seed := range uint64(imageSeeds) {
			all = append(all, Experiment{Study: Images, Method: v.method, Dataset: dataset, Seed: seed, Epochs: imageEpochs,
				Samples: samplesOf(v.method), Fidelity: fidelity, Scale: Full, Options: v.options, Network: network})
		}
	}
	return all
}

// samplesOf is the number of samples that a method draws of each network: SNGP, DUE and the members of an
// ensemble have a single one.
func samplesOf(method string) int {
	if slices.Contains([]string{SNGP, DUE, Ensemble}, method) {
		return 1
	}
	return imageSamples
}

func holdOut(all []Experiment) []Experiment {
	for i := range all {
		all[i].HeldOut = heldOutImages
	}
	return all
}

// smallImages always hold images out: there are enough.
func smallImages(dataset string, variants []variant) []Experiment {
	all := fullImages(Paper, dataset, ResNet14, variants)
	for i := range all {
		e := &all[i]
		e.Scale, e.Epochs, e.TrainN, e.TestN, e.HeldOut = Small, smallEpochs, smallTrainN, smallTestN, smallTestN
	}
	return all
}

func quickImages(dataset string, variants []variant) []Experiment {
	all := Filter{Seeds: []uint64{0}}.Apply(fullImages(Paper, dataset, ResNet14, variants))
	for i := range all {
		e := &all[i]
		e.Scale, e.Epochs, e.Samples, e.TrainN, e.TestN, e.HeldOut = Quick, quickEpochs, min(e.Samples, quickSamples), quickTrainN, quickTestN, quickTestN
	}
	return all
}

// gridSearch is the search that the paper describes (section 4, "Experimental details"). It does not
// search the posterior standard deviation at the start.
func gridSearch() []Experiment {
	var variants []variant
	for _, choice := range []struct {
		method, option string
		values         []string
	}{
		{MCDropout, OptionDropoutRate, []string{"0.1", "0.2", "0.3"}},
		{VDropout, OptionAlpha, []string{"0.1", "0.25", "0.5"}},
		{Rank1, OptionPriorStd, []string{"0.01", "0.1", "1"}},
		{Density, OptionPriorStd, []string{"0.1", "1", "10"}},
	} {
		for _, value := range choice.values {
			variants = append(variants, variant{choice.method, map[string]string{choice.option: value}})
		}
	}
	all := holdOut(Filter{Seeds: []uint64{0}}.Apply(fullImages(Paper, CIFAR10, ResNet14, variants)))
	for i := range all {
		all[i].Scale = Grid
	}
	return all
}
