package uci

import (
	"cmp"
	"slices"

	"densityuncertainty/datasets"
	"densityuncertainty/dul"
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

// everywhere is the text on all data sets. What this project adds is run on the small ones, and but for Gaussian processes on all
// except Year.
func everywhere() experiment.Grid {
	return experiment.Grid{Data: On(tableDatasets()...), List: func(d experiment.Source, m experiment.Method) (experiment.Experiments, error) {
		name := d.(Data).Name
		if !slices.ContainsFunc(Methods(), m.Equal) && !slices.Contains(SmallDatasets(), name) && (m.IsProcess() || name == Year) {
			return nil, nil
		}
		return paperGrid().Of(d, m), nil
	}}
}

// energyGrids are those in which energy models are compared.
func energyGrids(names ...string) []experiment.Grid {
	return []experiment.Grid{paperGrid(names...), Tuned(On(names...)...), adamGrid(names...), releasedGrid(names...)}
}

// claimGrids are those in which the paper's claim on UCI is tested.
var claimGrids = []experiment.Grid{paperGrid(withoutYear()...), Tuned(On(withoutYear()...)...), releasedGrid(withoutYear()...)}

// gapGrids are those of the gap splits. No settings were tuned there for the mean energy, a control.
func gapGrids() []experiment.Grid {
	paper, tuned := paperGrid(), Tuned(onGaps(SmallDatasets()...)...)
	paper.Data, tuned.Methods = tuned.Data, tunedMethods
	return []experiment.Grid{paper, tuned}
}

// manySamples is the text with so many Monte Carlo samples that their number no longer matters. Gaussian processes take none.
func manySamples() experiment.Grid {
	g := paperGrid(SmallDatasets()...)
	g.Change = func(e *experiment.Experiment) {
		if !e.Method.IsProcess() {
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

// SmallDatasets are those on which methods that the paper does not have are run too.
func SmallDatasets() []string {
	return []string{"boston", "concrete", "energy", "energy-cooling", "wine", "yacht"}
}

// withoutYear are all data sets but the largest, which is not part of the program.
func withoutYear() []string { return without(tableDatasets(), Year) }

// tableDatasets are the rows of tables: the paper's data sets in its order, then the heating load.
func tableDatasets() []string { return append(without(datasets.UCINames(), "energy"), "energy") }

// without returns a list without one of its entries.
func without(list []string, name string) []string {
	return slices.DeleteFunc(list, func(other string) bool { return other == name })
}

// paperRows are the paper's names of the data sets. The target of the paper's Energy row is the cooling load, although the
// text does not say so; the heating load is a row of this project.
var paperRows = map[string]string{
	"boston":         "Boston Housing",
	"concrete":       "Concrete Strength",
	"energy-cooling": "Energy Efficiency",
	"kin8nm":         "Kin8nm",
	"naval":          "Naval Propulsion",
	"protein":        "Protein Structure",
	"wine":           "Wine Quality Red",
	"yacht":          "Yacht Hydrodynamics",
	Year:             "Year Prediction MSD",
}

// DatasetTitle is a data set's name in tables: the paper's, if it has one.
func DatasetTitle(dataset string) string {
	switch dataset {
	case "energy":
		return "Energy Efficiency (heating)"
	case "energy-cooling":
		return "Energy Efficiency (cooling)"
	}
	return cmp.Or(paperRows[dataset], dataset)
}

// paperColumns are the paper's names of the methods in its UCI tables.
var paperColumns = map[string]string{
	methods.MCDropout.Name: "MCDropout", methods.VDropout.Name: "VDropout", methods.Rank1.Name: "Rank1-BNN", methods.Density.Name: "Density Uncertainty",
}

// paperMethods are the methods of the paper's UCI tables, in their order.
var paperMethods = []experiment.Method{methods.MCDropout, methods.VDropout, methods.Rank1, methods.Density}

// rivals are the methods of the paper's tables but density uncertainty.
var rivals = paperMethods[:3]

// Methods are the methods of our tables beside the paper's: MFVI, which the paper leaves out, and the methods of its tables.
func Methods() []experiment.Method {
	return append([]experiment.Method{methods.MFVI}, paperMethods...)
}

// addedMethods are those that the paper does not run on regression. They are run on the small data sets.
var addedMethods = []experiment.Method{methods.Deterministic, methods.Ensemble, methods.SNGP, methods.DUE}

// everyMethod are Methods and addedMethods.
var everyMethod = slices.Concat(Methods(), addedMethods)

// laterMethods were added after the others, and withLater are all. On gap splits no settings are tuned for them. Their tests are a family of
// their own, so that they change no verdict on the others.
var (
	laterMethods = []experiment.Method{methods.Laplace, methods.SWAG}
	withLater    = slices.Concat(everyMethod, laterMethods)
)

// energyMethods are density layers that differ in their energy model alone. The first, whose noise follows nothing, is
// the control of the others.
var energyMethods = []experiment.Method{methods.DensityConstant, methods.DensityDiagonal, methods.Density, methods.DensityMixture}

// detached are density layers without the path through the energy, as in the authors' code: with the text's gradients the
// longer trainings diverge.
var detached = func() experiment.Method {
	m := methods.Density
	layers := m.Layers.(dul.Density)
	layers.Gradients = dul.Detached
	m.Key, m.Name, m.Layers = "density-detached", "Density, detached energies", layers
	return m
}()
