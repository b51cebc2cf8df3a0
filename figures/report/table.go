package report

import (
	"fmt"
	"slices"
	"strings"

	"densityuncertainty/dul/metrics"
)

// Table is a finished table, ready to be rendered in one of TableFormats.
type Table struct {
	Name    string   // for labels and file names, for example "uci-nll"
	Title   string   // the question that it answers
	Caption string   // what one sees, in at most 40 words
	Columns []string // headings, the first is that of the row names
	Rows    []Row
	// Legend explains the marks of the verdicts, such as MarksAgainst or MarksPaper. It is shown if a cell has one.
	Legend   string
	Measured []string // how the numbers were measured, a paragraph each; readers unfold it
	NotRun   []string // what the table would have, but for runs that nobody made
}

// Row is one line of a table. Rows of one group follow each other; the group's name stands above them.
type Row struct {
	Group, Name string
	Cells       []Cell // one fewer than Table.Columns
}

// A Cell is one number with its spread, or a few words.
type Cell struct {
	Text string
	Bold bool
	// Value is the number that the text shows; nil for words. Align and pictures read it.
	Value *Value
	note  string // what the text has after the number
	// Verdict is shown as a mark: Better, Worse or Agrees. NotSignificant and the others have none.
	Verdict string
	// Difference is what the verdict is on; nil for none. It is in the CSV, and in the picture that Forest makes.
	Difference *metrics.Difference
	// NotRun says that the cell would have a number, but for runs that nobody made.
	NotRun bool
	// Theirs says that the cell is the paper's. Such cells keep no row and no column that waits for runs.
	Theirs bool
}

// The marks of verdicts.
var marks = map[string]string{Better: "▲", Worse: "▽", Agrees: "≈"}

// MarksPaper explains marks on numbers that are compared with published ones (see tables.Printed.Away).
const MarksPaper = "≈ within one standard deviation of the published number, ▲ better or ▽ worse by more."

// MarksAgainst explains marks on numbers that are tested against those of a reference.
func MarksAgainst(reference string) string {
	return fmt.Sprintf("▲ better, ▽ worse than %s, significant at 5%% for all cells of the table together. No mark: not significant.", reference)
}

// shown is the text of a cell with its mark.
func (c Cell) shown() string {
	text := c.Text
	if text == "" || c.NotRun {
		text = "–"
	}
	if mark := marks[c.Verdict]; mark != "" {
		text += " " + mark
	}
	return text
}

// TextCells are cells of words.
func TextCells(texts ...string) []Cell {
	var cells []Cell
	for _, text := range texts {
		cells = append(cells, Cell{Text: text})
	}
	return cells
}

// WithoutNotRun is the table without the rows and columns in which nothing was run; NotRun lists them, and a group of which
// no row is left by its name alone. A row or column is dropped only if it waits for runs
// and has no number of ours.
func (t Table) WithoutNotRun() Table {
	kept := t
	kept.Columns, kept.Rows, kept.NotRun = t.Columns[:1:1], nil, slices.Clone(t.NotRun)
	some := map[string]bool{} // the groups of which rows are left
	for _, row := range t.Rows {
		some[row.Group] = some[row.Group] || !nothing(row.Cells)
	}
	var rows []Row
	for _, row := range t.Rows {
		switch name := strings.TrimPrefix(row.Group+", "+row.Name, ", "); {
		case !nothing(row.Cells):
			rows = append(rows, row)
			kept.Rows = append(kept.Rows, Row{Group: row.Group, Name: row.Name})
		case row.Group == "" || some[row.Group]:
			kept.NotRun = append(kept.NotRun, name)
		case !slices.Contains(kept.NotRun, row.Group):
			kept.NotRun = append(kept.NotRun, row.Group)
		}
	}
	for i, heading := range t.Columns[1:] {
		var column []Cell
		for _, row := range rows {
			column = append(column, row.Cells[i])
		}
		if nothing(column) {
			kept.NotRun = append(kept.NotRun, heading)
			continue
		}
		kept.Columns = append(kept.Columns, heading)
		for k, cell := range column {
			kept.Rows[k].Cells = append(kept.Rows[k].Cells, cell)
		}
	}
	return kept
}

// Cell is the cell of a row and column; the zero Cell if there is none.
func (t Table) Cell(group, row, column string) Cell {
	i := slices.IndexFunc(t.Rows, func(r Row) bool { return r.Group == group && r.Name == row })
	if k := slices.Index(t.Columns, column); i >= 0 && k > 0 {
		return t.Rows[i].Cells[k-1]
	}
	return Cell{}
}

// Turned is the table with a group for each row name, a row for each column, and a column for each group.
func (t Table) Turned() Table {
	turned := Table{Name: t.Name, Columns: []string{t.Columns[0]}}
	var names []string
	cells := map[[3]string]Cell{}
	for i, row := range t.Rows {
		if t.begins(i) {
			turned.Columns = append(turned.Columns, row.Group)
		}
		if !slices.Contains(names, row.Name) {
			names = append(names, row.Name)
		}
		for k, column := range t.Columns[1:] {
			cells[[3]string{row.Group, row.Name, column}] = row.Cells[k]
		}
	}
	for _, name := range names {
		for _, column := range t.Columns[1:] {
			row := Row{Group: name, Name: column}
			for _, group := range turned.Columns[1:] {
				row.Cells = append(row.Cells, cells[[3]string{group, name, column}])
			}
			turned.Rows = append(turned.Rows, row)
		}
	}
	return turned
}

// nothing says whether cells wait for runs, and none of them has a number.
func nothing(cells []Cell) bool {
	waits := false
	for _, c := range cells {
		waits = waits || c.NotRun
		if !c.NotRun && !c.Theirs && c.Text != "" && c.Text != "–" {
			return false
		}
	}
	return waits
}

// said is what is said below a table, apart from how it was measured.
func (t Table) said() []string {
	var said []string
	marked := func(c Cell) bool { return marks[c.Verdict] != "" || c.Verdict == NotSignificant }
	if t.Legend != "" && slices.ContainsFunc(t.Rows, func(r Row) bool { return slices.ContainsFunc(r.Cells, marked) }) {
		said = append(said, t.Legend)
	}
	if len(t.NotRun) > 0 {
		said = append(said, "Not run: "+strings.Join(t.NotRun, "; ")+".")
	}
	return said
}
