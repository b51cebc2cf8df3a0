package datasets

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
)

// Columns are the columns of a table, without the target, and say how their cells become inputs.
type Columns []Column

// A Column of numbers is one input.
type Column struct {
	Name string `json:"name"`
	// Categories are the words of a column that is not of numbers. Each is an input, which is 1 if the cell has this word,
	// and else 0. A cell without a value has the word "".
	Categories []string `json:"categories,omitempty"`
	// MayMiss says that numbers may be missing. They are NaN until Fill, and a second input is 1, which is else 0.
	MayMiss bool `json:"mayMiss,omitempty"`
}

// inputs are the names of a column's inputs.
func (c Column) inputs() (names []string) {
	if c.Categories == nil {
		names = append(names, c.Name)
	}
	for _, word := range c.Categories {
		if word != "" {
			names = append(names, c.Name+"="+word)
		} else { // the first in order
			names = append(names, c.Name+" is missing")
		}
	}
	if c.MayMiss {
		names = append(names, c.Name+" is missing")
	}
	return names
}

// width is the number of a column's inputs.
func (c Column) width() int {
	if c.MayMiss {
		return 2
	}
	return max(1, len(c.Categories))
}

// append appends the inputs of a cell.
func (c Column) append(x []float64, cell string) ([]float64, *fault) {
	none := isMissing(cell)
	if c.Categories != nil {
		if none {
			cell = ""
		}
		place, known := slices.BinarySearch(c.Categories, cell)
		switch {
		case known:
			x = append(x, make([]float64, len(c.Categories))...)
			x[len(x)-len(c.Categories)+place] = 1
			return x, nil
		case !none:
			return x, &fault{fmt.Sprintf("%s: there is no category %q; there are %q", c.Name, cell, c.Categories), ""}
		}
	}
	switch {
	case !none:
		v, wrong := parseFinite(cell)
		if wrong != nil {
			return x, &fault{c.Name + ": " + wrong.text, wrong.advice}
		}
		if x = append(x, v); c.MayMiss {
			x = append(x, 0)
		}
		return x, nil
	case c.MayMiss:
		return append(x, math.NaN(), 1), nil
	}
	return x, &fault{fmt.Sprintf("%s has no value (%q)", c.Name, cell), "give it one, or leave the line out; CSV.FillMissing puts the mean of an input there"}
}

// Inputs are the inputs of a row whose cells are written as in a file that [CSV] reads. The error tells what is wrong with
// all of them.
func (c Columns) Inputs(cells []string) (x []float64, err error) {
	if len(cells) != len(c) {
		return nil, fmt.Errorf("datasets: %d cells, expected %d", len(cells), len(c))
	}
	for j, cell := range cells {
		var wrong *fault
		if x, wrong = c[j].append(x, strings.TrimSpace(cell)); wrong != nil {
			err = errors.Join(err, fmt.Errorf("datasets: column %d: %s", j+1, wrong.text))
		}
	}
	return x, err
}

// Fill replaces missing numbers of a row of inputs by the means of the training rows, which s was fitted on. It returns an
// error for a category that no training row has, and for a missing number in a column of which the training rows miss
// none, or all.
func (c Columns) Fill(row []float64, s Scaler) error {
	at := 0
	for _, column := range c {
		n := column.width()
		for k := range n {
			if (column.Categories != nil || k == 1) && row[at+k] == 1 && s.Mean[at+k] == 0 {
				return fmt.Errorf("datasets: %s, and no training row is like this; leave the row out, put rare categories together, or choose other training rows", column.inputs()[k])
			}
		}
		equal := func(to float64) int { return floats.Count(func(v float64) bool { return v == to }, row[at:at+n]) }
		if column.Categories != nil && (equal(1) != 1 || equal(0) != n-1) {
			return fmt.Errorf("datasets: %s has the numbers %v; one of them must be 1, and the others 0", column.Name, row[at:at+n])
		}
		if missing := math.IsNaN(row[at]); column.MayMiss && !(missing && row[at+1] == 1 || !missing && row[at+1] == 0) {
			return fmt.Errorf("datasets: %s is %g, with %g in the column for what is missing; a missing number is NaN with 1, and any other has 0", column.Name, row[at], row[at+1])
		}
		if column.MayMiss && math.IsNaN(row[at]) {
			if row[at] = s.Mean[at]; math.IsNaN(row[at]) {
				return fmt.Errorf("datasets: %s has no value in any training row; leave the column out", column.Name)
			}
		}
		at += n
	}
	return nil
}
