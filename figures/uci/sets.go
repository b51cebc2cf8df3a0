package uci

import (
	"slices"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/tables"
)

// Sets lists the experiments of the study. A set with the name of a table has all that the table shows: an experiment
// that two tables need is in the sets of both.
func Sets() []tables.Set {
	small := SmallDatasets()
	in := func(settings []setting, list []experiment.Method) (all experiment.Experiments) { // nil for those that a setting is for
		for _, s := range settings {
			if list == nil {
				all = append(all, s.all(s.methods...)...)
			}
			all = append(all, s.all(list...)...)
		}
		return all
	}
	var tuning, options experiment.Experiments
	for _, s := range searches() {
		tuning = append(tuning, s.Candidates...)
	}
	for _, way := range directions() {
		options = append(options, way.base.all(methods.Density)...)
		for _, o := range densityOptions {
			for _, dataset := range small {
				options = append(options, way.with(o, dataset)...)
			}
		}
	}
	return []tables.Set{
		{Name: "uci", Doc: "UCI regression tables (NLL, RMSE): the paper's text, Gal's splits", Experiments: paperSetting(withoutYear()...).all(Methods()...)},
		{Name: "uci-year", Doc: "UCI regression tables: the Year row alone, which is as large as all others together", Experiments: paperSetting(Year).all(Methods()...)},
		{Name: "uci-gp", Doc: "UCI regression with methods that the paper's UCI tables leave out: SNGP, DUE, deep ensembles and a single network, on the smallest sets",
			Experiments: paperSetting(small...).all(addedMethods...)},
		{Name: "uci-adam", Doc: "UCI regression with Adam for all methods, as SNGP and DUE have it, on the smallest sets",
			Experiments: adamSetting(small...).all(everyMethod...)},
		{Name: "uci-energy", Doc: "density layers with constant, diagonal, LDL and mixture energies in four settings: does the energy matter?",
			Experiments: in(energySettings(withoutYear()...), energyMethods)},
		{Name: "uci-place", Doc: "density layers, and the same with their mean energy for every input: does it matter where the noise goes?",
			Experiments: in(placeSettings(), placeMethods)},
		{Name: "uci-gap", Doc: "UCI regression on gap splits, whose test inputs lie between those of training: every method on the small sets",
			Experiments: in(gapSettings(), gapMethods)},
		{Name: "uci-tuning", Doc: "optimizer and noise of every method tried on held-out training examples, for the tuned settings (then: go test ./figures/uci -run Choices -update)",
			Experiments: tuning},
		{Name: "uci-tuned", Doc: "UCI regression with the settings of every method that did best on held-out training examples", Experiments: in(tunings, nil)},
		{Name: "uci-options", Doc: "density layers on UCI with one option at a time from the text to the authors' code, and back", Experiments: options},
		{Name: "uci-samples", Doc: "UCI regression with 1000 Monte Carlo samples and with 10, for methods without a closed form, and with the closed forms of SNGP and DUE",
			Experiments: slices.Concat(paperSetting(small...).all(samplesMethods...), manySamples().all(sampledMethods...))},
		{Name: "uci-converged", Doc: "UCI regression trained for 100 and 400 epochs, and some methods for 4000 on five splits, also with early stopping", Experiments: in(trainings(), nil)},
		{Name: "uci-released", Doc: "UCI as the authors' code runs it (random splits), for comparison with that code",
			Experiments: releasedSetting(withoutYear()...).all(paperMethods...)},
	}
}
