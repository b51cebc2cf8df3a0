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
type paired struct {
	cells       []pairedCell
	differences []metrics.Difference
}

type pairedCell struct{ row, column int }

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
	t.cells, t.differences = append(t.cells, pairedCell{row, column}), append(t.differences, d)
	return nil
}

// settle adds to each cell that was tested the difference, its interval and the verdict.
func (t *paired) settle(table *report.Table) error {
	verdicts, err := report.Verdicts(t.differences, confidence)
	if err != nil {
		return fmt.Errorf("uci: %w", err)
	}
	for i, c := range t.cells {
		cell, d := &table.Rows[c.row].Cells[c.column], t.differences[i]
		*cell = append(*cell, report.CellLine{Text: fmt.Sprintf("%+.3f [%+.3f, %+.3f], %s", d.Mean, d.Low, d.High, verdicts[i]), Bold: verdicts[i] == report.Better})
	}
	return nil
}
