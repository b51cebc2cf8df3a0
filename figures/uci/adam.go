package tables

import (
	"fmt"
	"slices"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/results"
)

// UCIAdam compares all methods on the smallest UCI sets with one optimizer: what of the lead of SNGP and
// DUE in UCINLL and UCIRMSE is left where the others are trained with Adam too.
func UCIAdam(lines []results.Result) (Table, error) {
	set, known := experiment.SetByName("uci-adam")
	processes, knownToo := experiment.SetByName("uci-gp")
	if !known || !knownToo {
		return Table{}, fmt.Errorf("tables: the catalogue lacks the set uci-adam or uci-gp")
	}
	gaussian := experiment.Filter{Methods: []string{experiment.SNGP, experiment.DUE}}.Apply(processes.Experiments)
	all := slices.Concat(set.At(experiment.Full), experiment.Filter{Scale: experiment.Full}.Apply(gaussian))
	methods := slices.Concat(uciColumns, experiment.ProcessMethods())
	t := Table{
		Name: "uci-adam",
		Caption: "UCI regression with Adam for every method (learning rate 0.01 falling on a cosine, weight decay 1e-4), lower is better: mean ± standard deviation over 20 splits (not the standard error of the mean); " +
			settings(all[0]) + ". Bold: lowest mean of the row.",
		Columns: []string{"Data set and metric"},
		Notes: []string{
			"Rate, decay and number of epochs are the protocol's, which was made for SGD, and nothing was tuned for Adam; only SNGP and DUE were developed with it. The noise variance of the data is trained with SGD in all of them.",
			"SNGP and DUE have residual networks; the others plain ones of the same width.",
		},
	}
	for _, method := range methods {
		t.Columns = append(t.Columns, Title(method))
	}
	byID := index(lines)
	for _, dataset := range experiment.ProcessDatasets() {
		for _, m := range []struct{ title, metric string }{{"NLL", MetricNLL}, {"RMSE", MetricRMSE}} {
			row := Row{Name: DatasetTitle(dataset) + ", " + m.title}
			var ours []Summary
			for _, method := range methods {
				wanted := experiment.Filter{Methods: []string{method}, Datasets: []string{dataset}}.Apply(all)
				s, err := byID.summarise(wanted, m.metric)
				if err != nil {
					return Table{}, err
				}
				row.Cells = append(row.Cells, s.lines(3))
				ours = append(ours, s)
			}
			row.boldLowest(ours)
			t.Rows = append(t.Rows, row)
		}
	}
	return t, nil
}
