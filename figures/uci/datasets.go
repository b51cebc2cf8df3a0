package tables

import (
	"fmt"
	"strconv"

	"densityuncertainty/datasets"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/paper"
	"densityuncertainty/figures/results"
)

// UCIDatasets is the paper's table of the UCI data sets with the sizes measured from the data. The Year
// set, a download of 200 MB, is not fetched for a table. The result lines do not matter.
func UCIDatasets([]results.Result) (Table, error) {
	t := Table{
		Name:    "uci-datasets",
		Caption: "UCI regression data sets: number of examples and of features, measured from the data and as the paper prints them.",
		Columns: []string{"Data set", "Size", "Size (paper)", "Dimension", "Dimension (paper)"},
		Notes: []string{
			"Both rows of Energy are the same buildings, with another target. The Year set is not part of the program and is not fetched for this table.",
		},
	}
	for _, dataset := range tableDatasets() {
		size, dimension := "not measured", "not measured"
		if dataset != experiment.Year {
			data, err := datasets.UCI(dataset)
			if err != nil {
				return Table{}, fmt.Errorf("tables: measuring %s: %w", dataset, err)
			}
			size, dimension = strconv.Itoa(data.N), strconv.Itoa(data.D)
		}
		t.Rows = append(t.Rows, Row{Name: DatasetTitle(dataset), Cells: []Cell{
			text(size), text(printed(dataset, "Size")), text(dimension), text(printed(dataset, "Dimension"))}})
	}
	return t, nil
}

// printed is a number of the paper's table of data sets, or a dash.
func printed(dataset, column string) string {
	row, ok := paper.UCIRow(dataset)
	cell, found := paper.Lookup(paper.UCIDatasets, row, column)
	if !ok || !found {
		return "–"
	}
	return strconv.Itoa(int(cell.Mean))
}
