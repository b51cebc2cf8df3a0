package results

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"densityuncertainty/dul/metrics"
)

// Summary is what the runs of one table cell amount to.
type Summary struct {
	Scale    string // Full or Quick; "" when nothing was run
	N        int    // runs averaged
	Wanted   int    // runs that were asked for at this scale
	Diverged int    // runs that ended in NaN or an infinity, not in the average
	// Unmeasured are the runs without the metric, which is one that a run may lack; they are not in the average.
	Unmeasured int
	Epochs     int     // of each run
	Images     int     // that each run was trained on; 0 for all, and where there are none
	Mean       float64 // NaN when N is 0
	Std        float64 // sample standard deviation over the runs; NaN when N is below 2
}

// Complete reports whether every full-scale run is there and none diverged.
func (s Summary) Complete() bool {
	return s.Scale == Full && s.N == s.Wanted
}

// Times is the summary in another unit, of which one is factor of the present ones.
func (s Summary) Times(factor float64) Summary {
	s.Mean *= factor
	s.Std *= math.Abs(factor)
	return s
}

// Lowest is the place of the summary with the lowest mean, the first of equals, among those that are complete,
// and how many are; -1 where none is.
func Lowest(summaries []Summary) (lowest, complete int) {
	lowest = -1
	for i, s := range summaries {
		if !s.Complete() {
			continue
		}
		complete++
		if lowest < 0 || s.Mean < summaries[lowest].Mean {
			lowest = i
		}
	}
	return lowest, complete
}

// Index finds result lines by the identity of their experiments.
type Index map[string]Result

// ByID are the lines by the identity of their experiments; of several with the same the last.
func ByID(lines []Result) Index {
	byID := make(Index, len(lines))
	for _, line := range lines {
		byID[line.ID] = line
	}
	return byID
}

// Missing returns the experiments that have no line, in their order.
func (x Index) Missing(wanted []Experiment) []Experiment {
	var missing []Experiment
	for _, e := range wanted {
		if _, done := x[e.ID()]; !done {
			missing = append(missing, e)
		}
	}
	return missing
}

// Summarize averages a metric over the full-scale runs among the wanted experiments or, when there is
// none, over the quick ones. A run without the metric that did not diverge is an error.
func (x Index) Summarize(wanted []Experiment, metric string) (Summary, error) {
	return x.summarize(wanted, metric, false)
}

// SummarizeOptional is Summarize for a metric that a run may lack, which then does not count.
func (x Index) SummarizeOptional(wanted []Experiment, metric string) (Summary, error) {
	return x.summarize(wanted, metric, true)
}

func (x Index) summarize(wanted []Experiment, metric string, optional bool) (Summary, error) {
	for _, scale := range []string{Full, Quick} {
		s := Summary{Scale: scale}
		var values []float64
		for _, e := range (Filter{Scale: scale}).Apply(wanted) {
			s.Wanted++
			s.Epochs, s.Images = e.Epochs, e.TrainN
			line, done := x.Find(e)
			if !done {
				continue
			}
			value, has := line.Metrics[metric]
			switch {
			case line.Diverged:
				s.Diverged++
			case !has && optional:
				s.Unmeasured++
			case !has:
				return Summary{}, fmt.Errorf("results: the result %s of %v has no metric %q", line.ID, e, metric)
			default:
				values = append(values, value)
			}
		}
		if s.N = len(values); s.N == 0 && s.Diverged == 0 && s.Unmeasured == 0 {
			continue
		}
		var err error
		if s.Mean, s.Std, err = meanStd(values); err != nil {
			return Summary{}, fmt.Errorf("results: averaging %s: %w", metric, err)
		}
		return s, nil
	}
	return Summary{Mean: math.NaN(), Std: math.NaN()}, nil
}

