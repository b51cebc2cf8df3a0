package uci

import (
	"slices"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/tables"
)

// lines are the lines of a group with a number of methods, one for each data set of a grid. With a reference the others are tested
// against it, and the lowest is bold.
func lines(g experiment.Grid, group string, n tables.Number, list []experiment.Method, reference ...experiment.Method) (lines []tables.Line) {
	for _, d := range g.Data {
		line := tables.Line{Group: group, Name: title(d)}
		for _, m := range list {
			mean := n.Over(g.Of(d, m))
			var cell tables.Cell = mean
			for _, r := range reference {
				mean.Best = "lowest"
				if cell = mean; m.Name != r.Name {
					tested := mean.Against(g.Of(d, r))
					if slices.ContainsFunc(laterMethods, m.Equal) {
						tested.Family = "later methods"
					}
					cell = tested
				}
			}
			line.Cells = append(line.Cells, cell)
		}
		lines = append(lines, line)
	}
	return lines
}

// title is DatasetTitle of Data.
func title(d experiment.Source) string { return DatasetTitle(d.(Data).Name) }

// onGaps are data sets with their gap splits.
func onGaps(names ...string) []experiment.Source {
	all := On(names...)
	for i, d := range all {
		all[i] = Data{Name: d.(Data).Name, Kind: Gap}
	}
	return all
}

// The grids of several tables: the text, Adam for all methods, and the authors' code.
func paperGrid(names ...string) experiment.Grid {
	return experiment.Grid{Title: "paper's text", Preset: Paper, Data: On(names...)}
}

func adamGrid(names ...string) experiment.Grid {
	return experiment.Grid{Title: "Adam", Preset: Adam, Data: On(names...)}
}

func releasedGrid(names ...string) experiment.Grid {
	return experiment.Grid{Title: "authors' code", Preset: Released, Data: On(names...)}
}

// tunedGrid has the settings that did best on held-out training examples.
func tunedGrid(data ...experiment.Source) experiment.Grid {
	return experiment.Grid{Title: "tuned", List: Tuned, Data: data}
}

// everywhere is the text on all data sets. What this project adds is run on the small ones, and but for Gaussian processes on all
// except Year.
func everywhere() experiment.Grid {
	return experiment.Grid{Data: On(tableDatasets()...), List: func(d experiment.Source, m experiment.Method) (experiment.Experiments, error) {
		name := d.(Data).Name
		if !slices.ContainsFunc(Methods(), m.Equal) && !slices.Contains(SmallDatasets(), name) && (m.Process != nil || name == Year) {
			return nil, nil
		}
		return paperGrid().Of(d, m), nil
	}}
}

// energyGrids are those in which energy models are compared.
func energyGrids(names ...string) []experiment.Grid {
	return []experiment.Grid{paperGrid(names...), tunedGrid(On(names...)...), adamGrid(names...), releasedGrid(names...)}
}

// claimGrids are those in which the paper's claim on UCI is tested.
var claimGrids = []experiment.Grid{paperGrid(withoutYear()...), tunedGrid(On(withoutYear()...)...), releasedGrid(withoutYear()...)}

// gapGrids are those of the gap splits. No settings were tuned there for the mean energy, a control.
func gapGrids() []experiment.Grid {
	paper, tuned := paperGrid(), tunedGrid(onGaps(SmallDatasets()...)...)
	paper.Data, tuned.Methods = tuned.Data, tunedMethods
	return []experiment.Grid{paper, tuned}
}

// manySamples is the text with so many Monte Carlo samples that their number no longer matters. Gaussian processes take none.
func manySamples() experiment.Grid {
	g := paperGrid(SmallDatasets()...)
	g.Change = func(e *experiment.Experiment) {
		if e.Method.Process == nil {
			e.Recipe.Samples = 1000
		}
	}
	return g
}

// drawnMethods are those of the picture of longer training.
var drawnMethods = []experiment.Method{detached, methods.DensityConstant, methods.Rank1, methods.MCDropout, methods.Ensemble}

// convergedMethods are the columns of convergedTable.
var convergedMethods = slices.Concat(Methods(), []experiment.Method{detached, methods.DensityConstant}, addedMethods, laterMethods)

// fewSplits is the number of splits on which the longest trainings are made.
const fewSplits = 5

// trainings are those of the rows of convergedTable on each data set: 100 and 400 epochs, and for some methods 4000 on
// five splits, without and with early stopping.
func trainings() []experiment.Grid {
	small, all, few := On(SmallDatasets()...), convergedMethods, append([]experiment.Method{methods.Density}, drawnMethods...)
	return []experiment.Grid{
		{Title: "100 epochs", Preset: Paper, Data: small, Methods: all},
		{Title: "400 epochs", Preset: Long, Data: small, Methods: all},
		{Title: "4000 epochs", Preset: Longest, Data: small, Methods: few, Splits: fewSplits},
		{Title: "4000 epochs, stopped early", Preset: StoppedEarly, Data: small, Methods: few, Splits: fewSplits},
	}
}
