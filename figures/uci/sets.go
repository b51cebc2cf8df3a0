package uci

import (
	"fmt"
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

// Sets is the catalogue of the study's experiments. A set with the name of a table has all that the table shows: an
// experiment that two tables need is in the sets of both.
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
			Experiments: append(atBothScales(withAdam(), methods.List{methods.MFVI, methods.MCDropout, methods.VDropout, methods.Rank1, methods.Density,
				methods.Deterministic, methods.Ensemble}), atBothScales(Paper().On(smallDatasets()...), methods.List{methods.SNGP, methods.DUE})...),
		},
		{
			Name:        "uci-energy",
			Doc:         "density layers with constant, diagonal, LDL and mixture energies in four settings: does the energy matter?",
			Experiments: energyExperiments(),
		},
		{
			Name:        "uci-place",
			Doc:         "density layers, and the same whose noise follows the mean energy, as much and the same for all inputs: does it matter where it goes?",
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
			Doc:         "UCI regression with 1000 Monte Carlo samples and with 10, for methods without a closed form, and with the closed forms of SNGP and DUE",
			Experiments: append(Paper().On(smallDatasets()...).Experiments(samplesMethods()...), manySamples().Experiments(sampledMethods()...)...),
		},
		{
			Name:        "uci-converged",
			Doc:         "UCI regression trained for 100 and 400 epochs, and some methods for 4000 on five splits, also with early stopping",
			Experiments: convergedSet(),
		},
		{
			Name:        "uci-released",
			Doc:         "UCI as the authors' code runs it (random splits), for comparison with that code",
			Experiments: atBothScales(Released().On(withoutYear...), PaperMethods()),
		},
	}
}

// sampledMethods are those of the paper's tables and ours whose predictions are means over Monte Carlo samples.
func sampledMethods() methods.List {
	return append(energyMethods(), slices.DeleteFunc(tableMethods(), isDensity)...)
}

func isDensity(m methods.Method) bool { return m.Name == methods.Density.Name }

// samplesMethods are the columns of SamplesTable: the methods that draw, and two that do not.
func samplesMethods() methods.List { return append(sampledMethods(), methods.SNGP, methods.DUE) }

// manySamples is the paper's protocol with so many samples that their number no longer matters.
func manySamples() Protocol {
	p := Paper().On(smallDatasets()...)
	p.Samples = 1000
	return p
}

// The protocols of longer training: every method for 400 epochs, and those of longMethods, which can all be stopped early,
// for 4000 on five splits.
func longTraining() Protocol {
	p := Paper().On(smallDatasets()...)
	p.Epochs = 400
	return p
}

func longestTraining() Protocol {
	p := longTraining()
	p.Epochs, p.Only = 4000, []int{0, 1, 2, 3, 4}
	return p
}

// stoppedEarly is longest training of which the best epoch is kept.
func stoppedEarly() Protocol {
	p := longestTraining()
	p.EarlyStopping = true
	return p
}

var (
	// detached are density layers that leave out the path through the energy, as the released code: with the text's
	// gradients the longer trainings diverge.
	detached = methods.Density.Variant("Density, detached energies", func(o *methods.Options) { o.Gradients = methods.Detached })
	// drawnMethods are those of the picture of longer training.
	drawnMethods = methods.List{detached, methods.DensityConstant, methods.Rank1, methods.MCDropout, methods.Ensemble}
	longMethods  = append(methods.List{methods.Density}, drawnMethods...)
)

// convergedMethods are the columns of ConvergedTable.
func convergedMethods() methods.List {
	return slices.Concat(tableMethods(), methods.List{detached, methods.DensityConstant}, addedMethods())
}

// A training is a protocol of ConvergedTable and the methods that are trained by it.
type training struct {
	protocol Protocol
	methods  methods.List
}

// trainings are those of the rows of ConvergedTable on each data set.
func trainings() []training {
	all := convergedMethods()
	return []training{{Paper().On(smallDatasets()...), all}, {longTraining(), all}, {longestTraining(), longMethods}, {stoppedEarly(), longMethods}}
}

// runs are those of a method on a data set; none of one that is not trained so.
func (t training) runs(dataset string, m methods.Method) []results.Experiment {
	if !slices.ContainsFunc(t.methods, func(other methods.Method) bool { return other.Title == m.Title }) { // variants have one name
		return nil
	}
	return t.protocol.On(dataset).Experiments(m)
}

func convergedSet() (all []results.Experiment) {
	for _, t := range trainings() {
		all = append(all, t.protocol.Experiments(t.methods...)...)
	}
	return all
}

func gapExperiments() (all []results.Experiment) {
	for _, s := range gapSettings() {
		for _, dataset := range s.protocol.Datasets {
			for _, m := range gapMethods() {
				all = append(all, s.gapRuns(dataset, m)...)
			}
		}
	}
	return all
}

func tuningSet() (all []results.Experiment) {
	for _, t := range tunings() {
		for _, m := range t.methods {
			all = slices.Concat(all, slices.Concat(t.protocol.tried(m)...))
		}
	}
	return all
}

func tunedSet() (all []results.Experiment) {
	for _, t := range tunings() {
		p := Tuned().On(t.protocol.Datasets...)
		p.Splits = t.protocol.Splits
		all = append(all, p.Experiments(t.methods...)...)
	}
	return all
}

// A step is a protocol that differs from one fidelity in one option, which has the value of the other.
type step struct {
	option, value string
	protocol      Protocol
}

// oneAtATime are the steps from one protocol towards another: one for each option of density layers in which they
// differ. The splits are those of the protocol that is left.
func oneAtATime(from, to Protocol) (steps []step) {
	resolve := func(p Protocol) any { return p.resolve(results.Experiment{}, methods.Density) }
	for _, f := range methods.Fields(from, results.UCI) {
		value := f.Text(to.filled(results.Experiment{}, methods.Density))
		if value == f.Text(from.filled(results.Experiment{}, methods.Density)) {
			continue
		}
		p, single := from, map[string]string{f.Name: value}
		if err := methods.SetFor(results.UCI, &p, single); err != nil {
			panic(fmt.Errorf("uci: one option at a time: %w", err)) // it is a value of the other protocol
		}
		if len(methods.Unused(p, single, resolve)) == 0 {
			steps = append(steps, step{f.Name, value, p})
		}
	}
	return steps
}

func oneAtATimeSet() (all []results.Experiment) {
	for _, way := range directions() {
		all = append(all, way.base.Experiments(methods.Density)...)
		for _, s := range way.steps {
			all = append(all, s.protocol.Experiments(methods.Density)...)
		}
	}
	return all
}
