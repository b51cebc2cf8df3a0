package uci

import (
	"math"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

// farAway is the end of the axis of reproductionFigure, in standard deviations. Numbers beyond are drawn there.
const farAway = 2

// reproductionFigure shows how far our results with the settings of the authors' code are from the numbers that the paper prints: a
// panel for each metric, in it a row for each data set and a mark for each method, at (ours - paper) in units of our standard
// deviation over 20 splits (tables.Printed.Away), hollow within one.
func reproductionFigure(x *tables.Index) (report.Figure, error) {
	t, near, all := report.Table{Name: "uci-reproduction", Columns: []string{"Data set"}}, 0, 0
	for _, m := range paperMethods {
		t.Columns = append(t.Columns, m.Name)
	}
	rows := without(withoutYear(), "energy") // the paper's
	released := releasedGrid()
	for _, n := range tableNumbers {
		for _, dataset := range rows {
			row := report.Row{Group: n.Title, Name: DatasetTitle(dataset)}
			for _, m := range paperMethods {
				mean, cell := printed(n, dataset, m, released), report.Cell{}
				ours, err := x.Summarize(mean.Mean)
				if err != nil {
					return report.Figure{}, err
				}
				if away, verdict := mean.Away(ours); !math.IsNaN(away) {
					cell = report.Cell{Verdict: verdict, Difference: &metrics.Difference{Mean: away, Low: away, High: away}}
					if all++; verdict == report.Agrees {
						near++
					}
				}
				row.Cells = append(row.Cells, cell)
			}
			t.Rows = append(t.Rows, row)
		}
	}
	f, err := report.Forest{Axis: "ours minus the paper's, in standard deviations", Within: farAway}.Of(t)
	f.Caption = prose.Caption("uci-reproduction", map[string]int{"Near": near, "All": all, "End": farAway})
	return f, err
}
