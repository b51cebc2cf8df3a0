package uci

import (
	"slices"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/tables"
)

// A setting is a way to make experiments, in which tables compare methods.
type setting struct {
	name     string   // of groups of rows
	datasets []string // that it is for
	splits   Splits
	list     func(data []experiment.Source, list ...experiment.Method) (experiment.Experiments, error)
}

// by makes experiments by a preset.
func by(preset experiment.Preset) func([]experiment.Source, ...experiment.Method) (experiment.Experiments, error) {
	return func(data []experiment.Source, list ...experiment.Method) (experiment.Experiments, error) {
		return experiment.Cross(preset, data, list...)
	}
}

// changed is the setting with experiments that are changed.
func (s setting) changed(change func(list experiment.Experiments) experiment.Experiments) setting {
	before := s.list
	s.list = func(data []experiment.Source, list ...experiment.Method) (experiment.Experiments, error) {
		all, err := before(data, list...)
		return change(all), err
	}
	return s
}

// runs lists the experiments of a method on a data set; none if the setting is not for the data set. That a preset
// refuses the method is a mistake in this package, which its tests would show: it panics.
func (s setting) runs(dataset string, m experiment.Method) experiment.Experiments {
	if !slices.Contains(s.datasets, dataset) {
		return nil
	}
	list, err := s.list([]experiment.Source{Data{Name: dataset, Kind: s.splits}}, m)
	if err != nil {
		panic(err)
	}
	return list
}

// all lists the experiments of methods on all data sets of the setting.
func (s setting) all(list ...experiment.Method) (all experiment.Experiments) {
	for _, dataset := range s.datasets {
		for _, m := range list {
			all = append(all, s.runs(dataset, m)...)
		}
	}
	return all
}

// cell has the runs of a method on a data set.
func (s setting) cell(dataset string, m experiment.Method) tables.Cell {
	return tables.Cell{Full: s.runs(dataset, m)}
}

// cellOrQuick has the runs of a method on a data set, and their quick versions.
func (s setting) cellOrQuick(dataset string, m experiment.Method) tables.Cell {
	full := s.runs(dataset, m)
	return tables.Cell{Full: full, Quick: quick(full)}
}

// quick are quick versions of experiments: 20 epochs on the first two splits of the data sets that are small enough.
func quick(list experiment.Experiments) experiment.Experiments {
	few := slices.DeleteFunc(list.OnSplits(0, 1), func(e experiment.Experiment) bool {
		return !slices.Contains([]string{"boston", "yacht", "energy-cooling"}, e.Task.Data.(Data).Name)
	})
	return few.Change(Quick)
}

// paperSetting is the text.
func paperSetting(datasets ...string) setting {
	return setting{name: "paper's text", datasets: datasets, list: by(Paper)}
}

// tunedSetting are the settings that did best on held-out training examples.
func tunedSetting(splits Splits, datasets ...string) setting {
	return setting{name: "tuned", datasets: datasets, splits: splits, list: Tuned}
}

// adamSetting is the text with Adam for all methods.
func adamSetting(datasets ...string) setting {
	return setting{name: "Adam", datasets: datasets, list: by(Adam)}
}

// releasedSetting is the authors' code.
func releasedSetting(datasets ...string) setting {
	return setting{name: "authors' code", datasets: datasets, list: by(Released)}
}

// energySettings are those in which energy models are compared.
func energySettings(datasets ...string) []setting {
	return []setting{paperSetting(datasets...), tunedSetting(Gal, datasets...), adamSetting(datasets...), releasedSetting(datasets...)}
}

// claimSettings are those in which the paper's claim on UCI is tested.
func claimSettings() []setting {
	return []setting{paperSetting(withoutYear()...), tunedSetting(Gal, withoutYear()...), releasedSetting(withoutYear()...)}
}

// gapSettings are those of the gap splits.
func gapSettings() []setting {
	paper := paperSetting(smallDatasets()...)
	paper.splits = Gap
	return []setting{paper, tunedSetting(Gap, smallDatasets()...)}
}

// manySamples is the text with so many Monte Carlo samples that their number no longer matters.
func manySamples() setting {
	return paperSetting(smallDatasets()...).changed(func(list experiment.Experiments) experiment.Experiments {
		return list.Change(func(e *experiment.Experiment) { e.Recipe.Samples = 1000 })
	})
}

// A training is a setting with a number of epochs, and the methods that are trained so long.
type training struct {
	setting
	epochs  int
	methods []experiment.Method
}

// drawnMethods are those of the picture of longer training.
func drawnMethods() []experiment.Method {
	return []experiment.Method{detached, methods.DensityConstant, methods.Rank1, methods.MCDropout, methods.Ensemble}
}

// convergedMethods are the columns of ConvergedTable.
func convergedMethods() []experiment.Method {
	return slices.Concat(Methods(), []experiment.Method{detached, methods.DensityConstant}, addedMethods())
}

// trainings are those of the rows of ConvergedTable on each data set: 100 and 400 epochs, and for some methods 4000 on
// five splits, without and with early stopping.
func trainings() []training {
	all, few := convergedMethods(), append([]experiment.Method{methods.Density}, drawnMethods()...)
	on := func(name string, preset experiment.Preset) setting {
		return setting{name: name, datasets: smallDatasets(), list: by(preset)}
	}
	return []training{
		{on("100 epochs", Paper), 100, all}, {on("400 epochs", Long), 400, all},
		{on("4000 epochs", Longest).changed(firstFive), 4000, few}, {on("4000 epochs, stopped early", StoppedEarly).changed(firstFive), 4000, few},
	}
}

// firstFive are the experiments on the first five splits.
func firstFive(list experiment.Experiments) experiment.Experiments {
	return list.OnSplits(0, 1, 2, 3, 4)
}

// cell has the runs of a method on a data set; none of a method that is not trained so long.
func (t training) cell(dataset string, m experiment.Method) tables.Cell {
	if !has(t.methods, m) {
		return tables.Cell{}
	}
	return t.setting.cell(dataset, m)
}
