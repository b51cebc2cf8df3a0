package uci

import (
	"cmp"
	"slices"

	"densityuncertainty/datasets"
	"densityuncertainty/dul"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
)

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
