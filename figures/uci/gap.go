package uci

import (
	"errors"
	"fmt"
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

// gapSettings are those of the gap splits: the text, and the settings that did best on held-out training examples.
func gapSettings() []setting {
	tuned := Tuned().On(smallDatasets()...)
	tuned.Splits = GapSplits
	return []setting{{"paper", inGaps()}, {"tuned", tuned}}
}

// GapTable is the paper's criterion on real data: on test inputs between those of training, is a method as uncertain
// as it is wrong? For each data set and setting it has the negative log likelihood, with a paired test against density
// uncertainty, the part of the targets inside 95 % intervals, and the rank correlation of predicted variance and
// squared error.
func GapTable(lines []results.Result, further ...methods.Method) (report.Table, error) {
	t := report.Table{Name: "uci-gap", Columns: []string{"Data set, settings and metric"}}
	t.Caption, t.Notes = prose.Text(t.Name, Paper())
	base := gapMethods()
	list := slices.Concat(base, further)
	for _, m := range list {
		t.Columns = append(t.Columns, m.Title)
	}
	index := results.ByID(lines)
	var tests, ofFurther paired
	for _, dataset := range smallDatasets() {
		for _, setting := range gapSettings() {
			p := setting.protocol.On(dataset)
			reference := metricBySplit(index, p.Experiments(methods.Density), results.MetricNLL)
			for _, x := range []struct{ name, title string }{
				{results.MetricNLL, "NLL"}, {results.MetricCoverage, "coverage"}, {results.MetricSpearman, "rank correlation"},
			} {
				row := report.Row{Name: fmt.Sprintf("%s, %s, %s", DatasetTitle(dataset), setting.name, x.title)}
				var ours []results.Summary
				for i, m := range list {
					s, err := index.SummarizeOptional(atBothScales(p, methods.List{m}), x.name)
					if err != nil {
						return report.Table{}, err
					}
					ours = append(ours, s)
					row.Cells = append(row.Cells, report.SummaryCell(s, 2))
					if x.name != results.MetricNLL || m.Name == methods.Density.Name {
						continue
					}
					family := &tests
					if i >= len(base) { // verdicts on the others do not depend on what is compared beside them
						family = &ofFurther
					}
					if err := family.add(len(t.Rows), i, metricBySplit(index, p.Experiments(m), x.name), reference, gapSplits); err != nil {
						return report.Table{}, err
					}
				}
				if x.name == results.MetricNLL {
					row.BoldLowest(ours)
				}
				t.Rows = append(t.Rows, row)
			}
		}
	}
	return t, errors.Join(tests.settle(&t), ofFurther.settle(&t))
}
