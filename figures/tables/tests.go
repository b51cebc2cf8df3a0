package tables

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/report"
)

// Confidence is the probability with which an interval of a paired difference contains the difference. The verdicts of a
// family are all right with this probability.
const Confidence = 0.95

// A Family is paired tests of differences over the splits of data sets. Its verdicts hold for all of its tests together
// (metrics.PairedDifference, report.Verdicts). K is what a test compares, such as the name of a data set.
type Family[K comparable] struct {
	// TestTrain is the ratio of test to training examples of the splits, for the correction of Nadeau and Bengio (2003).
	TestTrain float64

	names       []K
	differences []metrics.Difference
}

// Add tests values against those of a reference, both by their splits. If they are not of the same splits, or of fewer
// than two or the least number of splits that is asked for, the family stays as it is.
func (f *Family[K]) Add(name K, values, reference map[int]float64, least int) error {
	splits := slices.Sorted(maps.Keys(values))
	if len(splits) < max(least, 2) || !slices.Equal(splits, slices.Sorted(maps.Keys(reference))) {
		return nil
	}
	var a, b []float64
	for _, split := range splits {
		a, b = append(a, values[split]), append(b, reference[split])
	}
	d, err := metrics.PairedDifference(a, b, f.TestTrain, Confidence)
	if err != nil {
		return fmt.Errorf("tables: %w", err)
	}
	f.AddDifference(name, d)
	return nil
}

// AddDifference adds a difference that is tested already, such as a median.
func (f *Family[K]) AddDifference(name K, d metrics.Difference) {
	f.names, f.differences = append(f.names, name), append(f.differences, d)
}

// AddComplete tests a metric of experiments against that of others. If results are missing on a split of the data, or
// diverged, the family stays as it is.
func (f *Family[K]) AddComplete(name K, x *Index, metric string, list, reference experiment.Experiments) error {
	if len(list) == 0 {
		return nil
	}
	return f.Add(name, x.BySplit(list, metric), x.BySplit(reference, metric), list[0].Task.Data.Splits())
}

// A Test is the verdict on a comparison, report.Better, Worse or Undecided for a metric that is better when lower, and the
// difference that was tested. If runs of one side diverged and none of the other's (Index.DivergedAlone), the verdict is
// against that side without a test: Difference is nil. The zero Test is of a comparison that was not made.
type Test[K comparable] struct {
	Of K
	*metrics.Difference
	Verdict string
}

// Tests returns the tests of a family in the order in which they were added.
func (f *Family[K]) Tests() ([]Test[K], error) {
	verdicts, err := report.Verdicts(f.differences, Confidence)
	if err != nil {
		return nil, fmt.Errorf("tables: %w", err)
	}
	var tests []Test[K]
	for i, verdict := range verdicts {
		tests = append(tests, Test[K]{f.names[i], &f.differences[i], verdict})
	}
	return tests, nil
}

// ByName returns the tests of a family by what they compare.
func (f *Family[K]) ByName() (map[K]Test[K], error) {
	tests, err := f.Tests()
	all := map[K]Test[K]{}
	for _, t := range tests {
		all[t.Of] = t
	}
	return all, err
}

// Text is the difference with its interval, with three decimals, or two digits of the largest number if three decimals show
// none of it.
func (t Test[K]) Text() string {
	n, largest := 3, max(math.Abs(t.Mean), math.Abs(t.Low), math.Abs(t.High))
	if report.Decimals(largest, 1) > n {
		n = report.Decimals(largest, 2)
	}
	return fmt.Sprintf("%+.*f [%+.*f, %+.*f]", n, t.Mean, n, t.Low, n, t.High)
}

// Cell is the difference with its interval and its verdict as a cell of a table, which waits for runs if nothing was tested.
func (t Test[K]) Cell() report.Cell {
	if t.Difference == nil {
		return report.Cell{NotRun: true}
	}
	return report.Cell{Text: t.Text(), Verdict: t.Verdict, Difference: t.Difference}
}

// Sentence lists tests of a metric of which neither high nor low values are better: a difference that is decided is
// called lower or higher.
func Sentence(tests []Test[string]) string {
	words := map[string]string{report.Better: "lower", report.Worse: "higher", report.Undecided: report.Undecided}
	var parts []string
	for _, t := range tests {
		parts = append(parts, t.Of+" "+t.Text()+", "+words[t.Verdict])
	}
	return strings.Join(parts, "; ")
}

// Verdicts counts how many tests came out how.
func Verdicts[K comparable](tests []Test[K]) map[string]int {
	n := map[string]int{}
	for _, t := range tests {
		n[t.Verdict]++
	}
	return n
}

// Tally is Verdicts as a sentence.
func Tally[K comparable](tests []Test[K]) string {
	n := Verdicts(tests)
	return fmt.Sprintf("%d comparisons: %d better, %d worse, %d undecided.", len(tests), n[report.Better], n[report.Worse], n[report.Undecided])
}
