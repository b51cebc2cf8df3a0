package uci

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

// The ratios of test to training examples, for the correction of paired differences.
const (
	randomSplits = 1.0 / 9 // ten percent are test examples
	gapSplits    = 1.0 / 2 // the middle third are
	// heldOutSplits are those to choose settings by: a fifth of a training part is held out.
	heldOutSplits = heldOutPart / (1 - heldOutPart)
)

// onSmallSets compares all methods by both metrics on each of the small data sets.
func onSmallSets(of func(dataset string, m experiment.Method) tables.Cell) tables.MethodTable {
	t := tables.MethodTable{Methods: everyMethod(), Decimals: 3, TestTrain: randomSplits}
	for _, dataset := range smallDatasets() {
		for _, metric := range tableMetrics {
			row := tables.MethodRow{Name: DatasetTitle(dataset) + ", " + metric.title, Metric: metric.name, Bold: true,
				Cell: func(m experiment.Method) tables.Cell { return of(dataset, m) }}
			t.Rows = append(t.Rows, row.TestedAgainst(methods.Density))
		}
	}
	return t
}

// adamTable compares all methods on the smallest UCI sets with one optimizer: what is left of the lead of SNGP and DUE
// if the others are trained with Adam too. Each is tested against density uncertainty.
func adamTable(x *tables.Index) (report.Table, error) {
	t := report.Table{Name: "uci-adam", Columns: []string{"Data set and metric"}}
	t.Caption, t.Notes = prose.Text(t.Name, nil)
	return onSmallSets(adamSetting(smallDatasets()...).cellOrQuick).Fill(x, t)
}

// TunedTable compares all methods with the settings that did best for each on held-out training examples (Tuned).
func TunedTable(x *tables.Index) (report.Table, error) {
	t := report.Table{Name: "uci-tuned", Columns: []string{"Data set and metric"}}
	t.Caption, t.Notes = prose.Text(t.Name, nil)
	return onSmallSets(tunedSetting(Gal, smallDatasets()...).cell).Fill(x, t)
}

// Paired compares methods on the small data sets split by split with density uncertainty, by the metric
// results.MetricRMSE or results.MetricNLL. The methods are Rank-1, since the paper's others have larger errors on all of
// these sets, and those that this project adds.
func Paired(x *tables.Index, metricName string) (report.Table, error) {
	metric, err := metricNamed(metricName)
	if err != nil {
		return report.Table{}, err
	}
	t := report.Table{Name: "paired-" + metric.name, Columns: []string{"Data set"}}
	t.Caption, _ = prose.Text("paired", map[string]string{"What": metric.what, "Reference": methods.Density.Name})
	of := tables.MethodTable{Methods: append([]experiment.Method{methods.Density, methods.Rank1}, addedMethods()...), Decimals: 3, TestTrain: randomSplits}
	setting := paperSetting(smallDatasets()...)
	for _, dataset := range smallDatasets() {
		row := tables.MethodRow{Name: DatasetTitle(dataset), Metric: metric.name, Bold: true,
			Cell: func(m experiment.Method) tables.Cell { return setting.cell(dataset, m) }}
		of.Rows = append(of.Rows, row.TestedAgainst(methods.Density))
	}
	return of.Fill(x, t)
}

// ConvergedTable is the negative log likelihood after 100, 400 and, for some methods, 4000 epochs, or after the best of
// these with early stopping. Each method is tested against density layers whose energies are detached.
func ConvergedTable(x *tables.Index) (report.Table, error) {
	t := report.Table{Name: "uci-converged", Columns: []string{"Data set, epochs"}}
	t.Caption, t.Notes = prose.Text(t.Name, nil)
	of := tables.MethodTable{Methods: convergedMethods(), Decimals: 3, TestTrain: randomSplits}
	for _, dataset := range smallDatasets() {
		for _, training := range trainings() {
			row := tables.MethodRow{Name: training.row(dataset), Metric: results.MetricNLL, Bold: true,
				Cell: func(m experiment.Method) tables.Cell { return training.cell(dataset, m) }}
			of.Rows = append(of.Rows, row.TestedAgainst(detached))
		}
	}
	change, err := changeOfLead(x)
	if err != nil {
		return t, err
	}
	if change != "" {
		note, _ := prose.Text("change of the lead", change)
		t.Notes = append(t.Notes, note)
	}
	return of.Fill(x, t)
}

// changeOfLead says what longer training does to the lead of LDL energies, detached, over constant energy, on each set.
func changeOfLead(x *tables.Index) (string, error) {
	family := tables.Family[string]{TestTrain: randomSplits}
	short, long := trainings()[0], trainings()[1]
	for _, dataset := range smallDatasets() {
		lead := func(t training) map[int]float64 {
			constant := x.BySplit(t.runs(dataset, methods.DensityConstant), results.MetricNLL)
			return less(constant, x.BySplit(t.runs(dataset, detached), results.MetricNLL))
		}
		if err := family.Add(DatasetTitle(dataset), lead(long), lead(short), Data{Name: dataset}.Splits()); err != nil {
			return "", err
		}
	}
	tests, err := family.Tests()
	return tables.Sentence(tests), err
}

