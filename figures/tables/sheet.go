package tables

import (
	"fmt"
	"math"
	"slices"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/report"
)

// A Sheet is a table before it is made: its words and headings and, row by row, its cells.
type Sheet struct {
	report.Table // without rows
	Rows         []Row
	// Down says that numbers are compared with those above and below, in their column and group. Otherwise they are compared
	// with the same Number beside them. Compared numbers have like decimals, and the best is bold; see Mean.Best.
	Down bool
}

// A Row is a row of a Sheet. Rows of one group follow each other.
type Row struct {
	Group, Name string
	Cells       []Cell // one fewer than columns
	Theirs      bool   // it has the paper's numbers for the row above, and is left out with it
}

// Add adds a row.
func (s *Sheet) Add(group, name string, cells ...Cell) {
	s.Rows = append(s.Rows, Row{Group: group, Name: name, Cells: cells})
}

// Make makes the table. It leaves out rows and columns in which nothing was run, and says so.
func (s Sheet) Make(x *Index) (report.Table, error) {
	t, all := s.Table, make([][]Summary, len(s.Rows))
	for i, r := range s.Rows {
		row := report.Row{Group: r.Group, Name: r.Name}
		for _, c := range r.Cells {
			cell, summary, err := c.cell(x)
			if err != nil {
				return t, err
			}
			if r.Theirs {
				cell.NotRun = !slices.ContainsFunc(t.Rows[i-1].Cells, func(c report.Cell) bool { return c.Text != "" })
			}
			all[i], row.Cells = append(all[i], summary), append(row.Cells, cell)
		}
		t.Rows = append(t.Rows, row)
	}
	for _, test := range s.tests(x) {
		at, c := test.Of, &t.Rows[test.Of.row].Cells[test.Of.column]
		if test.Difference != nil && at.shown {
			c.Text, c.NotRun = test.Text(), false
		}
		if !at.noVerdict {
			c.Verdict, c.Difference = test.Verdict, test.Difference
		}
	}
	s.embolden(t, all)
	s.align(t)
	return t.WithoutNotRun(), nil
}

// A place is a cell, with what is shown of its test.
type place struct {
	row, column      int
	shown, noVerdict bool
}

// tests are those of all families. One without a verdict is not held together with others.
func (s Sheet) tests(x *Index) (tests []Test[place]) {
	families := map[string]*Family[place]{}
	family := func(name string, at place) *Family[place] {
		if at.noVerdict {
			name = fmt.Sprintf("%s at %v", name, at)
		}
		if families[name] == nil {
			families[name] = new(Family[place])
		}
		return families[name]
	}
	for i, row := range s.Rows {
		for k, c := range row.Cells {
			switch c := c.(type) {
			case Tested:
				at := place{i, k, c.Shown, c.NoVerdict}
				family(c.Family, at).AddTested(at, x, c)
			case Difference:
				at := place{i, k, true, c.NoVerdict}
				family(c.Family, at).AddDifference(at, c.Difference, c.Higher)
			}
		}
	}
	for _, family := range families {
		tests = append(tests, family.Tests()...)
	}
	return tests
}

// embolden makes the best cell of each rank bold, of those with all of their runs. One alone is bold only beside others.
func (s Sheet) embolden(t report.Table, all [][]Summary) {
	type rank struct {
		name, group string
		row         int
	}
	best, complete := map[rank]place{}, map[rank]int{}
	for i, row := range s.Rows {
		for k, c := range row.Cells {
			m := c.mean()
			if m.Best == "" || !all[i][k].Complete() {
				continue
			}
			r := rank{m.Best, row.Group, i}
			if s.Down {
				r.row = 0
			}
			lead, has := best[r]
			if !has || all[i][k].Mean != all[lead.row][lead.column].Mean && all[i][k].Mean > all[lead.row][lead.column].Mean == m.Higher {
				best[r] = place{row: i, column: k}
			}
			complete[r]++
		}
	}
	for r, at := range best {
		t.Rows[at.row].Cells[at.column].Bold = !s.Down || complete[r] > 1
	}
}

// align gives numbers that are compared like decimals.
func (s Sheet) align(t report.Table) {
	type kind struct {
		place
		group, name string
	}
	compared := map[kind][]*report.Cell{}
	for i, row := range s.Rows {
		for k, c := range row.Cells {
			of := kind{place: place{row: i}, name: c.mean().Name}
			if s.Down {
				of = kind{place: place{column: k}, group: row.Group}
			}
			compared[of] = append(compared[of], &t.Rows[i].Cells[k])
		}
	}
	for _, cells := range compared {
		report.Align(cells...)
	}
}

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
	// cell is the cell before tests, with the summary of its runs.
	cell(x *Index) (report.Cell, Summary, error)
	// mean is the mean, which is zero for a Difference and for Done.
	mean() Mean
}

// A Mean is the mean ± standard deviation of a number over experiments. Without experiments the cell is empty.
type Mean struct {
	Number
	Of experiment.Experiments
	// By returns the unit of an experiment, such as its seed, whose experiments are averaged first; nil if each is a unit.
	By   func(experiment.Experiment) int
	Best string // among the cells of a rank, with all of their runs, the best is bold; "" for none
}

// Over returns the mean over other experiments.
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

// A Tested mean is tested against another, unit by unit; see Family.AddTested.
type Tested struct {
	Mean
	Other     Mean
	Family    string // tests of one Family, and of one Sheet, hold together
	Shown     bool   // the difference is shown, not the mean
	NoVerdict bool
}

func (t Tested) cell(x *Index) (report.Cell, Summary, error) {
	c, s, err := t.Mean.cell(x)
	if t.Shown && len(t.Of) > 0 {
		c = report.Cell{NotRun: true}
	}
	return c, s, err
}

// A Difference was computed elsewhere. Its test belongs to its Family, as for Tested.
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

// Away returns (ours - theirs) / s and the verdict, where theirs is the paper's number and s our standard deviation over the
// splits. Some of the paper's deviations are not credible: the Yacht RMSE's look ten times too small. Half a unit of
// the last printed decimal, which rounding can explain, is taken off the difference first: 0.0006 agrees with a printed 0.001.
// With fewer than two runs, one that diverged, or nothing to compare with, inStd is NaN and the verdict "".
func (p Printed) Away(ours Summary) (inStd float64, verdict string) {
	if p.Paper == nil || ours.Diverged > 0 || math.IsNaN(p.Paper.Mean) || !(ours.Std > 0) {
		return math.NaN(), ""
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

// Done is a cell that was made already. Done{NotRun: true} waits for runs: it would have a number if they were made.
type Done report.Cell

// Words returns a cell with a text, formatted as by fmt.Sprintf.
func Words(format string, values ...any) Cell { return Done{Text: fmt.Sprintf(format, values...)} }

func (Done) mean() Mean                                  { return Mean{} }
func (d Done) cell(*Index) (report.Cell, Summary, error) { return report.Cell(d), Summary{}, nil }
