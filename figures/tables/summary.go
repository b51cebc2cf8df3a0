package tables

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/report"
)

// A Summary has the statistics of a Mean's runs.
type Summary struct {
	N          int     // units averaged
	Wanted     int     // units asked for
	Diverged   int     // runs that count as diverged (see Index), not in the average
	Unmeasured int     // runs without the metric, which is one that a run may lack; they are not in the average
	Mean       float64 // NaN when N is 0
	Std        float64 // sample standard deviation over the runs; NaN when N is below 2
}

// Complete reports whether every run is there and none diverged.
func (s Summary) Complete() bool { return s.N > 0 && s.N == s.Wanted }

// Summarize averages a metric over units. A result that lacks the metric, though its run did not diverge, is an error unless the
// metric is optional.
func (x *Index) Summarize(m Mean) (Summary, error) { return m.summarize(x.Results(m.Of)) }

// summarize is Summarize of results.
func (m Mean) summarize(runs []experiment.Result) (Summary, error) {
	if m.By == nil {
		run := 0
		m.By = func(experiment.Experiment) int { run++; return run }
	}
	values, s, err := m.average(runs)
	if err != nil {
		return s, err
	}
	var list []float64
	for _, unit := range slices.Sorted(maps.Keys(values)) {
		list = append(list, values[unit])
	}
	s.Mean, s.Std = stat.MeanStdDev(list, nil)
	return s, nil
}

// Units returns the mean of each unit over its experiments; a unit is a split if By is nil. A unit with a run that is missing,
// diverged or lacks the metric is left out.
func (x *Index) Units(m Mean) map[int]float64 { return m.units(x.Results(m.Of)) }

// units are Units of results.
func (m Mean) units(runs []experiment.Result) map[int]float64 {
	if m.Optional = true; m.By == nil {
		m.By = func(e experiment.Experiment) int { return e.Split }
	}
	values, _, _ := m.average(runs)
	return values
}

// Results are the results of experiments, which count as used. Those of experiments that were not run have no ID. It is
// faster than Find for each of them.
func (x *Index) Results(list experiment.Experiments) []experiment.Result {
	all := make([]experiment.Result, len(list))
	for i, id := range list.IDs() {
		all[i], _ = x.find(list[i], id)
	}
	return all
}

// average are the means of each unit, and how many there are.
func (m Mean) average(runs []experiment.Result) (map[int]float64, Summary, error) {
	sum, n, wanted, s := map[int]float64{}, map[int]int{}, map[int]int{}, Summary{}
	for _, r := range runs {
		unit := m.By(*r.Experiment)
		wanted[unit]++
		value, has := r.Metrics[m.Name]
		switch {
		case r.ID == "":
		case r.Diverged:
			s.Diverged++
		case has:
			sum[unit], n[unit] = sum[unit]+m.Number.Shown(value), n[unit]+1
		case m.Optional:
			s.Unmeasured++
		default:
			return nil, s, fmt.Errorf("tables: the result %s of %v has no metric %q", r.ID, *r.Experiment, m.Name)
		}
	}
	for unit := range sum {
		if sum[unit] /= float64(n[unit]); n[unit] < wanted[unit] {
			delete(sum, unit)
		}
	}
	s.N, s.Wanted = len(sum), len(wanted)
	return sum, s, nil
}

// Cell prints a summary, and in brackets what is odd about it: that only n of the runs were made, or that some diverged.
func (s Summary) Cell(decimals int) report.Cell {
	var odd []string
	if missing := s.Wanted - s.N - s.Diverged; missing > 0 && s.N > 0 {
		odd = append(odd, fmt.Sprintf("n=%d of %d", s.N, s.Wanted))
	}
	if s.Diverged > 0 {
		odd = append(odd, fmt.Sprintf("%d of %d diverged", s.Diverged, s.N+s.Unmeasured+s.Diverged))
	}
	note := ""
	if len(odd) > 0 {
		note = " (" + strings.Join(odd, ", ") + ")"
	}
	switch {
	case s.N > 0:
		return report.Value{Mean: s.Mean, Std: s.Std, Decimals: decimals}.Cell().Noted(note)
	case s.Unmeasured > 0:
		return report.Cell{Text: "not measured" + note}
	case s.Diverged > 0:
		return report.Cell{Text: odd[0]}
	}
	return report.Cell{NotRun: true}
}

// Confidence is the probability that an interval of a paired difference contains the true one, and that all significant
// verdicts of a family are right.
const Confidence = 0.95

// A Family is paired tests of differences over the splits of data sets. Its verdicts hold for all of its tests together
// (metrics.PairedDifference, Holm). K is what a test compares, such as the name of a data set.
type Family[K comparable] struct {
	// TestTrain is the ratio of test to training examples in the splits that Add tests next, for the correction of Nadeau and
	// Bengio (2003). AddTested sets it.
	TestTrain float64

	names       []K
	differences []metrics.Difference
	higher      []bool    // is better
	untested    []Test[K] // because only one side diverged, or all differences are equal
}

