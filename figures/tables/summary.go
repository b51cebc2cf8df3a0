package tables

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/report"
)

// A Summary is what the runs of a Mean amount to.
type Summary struct {
	N          int     // runs or units averaged
	Wanted     int     // that were asked for
	Diverged   int     // runs that ended in NaN or an infinity, not in the average
	Unmeasured int     // runs without the metric, which is one that a run may lack; they are not in the average
	Mean       float64 // NaN when N is 0
	Std        float64 // sample standard deviation over the runs; NaN when N is below 2
}

// Complete reports whether every run is there and none diverged.
func (s Summary) Complete() bool { return s.N > 0 && s.N == s.Wanted }

// Summarize averages a metric. A result that lacks the metric, though its run did not diverge, is an error unless the
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
	s.Mean, s.Std = metrics.MeanStd(list)
	return s, nil
}

// Units are the means over the experiments of each unit, which is a split if there is no other. A unit of which a run is
// missing, diverged or lacks the metric has none.
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
		return report.NumberCell(s.Mean, s.Std, decimals).Noted(note)
	case s.Unmeasured > 0:
		return report.Cell{Text: "not measured" + note}
	case s.Diverged > 0:
		return report.Cell{Text: odd[0]}
	}
	return report.Cell{NotRun: true}
}
