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
)

// imageSets are those of the paper's six image tables, and of small runs.
//
// The classification tables train on all 50,000 training images, which is what their numbers in the
// literature mean, and hold none out. The energy statistic of the OOD table needs training images that the
// model has not seen, so its density models are trained once more, on 45,000; the other methods' rows,
// which need none, come from the classification runs.
func imageSets() []Set {
	small := []variant{{Deterministic, nil}, {MFVI, nil}, {MCDropout, nil}, {VDropout, nil}, {Rank1, nil}, {Density, nil}, {DensityRank1Mix, fraction("0.1")}}
	return []Set{
		{
			Name:        "cifar10-resnet14",
			Doc:         "CIFAR-10 with ResNet-14, 3 seeds: accuracy, ECE, NLL",
			Experiments: slices.Concat(fullImages(Paper, CIFAR10, ResNet14, fiveMethods()), quickImages(CIFAR10)),
		},
		{
			Name:        "cifar100-resnet14",
			Doc:         "CIFAR-100 with ResNet-14, 3 seeds",
			Experiments: slices.Concat(fullImages(Paper, CIFAR100, ResNet14, fiveMethods()), quickImages(CIFAR100)),
		},
		{
			Name:        "cifar10-wrn",
			Doc:         "CIFAR-10 with WRN-28-10, 3 seeds",
			Experiments: slices.Concat(fullImages(Paper, CIFAR10, WRN28x10, wrnMethods()), processImages(CIFAR10)),
		},
		{
			Name:        "cifar100-wrn",
			Doc:         "CIFAR-100 with WRN-28-10, 3 seeds",
			Experiments: slices.Concat(fullImages(Paper, CIFAR100, WRN28x10, wrnMethods()), processImages(CIFAR100)),
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
				quickImages(CIFAR10), quickImages(CIFAR100)),
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

// wrnMethods are the rows of the WRN-28 tables but for SNGP and DUE.
func wrnMethods() []variant {
	return append(fiveMethods(), variant{DensityRank1Mix, fraction("0.0125")})
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
				Samples: imageSamples, Fidelity: fidelity, Scale: Full, Options: v.options, Network: network})
		}
	}
	return all
}

// processImages are SNGP and DUE with WRN-28-10, which predict without drawing samples of the network.
func processImages(dataset string) []Experiment {
	all := fullImages(Paper, dataset, WRN28x10, []variant{{SNGP, nil}, {DUE, nil}})
	for i := range all {
		all[i].Samples = 1
	}
	return all
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

func quickImages(dataset string) []Experiment {
	all := Filter{Seeds: []uint64{0}}.Apply(fullImages(Paper, dataset, ResNet14, fiveMethods()))
	for i := range all {
		e := &all[i]
		e.Scale, e.Epochs, e.Samples, e.TrainN, e.TestN, e.HeldOut = Quick, quickEpochs, quickSamples, quickTrainN, quickTestN, quickTestN
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