// less are the differences on the splits that both have.
func less(a, b map[int]float64) map[int]float64 {
	differences := make(map[int]float64)
	for split, value := range a {
		if other, has := b[split]; has {
			differences[split] = value - other
		}
	}
	return differences
}

// SamplesTable says how much of a head start closed forms have. For each data set it has the negative log likelihood with
// 1000 Monte Carlo samples, with the paired difference to density uncertainty, and with the paper's 10, with the
// difference to 1000 of the same method. SNGP and DUE take no samples.
func SamplesTable(x *tables.Index) (report.Table, error) {
	t := report.Table{Name: "uci-samples", Columns: []string{"Data set, samples"}}
	t.Caption, t.Notes = prose.Text(t.Name, nil)
	of := tables.MethodTable{Methods: samplesMethods(), Decimals: 3, TestTrain: randomSplits}
	for _, dataset := range smallDatasets() {
		few := func(m experiment.Method) tables.Cell { return paperSetting(dataset).cell(dataset, m) }
		many := func(m experiment.Method) tables.Cell {
			if m.Process != nil {
				return few(m)
			}
			return manySamples().cell(dataset, m)
		}
		row := tables.MethodRow{Name: DatasetTitle(dataset) + ", 1000", Metric: results.MetricNLL, Cell: many}
		with10 := tables.MethodRow{Name: DatasetTitle(dataset) + ", 10", Metric: results.MetricNLL, Cell: few, Against: func(m experiment.Method) tables.Cell {
			if m.Process != nil { // the same runs
				return tables.Cell{}
			}
			return many(m)
		}}
		of.Rows = append(of.Rows, row.TestedAgainst(methods.Density), with10)
	}
	return of.Fill(x, t)
}

// scoresTable has scores that the paper does not print: the continuous ranked probability score, the part of the targets
// inside 95 % intervals, and sharpness, the mean standard deviation of the predictive distribution.
func scoresTable(x *tables.Index) (report.Table, error) {
	t := report.Table{Name: "uci-scores", Columns: []string{"Data set and score"}}
	t.Caption, t.Notes = prose.Text(t.Name, nil)
	of := tables.MethodTable{Methods: everyMethod(), Decimals: 3, TestTrain: randomSplits}
	for _, dataset := range tableDatasets() {
		for _, score := range []struct{ name, title string }{
			{results.MetricCRPS, "CRPS"}, {results.MetricCoverage, "coverage"}, {results.MetricSharpness, "sharpness"},
		} {
			row := tables.MethodRow{Name: DatasetTitle(dataset) + ", " + score.title, Metric: score.name,
				Cell: func(m experiment.Method) tables.Cell { return paperCell(dataset, m) }}
			if score.name == results.MetricCRPS {
				row.Bold, row.Optional = true, true
				row = row.TestedAgainst(methods.Density)
			}
			of.Rows = append(of.Rows, row)
		}
	}
	return of.Fill(x, t)
}

// A pairing names a test of density uncertainty against another method of the paper's tables.
type pairing struct{ metric, dataset, setting, method string }

// pairings are the tests of ClaimsTable. Better means that density is.
func pairings(x *tables.Index) (*tables.Family[pairing], error) {
	family := &tables.Family[pairing]{TestTrain: randomSplits}
	for _, metric := range tableMetrics {
		for _, dataset := range tableDatasets() {
			for _, s := range claimSettings() {
				for _, m := range rivals() {
					if err := family.AddComplete(pairing{metric.name, dataset, s.name, m.Name}, x, metric.name, s.runs(dataset, methods.Density), s.runs(dataset, m)); err != nil {
						return nil, err
					}
				}
			}
		}
	}
	return family, nil
}

// ClaimsTable tests the paper's claim that density uncertainty is the best of its UCI tables: for each data set, metric
// and setting density uncertainty against each other method, paired over the splits.
func ClaimsTable(x *tables.Index) (report.Table, error) {
	t := report.Table{Name: "uci-claims", Columns: []string{"Data set, metric and settings", "Best in the paper"}}
	t.Caption, t.Notes = prose.Text(t.Name, nil)
	for _, m := range rivals() {
		t.Columns = append(t.Columns, "against "+m.Name)
	}
	family, err := pairings(x)
	if err != nil {
		return t, err
	}
	tests, err := family.ByName()
	if err != nil {
		return t, err
	}
	for _, metric := range tableMetrics {
		for _, dataset := range tableDatasets() {
			for _, s := range claimSettings() {
				row := report.Row{Name: fmt.Sprintf("%s, %s, %s", DatasetTitle(dataset), metric.title, s.name), Cells: report.TextCells(metric.bestInPaper(dataset))}
				for _, m := range rivals() {
					cell := report.TextCell(cmp.Or(s.diverged(x, dataset, methods.Density), s.diverged(x, dataset, m), "not run"))
					if test, has := tests[pairing{metric.name, dataset, s.name, m.Name}]; has {
						cell = report.Cell{test.Line()}
					}
					row.Cells = append(row.Cells, cell)
				}
				t.Rows = append(t.Rows, row)
			}
		}
	}
	all, err := family.Tests()
	t.Notes = append(t.Notes, tables.Tally(all))
	return t, err
}