// Lowest is the place of the experiment with the lowest metric among candidates, the first of equals, and that metric.
// complete is false where a candidate was not run; best is -1 then, and where all of them diverged. A run that did not
// diverge and lacks the metric is an error.
func (x Index) Lowest(candidates []Experiment, metric string) (best int, value float64, complete bool, err error) {
	best, value = -1, math.NaN()
	for i, e := range candidates {
		line, done := x.Find(e)
		if !done {
			return -1, math.NaN(), false, nil
		}
		if line.Diverged {
			continue
		}
		v, has := line.Metrics[metric]
		if !has || math.IsNaN(v) {
			return -1, math.NaN(), false, fmt.Errorf("results: the result %s of %v has no metric %q", line.ID, e, metric)
		}
		if best < 0 || v < value {
			best, value = i, v
		}
	}
	return best, value, true, nil
}

// meanStd are NaN for no values.
func meanStd(values []float64) (mean, std float64, err error) {
	if len(values) == 0 {
		return math.NaN(), math.NaN(), nil
	}
	return metrics.MeanStd(values)
}

// Group is the lines of experiments that differ in split and seed alone.
type Group struct {
	First    Experiment // the first line's
	Lines    []Result   // that did not diverge
	Diverged int
}

// Groups collects lines that differ in split and seed alone, in the order of their first lines.
func Groups(lines []Result) []Group {
	var groups []Group
	at := make(map[string]int)
	for _, line := range lines {
		line.note()
		key := line.Experiment.Group()
		i, seen := at[key]
		if !seen {
			i = len(groups)
			at[key] = i
			groups = append(groups, Group{First: line.Experiment})
		}
		if line.Diverged {
			groups[i].Diverged++
		} else {
			groups[i].Lines = append(groups[i].Lines, line)
		}
	}
	return groups
}

// Titles are titles that tell groups apart: that of each, and, where another group has the same title and the same in
// all columns of a table, those of the further fields in which one of these differs from it.
func Titles(groups []Group, title func(Experiment) string, columns []func(Experiment) string, further ...func(Experiment) string) []string {
	titles := make([]string, len(groups))
	for i, g := range groups {
		titles[i] = title(g.First)
		for _, field := range further {
			if slices.ContainsFunc(groups, func(other Group) bool {
				differs := func(of func(Experiment) string) bool { return of(other.First) != of(g.First) }
				return !differs(title) && !slices.ContainsFunc(columns, differs) && differs(field)
			}) {
				titles[i] += ", " + field(g.First)
			}
		}
	}
	return titles
}

// MeanStd are mean and sample standard deviation of a metric over the group's lines that have it, and their
// number; the mean is NaN where none has it, the deviation where only one has.
func (g Group) MeanStd(metric string) (mean, std float64, n int, err error) {
	var values []float64
	for _, line := range g.Lines {
		if value, has := line.Metrics[metric]; has {
			values = append(values, value)
		}
	}
	if mean, std, err = meanStd(values); err != nil {
		return 0, 0, 0, fmt.Errorf("results: averaging %s of %v: %w", metric, g.First, err)
	}
	return mean, std, len(values), nil
}

// uses are the lines that were looked at, by their identity.
type uses map[string]Result

// note adds the line, or those that it was made of, to those that were looked at, unless nobody wants to know.
func (line Result) note() {
	for _, of := range line.of {
		of.note()
	}
	if line.uses != nil && line.of == nil {
		line.uses[line.ID] = line
	}
}

// MadeOf is a line that no run wrote, computed from the lines of others: where it is used, these are.
func (line Result) MadeOf(others []Result) Result {
	line.of = others
	return line
}

// Unwatched is a copy of lines that may be looked at without being used (see Watch).
func Unwatched(lines []Result) []Result {
	lines = slices.Clone(lines)
	for i := range lines {
		lines[i].uses = nil
	}
	return lines
}

// Watch is a copy of lines that remembers which of them a table or a figure is made from: used are those that were
// found in an Index or put into Groups so far, by their identity. Neither is to be used by several goroutines.
func Watch(lines []Result) (watched []Result, used func() Index) {
	seen := make(uses)
	for _, line := range lines {
		line.uses = seen
		watched = append(watched, line)
	}
	return watched, func() Index { return Index(maps.Clone(seen)) }
}

// Find is the line of an experiment, and whether there is one.
func (x Index) Find(e Experiment) (Result, bool) {
	line, done := x[e.ID()]
	if done {
		line.note()
	}
	return line, done
}
