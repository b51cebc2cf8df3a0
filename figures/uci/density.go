package tables

import (
	"math"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/results"
)

// UCIDensity is the density layer's part of both UCI tables on one page: ours
// and the paper's numbers, and which method is best in ours.
func UCIDensity(lines []results.Result) (Table, error) {
	t := Table{
		Name: "uci-density",
		Caption: "Density uncertainty on UCI regression, ours beside the paper's: mean ± standard deviation over n splits (not the standard error of the mean); " +
			settings(experiment.Filter{Scale: experiment.Full}.Apply(uciWanted("boston", experiment.Density))[0]) + ". " + unitOfDifference +
			" Best of ours: the lowest mean among " + listTitles(uciColumns) + ", where all of them were run.",
		Columns: []string{"Data set", "NLL", "best NLL of ours", "RMSE", "best RMSE of ours"},
	}
	nll, err := UCIPanels(lines, MetricNLL)
	if err != nil {
		return Table{}, err
	}
	rmse, err := UCIPanels(lines, MetricRMSE)
	if err != nil {
		return Table{}, err
	}
	for i := range nll {
		row := Row{Name: nll[i].Title}
		for _, panel := range []UCIPanel{nll[i], rmse[i]} {
			density := panel.Entries[len(panel.Entries)-1]
			row.Cells = append(row.Cells, compare(density.Ours, density.Paper, "paper"), bestOf(panel))
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}

// bestOf names the method with the lowest mean, if every method is complete.
func bestOf(panel UCIPanel) Cell {
	best, lowest := "", math.Inf(1)
	for _, entry := range panel.Entries {
		if !entry.Ours.Complete() {
			return text("–")
		}
		if entry.Ours.Mean < lowest {
			best, lowest = entry.Method, entry.Ours.Mean
		}
	}
	return text(best, meanStd(lowest, math.NaN(), 3))
}
