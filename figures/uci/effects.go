package uci

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"densityuncertainty/dul"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

// An option is one of the differences between the text and the authors' code for density layers.
type option struct {
	name, title string // the title has its value in the text and in the code
	// take sets the option of e to the value in other.
	take func(e *experiment.Experiment, other experiment.Experiment)
}

// ofLayers is an option of the layers alone.
func ofLayers(take func(l *dul.Density, other dul.Density)) func(*experiment.Experiment, experiment.Experiment) {
	return func(e *experiment.Experiment, other experiment.Experiment) {
		layers := e.Method.Layers.(dul.Density)
		take(&layers, other.Method.Layers.(dul.Density))
		e.Method.Layers = layers
	}
}

// densityOptions are all differences between the text and the authors' code that reach a dense density layer with LDL energies.
// One more leaves out generative pretraining, which is not in the text but in both of our settings.
var densityOptions = []option{
	{"noise", "noise: gaussian / uniform01", ofLayers(func(l *dul.Density, other dul.Density) { l.Noise = other.Noise })},
	{"clip", "clip: false / true", ofLayers(func(l *dul.Density, other dul.Density) { l.Clip = other.Clip })},
	{"gradients", "gradients: paper / detached", ofLayers(func(l *dul.Density, other dul.Density) { l.Gradients = other.Gradients })},
	{"variance", "variance: plain / half-d", ofLayers(func(l *dul.Density, other dul.Density) {
		l.HalfD = other.HalfD
		l.HalfChannels = l.HalfD && l.HalfChannels // is about convolutions alone
	})},
	{"hidden_layers", "hidden layers: 2 / 3", func(e *experiment.Experiment, other experiment.Experiment) { e.Task.Network = other.Task.Network }},
	{"energy_optimizer", "energy optimizer: own / joint", func(e *experiment.Experiment, other experiment.Experiment) {
		e.Recipe.Groups[0], e.Recipe.PretrainGroups = other.Recipe.Groups[0], other.Recipe.PretrainGroups
		e.Recipe.LogLikelihoodScale = other.Recipe.LogLikelihoodScale
	}},
	{"decay", "decay: weights / all", func(e *experiment.Experiment, other experiment.Experiment) {
		e.Recipe.Groups[2] = other.Recipe.Groups[2]
	}},
	{"pretrain_epochs", "no pretraining", func(e *experiment.Experiment, _ experiment.Experiment) {
		e.Recipe.PretrainEpochs, e.Recipe.PretrainGroups = 0, nil
	}},
}

// A direction goes from the text's settings to the code's or back, one option at a time.
type direction struct{ base, other experiment.Grid }

// directions are both ways, on the published splits.
func directions() []direction {
	text, released := paperGrid(SmallDatasets()...), releasedGrid(SmallDatasets()...)
	released.Preset = releasedAsSplit
	return []direction{{text, released}, {released, text}}
}

// with lists the experiments of density layers on a data set with an option of the other settings.
func (d direction) with(o option, dataset string) experiment.Experiments {
	other := d.other.Of(Data{Name: dataset}, methods.Density)[0]
	return d.base.Of(Data{Name: dataset}, methods.Density).Change(func(e *experiment.Experiment) {
		e.Preset += ", " + o.name
		o.take(e, other)
	})
}

// optionsTable says which of the differences between text and authors' code matter: the paired difference that one option
// of the other settings makes to the negative log likelihood of density layers. It has a row for each option and data set,
// and a column for each direction.
func optionsTable(x *tables.Index) (report.Table, error) {
	s := tables.Sheet{Table: newTable("uci-options", "Option", report.LegendAgainst("without the change"))}
	for _, way := range directions() {
		s.Columns = append(s.Columns, way.base.Title+", with this option of the other")
	}
	for _, dataset := range SmallDatasets() {
		for _, o := range densityOptions {
			var cells []tables.Cell
			for _, way := range directions() {
				cell := nll.Over(way.with(o, dataset)).Against(way.base.Of(Data{Name: dataset}, methods.Density))
				cell.Shown = true
				cells = append(cells, cell)
			}
			s.Add(DatasetTitle(dataset), o.title, cells...)
		}
	}
	return s.Make(x)
}

// releasedCSV are measurements of the authors' code, over the random splits 0 to splits-1.
//
//go:embed released.csv
var releasedCSV []byte

// releasedTable compares our runs with the settings of the authors' code with measurements of the authors' code, both over the same
// splits.
func releasedTable(x *tables.Index) (report.Table, error) {
	s := tables.Sheet{Table: newTable("uci-released", "Method", report.LegendPaper), Down: true}
	s.Columns = append(s.Columns, "n", "NLL, ours", "NLL, their code", "RMSE, ours", "RMSE, their code")
	for _, r := range tables.ReadCSV(releasedCSV, "dataset,method,splits,nll_mean,nll_std,rmse_mean,rmse_std") {
		splits, printed := 0, [2]report.Value{{Decimals: 4}, {Decimals: 4}}
		if _, err := fmt.Sscan(strings.Join(r[2:], " "), &splits, &printed[0].Mean, &printed[0].Std, &printed[1].Mean, &printed[1].Std); err != nil {
			panic(err)
		}
		i := slices.IndexFunc(paperMethods, func(m experiment.Method) bool { return m.Key == r[1] })
		m := paperMethods[i]
		runs := experiment.Grid{Preset: Released, Splits: splits}.Of(Data{Name: r[0]}, m)
		cells := []tables.Cell{tables.Words("%s", r[2])}
		for k, n := range tableNumbers {
			theirs := printed[k].Cell()
			theirs.Theirs = true
			cells = append(cells, tables.Printed{Mean: n.Over(runs), Paper: &printed[k]}, tables.Done(theirs))
		}
		s.Add(DatasetTitle(r[0]), m.Name, cells...)
	}
	return s.Make(x)
}
