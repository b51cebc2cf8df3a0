package uci

import (
	"slices"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/tables"
)

// A setting is a way to make experiments, in which tables compare methods.
type setting struct {
	name     string              // of groups of rows
	datasets []string            // that it is for
	methods  []experiment.Method // that it is for; nil for all
	splits   Splits
	list     func(d Data, m experiment.Method) (experiment.Experiments, error)
	first    int // the number of splits that it is for, from the first on; 0 for all
}

// by makes experiments by a preset.
func by(preset experiment.Preset) func(Data, experiment.Method) (experiment.Experiments, error) {
	return func(d Data, m experiment.Method) (experiment.Experiments, error) {
		return experiment.Cross(preset, []experiment.Source{d}, m)
	}
}

// only is the setting for some methods alone.
func (s setting) only(list ...experiment.Method) setting {
	s.methods = list
	return s
}

// runs lists the experiments of a method on a data set; none if the setting is not for them. That a preset refuses the
// method is a mistake in this package, which its tests would show: it panics.
func (s setting) runs(dataset string, m experiment.Method) experiment.Experiments {
	if !slices.Contains(s.datasets, dataset) || s.methods != nil && !slices.ContainsFunc(s.methods, m.Equal) {
		return nil
	}
	list, err := s.list(Data{Name: dataset, Kind: s.splits}, m)
	if err != nil {
		panic(err)
	}
	if s.first > 0 {
		list = slices.DeleteFunc(list, func(e experiment.Experiment) bool { return e.Split >= s.first })
	}
	return list
}

// lines are the lines of a group with a mean of methods, one line for each data set. With a reference the others are tested
// against it, and the lowest is bold.
func (s setting) lines(group string, mean tables.Mean, list []experiment.Method, reference ...experiment.Method) (lines []tables.Line) {
	for _, dataset := range s.datasets {
		line := tables.Line{Group: group, Name: DatasetTitle(dataset)}
		for _, m := range list {
			cell := mean.Over(s.runs(dataset, m))
			for _, r := range reference {
				cell.Best = "lowest"
				if m.Name != r.Name {
					cell.Against = s.runs(dataset, r)
				}
			}
			line.Cells = append(line.Cells, cell)
		}
		lines = append(lines, line)
	}
	return lines
}

// paperSetting is the text.
func paperSetting(datasets ...string) setting {
	return setting{name: "paper's text", datasets: datasets, list: by(Paper)}
}

// everywhere is the text on all data sets. What this project adds is run on the small ones.
func everywhere() setting {
	s := paperSetting(tableDatasets()...)
	s.list = func(d Data, m experiment.Method) (experiment.Experiments, error) {
		if slices.ContainsFunc(addedMethods, m.Equal) && !slices.Contains(SmallDatasets(), d.Name) {
			return nil, nil
		}
		return by(Paper)(d, m)
	}
	return s
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
var claimSettings = []setting{paperSetting(withoutYear()...), tunedSetting(Gal, withoutYear()...), releasedSetting(withoutYear()...)}

// gapSettings are those of the gap splits. No settings were tuned there for the mean energy, a control.
func gapSettings() []setting {
	paper := paperSetting(SmallDatasets()...)
	paper.splits = Gap
	return []setting{paper, tunedSetting(Gap, SmallDatasets()...).only(tunedMethods...)}
}

// manySamples is the text with so many Monte Carlo samples that their number no longer matters. Gaussian processes take none.
func manySamples() setting {
	s := paperSetting(SmallDatasets()...)
	s.list = by(func(data experiment.Source, m experiment.Method) (experiment.Experiment, error) {
		e, err := Paper(data, m)
		if m.Process == nil {
			e.Recipe.Samples = 1000
		}
		return e, err
	})
	return s
}

// drawnMethods are those of the picture of longer training.
var drawnMethods = []experiment.Method{detached, methods.DensityConstant, methods.Rank1, methods.MCDropout, methods.Ensemble}

// convergedMethods are the columns of ConvergedTable.
var convergedMethods = slices.Concat(Methods(), []experiment.Method{detached, methods.DensityConstant}, addedMethods)

// fewSplits is the number of splits on which the longest trainings are made.
const fewSplits = 5

// trainings are those of the rows of ConvergedTable on each data set: 100 and 400 epochs, and for some methods 4000 on
// five splits, without and with early stopping.
func trainings() []setting {
	small, all, few := SmallDatasets(), convergedMethods, append([]experiment.Method{methods.Density}, drawnMethods...)
	return []setting{
		{"100 epochs", small, all, Gal, by(Paper), 0},
		{"400 epochs", small, all, Gal, by(Long), 0},
		{"4000 epochs", small, few, Gal, by(Longest), fewSplits},
		{"4000 epochs, stopped early", small, few, Gal, by(StoppedEarly), fewSplits},
	}
}
