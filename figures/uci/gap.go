package uci

import (
	"fmt"

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
	x := methodTable{list: append(methods.List{methods.DensityMean}, gapMethods()...), further: further, decimals: 2, testTrain: gapSplits}
	for _, dataset := range smallDatasets() {
		for _, s := range gapSettings() {
			for _, score := range []struct{ name, title string }{
				{results.MetricNLL, "NLL"}, {results.MetricCoverage, "coverage"}, {results.MetricSpearman, "rank correlation"},
			} {
				row := methodRow{name: fmt.Sprintf("%s, %s, %s", DatasetTitle(dataset), s.name, score.title), metric: score.name, bold: score.name == results.MetricNLL,
					runs: func(m methods.Method) []results.Experiment {
						return atBothScales(s.protocol.On(dataset), methods.List{m})
					}}
				if score.name == results.MetricNLL {
					row = row.testedAgainst(methods.Density)
				}
				x.rows = append(x.rows, row)
			}
		}
	}
	return x.fill(t, lines)
}
