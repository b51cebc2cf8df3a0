package uci

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// A methodTable compares methods: a column for each, and a row for each metric of some of their runs.
type methodTable struct {
	rows []methodRow
	list methods.List
	// further methods, such as one's own, have columns after those of list. Verdicts on them are a family of their own,
	// so that those on the others do not depend on what is compared beside them.
	further   methods.List
	decimals  int     // of means and standard deviations
	testTrain float64 // of the splits: randomSplits or gapSplits
}

// A methodRow is a row of a methodTable: a metric that is better when lower if it is tested.
type methodRow struct {
	name, metric string
	runs         func(m methods.Method) []results.Experiment
	// against are the runs that those of a method are tested against, split by split, at full scale; none for the
	// reference itself. A row without it tests nothing, and its metric may be one that older lines do not have.
	against func(m methods.Method) []results.Experiment
	bold    bool // the lowest mean
}

// testedAgainst is the row with a test of each method against the reference.
func (r methodRow) testedAgainst(reference methods.Method) methodRow {
	its := r.runs(reference)
	r.against = func(m methods.Method) []results.Experiment {
		if slices.EqualFunc(r.runs(m), its, func(a, b results.Experiment) bool { return a.ID() == b.ID() }) {
			return nil
		}
		return its
	}
	return r
}

// fill is the table with the columns, the rows and the verdicts.
func (x methodTable) fill(t report.Table, lines []results.Result) (report.Table, error) {
	all := slices.Concat(x.list, x.further)
	for _, m := range all {
		t.Columns = append(t.Columns, m.Title)
	}
	index := results.ByID(lines)
	bySplit := func(runs []results.Experiment, metric string) map[int]float64 {
		return metricBySplit(index, results.Filter{Scale: results.Full}.Apply(runs), metric)
	}
	var tests, ofFurther paired
	for _, r := range x.rows {
		row := report.Row{Name: r.name}
		var ours []results.Summary
		for i, m := range all {
			runs, summarize := r.runs(m), index.Summarize
			if r.against == nil {
				summarize = index.SummarizeOptional
			}
			s, err := summarize(runs, r.metric)
			if err != nil {
				return t, err
			}
			ours = append(ours, s)
			row.Cells = append(row.Cells, report.SummaryCell(s, x.decimals))
			if r.against == nil {
				continue
			}
			family := &tests
			if i >= len(x.list) {
				family = &ofFurther
			}
			if err := family.add(len(t.Rows), i, bySplit(runs, r.metric), bySplit(r.against(m), r.metric), x.testTrain); err != nil {
				return t, err
			}
		}
		if r.bold {
			row.BoldLowest(ours)
		}
		t.Rows = append(t.Rows, row)
	}
	_, err := tests.settle(&t)
	_, errOfFurther := ofFurther.settle(&t)
	return t, errors.Join(err, errOfFurther)
}

// onSmallSets is the table that compares all methods by both metrics on each of the small data sets.
func onSmallSets(further methods.List, of func(dataset string, m methods.Method) []results.Experiment) methodTable {
	x := methodTable{list: append(tableMethods(), addedMethods()...), further: further, decimals: 3, testTrain: randomSplits}
	for _, dataset := range smallDatasets() {
		for _, metric := range theMetrics {
			row := methodRow{name: DatasetTitle(dataset) + ", " + metric.title, metric: metric.name, bold: true,
				runs: func(m methods.Method) []results.Experiment { return of(dataset, m) }}
			x.rows = append(x.rows, row.testedAgainst(methods.Density))
		}
	}
	return x
}

// adamTable compares all methods on the smallest UCI sets with one optimizer: what of the lead of SNGP and DUE in NLL
// and RMSE is left where the others are trained with Adam too. Each is tested against density uncertainty.
func adamTable(lines []results.Result, further ...methods.Method) (report.Table, error) {
	t := report.Table{Name: "uci-adam", Columns: []string{"Data set and metric"}}
	t.Caption, t.Notes = prose.Text(t.Name, Paper())
	return onSmallSets(further, func(dataset string, m methods.Method) []results.Experiment {
		if m.Process != nil { // has Adam anyway
			return atBothScales(Paper().On(dataset), methods.List{m})
		}
		return atBothScales(withAdam().On(dataset), methods.List{m})
	}).fill(t, lines)
}

