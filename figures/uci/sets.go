package uci

import (
	"slices"

	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
)

// PaperMethods are the methods of the paper's UCI tables, in their order.
func PaperMethods() methods.List {
	return slices.DeleteFunc(methods.All(), func(m methods.Method) bool { return m.Paper.UCI == "" })
}

// tableMethods are those of our tables beside the paper's: it leaves MFVI out, we add it.
func tableMethods() methods.List { return append(methods.List{methods.MFVI}, PaperMethods()...) }

// addedMethods are those that the paper does not run on regression; they are run on the small data sets.
func addedMethods() methods.List {
	return methods.List{methods.Deterministic, methods.Ensemble, methods.SNGP, methods.DUE}
}

// atBothScales are the full and the quick runs of a protocol.
func atBothScales(p Protocol, list methods.List) []results.Experiment {
	return append(p.Experiments(list...), p.Quick().Experiments(list...)...)
}

// withAdam is the paper's protocol with Adam for all methods.
func withAdam() Protocol {
	p := Paper().On(smallDatasets()...)
	p.Optimizer = methods.Adam
	return p
}

// Sets is the catalogue of the study's experiments. An experiment that two tables need is in the sets of both.
func Sets() []results.Set {
	list := methods.List{methods.Density, methods.Rank1, methods.VDropout, methods.MCDropout, methods.MFVI}
	withoutYear := slices.DeleteFunc(Datasets(), func(d string) bool { return d == Year })
	return []results.Set{
		{
			Name:        "uci",
			Doc:         "UCI regression tables (NLL, RMSE): the paper's text, Gal's splits",
			Experiments: atBothScales(Paper().On(withoutYear...), list),
		},
		{
			Name:        "uci-year",
			Doc:         "UCI regression tables: the Year row alone, which is as large as all others together",
			Experiments: atBothScales(Paper().On(Year), list),
		},
		{
			Name:        "uci-gp",
			Doc:         "UCI regression with methods that the paper's UCI tables leave out: SNGP, DUE, deep ensembles and a single network, on the smallest sets",
			Experiments: atBothScales(Paper().On(smallDatasets()...), addedMethods()),
		},
		{
			Name: "uci-adam",
			Doc:  "UCI regression with Adam for all methods, as SNGP and DUE have it, on the smallest sets: how much of a difference is the optimizer's",
			Experiments: atBothScales(withAdam(), methods.List{methods.MFVI, methods.MCDropout, methods.VDropout, methods.Rank1, methods.Density,
				methods.Deterministic, methods.Ensemble}),
		},
		{
			Name:        "uci-energy",
			Doc:         "density layers with constant, diagonal, LDL and mixture energies in four settings: does the energy matter?",
			Experiments: energyExperiments(),
		},
		{
			Name:        "uci-place",
			Doc:         "density layers whose noise follows the mean energy, as much as theirs and the same for all inputs: does it matter where it goes?",
			Experiments: placeExperiments(),
		},
		{
			Name:        "uci-gap",
			Doc:         "UCI regression on gap splits, whose test inputs lie between those of training: every method on the small sets",
			Experiments: gapExperiments(),
		},
		{
			Name:        "uci-tuning",
			Doc:         "optimizer and noise of every method tried on held-out training examples, for the tuned settings (then: reproduce choose uci)",
			Experiments: tuningSet(),
		},
		{
			Name:        "uci-tuned",
			Doc:         "UCI regression with the settings of every method that did best on held-out training examples",
			Experiments: tunedSet(),
		},
		{
			Name:        "uci-options",
			Doc:         "density layers on UCI with one option at a time from the text to the released code, and back",
			Experiments: oneAtATimeSet(),
		},
		{
			Name:        "uci-samples",
			Doc:         "UCI regression with 1000 Monte Carlo samples in the place of 10, for methods without a closed form",
			Experiments: manySamples().Experiments(sampledMethods()...),
		},
		{
			Name:        "uci-converged",
			Doc:         "UCI regression trained for 400 epochs, and some methods for 4000 on five splits",
			Experiments: convergedSet(),
		},
		{
			Name:        "uci-released",
			Doc:         "UCI as the authors' code runs it (random splits), for comparison with that code",
			Experiments: atBothScales(Released().On(withoutYear...), PaperMethods()),
		},
	}
}
