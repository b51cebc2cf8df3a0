package tables

import (
	"fmt"

	"densityuncertainty/figures/results"
)

// UCIAgreement counts, for each method and each of the two metrics, on how many data sets our number is
// better than the paper's, agrees with it or is worse (see Difference), and on how many there is nothing
// to compare: no complete full-scale number of ours, or none of theirs.
func UCIAgreement(lines []results.Result) (Table, error) {
	t := Table{
		Name:    "uci-agreement",
		Caption: "On how many data sets our number is better than the paper's, agrees with it, or is worse: " + unitOfDifference,
		Columns: []string{"Method", "Metric", "Better", "Agrees", "Worse", "Nothing to compare"},
		Notes: []string{
			"Nothing to compare: the data set was not run in full, or the paper prints no number for it, as for the heating load of Energy.",
			"Better than the paper's number is not better than another method: that is the table uci-claims.",
		},
	}
	for _, m := range []struct{ title, metric string }{{"NLL", MetricNLL}, {"RMSE", MetricRMSE}} {
		panels, err := UCIPanels(lines, m.metric)
		if err != nil {
			return Table{}, err
		}
		counts := make(map[string]map[string]int)
		for _, panel := range panels {
			for _, entry := range panel.Entries {
				if counts[entry.Method] == nil {
					counts[entry.Method] = make(map[string]int)
				}
				_, verdict := Difference(entry.Ours, entry.Paper)
				if !entry.Ours.Complete() {
					verdict = Unsettled
				}
				counts[entry.Method][verdict]++
			}
		}
		for _, method := range paperMethods {
			c := counts[Title(method)]
			row := Row{Name: Title(method), Cells: []Cell{text(m.title)}}
			for _, n := range []int{c[Better], c[Agrees], c[Worse], c[Unsettled] + c[NoUnit]} {
				row.Cells = append(row.Cells, text(fmt.Sprint(n)))
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t, nil
}
