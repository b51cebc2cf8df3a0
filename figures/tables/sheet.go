package tables

import (
	"fmt"
	"slices"

	"densityuncertainty/figures/report"
)

// A Sheet is a table before it is made: its words and headings and, line by line, its cells.
type Sheet struct {
	report.Table // without rows
	Lines        []Line
	// Down says that numbers are compared with those above and below, in their column and group. Otherwise they are compared
	// with the same Number beside them. Compared numbers have like decimals, and the best is bold; see Mean.Best.
	Down bool
}

// A Line is a row of a Sheet. Lines of one group follow each other.
type Line struct {
	Group, Name string
	Cells       []Cell // one fewer than columns
	Theirs      bool   // it has the paper's numbers for the line above it, and is left out with that
}

// Add adds a line.
func (s *Sheet) Add(group, name string, cells ...Cell) {
	s.Lines = append(s.Lines, Line{Group: group, Name: name, Cells: cells})
}

// Make makes the table. Lines and columns in which nothing was run are left out, and said to be.
func (s Sheet) Make(x *Index) (report.Table, error) {
	t, all := s.Table, make([][]Summary, len(s.Lines))
	for i, line := range s.Lines {
		row := report.Row{Group: line.Group, Name: line.Name}
		for _, c := range line.Cells {
			cell, summary, err := c.cell(x)
			if err != nil {
				return t, err
			}
			if line.Theirs {
				cell.NotRun = !slices.ContainsFunc(t.Rows[i-1].Cells, func(c report.Cell) bool { return c.Text != "" })
			}
			all[i], row.Cells = append(all[i], summary), append(row.Cells, cell)
		}
		t.Rows = append(t.Rows, row)
	}
	for _, test := range s.tests(x) {
		at, c := test.Of, &t.Rows[test.Of.line].Cells[test.Of.column]
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
	line, column     int
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
	for i, line := range s.Lines {
		for k, c := range line.Cells {
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
		line        int
	}
	best, complete := map[rank]place{}, map[rank]int{}
	for i, line := range s.Lines {
		for k, c := range line.Cells {
			m := c.mean()
			if m.Best == "" || !all[i][k].Complete() {
				continue
			}
			r := rank{m.Best, line.Group, i}
			if s.Down {
				r.line = 0
			}
			lead, has := best[r]
			if !has || all[i][k].Mean != all[lead.line][lead.column].Mean && all[i][k].Mean > all[lead.line][lead.column].Mean == m.Higher {
				best[r] = place{line: i, column: k}
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
		group, name string
	}
	compared := map[kind][]*report.Cell{}
	for i, line := range s.Lines {
		for k, c := range line.Cells {
			of := kind{place: place{line: i}, name: c.mean().Name}
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
