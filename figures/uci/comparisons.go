package uci

import (
	"slices"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

// bySetting is a table of a number with a group of rows for each setting. With a reference the others are tested against it.
func bySetting(name string, n tables.Number, list []experiment.Method, grids []experiment.Grid, reference ...experiment.Method) tables.Sheet {
	s := sheet(name, "", list)
	for _, r := range reference {
		s.Legend = report.LegendAgainst(r.Name)
	}
	for _, of := range grids {
		s.Rows = append(s.Rows, rows(of, of.Title, n, list, reference...)...)
	}
	return s
}

// againstDensity is a table in which methods are tested against density uncertainty, by both metrics in each setting.
func againstDensity(name string, list []experiment.Method, grids ...experiment.Grid) tables.Sheet {
	var all [][]tables.Row
	list = densityFirst(list)
	for _, of := range tableNumbers {
		for _, s := range grids {
			group := of.Title
			if len(grids) > 1 {
				group = in(of, s)
			}
			all = append(all, rows(s, group, of, list, methods.Density))
		}
	}
	return sheet(name, report.LegendAgainst(methods.Density.Name), list, all...)
}

// in is the name of a group of rows in one of several settings.
func in(n tables.Number, s experiment.Grid) string { return n.Title + ", " + s.Title }

// adamTable compares all methods on the smallest UCI sets with one optimizer: what is left of the lead of SNGP and DUE
// if the others are trained with Adam too. Each is tested against density uncertainty.
func adamTable(x *tables.Index) (report.Table, error) {
	return againstDensity("uci-adam", everyMethod, adamGrid(SmallDatasets()...)).Make(x)
}

// tunedTable compares all methods with the settings that did best for each on held-out training examples (Tuned).
func tunedTable(x *tables.Index) (report.Table, error) {
	return againstDensity("uci-tuned", everyMethod, Tuned(On(SmallDatasets()...)...)).Make(x)
}

// claimsTable tests the paper's claim that density uncertainty is the best of its UCI tables: for each data set, metric
// and setting each other method against density uncertainty, paired over the splits.
func claimsTable(x *tables.Index) (report.Table, error) {
	return againstDensity("uci-claims", paperMethods, claimGrids...).Make(x)
}

// pairedTable compares methods on the small data sets split by split with density uncertainty: Rank-1, since the paper's others
// have larger errors on all of these sets, and those that this project adds.
func pairedTable(x *tables.Index) (report.Table, error) {
	list := slices.Concat([]experiment.Method{methods.Density, methods.Rank1}, addedMethods)
	return againstDensity("uci-paired", list, paperGrid(SmallDatasets()...)).Make(x)
}

// convergedTable is the negative log likelihood after 100, 400 and, for some methods, 4000 epochs, or after the best of
// these with early stopping. Each method is tested against density layers whose energies are detached.
func convergedTable(x *tables.Index) (report.Table, error) {
	s := bySetting("uci-converged", nll, densityFirst(convergedMethods), trainings(), detached)
	if change := changeOfLead(x); change != "" {
		s.Measured = append(s.Measured, prose.Caption("change of the lead", change))
	}
	return s.Make(x)
}

// changeOfLead says what longer training does to the lead of LDL energies, detached, over constant energy, on each set.
func changeOfLead(x *tables.Index) string {
	family := tables.Family[string]{TestTrain: Data{}.TestTrain(0)}
	for _, dataset := range SmallDatasets() {
		lead := func(t experiment.Grid) map[int]float64 {
			return less(x.Units(nll.Over(t.Of(Data{Name: dataset}, methods.DensityConstant))), x.Units(nll.Over(t.Of(Data{Name: dataset}, detached))))
		}
		family.Add(DatasetTitle(dataset), lead(trainings()[1]), lead(trainings()[0]), Data{Name: dataset}.Splits())
	}
	return family.Tests().Sentence()
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

// samplesTable says how much of a head start closed forms have. It has the negative log likelihood with 1000 Monte Carlo
// samples, tested against density uncertainty, and with the paper's 10, tested against 1000 of the same method. SNGP and
// DUE take no samples.
func samplesTable(x *tables.Index) (report.Table, error) {
	list, many := densityFirst(samplesMethods), manySamples()
	few := rows(paperGrid(SmallDatasets()...), "10 draws", nll, list)
	for i, dataset := range SmallDatasets() {
		for k, m := range list {
			if !m.IsProcess() { // others are the same runs
				few[i].Cells[k] = few[i].Cells[k].(tables.Mean).Against(many.Of(Data{Name: dataset}, m))
			}
		}
	}
	legend := report.LegendAgainst(methods.Density.Name + " (10 draws: than 1000 draws of the same method)")
	return sheet("uci-samples", legend, list, rows(many, "1000 draws", nll, list, methods.Density), few).Make(x)
}

// scoresTable has scores that the paper does not print: the continuous ranked probability score, the part of the targets
// inside 95% intervals, and sharpness, the mean standard deviation of the predictive distribution.
func scoresTable(x *tables.Index) (report.Table, error) {
	score := func(name string) tables.Number { return tables.Number{Name: name, Decimals: 3, Optional: true} }
	list, s := densityFirst(everyMethod), allData()
	return sheet("uci-scores", report.LegendAgainst(methods.Density.Name), list,
		rows(s, "CRPS", score(experiment.MetricCRPS), list, methods.Density),
		rows(s, "coverage", score(experiment.MetricCoverage), list),
		rows(s, "sharpness", score(experiment.MetricSharpness), list)).Make(x)
}

// tunedMethods are the methods of tuning and gap splits: the density layers with each energy, then the others.
var tunedMethods = slices.Concat(sampledMethods, addedMethods)

// gapSheet is a table of a number on gap splits.
func gapSheet(name string, n tables.Number, reference ...experiment.Method) tables.Sheet {
	return bySetting(name, n, densityFirst(append([]experiment.Method{methods.DensityMean}, tunedMethods...)), gapGrids(), reference...)
}

// gapTable is the paper's criterion on real data: on test inputs between the training inputs, is a method as uncertain as
// it is wrong? It has the negative log likelihood of every method, tested against density uncertainty.
func gapTable(x *tables.Index) (report.Table, error) {
	return gapSheet("uci-gap", tables.Number{Name: experiment.MetricNLL, Decimals: 2}, methods.Density).Make(x)
}

// gapCoverageTable has the part of the targets inside 95% intervals on gap splits.
func gapCoverageTable(x *tables.Index) (report.Table, error) {
	return gapScores(x, "uci-gap-coverage", coverage)
}

// gapRankTable has the rank correlation of predicted variance and squared error on gap splits.
func gapRankTable(x *tables.Index) (report.Table, error) {
	return gapScores(x, "uci-gap-rank", rank)
}

// The numbers that say whether a method knows what it does not know.
var (
	coverage = tables.Number{Name: experiment.MetricCoverage, Title: "coverage", Decimals: 2, Optional: true}
	rank     = tables.Number{Name: experiment.MetricSpearman, Title: "rank correlation", Decimals: 2, Higher: true, Optional: true}
)

// gapScores is a table of a number. How it was measured has the tests of density uncertainty against constant energy.
func gapScores(x *tables.Index, name string, n tables.Number) (report.Table, error) {
	sheet := gapSheet(name, n)
	for _, s := range gapGrids() {
		if tests := againstConstant(x, n, s); len(tests) > 0 {
			sheet.Measured = append(sheet.Measured, prose.Caption("gap score", map[string]string{"Score": n.Title, "Settings": s.Title, "Tests": tests.Sentence()}))
		}
	}
	return sheet.Make(x)
}

// againstConstant are the tests of LDL energies against constant energy on the gap splits, one for each data set.
func againstConstant(x *tables.Index, n tables.Number, s experiment.Grid) tables.Tests[string] {
	var family tables.Family[string]
	for _, d := range s.Data {
		family.AddTested(title(d), x, n.Over(s.Of(d, methods.Density)).Against(s.Of(d, methods.DensityConstant)))
	}
	return family.Tests()
}

// sampledMethods are the methods whose predictions are means over Monte Carlo samples.
var sampledMethods = slices.Concat(energyMethods, []experiment.Method{methods.MFVI}, rivals)

// samplesMethods are the columns of samplesTable: the methods that draw, and two that do not.
var samplesMethods = slices.Concat(sampledMethods, []experiment.Method{methods.SNGP, methods.DUE})
