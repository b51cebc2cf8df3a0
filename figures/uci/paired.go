package uci

import (
	"fmt"
	"maps"
	"slices"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/figures/report"
)

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
