package tables

import (
	"fmt"
	"math"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/results"
)

// The metrics of a UCI result, by their names in the store.
const (
	MetricNLL  = "nll"  // negative log likelihood in nats, in the target's own units
	MetricRMSE = "rmse" // root mean squared error in the target's own units
)

// Summary is what the runs of one cell amount to.
type Summary struct {
	Scale    string // experiment.Full or experiment.Quick; "" when nothing was run
	N        int    // runs averaged
	Wanted   int    // runs that the catalogue asks for at this scale
	Diverged int    // runs that ended in NaN or an infinity, not in the average
	// Unmeasured are the runs without the metric, which is one that a run may lack; they are not in the average.
	Unmeasured int
	Epochs     int     // of each run
	Images     int     // that each run was trained on; 0 for all, and where there are none
	Mean       float64 // NaN when N is 0
	Std        float64 // sample standard deviation over the runs; NaN when N is below 2
}

// boldLowest marks the cell of the lowest mean among complete summaries, those of the row's cells in order.
func (r Row) boldLowest(ours []Summary) {
	best, lowest := -1, math.Inf(1)
	for i, s := range ours {
		if s.Complete() && s.Mean < lowest {
			best, lowest = i, s.Mean
		}
	}
	if best >= 0 {
		r.Cells[best][0].Bold = true
	}
}

// lookup finds result lines by experiment.
type lookup map[string]results.Result

func index(lines []results.Result) lookup {
	return results.ByID(lines)
}

// summarise averages a metric over the full-scale runs among the wanted experiments or, when there is
// none, over the quick ones. A run without the metric that did not diverge is an error.
func (l lookup) summarise(wanted []experiment.Experiment, metric string) (Summary, error) {
	return l.average(wanted, metric, false)
}

// average is summarise, for an optional metric without the error: a run without it does not count.
func (l lookup) average(wanted []experiment.Experiment, metric string, optional bool) (Summary, error) {
	for _, scale := range []string{experiment.Full, experiment.Quick} {
		s := Summary{Scale: scale}
		var values []float64
		for _, e := range (experiment.Filter{Scale: scale}).Apply(wanted) {
			s.Wanted++
			s.Epochs, s.Images = e.Epochs, e.TrainN
			line, done := l[e.ID()]
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
				return Summary{}, fmt.Errorf("tables: the result %s of %v has no metric %q", line.ID, e, metric)
			default:
				values = append(values, value)
			}
		}
		if s.N = len(values); s.N == 0 && s.Diverged == 0 && s.Unmeasured == 0 {
			continue
		}
		s.Mean, s.Std = math.NaN(), math.NaN()
		if s.N > 0 {
			var err error
			if s.Mean, s.Std, err = metrics.MeanStd(values); err != nil {
				return Summary{}, fmt.Errorf("tables: averaging %s: %w", metric, err)
			}
		}
		return s, nil
	}
	return Summary{Mean: math.NaN(), Std: math.NaN()}, nil
}

// Complete reports whether every full-scale run is there and none diverged.
func (s Summary) Complete() bool {
	return s.Scale == experiment.Full && s.N == s.Wanted
}

// smallMean is the size below which 3 decimals would hide most of a number.
const smallMean = 0.02

// meanStd prints "2.593 ± 0.067", with more decimals for small numbers.
func meanStd(mean, std float64, decimals int) string {
	if math.Abs(mean) < smallMean {
		decimals = max(decimals, 5)
	}
	if math.IsNaN(std) {
		return fmt.Sprintf("%.*f", decimals, mean)
	}
	return fmt.Sprintf("%.*f ± %.*f", decimals, mean, decimals, std)
}

// lines prints the summary, one line for the number and one for anything odd about it.
func (s Summary) lines(decimals int) Cell {
	if s.Scale == "" {
		return text("not run")
	}
	var c Cell
	if s.N > 0 {
		number := fmt.Sprintf("%s (n=%d)", meanStd(s.Mean, s.Std, decimals), s.N)
		if s.Scale == experiment.Quick {
			of := ""
			if s.Images > 0 {
				of = fmt.Sprintf(" of %d images", s.Images)
			}
			number = fmt.Sprintf("quick, %d epochs%s: %s", s.Epochs, of, number)
		} else if missing := s.Wanted - s.N - s.Diverged; missing > 0 {
			number = fmt.Sprintf("%s (n=%d of %d)", meanStd(s.Mean, s.Std, decimals), s.N, s.Wanted)
		}
		c = append(c, Line{Text: number})
	}
	if s.N == 0 && s.Unmeasured > 0 {
		c = text("not measured")
	}
	if s.Diverged > 0 {
		c = append(c, Line{Text: fmt.Sprintf("%d of %d runs diverged", s.Diverged, s.N+s.Unmeasured+s.Diverged)})
	}
	return c
}
