package tables

import (
	"fmt"
	"slices"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/report"
)

// A Sheet is a table before it is made: its words and headings and, line by line, what its cells are means of.
type Sheet struct {
	report.Table // without rows
	Lines        []Line
	// Down says that numbers are compared with those above and below, in their column and group. Otherwise they are compared
	// with those of the same metric beside them. Compared numbers have like decimals, and the best is bold; see Mean.Best.
	Down bool
}

// A Line is a row of a Sheet. Lines of one group follow each other.
type Line struct {
	Group, Name string
	Cells       []Mean // one fewer than columns
	Theirs      bool   // it has the paper's numbers for the line above it, and is left out with that
}

// A Mean is a cell of a Sheet: the mean ± standard deviation of a metric of experiments. Without experiments it is the
// paper's number, or Words.
type Mean struct {
	Of       experiment.Experiments
	Metric   string
	Decimals int  // at most; see report.Align
	Percent  bool // the metric is a part of 1
	Higher   bool // is better
	Optional bool // results may lack the metric
	// By averages the experiments of one unit first, such as a seed; nil where each is of a unit of its own.
	By func(experiment.Experiment) int

	Best string // among the cells of a rank, with all of their runs, the best is bold; "" for none

	// Against are experiments that it is tested against, unit by unit: by AgainstMetric, or else the same metric. Tests of one
	// Family, and of one Sheet, hold together.
	Against       experiment.Experiments
	AgainstMetric string
	Family        string
	Difference    bool // is shown, in the place of the mean
	Untested      bool // the difference is shown with its interval, and has no verdict

	Printed *report.Number // the paper's, which it is compared with

	Words report.Cell // in the place of a number; with a difference, that of a test in the Family
}

// Waits is a cell that would have a number, but for runs that nobody made.
var Waits = Mean{Words: report.Cell{NotRun: true}}

// Words is a cell of words.
func Words(format string, values ...any) Mean {
	return Mean{Words: report.Cell{Text: fmt.Sprintf(format, values...)}}
}

// Over returns the mean with other experiments in the place of its own.
func (m Mean) Over(list experiment.Experiments) Mean {
	m.Of = list
	return m
}

// Theirs returns a cell with the number that the paper prints for a mean.
func (m Mean) Theirs() Mean {
	return Mean{Printed: m.Printed, Words: report.Cell{Text: "–", Theirs: true}}
}

// Add adds a line.
func (s *Sheet) Add(group, name string, cells ...Mean) {
	s.Lines = append(s.Lines, Line{Group: group, Name: name, Cells: cells})
}

// Make makes the table. Lines and columns in which nothing was run are left out, and said to be.
func (s Sheet) Make(x *Index) (report.Table, error) {
	t, all := s.Table, make([][]Summary, len(s.Lines))
	for i, line := range s.Lines {
		row := report.Row{Group: line.Group, Name: line.Name}
		for _, m := range line.Cells {
			if line.Theirs {
				m = m.Theirs()
			}
			summary, err := x.Summarize(m)
			if err != nil {
				return t, err
			}
			cell := m.cell(summary)
			if line.Theirs {
				cell.NotRun = !slices.ContainsFunc(t.Rows[i-1].Cells, func(c report.Cell) bool { return c.Text != "" })
			}
			all[i], row.Cells = append(all[i], summary), append(row.Cells, cell)
		}
		t.Rows = append(t.Rows, row)
	}
	for _, test := range s.tests(x) {
		m, c := s.Lines[test.Of.line].Cells[test.Of.column], &t.Rows[test.Of.line].Cells[test.Of.column]
		if test.Difference != nil && (m.Difference || len(m.Of) == 0) {
			c.Text, c.NotRun = test.Text(), false
		}
		if c.Verdict, c.Difference = test.Verdict, test.Difference; m.Untested {
			c.Verdict, c.Difference = "", nil
		}
	}
	s.embolden(t, all)
	s.align(t)
	return t.WithoutNotRun(), nil
}

// place is a cell.
type place struct{ line, column int }

// tests are those of all families.
func (s Sheet) tests(x *Index) (tests []Test[place]) {
	families, all := map[string]*Family[place]{}, []*Family[place](nil)
	for i, line := range s.Lines {
		for k, m := range line.Cells {
			family := families[m.Family]
			if family == nil || m.Untested {
				family = new(Family[place])
				all = append(all, family)
			}
			if !m.Untested {
				families[m.Family] = family
			}
			if !line.Theirs {
				family.AddMean(place{i, k}, x, m)
			}
		}
	}
	for _, family := range all {
		tests = append(tests, family.Tests()...)
	}
	return tests
}

// embolden makes the best cell of each rank bold, of those with all of their runs. One alone is bold only beside others.
func (s Sheet) embolden(t report.Table, all [][]Summary) {
	type rank struct {
		name, group string
		line        int
	}
	best, complete := map[rank]place{}, map[rank]int{}
	for i, line := range s.Lines {
		for k, m := range line.Cells {
			if m.Best == "" || line.Theirs || !all[i][k].Complete() {
				continue
			}
			r := rank{m.Best, line.Group, i}
			if s.Down {
				r.line = 0
			}
			lead, has := best[r]
			if !has || all[i][k].Mean != all[lead.line][lead.column].Mean && all[i][k].Mean > all[lead.line][lead.column].Mean == m.Higher {
				best[r] = place{i, k}
			}
			complete[r]++
		}
	}
	for r, at := range best {
		t.Rows[at.line].Cells[at.column].Bold = !s.Down || complete[r] > 1
	}
}

// align gives numbers that are compared like decimals.
func (s Sheet) align(t report.Table) {
	type kind struct {
		place
		group, metric string
	}
	compared := map[kind][]*report.Cell{}
	for i, line := range s.Lines {
		for k, m := range line.Cells {
			of := kind{place: place{line: i}, metric: m.Metric}
			if s.Down {
				of = kind{place: place{column: k}, group: line.Group}
			}
			compared[of] = append(compared[of], &t.Rows[i].Cells[k])
		}
	}
	for _, cells := range compared {
		report.Align(cells...)
	}
}

// cell is the cell of a summary, before tests.
func (m Mean) cell(s Summary) report.Cell {
	switch {
	case len(m.Of) == 0 && m.Printed != nil:
		return m.Printed.Printed()
	case len(m.Of) == 0:
		return m.Words
	case m.Difference:
		return report.Cell{NotRun: true}
	}
	c := s.Cell(m.Decimals)
	_, c.Verdict = m.Away(s)
	return c
}
