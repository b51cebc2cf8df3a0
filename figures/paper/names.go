package paper

import "densityuncertainty/figures/experiment"

// uciRows are the paper's names of the UCI data sets. The paper's Energy target is the cooling load,
// although the text does not say so; the heating load is a row of our own.
var uciRows = map[string]string{
	"boston":         "Boston Housing",
	"concrete":       "Concrete Strength",
	"energy-cooling": "Energy Efficiency",
	"kin8nm":         "Kin8nm",
	"naval":          "Naval Propulsion",
	"protein":        "Protein Structure",
	"wine":           "Wine Quality Red",
	"yacht":          "Yacht Hydrodynamics",
	"year":           "Year Prediction MSD",
}

// uciColumns are the paper's names of the methods in its UCI tables, which leave MFVI out.
var uciColumns = map[string]string{
	experiment.MCDropout: "MCDropout",
	experiment.VDropout:  "VDropout",
	experiment.Rank1:     "Rank1-BNN",
	experiment.Density:   "Density Uncertainty",
}

// UCIRow is the paper's name of a UCI data set of the experiment catalogue, and whether its tables
// have such a row.
func UCIRow(dataset string) (string, bool) {
	row, ok := uciRows[dataset]
	return row, ok
}

// UCICell returns the paper's cell of a UCI table (UCINLL or UCIRMSE) by the catalogue's names of data
// set and method, and whether the paper prints one.
func UCICell(table, dataset, method string) (Cell, bool) {
	return Lookup(table, uciRows[dataset], uciColumns[method])
}