// TunedTable compares all methods with the settings that did best for each on held-out training examples (Tuned).
func TunedTable(lines []results.Result, further ...methods.Method) (report.Table, error) {
	t := report.Table{Name: "uci-tuned", Columns: []string{"Data set and metric"}}
	t.Caption, t.Notes = prose.Text(t.Name, Paper())
	return onSmallSets(further, func(dataset string, m methods.Method) []results.Experiment { return Tuned().On(dataset).Experiments(m) }).fill(t, lines)
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
	x := methodTable{list: append(methods.List{methods.Density, methods.Rank1}, addedMethods()...), further: further, decimals: 3, testTrain: randomSplits}
	for _, dataset := range smallDatasets() {
		row := methodRow{name: DatasetTitle(dataset), metric: metricName, bold: true, runs: Paper().On(dataset).experimentsOf}
		x.rows = append(x.rows, row.testedAgainst(methods.Density))
	}
	return x.fill(t, lines)
}

// experimentsOf is Experiments of a single method.
func (p Protocol) experimentsOf(m methods.Method) []results.Experiment { return p.Experiments(m) }

// ConvergedTable is the negative log likelihood after 100, 400 and, of some methods, 4000 epochs, of which with early
// stopping the best one is kept, each method tested against density layers whose energies are detached.
func ConvergedTable(lines []results.Result) (report.Table, error) {
	t := report.Table{Name: "uci-converged", Columns: []string{"Data set, epochs"}}
	t.Caption, t.Notes = prose.Text(t.Name, nil)
	x := methodTable{list: convergedMethods(), decimals: 3, testTrain: randomSplits}
	for _, dataset := range smallDatasets() {
		for _, p := range []Protocol{Paper(), longTraining(), longestTraining(), stoppedEarly()} {
			row := methodRow{name: fmt.Sprintf("%s, %d", DatasetTitle(dataset), p.Epochs), metric: results.MetricNLL, bold: true, runs: p.On(dataset).experimentsOf}
			if p.EarlyStopping {
				row.name += ", stopped early"
				row.runs = func(m methods.Method) []results.Experiment {
					if m.Process != nil { // has no early stopping, and the same runs as without
						return nil
					}
					return p.On(dataset).Experiments(m)
				}
			}
			x.rows = append(x.rows, row.testedAgainst(detached))
		}
	}
	return x.fill(t, lines)
}

// SamplesTable is the negative log likelihood with 1000 Monte Carlo samples, and below it the paired difference to that
// with the paper's 10: how much of a head start closed forms have.
func SamplesTable(lines []results.Result) (report.Table, error) {
	t := report.Table{Name: "uci-samples", Columns: []string{"Data set"}}
	t.Caption, t.Notes = prose.Text(t.Name, manySamples())
	x := methodTable{list: sampledMethods(), decimals: 3, testTrain: randomSplits}
	for _, dataset := range smallDatasets() {
		x.rows = append(x.rows, methodRow{name: DatasetTitle(dataset), metric: results.MetricNLL,
			runs: manySamples().On(dataset).experimentsOf, against: Paper().On(dataset).experimentsOf})
	}
	return x.fill(t, lines)
}

// scoresTable has scores that the paper does not print: the continuous ranked probability score, the part of the
// targets inside 95 % intervals, and sharpness, the mean standard deviation of the predictive distribution.
func scoresTable(lines []results.Result, further ...methods.Method) (report.Table, error) {
	t := report.Table{Name: "uci-scores", Columns: []string{"Data set and score"}}
	t.Caption, t.Notes = prose.Text(t.Name, Paper())
	x := methodTable{list: append(tableMethods(), addedMethods()...), further: further, decimals: 3}
	for _, dataset := range tableDatasets() {
		for _, score := range []struct{ name, title string }{
			{results.MetricCRPS, "CRPS"}, {results.MetricCoverage, "coverage"}, {results.MetricSharpness, "sharpness"},
		} {
			x.rows = append(x.rows, methodRow{name: DatasetTitle(dataset) + ", " + score.title, metric: score.name,
				runs: func(m methods.Method) []results.Experiment { return wanted(dataset, m) }, bold: score.name == results.MetricCRPS})
		}
	}
	return x.fill(t, lines)
}

// claimSettings are those in which the paper's claim on UCI is tested.
func claimSettings() []setting {
	return slices.DeleteFunc(energySettings(), func(s setting) bool { return s.name == "Adam" })
}

