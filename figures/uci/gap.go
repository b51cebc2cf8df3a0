package uci

import (
	"slices"

	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// inGaps is the paper's protocol on gap splits of the small data sets.
func inGaps() Protocol {
	p := Paper().On(smallDatasets()...)
	p.Splits = GapSplits
	return p
}

// gapMethods are all that are run on gap splits: the density layers with each energy, then the others.
func gapMethods() methods.List {
	list := append(energyMethods(), methods.MFVI, methods.MCDropout, methods.VDropout, methods.Rank1)
	return append(list, addedMethods()...)
}

// GapTable is the paper's criterion on real data: on test inputs between those of training, is a method as uncertain
// as it is wrong? For each data set it has the negative log likelihood, the part of the targets inside 95 % intervals,
// and the rank correlation of predicted variance and squared error.
func GapTable(lines []results.Result, further ...methods.Method) (report.Table, error) {
	t := report.Table{Name: "uci-gap", Columns: []string{"Data set and metric"}}
	t.Caption, t.Notes = prose.Text(t.Name, Paper())
	list := slices.Concat(gapMethods(), further)
	for _, m := range list {
		t.Columns = append(t.Columns, m.Title)
	}
	index := results.ByID(lines)
	for _, dataset := range smallDatasets() {
		for _, x := range []struct{ name, title string }{
			{results.MetricNLL, "NLL"}, {results.MetricCoverage, "coverage"}, {results.MetricSpearman, "rank correlation"},
		} {
			row := report.Row{Name: DatasetTitle(dataset) + ", " + x.title}
			reference := metricBySplit(index, inGaps().On(dataset).Experiments(methods.Density), x.name)
			var ours []results.Summary
			for _, m := range list {
				runs := inGaps().On(dataset).Experiments(m)
				s, err := index.SummarizeOptional(append(runs, inGaps().On(dataset).Quick().Experiments(m)...), x.name)
				if err != nil {
					return report.Table{}, err
				}
				ours = append(ours, s)
				cell := report.SummaryCell(s, 2)
				if x.name == results.MetricNLL && m.Name != methods.Density.Name && s.Complete() && len(reference) > 0 {
					cell = append(cell, report.CellLine{Text: betterOn(metricBySplit(index, runs, x.name), reference)})
				}
				row.Cells = append(row.Cells, cell)
			}
			if x.name == results.MetricNLL {
				row.BoldLowest(ours)
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t, nil
}