// bestInPaper names the method with the lowest of the paper's means, or all of them if there are several.
func (x metric) bestInPaper(dataset string) string {
	var best []string
	lowest := 0.0
	for _, m := range paperMethods() {
		mean := x.of(dataset, m).Mean
		switch {
		case mean != mean: // the paper has no such row
		case best == nil || mean < lowest:
			best, lowest = []string{m.Name}, mean
		case mean == lowest:
			best = append(best, m.Name)
		}
	}
	if best == nil {
		return "–"
	}
	return strings.Join(best, ", ")
}

// tunedMethods are the methods of tuning and gap splits: the density layers with each energy, then the others.
func tunedMethods() []experiment.Method {
	return slices.Concat(energyMethods(), []experiment.Method{methods.MFVI, methods.MCDropout, methods.VDropout, methods.Rank1}, addedMethods())
}

// gapMethods are the columns of GapTable.
func gapMethods() []experiment.Method {
	return append([]experiment.Method{methods.DensityMean}, tunedMethods()...)
}

// gapCell has the runs of a method on the gap splits of a data set. No settings were tuned there for the mean energy, a
// control.
func (s setting) gapCell(dataset string, m experiment.Method) tables.Cell {
	if s.name == "tuned" && m.Name == methods.DensityMean.Name {
		return tables.Cell{}
	}
	return s.cellOrQuick(dataset, m)
}

// GapTable is the paper's criterion on real data: on test inputs between the training inputs, is a method as uncertain as
// it is wrong? For each data set and setting it has the negative log likelihood, with a paired test against density
// uncertainty, the part of the targets inside 95 % intervals, and the rank correlation of predicted variance and squared
// error. Notes have the tests of the latter two against constant energy.
func GapTable(x *tables.Index) (report.Table, error) {
	t := report.Table{Name: "uci-gap", Columns: []string{"Data set, settings and metric"}}
	t.Caption, t.Notes = prose.Text(t.Name, nil)
	of := tables.MethodTable{Methods: gapMethods(), Decimals: 2, TestTrain: gapSplits}
	for _, dataset := range smallDatasets() {
		for _, s := range gapSettings() {
			for _, score := range append([]gapScore{{results.MetricNLL, "NLL"}}, gapScores...) {
				row := tables.MethodRow{Name: fmt.Sprintf("%s, %s", s.row(dataset), score.title), Metric: score.metric,
					Cell: func(m experiment.Method) tables.Cell { return s.gapCell(dataset, m) }}
				if score.metric == results.MetricNLL {
					row.Bold = true
					row = row.TestedAgainst(methods.Density)
				}
				of.Rows = append(of.Rows, row)
			}
		}
	}
	for _, score := range gapScores {
		for _, s := range gapSettings() {
			tests, err := score.againstConstant(x, s)
			if err != nil {
				return t, err
			}
			if len(tests) > 0 {
				note, _ := prose.Text("gap score", map[string]string{"Score": score.title, "Settings": s.name, "Tests": tables.Sentence(tests)})
				t.Notes = append(t.Notes, note)
			}
		}
	}
	return of.Fill(x, t)
}

// A gapScore is a score of the table of gap splits.
type gapScore struct{ metric, title string }

// gapScores are those that say whether a method knows what it does not know.
var gapScores = []gapScore{{results.MetricCoverage, "coverage"}, {results.MetricSpearman, "rank correlation"}}

// againstConstant are the tests of LDL energies against constant energy on the gap splits, one for each data set.
func (g gapScore) againstConstant(x *tables.Index, s setting) ([]tables.Test[string], error) {
	family := tables.Family[string]{TestTrain: gapSplits}
	for _, dataset := range smallDatasets() {
		if err := family.AddComplete(DatasetTitle(dataset), x, g.metric, s.runs(dataset, methods.Density), s.runs(dataset, methods.DensityConstant)); err != nil {
			return nil, err
		}
	}
	return family.Tests()
}

// sampledMethods are the methods whose predictions are means over Monte Carlo samples.
func sampledMethods() []experiment.Method {
	return append(energyMethods(), append([]experiment.Method{methods.MFVI}, rivals()...)...)
}

// samplesMethods are the columns of SamplesTable: the methods that draw, and two that do not.
func samplesMethods() []experiment.Method { return append(sampledMethods(), methods.SNGP, methods.DUE) }