// ClaimsTable tests the paper's claim that density uncertainty is the best of its UCI tables: for each data set, metric and
// setting density uncertainty against each other method, paired over the splits. Better means that density is.
func ClaimsTable(lines []results.Result) (report.Table, error) {
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
				row := report.Row{Name: fmt.Sprintf("%s, %s, %s", DatasetTitle(dataset), x.title, s.name), Cells: report.TextCells(x.bestInPaper(dataset))}
				density := s.protocol.bySplit(index, dataset, methods.Density, x.name)
				for i, m := range others {
					untested := cmp.Or(s.protocol.diverged(index, dataset, methods.Density), s.protocol.diverged(index, dataset, m), "not run")
					before := len(tests.cells)
					if err := tests.add(len(t.Rows), i+1, density, s.protocol.bySplit(index, dataset, m, x.name), randomSplits); err != nil {
						return report.Table{}, err
					}
					var cell report.Cell
					if len(tests.cells) == before {
						cell = report.TextCell(untested)
					}
					row.Cells = append(row.Cells, cell)
				}
				t.Rows = append(t.Rows, row)
			}
		}
	}
	verdicts, err := tests.settle(&t)
	if err != nil {
		return report.Table{}, err
	}
	t.Notes = append(t.Notes, tally(verdicts))
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

// The ratios of test to training examples, for the correction of paired differences.
const (
	randomSplits = 1.0 / 9 // ten percent are test examples
	gapSplits    = 1.0 / 2 // the middle third are
)

// confidence is that of the intervals of paired differences, and 1 minus that of the verdicts.
const confidence = 0.95

// paired are tests of differences over the splits of data sets, one for each of some cells of a table. The verdicts
// hold for all of them together, at 1 - confidence (metrics.PairedDifference, report.Verdicts).
type paired struct{ cells []pairedCell }

type pairedCell struct {
	row, column int
	difference  metrics.Difference
}

// add tests the values of a cell against those of a reference, both by split. Without the same splits in both, at
// least two, there is nothing to test.
func (t *paired) add(row, column int, values, reference map[int]float64, testTrain float64) error {
	splits := slices.Sorted(maps.Keys(values))
	if len(splits) < 2 || !slices.Equal(splits, slices.Sorted(maps.Keys(reference))) {
		return nil
	}
	var a, b []float64
	for _, split := range splits {
		a, b = append(a, values[split]), append(b, reference[split])
	}
	d, err := metrics.PairedDifference(a, b, testTrain, confidence)
	if err != nil {
		return fmt.Errorf("uci: %w", err)
	}
	t.cells = append(t.cells, pairedCell{row, column, d})
	return nil
}

// verdicts are those of the tests in their order, for a metric that is better when lower.
func (t *paired) verdicts() ([]string, error) {
	var differences []metrics.Difference
	for _, c := range t.cells {
		differences = append(differences, c.difference)
	}
	verdicts, err := report.Verdicts(differences, confidence)
	if err != nil {
		return nil, fmt.Errorf("uci: %w", err)
	}
	return verdicts, nil
}

// settle adds to each cell that was tested the difference, its interval and the verdict, and returns the verdicts.
func (t *paired) settle(table *report.Table) ([]string, error) {
	verdicts, err := t.verdicts()
	if err != nil {
		return nil, err
	}
	for i, c := range t.cells {
		cell := &table.Rows[c.row].Cells[c.column]
		*cell = append(*cell, c.line(verdicts[i]))
	}
	return verdicts, nil
}

// line is the difference, its interval and the verdict.
func (c pairedCell) line(verdict string) report.CellLine {
	d := c.difference
	return report.CellLine{Text: fmt.Sprintf("%+.3f [%+.3f, %+.3f], %s", d.Mean, d.Low, d.High, verdict), Bold: verdict == report.Better}
}

// tally says how many tests came out how.
func tally(verdicts []string) string {
	count := make(map[string]int)
	for _, v := range verdicts {
		count[v]++
	}
	return fmt.Sprintf("Of %d comparisons %d are better, %d worse and %d undecided.", len(verdicts), count[report.Better], count[report.Worse], count[report.Undecided])
}

// inGaps is the paper's protocol on gap splits of the small data sets.
func inGaps() Protocol {
	p := Paper().On(smallDatasets()...)
	p.Splits = GapSplits
	return p
}

// allMethods are those of tuning and gap splits: the density layers with each energy, then the others.
func allMethods() methods.List {
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
	x := methodTable{list: append(methods.List{methods.DensityMean}, allMethods()...), further: further, decimals: 2, testTrain: gapSplits}
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
