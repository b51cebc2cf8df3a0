package uci

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
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
	// reference itself. A row without it tests nothing.
	against  func(m methods.Method) []results.Experiment
	bold     bool // the lowest mean
	optional bool // whether older lines may lack the metric, as they may where nothing is tested
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

// tests are the paired tests of the rows: those of the methods of list, and those of the further ones. Row and column of
// their cells are places in rows, and in list with the further methods after it.
func (x methodTable) tests(index results.Index) (ofList, ofFurther paired, err error) {
	bySplit := func(runs []results.Experiment, metric string) map[int]float64 {
		return metricBySplit(index, results.Filter{Scale: results.Full}.Apply(runs), metric)
	}
	for i, r := range x.rows {
		if r.against == nil {
			continue
		}
		for k, m := range slices.Concat(x.list, x.further) {
			family := &ofList
			if k >= len(x.list) {
				family = &ofFurther
			}
			if err := family.add(i, k, bySplit(r.runs(m), r.metric), bySplit(r.against(m), r.metric), x.testTrain); err != nil {
				return ofList, ofFurther, err
			}
		}
	}
	return ofList, ofFurther, nil
}

// fill is the table with the columns, the rows and the verdicts.
func (x methodTable) fill(t report.Table, lines []results.Result) (report.Table, error) {
	all := slices.Concat(x.list, x.further)
	for _, m := range all {
		t.Columns = append(t.Columns, m.Title)
	}
	index := results.ByID(lines)
	for _, r := range x.rows {
		row := report.Row{Name: r.name}
		var ours []results.Summary
		for _, m := range all {
			summarize := index.Summarize
			if r.against == nil || r.optional {
				summarize = index.SummarizeOptional
			}
			runs := r.runs(m)
			s, err := summarize(runs, r.metric)
			if err != nil {
				return t, err
			}
			ours = append(ours, s)
			cell := report.SummaryCell(s, x.decimals)
			if len(runs) == 0 { // nobody asks for any
				cell = report.TextCell("–")
			}
			row.Cells = append(row.Cells, cell)
		}
		if r.bold {
			row.BoldLowest(ours)
		}
		t.Rows = append(t.Rows, row)
	}
	tests, ofFurther, err := x.tests(index)
	if err != nil {
		return t, err
	}
	return t, errors.Join(tests.settle(&t), ofFurther.settle(&t))
}

// A comparison's name in a table: that of the row, and the title of the column.
type rowAndColumn struct{ row, column string }

// decided are the tests of the methods of list with their verdicts, which are those that the table shows.
func (x methodTable) decided(index results.Index) (map[rowAndColumn]tested, error) {
	tests, _, err := x.tests(index)
	if err != nil {
		return nil, err
	}
	f := family[rowAndColumn]{paired: tests}
	for _, c := range tests.cells {
		f.names = append(f.names, rowAndColumn{x.rows[c.row].name, x.list[c.column].Title})
	}
	return f.decided()
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
		for _, training := range trainings() {
			row := methodRow{name: fmt.Sprintf("%s, %d", DatasetTitle(dataset), training.protocol.Epochs), metric: results.MetricNLL, bold: true,
				runs: func(m methods.Method) []results.Experiment { return training.runs(dataset, m) }}
			if training.protocol.EarlyStopping {
				row.name += ", stopped early"
			}
			x.rows = append(x.rows, row.testedAgainst(detached))
		}
	}
	change, err := changeOfLead(results.ByID(lines))
	if err != nil {
		return t, err
	}
	if change != "" {
		note, _ := prose.Text("change of the lead", change)
		t.Notes = append(t.Notes, note)
	}
	return x.fill(t, lines)
}

