package tables

import (
	"fmt"
	"math"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/report"
)

// A Number is a metric of results and how it is shown.
type Number struct {
	Name     string // of the metric
	Title    string // in tables
	Decimals int    // at most; see report.Align
	Percent  bool   // it is a part of 1, and shown in percent
	Higher   bool   // is better
	Optional bool   // results may lack it
}

// Over returns the number's mean over experiments.
func (n Number) Over(list experiment.Experiments) Mean { return Mean{Number: n, Of: list} }

// Shown is a value of the metric as it is shown.
func (n Number) Shown(value float64) float64 {
	if n.Percent {
		return 100 * value
	}
	return value
}

// A Cell is a cell of a Sheet: a Mean, a mean that is Tested or has a Printed number beside it, a Difference, or Done.
type Cell interface {
	// cell is the cell before tests, with what its runs amount to.
	cell(x *Index) (report.Cell, Summary, error)
	// mean is the mean, which is zero for a Difference and for Done.
	mean() Mean
}

// A Mean is the mean ± standard deviation of a number over experiments. Without experiments the cell is empty.
type Mean struct {
	Number
	Of experiment.Experiments
	// By averages the experiments of one unit first, such as a seed; nil where each is of a unit of its own.
	By   func(experiment.Experiment) int
	Best string // among the cells of a rank, with all of their runs, the best is bold; "" for none
}

// Over returns the mean with other experiments in the place of its own.
func (m Mean) Over(list experiment.Experiments) Mean {
	m.Of = list
	return m
}

// Against returns the mean tested against the same of other experiments.
func (m Mean) Against(list experiment.Experiments) Tested {
	return Tested{Mean: m, Other: m.Over(list)}
}

func (m Mean) mean() Mean { return m }

func (m Mean) cell(x *Index) (report.Cell, Summary, error) {
	s, err := x.Summarize(m)
	if len(m.Of) == 0 {
		return report.Cell{}, s, err
	}
	return s.Cell(m.Decimals), s, err
}

// A Tested mean is tested against another, unit by unit.
type Tested struct {
	Mean
	Other     Mean
	Family    string // tests of one Family, and of one Sheet, hold together
	Shown     bool   // the difference is shown in the place of the mean
	NoVerdict bool
}

func (t Tested) cell(x *Index) (report.Cell, Summary, error) {
	c, s, err := t.Mean.cell(x)
	if t.Shown && len(t.Of) > 0 {
		c = report.Cell{NotRun: true}
	}
	return c, s, err
}

// A Difference was computed elsewhere. Its test is one of its Family, like that of a Tested mean.
type Difference struct {
	metrics.Difference
	Family    string
	Higher    bool // is better
	NoVerdict bool
}

func (Difference) mean() Mean                                { return Mean{} }
func (Difference) cell(*Index) (report.Cell, Summary, error) { return report.Cell{}, Summary{}, nil }

// A Printed mean is compared with the number that the paper prints, which stands for it if there are no experiments.
type Printed struct {
	Mean
	Paper *report.Value // nil if it prints none
}

// Theirs returns a cell with the paper's number alone.
func (p Printed) Theirs() Cell {
	if p.Paper == nil {
		return Done{Text: "–", Theirs: true}
	}
	return Done(p.Paper.Printed())
}

func (p Printed) cell(x *Index) (report.Cell, Summary, error) {
	if len(p.Of) == 0 && p.Paper != nil {
		return p.Paper.Printed(), Summary{}, nil
	}
	c, s, err := p.Mean.cell(x)
	_, c.Verdict = p.Away(s)
	return c, s, err
}

// Away is (ours - theirs) in units of OUR standard deviation over the splits, which is the spread that one split's number
// has, and a verdict; theirs is the number that the paper prints for the mean. Our own spread is the unit because some of the
// paper's are not credible: those of the Yacht RMSE look ten times too small. The part of the difference that the rounding of
// the published number can explain, half a unit of its last decimal, is taken off first, so that 0.0006 against a printed
// 0.001 does not count as far away. It is NaN when there is no verdict.
func (p Printed) Away(ours Summary) (inStd float64, verdict string) {
	if p.Paper == nil || ours.Diverged > 0 || math.IsNaN(p.Paper.Mean) || !(ours.Std > 0) {
		return math.NaN(), report.Unsettled
	}
	away := ours.Mean - p.Paper.Mean
	rounding := 0.5 * math.Pow10(-p.Paper.Decimals)
	if math.Abs(away) <= rounding {
		return 0, report.Agrees
	}
	inStd = (away - math.Copysign(rounding, away)) / ours.Std
	switch {
	case math.Abs(inStd) <= 1:
		return inStd, report.Agrees
	case inStd < 0 != p.Higher:
		return inStd, report.Better
	}
	return inStd, report.Worse
}

// Done is a cell that was made already.
type Done report.Cell

// Waits is an empty cell that waits for runs: it would have a number if they were made.
var Waits Cell = Done{NotRun: true}

// Words returns a cell with a text, formatted as by fmt.Sprintf.
func Words(format string, values ...any) Cell { return Done{Text: fmt.Sprintf(format, values...)} }

func (Done) mean() Mean                                  { return Mean{} }
func (d Done) cell(*Index) (report.Cell, Summary, error) { return report.Cell(d), Summary{}, nil }
