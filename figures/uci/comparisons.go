package uci

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// A comparisonRow is a row of a table of methods: a metric of their runs.
type comparisonRow struct {
	name   string
	metric string
	runs   func(m methods.Method) []results.Experiment
}

// compareMethods adds rows to a table, in which every method is tested against density uncertainty, split by split, where
// the metric is better when lower. The lowest mean of a row is bold. Verdicts on further methods are a family of their
// own, so that those on the others do not depend on what is compared beside them.
func compareMethods(t *report.Table, lines []results.Result, rows []comparisonRow, list, further methods.List) error {
	reference, base := methods.Density, len(list)
	list = slices.Concat(list, further)
	for _, m := range list {
		t.Columns = append(t.Columns, m.Title)
	}
	index := results.ByID(lines)
	var tests, ofFurther paired
	for _, r := range rows {
		row := report.Row{Name: r.name}
		against := metricBySplit(index, results.Filter{Scale: results.Full}.Apply(r.runs(reference)), r.metric)
		var ours []results.Summary
		for i, m := range list {
			s, err := index.Summarize(r.runs(m), r.metric)
			if err != nil {
				return err
			}
			ours = append(ours, s)
			row.Cells = append(row.Cells, report.SummaryCell(s, 3))
			if m.Name == reference.Name {
				continue
			}
			family := &tests
			if i >= base {
				family = &ofFurther
			}
			values := metricBySplit(index, results.Filter{Scale: results.Full}.Apply(r.runs(m)), r.metric)
			if err := family.add(len(t.Rows), i, values, against, randomSplits); err != nil {
				return err
			}
		}
		row.BoldLowest(ours)
		t.Rows = append(t.Rows, row)
	}
	return errors.Join(tests.settle(t), ofFurther.settle(t))
}

// bothMetrics are rows of both metrics for each data set.
func bothMetrics(datasets []string, of func(dataset string, m methods.Method) []results.Experiment) (rows []comparisonRow) {
	for _, dataset := range datasets {
		for _, x := range theMetrics {
			rows = append(rows, comparisonRow{DatasetTitle(dataset) + ", " + x.title, x.name, func(m methods.Method) []results.Experiment { return of(dataset, m) }})
		}
	}
	return rows
}

// AdamTable compares all methods on the smallest UCI sets with one optimizer: what of the lead of SNGP and DUE in NLL
// and RMSE is left where the others are trained with Adam too. Each is tested against density uncertainty.
func AdamTable(lines []results.Result, further ...methods.Method) (report.Table, error) {
	t := report.Table{Name: "uci-adam", Columns: []string{"Data set and metric"}}
	t.Caption, t.Notes = prose.Text(t.Name, Paper())
	rows := bothMetrics(smallDatasets(), func(dataset string, m methods.Method) []results.Experiment {
		if m.Process != nil { // has Adam anyway
			return atBothScales(Paper().On(dataset), methods.List{m})
		}
		return atBothScales(withAdam().On(dataset), methods.List{m})
	})
	return t, compareMethods(&t, lines, rows, append(tableMethods(), addedMethods()...), further)
}

// TunedTable compares all methods with the settings that did best for each on held-out training examples (Tuned).
func TunedTable(lines []results.Result, further ...methods.Method) (report.Table, error) {
	t := report.Table{Name: "uci-tuned", Columns: []string{"Data set and metric"}}
	t.Caption, t.Notes = prose.Text(t.Name, Paper())
	rows := bothMetrics(smallDatasets(), func(dataset string, m methods.Method) []results.Experiment { return Tuned().On(dataset).Experiments(m) })
	return t, compareMethods(&t, lines, rows, append(tableMethods(), addedMethods()...), further)
}

// Paired compares methods on the small data sets split by split with density uncertainty, by the metric
// results.MetricRMSE or results.MetricNLL: full-scale runs of the paper's protocol. The methods are Rank-1, since the
// paper's others have larger errors on all of these sets, those that this project adds, and further ones.
func Paired(lines []results.Result, metricName string, further ...methods.Method) (report.Table, error) {
	i := slices.IndexFunc(theMetrics, func(x metric) bool { return x.name == metricName })
	if i < 0 {
		return report.Table{}, fmt.Errorf("uci: unknown metric %q, want %s or %s", metricName, nll.name, rmse.name)
	}
	t := report.Table{Name: "paired-" + metricName, Columns: []string{"Data set"}}
	t.Caption, _ = prose.Text("paired", map[string]string{"What": theMetrics[i].what, "Reference": methods.Density.Title})
	var rows []comparisonRow
	for _, dataset := range smallDatasets() {
		rows = append(rows, comparisonRow{DatasetTitle(dataset), metricName, Paper().On(dataset).experimentsOf})
	}
	return t, compareMethods(&t, lines, rows, append(methods.List{methods.Density, methods.Rank1}, addedMethods()...), further)
}

// experimentsOf is Experiments of a single method.
func (p Protocol) experimentsOf(m methods.Method) []results.Experiment { return p.Experiments(m) }

// ConvergedTable is the negative log likelihood after 100, 400 and, of some methods, 4000 epochs, each method tested
// against density uncertainty.
func ConvergedTable(lines []results.Result) (report.Table, error) {
	t := report.Table{Name: "uci-converged", Columns: []string{"Data set, epochs"}}
	t.Caption, t.Notes = prose.Text(t.Name, nil)
	var rows []comparisonRow
	for _, dataset := range smallDatasets() {
		for _, p := range []Protocol{Paper(), longTraining(), longestTraining()} {
			rows = append(rows, comparisonRow{fmt.Sprintf("%s, %d", DatasetTitle(dataset), p.Epochs), results.MetricNLL, p.On(dataset).experimentsOf})
		}
	}
	return t, compareMethods(&t, lines, rows, append(tableMethods(), addedMethods()...), nil)
}

