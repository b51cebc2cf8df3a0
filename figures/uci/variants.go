package tables

import (
	"fmt"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/figures/results"
)

// Variants compares variants of UCI experiments that need not be in the catalogue, as in an ablation: a
// row for each group of lines that differ in split and seed only, in the order of their first lines, with
// mean ± standard deviation over the splits. Diverged runs are counted and not averaged.
func Variants(lines []results.Result) (Table, error) {
	t := Table{
		Name:    "variants",
		Caption: "Mean ± standard deviation over n splits (not the standard error of the mean), in the target's own units; lower is better.",
		Columns: []string{"Variant", "Data set", "Epochs", "n", "NLL", "RMSE"},
	}
	groups := make(map[string][]results.Result)
	var order []string
	for _, line := range lines {
		group := line.Experiment.Group()
		if len(groups[group]) == 0 {
			order = append(order, group)
		}
		groups[group] = append(groups[group], line)
	}
	for _, group := range order {
		first, diverged := groups[group][0].Experiment, 0
		values := map[string][]float64{}
		for _, line := range groups[group] {
			if line.Diverged {
				diverged++
				continue
			}
			for _, metric := range []string{MetricNLL, MetricRMSE} {
				value, has := line.Metrics[metric]
				if !has {
					return Table{}, fmt.Errorf("tables: the result %s of %v has no metric %q", line.ID, line.Experiment, metric)
				}
				values[metric] = append(values[metric], value)
			}
		}
		count := fmt.Sprint(len(groups[group]) - diverged)
		if diverged > 0 {
			count += fmt.Sprintf(", %d diverged", diverged)
		}
		row := Row{Name: first.Variant(), Cells: []Cell{text(DatasetTitle(first.Dataset)), text(fmt.Sprint(first.Epochs)), text(count)}}
		for _, metric := range []string{MetricNLL, MetricRMSE} {
			if len(values[metric]) == 0 {
				row.Cells = append(row.Cells, text("diverged"))
				continue
			}
			mean, std, err := metrics.MeanStd(values[metric])
			if err != nil {
				return Table{}, fmt.Errorf("tables: averaging %s of %v: %w", metric, first, err)
			}
			row.Cells = append(row.Cells, text(meanStd(mean, std, 3)))
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}
