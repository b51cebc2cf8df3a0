// Package tables makes the tables of the reproduction from result lines.
//
// Every table is a pure function of the lines (and of the published numbers): the same lines give the
// same bytes. A cell averages only the experiments of the catalogue, found by their identity, so that a
// run with other settings in the same store can never slip into it; and a quick run is never shown as a
// full one.
package tables

import (
	"densityuncertainty/figures/results"
)

// Table is a finished table, ready to be rendered as Markdown, LaTeX or HTML.
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
type Cell []Line

// Line is text in a cell.
type Line struct {
	Text string
	Bold bool
}

// text is a cell with plain lines.
func text(lines ...string) Cell {
	var c Cell
	for _, l := range lines {
		c = append(c, Line{Text: l})
	}
	return c
}

// Named is a table that can be asked for by name.
type Named struct {
	Name, Doc string
	Make      func(lines []results.Result) (Table, error)
}

// List is every table there is.
func List() []Named {
	list := []Named{
		{"uci-nll", "UCI negative log likelihood, ours beside the paper's", UCINLL},
		{"uci-rmse", "UCI root mean squared error, ours beside the paper's", UCIRMSE},
		{"uci-density", "both metrics of the density layer on UCI, and which method is best in ours", UCIDensity},
		{"uci-datasets", "UCI data sets: size and dimension, measured beside the paper's", UCIDatasets},
		{"uci-agreement", "on how many UCI data sets each method's number agrees with the paper's", UCIAgreement},
		{"uci-claims", "on how many UCI data sets density uncertainty is best, ours and the paper's", UCIClaims},
		{"uci-released", "UCI with the released settings beside measurements of the authors' code", UCIReleased},
		{"uci-adam", "all methods on the smallest UCI data sets with Adam", UCIAdam},
		{"gap-ratio", "Figure 1 in numbers: uncertainty inside the gap over that at the data", GapRatios},
	}
	for _, d := range imageTables() {
		list = append(list, Named{d.name, d.what + ", ours beside the paper's", d.make})
	}
	return append(list,
		Named{"ood-svhn", "out-of-distribution detection with ResNet-14, ours beside the paper's", OODSVHN},
		Named{"cifar-small", "small runs on real CIFAR images, with what each was made with", CIFARSmall},
		Named{"cifar-grid", "the grid search, measured on held-out images", CIFARGrid},
	)
}