// SamplesTable is the negative log likelihood with 1000 Monte Carlo samples, and below it the paired difference to that
// with the paper's 10: how much of a head start closed forms have.
func SamplesTable(lines []results.Result) (report.Table, error) {
	t := report.Table{Name: "uci-samples", Columns: []string{"Data set"}}
	t.Caption, t.Notes = prose.Text(t.Name, manySamples())
	list := sampledMethods()
	for _, m := range list {
		t.Columns = append(t.Columns, m.Title)
	}
	index := results.ByID(lines)
	var tests paired
	for _, dataset := range smallDatasets() {
		row := report.Row{Name: DatasetTitle(dataset)}
		for i, m := range list {
			many := manySamples().On(dataset).Experiments(m)
			s, err := index.Summarize(many, results.MetricNLL)
			if err != nil {
				return report.Table{}, err
			}
			row.Cells = append(row.Cells, report.SummaryCell(s, 3))
			few := metricBySplit(index, Paper().On(dataset).Experiments(m), results.MetricNLL)
			if err := tests.add(len(t.Rows), i, metricBySplit(index, many, results.MetricNLL), few, randomSplits); err != nil {
				return report.Table{}, err
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t, tests.settle(&t)
}

// ScoresTable has scores that the paper does not print: the continuous ranked probability score, the part of the
// targets inside 95 % intervals, and sharpness, the mean standard deviation of the predictive distribution.
func ScoresTable(lines []results.Result, further ...methods.Method) (report.Table, error) {
	t := report.Table{Name: "uci-scores", Columns: []string{"Data set and score"}}
	t.Caption, t.Notes = prose.Text(t.Name, Paper())
	list := slices.Concat(tableMethods(), addedMethods(), further)
	for _, m := range list {
		t.Columns = append(t.Columns, m.Title)
	}
	index := results.ByID(lines)
	for _, dataset := range tableDatasets() {
		for _, x := range []struct{ name, title string }{
			{results.MetricCRPS, "CRPS"}, {results.MetricCoverage, "coverage"}, {results.MetricSharpness, "sharpness"},
		} {
			row := report.Row{Name: DatasetTitle(dataset) + ", " + x.title}
			var ours []results.Summary
			for _, m := range list {
				s, err := index.SummarizeOptional(wanted(dataset, m), x.name)
				if err != nil {
					return report.Table{}, err
				}
				ours = append(ours, s)
				row.Cells = append(row.Cells, report.SummaryCell(s, 3))
			}
			if x.name == results.MetricCRPS {
				row.BoldLowest(ours)
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t, nil
}

// claimSettings are those in which the paper's claim on UCI is tested.
func claimSettings() []setting {
	rows := slices.DeleteFunc(tableDatasets(), func(d string) bool { return d == Year })
	return []setting{{"paper", Paper().On(rows...)}, {"tuned", Tuned().On(rows...)}, {"released", Released().On(rows...)}}
}

// Claims tests the paper's claim that density uncertainty is the best of its UCI tables: for each data set, metric and
// setting density uncertainty against each other method, paired over the splits. Better means that density is.
func Claims(lines []results.Result) (report.Table, error) {
	t := report.Table{Name: "uci-claims", Columns: []string{"Data set, metric and settings", "Best in the paper"}}
	t.Caption, t.Notes = prose.Text(t.Name, nil)
	others := slices.DeleteFunc(PaperMethods(), isDensity)
	for _, m := range others {
		t.Columns = append(t.Columns, "against "+m.Title)
	}
	index := results.ByID(lines)
	var tests paired
	for _, x := range theMetrics {
		for _, dataset := range tableDatasets() {
			for _, s := range claimSettings() {
				row := report.Row{Name: fmt.Sprintf("%s, %s, %s", DatasetTitle(dataset), x.title, s.name), Cells: []report.Cell{report.TextCell(x.bestInPaper(dataset))}}
				values := func(m methods.Method) map[int]float64 {
					return metricBySplit(index, s.protocol.On(dataset).Experiments(m), x.name)
				}
				density := values(methods.Density)
				for i, m := range others {
					row.Cells = append(row.Cells, nil)
					if err := tests.add(len(t.Rows), i+1, density, values(m), randomSplits); err != nil {
						return report.Table{}, err
					}
				}
				t.Rows = append(t.Rows, row)
			}
		}
	}
	if err := tests.settle(&t); err != nil {
		return report.Table{}, err
	}
	for _, row := range t.Rows {
		for i, cell := range row.Cells {
			if cell == nil {
				row.Cells[i] = report.TextCell("not run")
			}
		}
	}
	counts, err := tests.counts()
	if err != nil {
		return report.Table{}, err
	}
	t.Notes = append(t.Notes, counts)
	return t, nil
}

// bestInPaper names the method with the lowest of the paper's means, all of them where there are several.
func (x metric) bestInPaper(dataset string) string {
	var best []string
	lowest := 0.0
	for _, m := range PaperMethods() {
		mean := x.of(dataset, m).Mean
		switch {
		case mean != mean: // the paper has no such row
		case best == nil || mean < lowest:
			best, lowest = []string{m.Title}, mean
		case mean == lowest:
			best = append(best, m.Title)
		}
	}
	if best == nil {
		return "–"
	}
	return strings.Join(best, ", ")
}