// Add tests values against a reference's, both by split; lower is better. It adds nothing if their splits differ, or are
// fewer than two or than least.
func (f *Family[K]) Add(name K, values, reference map[int]float64, least int) {
	splits := slices.Sorted(maps.Keys(values))
	if len(splits) < max(least, 2) || !slices.Equal(splits, slices.Sorted(maps.Keys(reference))) {
		return
	}
	var a, b []float64
	for _, split := range splits {
		a, b = append(a, values[split]), append(b, reference[split])
	}
	d := metrics.PairedDifference(a, b, f.TestTrain, Confidence)
	if math.IsNaN(d.P) {
		f.untested = append(f.untested, Test[K]{Of: name, Verdict: report.NotSignificant})
		return
	}
	f.AddDifference(name, d, false)
}

// AddDifference adds a difference that was found already, of a number that is better when higher or lower.
func (f *Family[K]) AddDifference(name K, d metrics.Difference, higher bool) {
	f.names, f.differences, f.higher = append(f.names, name), append(f.differences, d), append(f.higher, higher)
}

// AddTested tests a mean against Other, if both have experiments, over their common units: splits if By is nil. If runs of
// one side diverged and none of the other's, the verdict is against that side. If By is nil and the data have a method
// TestTrain(split int) float64, as experiment.Table has, the test is corrected for its mean over the splits.
func (f *Family[K]) AddTested(name K, x *Index, t Tested) {
	if len(t.Of) == 0 || len(t.Other.Of) == 0 {
		return
	}
	ours, theirs := x.Results(t.Of), x.Results(t.Other.Of)
	if verdict := divergedAlone(ours, theirs); verdict != "" {
		f.untested = append(f.untested, Test[K]{Of: name, Verdict: verdict})
		return
	}
	if f.TestTrain = 0; t.By == nil {
		var splits []int
		for _, e := range t.Of {
			splits = append(splits, e.Split)
		}
		f.TestTrain = testTrain(t.Of[0].Task.Data, splits)
	}
	n := len(f.higher)
	f.Add(name, t.units(ours), t.Other.units(theirs), 0)
	if len(f.higher) > n {
		f.higher[n] = t.Higher
	}
}

// testTrain is the mean ratio of test to training examples over splits that overlap; 0 if the data does not say it.
func testTrain(data experiment.Source, splits []int) float64 {
	overlapping, is := data.(interface{ TestTrain(split int) float64 })
	if !is {
		return 0
	}
	first, others := overlapping.TestTrain(splits[0]), 0.0 // of equal ratios the mean is their value to the last digit
	for _, split := range splits {
		others += overlapping.TestTrain(split) - first
	}
	return first + others/float64(len(splits))
}

// A Test is the verdict on a comparison, report.Better, Worse or NotSignificant, and the difference that was tested. If runs of
// one side diverged and none of the other's (Index.DivergedAlone), the verdict is against that side without a test, whichever
// way the metric is better: Difference is nil. It is nil, too, if all differences are equal but for rounding, so that there is no
// test and the verdict is report.NotSignificant.
type Test[K comparable] struct {
	Of K
	*metrics.Difference
	Verdict string
}

// Tests are the tests of a Family.
type Tests[K comparable] []Test[K]

// Tests returns the tests of a family in the order in which they were added, and then those without a Difference.
func (f *Family[K]) Tests() Tests[K] {
	p := make([]float64, len(f.differences))
	for i, d := range f.differences {
		p[i] = d.P
	}
	var tests []Test[K]
	for i, p := range metrics.Holm(p) {
		d, verdict := &f.differences[i], report.NotSignificant
		switch {
		case !(p <= 1-Confidence):
		case d.Mean < 0 != f.higher[i]:
			verdict = report.Better
		default:
			verdict = report.Worse
		}
		tests = append(tests, Test[K]{f.names[i], d, verdict})
	}
	return append(tests, f.untested...)
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

// Sentence lists tests of a metric with no better direction. It calls significant differences lower or higher.
func (tests Tests[K]) Sentence() string {
	var parts []string
	for _, t := range tests {
		if t.Difference == nil {
			continue
		}
		word := map[bool]string{true: "lower", false: "higher"}[t.Mean < 0]
		if t.Verdict == report.NotSignificant {
			word = report.NotSignificant
		}
		parts = append(parts, fmt.Sprint(t.Of, " ", t.Text(), ", ", word))
	}
	return strings.Join(parts, "; ")
}

// Verdicts returns the number of tests with each verdict.
func (tests Tests[K]) Verdicts() map[string]int {
	n := map[string]int{}
	for _, t := range tests {
		n[t.Verdict]++
	}
	return n
}

// Tally returns the Verdicts as a sentence.
func (tests Tests[K]) Tally() string {
	n := tests.Verdicts()
	return fmt.Sprintf("%d comparisons: %d better, %d worse, %d not significant%s.", len(tests), n[report.Better], n[report.Worse], n[report.NotSignificant], tests.Equal())
}

// Equal returns the end of a sentence: how many comparisons have no test because all differences are equal; "" for none.
func (tests Tests[K]) Equal() string {
	n := 0
	for _, t := range tests {
		if t.Difference == nil && t.Verdict == report.NotSignificant {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; all differences are equal in %d, so that there is no test", n)
}
