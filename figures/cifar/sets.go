package cifar

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"densityuncertainty/dul"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/nets"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/tables"
)

var (
	// papersFive are the methods of the paper's ResNet-14 tables.
	papersFive = []experiment.Method{methods.MFVI, methods.MCDropout, methods.VDropout, methods.Rank1, methods.Density}
	// variationals are the methods whose posterior leaves its start only if weight decay also applies to variational
	// parameters. The paper does not mention this.
	variationals = []experiment.Method{methods.MFVI, methods.Rank1, methods.Density}
	// singleNetworks and processes are what the paper's ResNet-14 tables leave out.
	singleNetworks = []experiment.Method{methods.Deterministic, methods.Ensemble}
	processes      = []experiment.Method{methods.SNGP, methods.DUE}
	addedMethods   = slices.Concat(singleNetworks, processes)
	// smallMethods are those of our tables of ResNet-14, and wideMethods those of the Wide ResNet.
	smallMethods = slices.Concat(papersFive, addedMethods)
	wideMethods  = slices.Concat(papersFive, []experiment.Method{mixture(0.0125)}, processes, singleNetworks)
	// keyMethods are compared with each other in the first place: without noise, with noise whose energy knows nothing of the
	// input, and the strongest of the paper's other methods.
	keyMethods = []experiment.Method{methods.Deterministic, methods.Density, methods.DensityConstant, methods.Rank1}
)

// The seeds of the paper's tables, and the most that a comparison has.
const paperSeeds, mostSeeds = 3, methods.EnsembleMembers

// tenAlone needs no files but those of CIFAR-10 and the excerpt of SVHN.
var ten, hundred, tenAlone = Images{Name: CIFAR10}, Images{Name: CIFAR100}, Images{Name: CIFAR10, Sets: []string{TestSet, SVHNExcerpt}}

// withHeldOut are images of which 5,000 are kept out of training.
func withHeldOut(d Images) Images {
	d.HeldOut = heldOut
	return d
}

// seeded are experiments by a preset, with so many seeds.
func seeded(preset experiment.Preset, seeds int) experiment.Grid {
	return experiment.Grid{Preset: preset, Seeds: seeds}
}

// ablationFractions are the numbers of mixture components of the paper's ablation, as parts of the layers' width.
var ablationFractions = []float64{0.0125, 0.025, 0.05, 0.1, 0.2}

// mixture is the rank-1 mixture with a number of components, under the name in the paper.
func mixture(fraction float64) experiment.Method {
	return experiment.Method{Name: fmt.Sprintf("Rank-1 Mixture (%g%%)", 100*fraction), Layers: dul.Density{Energy: energy.Rank1Mixture{Fraction: fraction}}}
}

// mixtures are those of the paper's ablation.
func mixtures() []experiment.Method {
	var all []experiment.Method
	for _, fraction := range ablationFractions {
		all = append(all, mixture(fraction))
	}
	return all
}

// paperImages are the experiments of the paper's six image tables, in an order in which a stopped run leaves whole columns: one
// seed of everything before the next, small networks before wide ones.
func paperImages() experiment.Experiments {
	all := seeded(Wide, paperSeeds).Of(ten, mixtures()...)
	for _, d := range []Images{ten, hundred} {
		all = append(all, slices.Concat(
			seeded(Paper, paperSeeds).Of(d, append(slices.Clone(papersFive), methods.Deterministic)...),
			seeded(paper.withDecay(true), paperSeeds).Of(d, variationals...),
			seeded(Wide, paperSeeds).Of(d, slices.Concat(papersFive, []experiment.Method{mixture(0.0125)}, processes)...),
			seeded(Paper, paperSeeds).Of(withHeldOut(d), methods.Density))...) // whose energies are compared with those of training images that it has not seen
	}
	all = tables.Union(all)
	slices.SortStableFunc(all, func(a, b experiment.Experiment) int {
		return cmp.Or(cmp.Compare(width(a), width(b)), cmp.Compare(a.Seed, b.Seed), cmp.Compare(a.Task.Name, b.Task.Name))
	})
	return all
}

// width is the number of filters of the first stage of an experiment's network.
func width(e experiment.Experiment) int { return e.Task.Network.(nets.ResNet).Widths[0] }

// Roofline is the least time in which an H100 trains the experiments of list on images of this package. It was computed
// from the programs that XLA compiled for a training step: the sum over kernels of the longer of moving their bytes, at
// 3.35 TB/s, and their products in TF32, at 494 TFLOP/s. What it leaves out, such as the time between kernels and the
// predictions, was never measured; two or three times as long is to be expected.
func Roofline(list experiment.Experiments) time.Duration {
	total := 0.0
	for _, e := range list {
		d, is := e.Task.Data.(Images)
		if !is || e.Method.Program != nil { // it trains none
			continue
		}
		nanoseconds := [2]float64{6e3, 13e3} // for an image, without noise of activations and with it
		if width(e) > 64 {
			nanoseconds = [2]float64{110e3, 240e3}
		}
		kind := 1
		if slices.ContainsFunc([]experiment.Method{methods.Deterministic, methods.Ensemble, methods.MFVI, methods.MCDropout, methods.VDropout}, e.Method.Equal) {
			kind = 0
		}
		total += nanoseconds[kind] * float64(e.Recipe.Epochs*cmp.Or(d.TrainN, trainingImages-d.HeldOut)*max(1, e.Method.Members))
	}
	return time.Duration(total)
}

// processorRuns are those of the comparison on a processor.
func processorRuns() experiment.Experiments {
	return slices.Concat(
		seeded(Chosen(Processor), 2).Of(ten, keyMethods...),
		seeded(Chosen(Processor), 1).Of(ten, methods.MFVI, methods.MCDropout, methods.VDropout, methods.DensityMixture, methods.DensityDiagonal),
		seeded(Chosen(onProcessor.withDecay(false)), 1).Of(ten, methods.Density),
		seeded(Chosen(Processor), 1).Of(ten, processes...),
		seeded(Chosen(Processor), methods.EnsembleMembers).Of(ten, methods.Deterministic), // the members of the ensemble
		seeded(Chosen(Processor), 1).Of(hundred, keyMethods...))
}
