package uci

import (
	"fmt"
	"slices"

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

// rows are the rows of a group with a metric of methods, one for each data set, and with tests if there is a reference.
func rows(group, metric string, datasets []string, cell func(dataset string, m experiment.Method) tables.Cell, reference ...experiment.Method) (list []tables.MethodRow) {
	for _, dataset := range datasets {
		row := tables.MethodRow{Group: group, Name: DatasetTitle(dataset), Metric: metric, Cell: func(m experiment.Method) tables.Cell { return cell(dataset, m) }}
		for _, m := range reference {
			row = row.TestedAgainst(m)
		}
		list = append(list, row)
	}
	return list
}

// table is a table of methods that are tested against a reference.
func table(x *tables.Index, name string, reference experiment.Method, of tables.MethodTable) (report.Table, error) {
	return of.Fill(x, begun(name, "Data set", report.MarksAgainst(reference.Name)))
}

// onSmallSets compares all methods by both metrics on each of the small data sets.
func onSmallSets(of func(dataset string, m experiment.Method) tables.Cell) tables.MethodTable {
	t := tables.MethodTable{Methods: everyMethod(), Decimals: 3, TestTrain: randomSplits}
	for _, metric := range tableMetrics {
		t.Rows = append(t.Rows, rows(metric.title, metric.name, SmallDatasets(), of, methods.Density)...)
	}
	return t
}

// adamTable compares all methods on the smallest UCI sets with one optimizer: what is left of the lead of SNGP and DUE
// if the others are trained with Adam too. Each is tested against density uncertainty.
func adamTable(x *tables.Index) (report.Table, error) {
	return table(x, "uci-adam", methods.Density, onSmallSets(adamSetting(SmallDatasets()...).cellOrQuick))
}

// TunedTable compares all methods with the settings that did best for each on held-out training examples (Tuned).
func TunedTable(x *tables.Index) (report.Table, error) {
	return table(x, "uci-tuned", methods.Density, onSmallSets(tunedSetting(Gal, SmallDatasets()...).cell))
}

// Paired compares methods on the small data sets split by split with density uncertainty, by the metric
// results.MetricRMSE or results.MetricNLL. The methods are Rank-1, since the paper's others have larger errors on all of
// these sets, and those that this project adds.
func Paired(x *tables.Index, metricName string) (report.Table, error) {
	i := slices.IndexFunc(tableMetrics, func(x metric) bool { return x.name == metricName })
	if i < 0 {
		return report.Table{}, fmt.Errorf("uci: the metric is %q, want %s or %s", metricName, nll.name, rmse.name)
	}
	return table(x, "paired-"+metricName, methods.Density, tables.MethodTable{
		Methods: append([]experiment.Method{methods.Density, methods.Rank1}, addedMethods()...), Decimals: 3, TestTrain: randomSplits,
		Rows: rows("", metricName, SmallDatasets(), paperSetting(SmallDatasets()...).cell, methods.Density),
	})
}

// ConvergedTable is the negative log likelihood after 100, 400 and, for some methods, 4000 epochs, or after the best of
// these with early stopping. Each method is tested against density layers whose energies are detached.
func ConvergedTable(x *tables.Index) (report.Table, error) {
	of := tables.MethodTable{Methods: convergedMethods(), Decimals: 3, TestTrain: randomSplits}
	for _, training := range trainings() {
		of.Rows = append(of.Rows, rows(training.name, results.MetricNLL, SmallDatasets(), training.cell, detached)...)
	}
	t, err := table(x, "uci-converged", detached, of)
	if err != nil {
		return t, err
	}
	change, err := changeOfLead(x)
	if change != "" {
		t.Measured = append(t.Measured, prose.Caption("change of the lead", change))
	}
	return t, err
}

// changeOfLead says what longer training does to the lead of LDL energies, detached, over constant energy, on each set.
func changeOfLead(x *tables.Index) (string, error) {
	family := tables.Family[string]{TestTrain: randomSplits}
	short, long := trainings()[0], trainings()[1]
	for _, dataset := range SmallDatasets() {
		lead := func(t setting) map[int]float64 {
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

// SamplesTable says how much of a head start closed forms have. It has the negative log likelihood with 1000 Monte Carlo
// samples, tested against density uncertainty, and with the paper's 10, tested against 1000 of the same method. SNGP and
// DUE take no samples.
func SamplesTable(x *tables.Index) (report.Table, error) {
	of := tables.MethodTable{Methods: samplesMethods(), Decimals: 3, TestTrain: randomSplits}
	few := paperSetting(SmallDatasets()...)
	many := func(dataset string, m experiment.Method) tables.Cell {
		if m.Process != nil {
			return few.cell(dataset, m)
		}
		return manySamples().cell(dataset, m)
	}
	fewRows := rows("10 draws", results.MetricNLL, SmallDatasets(), few.cell)
	for i, dataset := range SmallDatasets() {
		fewRows[i].Against = func(m experiment.Method) experiment.Experiments {
			if m.Process != nil { // the same runs
				return nil
			}
			return many(dataset, m).Full
		}
	}
	of.Rows = append(rows("1000 draws", results.MetricNLL, SmallDatasets(), many, methods.Density), fewRows...)
	t := begun("uci-samples", "Data set", report.MarksAgainst(methods.Density.Name+" (10 draws: than 1000 draws of the same method)"))
	return of.Fill(x, t)
}

// scoresTable has scores that the paper does not print: the continuous ranked probability score, the part of the targets
// inside 95 % intervals, and sharpness, the mean standard deviation of the predictive distribution.
func scoresTable(x *tables.Index) (report.Table, error) {
	of := tables.MethodTable{Methods: everyMethod(), Decimals: 3, TestTrain: randomSplits}
	of.Rows = rows("CRPS", results.MetricCRPS, tableDatasets(), paperCell, methods.Density)
	for i := range of.Rows {
		of.Rows[i].Optional = true
	}
	of.Rows = append(of.Rows, rows("coverage", results.MetricCoverage, tableDatasets(), paperCell)...)
	of.Rows = append(of.Rows, rows("sharpness", results.MetricSharpness, tableDatasets(), paperCell)...)
	return table(x, "uci-scores", methods.Density, of)
}

// claimComparison has the rows and columns of ClaimsTable.
func claimComparison() tables.MethodTable {
	t := tables.MethodTable{Methods: paperMethods(), Decimals: 3, TestTrain: randomSplits}
	for _, metric := range tableMetrics {
		for _, s := range claimSettings() {
			t.Rows = append(t.Rows, rows(metric.group(s), metric.name, s.datasets, s.cell, methods.Density)...)
		}
	}
	return t
}

// group is the name of a group of rows with the metric in a setting.
func (x metric) group(s setting) string { return x.title + ", " + s.name }

// ClaimsTable tests the paper's claim that density uncertainty is the best of its UCI tables: for each data set, metric
// and setting each other method against density uncertainty, paired over the splits.
func ClaimsTable(x *tables.Index) (report.Table, error) {
	return table(x, "uci-claims", methods.Density, claimComparison())
}

// tunedMethods are the methods of tuning and gap splits: the density layers with each energy, then the others.
func tunedMethods() []experiment.Method {
	return slices.Concat(energyMethods(), []experiment.Method{methods.MFVI, methods.MCDropout, methods.VDropout, methods.Rank1}, addedMethods())
}

// gapMethods are the columns of GapTable.
func gapMethods() []experiment.Method {
	return append([]experiment.Method{methods.DensityMean}, tunedMethods()...)
}

// GapTable is the paper's criterion on real data: on test inputs between the training inputs, is a method as uncertain as
// it is wrong? It has the negative log likelihood of every method, tested against density uncertainty.
func GapTable(x *tables.Index) (report.Table, error) {
	of := tables.MethodTable{Methods: gapMethods(), Decimals: 2, TestTrain: gapSplits}
	for _, s := range gapSettings() {
		of.Rows = append(of.Rows, rows(s.name, results.MetricNLL, SmallDatasets(), s.cellOrQuick, methods.Density)...)
	}
	return table(x, "uci-gap", methods.Density, of)
}

// GapCoverageTable has the part of the targets inside 95 % intervals on gap splits.
func GapCoverageTable(x *tables.Index) (report.Table, error) {
	return gapScore{"uci-gap-coverage", results.MetricCoverage, "coverage"}.table(x)
}

// GapRankTable has the rank correlation of predicted variance and squared error on gap splits.
func GapRankTable(x *tables.Index) (report.Table, error) { return gapRank.table(x) }

// A gapScore is a score on gap splits that says whether a method knows what it does not know.
type gapScore struct{ name, metric, title string }

var gapRank = gapScore{"uci-gap-rank", results.MetricSpearman, "rank correlation"}

// table is a table of the score. How it was measured has the tests of density uncertainty against constant energy.
func (g gapScore) table(x *tables.Index) (report.Table, error) {
	of := tables.MethodTable{Methods: gapMethods(), Decimals: 2}
	for _, s := range gapSettings() {
		of.Rows = append(of.Rows, rows(s.name, g.metric, SmallDatasets(), s.cellOrQuick)...)
	}
	t, err := of.Fill(x, begun(g.name, "Data set", ""))
	if err != nil {
		return t, err
	}
	for _, s := range gapSettings() {
		tests, err := g.againstConstant(x, s)
		if err != nil {
			return t, err
		}
		if len(tests) > 0 {
			t.Measured = append(t.Measured, prose.Caption("gap score", map[string]string{"Score": g.title, "Settings": s.name, "Tests": tables.Sentence(tests)}))
		}
	}
	return t, nil
}

// againstConstant are the tests of LDL energies against constant energy on the gap splits, one for each data set.
func (g gapScore) againstConstant(x *tables.Index, s setting) ([]tables.Test[string], error) {
	family := tables.Family[string]{TestTrain: gapSplits}
	for _, dataset := range SmallDatasets() {
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