// changeOfLead says what longer training does to the lead of LDL energies, detached, over constant energy, on each set.
func changeOfLead(index results.Index) (string, error) {
	var tests family[string]
	lead := func(p Protocol, dataset string) map[int]float64 {
		return less(p.bySplit(index, dataset, methods.DensityConstant, results.MetricNLL), p.bySplit(index, dataset, detached, results.MetricNLL))
	}
	for _, dataset := range smallDatasets() {
		if err := tests.add(DatasetTitle(dataset), lead(longTraining(), dataset), lead(Paper(), dataset), randomSplits, Paper().splitCount(dataset)); err != nil {
			return "", err
		}
	}
	return sentence(tests)
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

// SamplesTable says how much of a head start closed forms have: for each data set the negative log likelihood with 1000
// Monte Carlo samples, with the paired difference to density uncertainty, and that with the paper's 10, with the
// difference to 1000 of the same method. SNGP and DUE take no samples.
func SamplesTable(lines []results.Result) (report.Table, error) {
	t := report.Table{Name: "uci-samples", Columns: []string{"Data set, samples"}}
	t.Caption, t.Notes = prose.Text(t.Name, manySamples())
	x := methodTable{list: samplesMethods(), decimals: 3, testTrain: randomSplits}
	for _, dataset := range smallDatasets() {
		few := Paper().On(dataset).experimentsOf
		many := func(m methods.Method) []results.Experiment {
			if m.Process != nil {
				return few(m)
			}
			return manySamples().On(dataset).Experiments(m)
		}
		row := func(p Protocol, runs func(methods.Method) []results.Experiment) methodRow {
			return methodRow{name: fmt.Sprintf("%s, %d", DatasetTitle(dataset), p.Samples), metric: results.MetricNLL, runs: runs}
		}
		with10 := row(Paper(), few)
		with10.against = func(m methods.Method) []results.Experiment {
			if m.Process != nil { // the same runs
				return nil
			}
			return many(m)
		}
		x.rows = append(x.rows, row(manySamples(), many).testedAgainst(methods.Density), with10)
	}
	return x.fill(t, lines)
}

// scoresTable has scores that the paper does not print: the continuous ranked probability score, the part of the
// targets inside 95 % intervals, and sharpness, the mean standard deviation of the predictive distribution.
func scoresTable(lines []results.Result, further ...methods.Method) (report.Table, error) {
	t := report.Table{Name: "uci-scores", Columns: []string{"Data set and score"}}
	t.Caption, t.Notes = prose.Text(t.Name, Paper())
	x := methodTable{list: append(tableMethods(), addedMethods()...), further: further, decimals: 3, testTrain: randomSplits}
	for _, dataset := range tableDatasets() {
		for _, score := range []struct{ name, title string }{
			{results.MetricCRPS, "CRPS"}, {results.MetricCoverage, "coverage"}, {results.MetricSharpness, "sharpness"},
		} {
			row := methodRow{name: DatasetTitle(dataset) + ", " + score.title, metric: score.name,
				runs: func(m methods.Method) []results.Experiment { return wanted(dataset, m) }}
			if score.name == results.MetricCRPS {
				row.bold, row.optional = true, true
				row = row.testedAgainst(methods.Density)
			}
			x.rows = append(x.rows, row)
		}
	}
	return x.fill(t, lines)
}

// claimSettings are those in which the paper's claim on UCI is tested.
func claimSettings() []setting {
	return slices.DeleteFunc(energySettings(), func(s setting) bool { return s.name == "Adam" })
}

// A rivalry is what a test of density uncertainty against another method of the paper's tables compares.
type rivalry struct{ metric, dataset, setting, method string }

// rivals are the methods of the paper's tables but density uncertainty.
func rivals() methods.List { return slices.DeleteFunc(PaperMethods(), isDensity) }

// rivalries are the tests of ClaimsTable with its verdicts. Better means that density is.
func rivalries(index results.Index) (map[rivalry]tested, error) {
	var tests family[rivalry]
	for _, x := range theMetrics {
		for _, dataset := range tableDatasets() {
			for _, s := range claimSettings() {
				density := s.protocol.bySplit(index, dataset, methods.Density, x.name)
				for _, m := range rivals() {
					if err := tests.add(rivalry{x.name, dataset, s.name, m.Name}, density, s.protocol.bySplit(index, dataset, m, x.name), randomSplits, s.protocol.splitCount(dataset)); err != nil {
						return nil, err
					}
				}
			}
		}
	}
	return tests.decided()
}

// ClaimsTable tests the paper's claim that density uncertainty is the best of its UCI tables: for each data set, metric and
// setting density uncertainty against each other method, paired over the splits.
func ClaimsTable(lines []results.Result) (report.Table, error) {
	t := report.Table{Name: "uci-claims", Columns: []string{"Data set, metric and settings", "Best in the paper"}}
	t.Caption, t.Notes = prose.Text(t.Name, nil)
	for _, m := range rivals() {
		t.Columns = append(t.Columns, "against "+m.Title)
	}
	index := results.ByID(lines)
	tests, err := rivalries(index)
	if err != nil {
		return report.Table{}, err
	}
	var verdicts []string
	for _, x := range theMetrics {
		for _, dataset := range tableDatasets() {
			for _, s := range claimSettings() {
				row := report.Row{Name: fmt.Sprintf("%s, %s, %s", DatasetTitle(dataset), x.title, s.name), Cells: report.TextCells(x.bestInPaper(dataset))}
				for _, m := range rivals() {
					cell := report.TextCell(cmp.Or(s.protocol.diverged(index, dataset, methods.Density), s.protocol.diverged(index, dataset, m), "not run"))
					if test, has := tests[rivalry{x.name, dataset, s.name, m.Name}]; has {
						cell = report.Cell{test.line(test.verdict)}
						verdicts = append(verdicts, test.verdict)
					}
					row.Cells = append(row.Cells, cell)
				}
				t.Rows = append(t.Rows, row)
			}
		}
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
	// heldOutSplits are those to choose settings by: a fifth of a training part is held out.
	heldOutSplits = heldOutPart / (1 - heldOutPart)
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

// settle adds to each cell that was tested the difference, its interval and the verdict.
func (t *paired) settle(table *report.Table) error {
	verdicts, err := t.verdicts()
	if err != nil {
		return err
	}
	for i, c := range t.cells {
		cell := &table.Rows[c.row].Cells[c.column]
		*cell = append(*cell, c.line(verdicts[i]))
	}
	return nil
}

// A tested comparison has the verdict that holds for all of its family together.
type tested struct {
	pairedCell
	verdict string
}

// A family is tests that are looked up by what they compare.
type family[K comparable] struct {
	paired
	names []K // one for each cell
}

// add is that of paired, where all of so many splits were run and none diverged; a test that cannot be made is not there.
// No table shows by how many splits these verdicts are.
func (f *family[K]) add(name K, values, reference map[int]float64, testTrain float64, splits int) error {
	if len(values) < splits {
		return nil
	}
	before := len(f.cells)
	if err := f.paired.add(0, 0, values, reference, testTrain); err != nil {
		return err
	}
	if len(f.cells) > before {
		f.names = append(f.names, name)
	}
	return nil
}

// decided are the tests with their verdicts.
func (f *family[K]) decided() (map[K]tested, error) {
	verdicts, err := f.verdicts()
	if err != nil {
		return nil, err
	}
	all := make(map[K]tested, len(verdicts))
	for i, name := range f.names {
		all[name] = tested{f.cells[i], verdicts[i]}
	}
	return all, nil
}

// sentence lists the tests of a family, of which more may be better or worse: a difference that is decided is lower or
// higher.
func sentence(f family[string]) (string, error) {
	verdicts, err := f.verdicts()
	if err != nil {
		return "", err
	}
	words := map[string]string{report.Better: "lower", report.Worse: "higher", report.Undecided: report.Undecided}
	var parts []string
	for i, name := range f.names {
		parts = append(parts, name+" "+f.cells[i].line(words[verdicts[i]]).Text)
	}
	return strings.Join(parts, "; "), nil
}

// line is the difference, its interval and the verdict, with the decimals that report.MeanStd gives the largest of these
// numbers.
func (c pairedCell) line(verdict string) report.CellLine {
	d := c.difference
	largest := report.MeanStd(max(math.Abs(d.Mean), math.Abs(d.Low), math.Abs(d.High)), math.NaN(), 3)
	_, decimals, _ := strings.Cut(largest, ".")
	n := len(decimals)
	return report.CellLine{Text: fmt.Sprintf("%+.*f [%+.*f, %+.*f], %s", n, d.Mean, n, d.Low, n, d.High, verdict), Bold: verdict == report.Better}
}

// counts says how many tests came out how.
func counts(verdicts []string) map[string]int {
	n := make(map[string]int)
	for _, v := range verdicts {
		n[v]++
	}
	return n
}

// tally is counts in a sentence.
func tally(verdicts []string) string {
	n := counts(verdicts)
	return fmt.Sprintf("%d comparisons: %d better, %d worse, %d undecided.", len(verdicts), n[report.Better], n[report.Worse], n[report.Undecided])
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

// gapMethods are the columns of GapTable.
func gapMethods() methods.List { return append(methods.List{methods.DensityMean}, allMethods()...) }

// gapRuns are the runs of a method on the gap splits of a data set. The mean energy, a control, has only full ones with the
// text's settings.
func (s setting) gapRuns(dataset string, m methods.Method) []results.Experiment {
	p := s.protocol.On(dataset)
	switch {
	case m.Title != methods.DensityMean.Title: // the name is that of density uncertainty
		return atBothScales(p, methods.List{m})
	case p.choices != nil:
		return nil
	}
	return p.Experiments(m)
}

// GapTable is the paper's criterion on real data: on test inputs between those of training, is a method as uncertain
// as it is wrong? For each data set and setting it has the negative log likelihood, with a paired test against density
// uncertainty, the part of the targets inside 95 % intervals, and the rank correlation of predicted variance and
// squared error. Notes have the tests of the latter two against constant energy.
func GapTable(lines []results.Result, further ...methods.Method) (report.Table, error) {
	t := report.Table{Name: "uci-gap", Columns: []string{"Data set, settings and metric"}}
	t.Caption, t.Notes = prose.Text(t.Name, Paper())
	x := methodTable{list: gapMethods(), further: further, decimals: 2, testTrain: gapSplits}
	for _, dataset := range smallDatasets() {
		for _, s := range gapSettings() {
			for _, score := range append([]gapScore{{results.MetricNLL, "NLL"}}, gapScores...) {
				row := methodRow{name: fmt.Sprintf("%s, %s, %s", DatasetTitle(dataset), s.name, score.title), metric: score.metric, bold: score.metric == results.MetricNLL,
					runs: func(m methods.Method) []results.Experiment { return s.gapRuns(dataset, m) }}
				if score.metric == results.MetricNLL {
					row = row.testedAgainst(methods.Density)
				}
				x.rows = append(x.rows, row)
			}
		}
	}
	index := results.ByID(lines)
	for _, score := range gapScores {
		for _, s := range gapSettings() {
			tests, err := score.againstConstant(index, s)
			if err != nil {
				return t, err
			}
			text, err := sentence(tests)
			if err != nil {
				return t, err
			}
			if text != "" {
				note, _ := prose.Text("gap score", map[string]string{"Score": score.title, "Settings": s.name, "Tests": text})
				t.Notes = append(t.Notes, note)
			}
		}
	}
	return x.fill(t, lines)
}

// A gapScore is a score of the table of gap splits.
type gapScore struct{ metric, title string }

// gapScores are those that say whether a method knows what it does not know. Older lines may lack them.
var gapScores = []gapScore{{results.MetricCoverage, "coverage"}, {results.MetricSpearman, "rank correlation"}}

// againstConstant are the tests of LDL energies against constant energy on the gap splits, one for each data set.
func (x gapScore) againstConstant(index results.Index, s setting) (tests family[string], err error) {
	for _, dataset := range smallDatasets() {
		score := func(m methods.Method) map[int]float64 { return s.protocol.bySplit(index, dataset, m, x.metric) }
		if err := tests.add(DatasetTitle(dataset), score(methods.Density), score(methods.DensityConstant), gapSplits, s.protocol.splitCount(dataset)); err != nil {
			return tests, err
		}
	}
	return tests, nil
}
