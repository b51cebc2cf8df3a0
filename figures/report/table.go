package report

import (
	"slices"

	"densityuncertainty/figures/results"
)

// Table is a finished table, ready to be rendered in one of TableFormats.
type Table struct {
	Name    string   // for labels and file names, for example "uci-nll"
	Caption string   // what the numbers are
	Columns []string // headings, the first is that of the row names
	Rows    []Row
	Notes   []string // remarks below the table
}

// Row is one line of a table.
type Row struct {
	Name  string
	Cells []Cell // one fewer than Table.Columns
}

// Cell is one or more lines of plain text.
type Cell []CellLine

// CellLine is a line of text in a cell.
type CellLine struct {
	Text string
	Bold bool
}

// TextCell is a cell with plain lines.
func TextCell(lines ...string) Cell {
	var c Cell
	for _, l := range lines {
		c = append(c, CellLine{Text: l})
	}
	return c
}

// TextCells are cells of one plain line.
func TextCells(texts ...string) []Cell {
	var cells []Cell
	for _, text := range texts {
		cells = append(cells, TextCell(text))
	}
	return cells
}

// PlainTable is a table of texts; the first of each row is its name.
func PlainTable(name, caption string, columns []string, rows [][]string) Table {
	t := Table{Name: name, Caption: caption, Columns: columns}
	for _, row := range rows {
		t.Rows = append(t.Rows, Row{Name: row[0], Cells: TextCells(row[1:]...)})
	}
	return t
}

// BoldLowest marks the cell of the lowest mean among complete summaries, those of the row's cells in order.
func (r Row) BoldLowest(summaries []results.Summary) {
	if lowest, _ := results.Lowest(summaries); lowest >= 0 {
		r.Cells[lowest][0].Bold = true
	}
}

// BoldLowestInColumn marks the cell of the lowest mean in a column, counted from the first after the names,
// where at least two rows have complete ones. The summaries are those of the rows in order.
func (t Table) BoldLowestInColumn(column int, summaries []results.Summary) {
	if lowest, complete := results.Lowest(summaries); complete > 1 {
		t.Rows[lowest].Cells[column][0].Bold = true
	}
}

// WithoutEmptyColumns is the table without the columns in which nothing was run.
func (t Table) WithoutEmptyColumns() Table {
	kept := t
	kept.Columns, kept.Rows = t.Columns[:1:1], nil
	for _, row := range t.Rows {
		kept.Rows = append(kept.Rows, Row{Name: row.Name})
	}
	for i, heading := range t.Columns[1:] {
		if !slices.ContainsFunc(t.Rows, func(row Row) bool { return row.Cells[i][0].Text != NotRun }) {
			continue
		}
		kept.Columns = append(kept.Columns, heading)
		for k, row := range t.Rows {
			kept.Rows[k].Cells = append(kept.Rows[k].Cells, row.Cells[i])
		}
	}
	return kept
}
