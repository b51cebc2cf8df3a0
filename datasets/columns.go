package datasets

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
)

// Columns are the columns of a table, except the target, and say how their cells become inputs.
type Columns []Column

// A Column of numbers becomes one input, or two if numbers may be missing. A column of words becomes one input for each
// word.
type Column struct {
	Name string `json:"name"`
	// Categories, if not nil, are the words of a column of words, sorted. The input of a word is 1 if the cell has the
	// word, and else 0. A cell without a value has the word "".
	Categories []string `json:"categories,omitempty"`
	// MayMiss says that numbers may be missing. A missing number is NaN until Fill, and then the column's second input
	// is 1; else it is 0.
	MayMiss bool `json:"mayMiss,omitempty"`
	// MissingWords are those of the CSV that read the column.
	MissingWords []string `json:"missingWords,omitempty"`
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

// Width is the number of inputs that the columns become.
func (c Columns) Width() (n int) {
	for _, column := range c {
		n += column.width()
	}
	return n
}

// value reads a cell: a number, the place of a word, or NaN if there is no value. With places, a word that they lack is added.
func (c Column) value(cell string, places map[string]float64) (float64, *fault) {
	switch {
	case cell == "" || c.MissingWords != nil && slices.Contains(c.MissingWords, cell):
		return math.NaN(), nil
	case places != nil:
		return place(places, cell), nil
	case c.Categories != nil:
		at, known := slices.BinarySearch(c.Categories, cell)
		if !known {
			return 0, &fault{fmt.Sprintf("%s: there is no category %q; there are %q", c.Name, cell, c.Categories), ""}
		}
		return float64(at), nil
	}
	v, wrong := parseFinite(cell)
	if wrong == nil {
		return v, nil
	}
	if isMissing(cell) {
		return math.NaN(), nil
	}
	return 0, &fault{c.Name + ": " + wrong.text, wrong.advice}
}

// without is the fault of a cell that has no value and needs one.
func (c Column) without(cell string) *fault {
	advice := "give it one, or leave the line out; CSV.FillMissing puts the mean of an input there"
	if c.Categories != nil {
		advice = "give it one, or leave the line out; with CSV.FillMissing having none is a category too"
	}
	return &fault{fmt.Sprintf("%s has no value (%q)", c.Name, cell), advice}
}

// append appends the inputs of a value.
func (c Column) append(x []float64, v float64) []float64 {
	switch missing := math.IsNaN(v); {
	case c.Categories != nil:
		x = slices.Grow(x, len(c.Categories))
		x = x[:len(x)+len(c.Categories)]
		own := x[len(x)-len(c.Categories):]
		clear(own)
		own[int(v)] = 1
		return x
	case !c.MayMiss:
		return append(x, v)
	case missing:
		return append(x, v, 1)
	}
	return append(x, v, 0)
}

// Inputs returns the inputs of a row from its cells, written as in a file that [CSV] reads. The error lists all invalid
// cells.
func (c Columns) Inputs(cells []string) (x []float64, err error) {
	if len(cells) != len(c) {
		return nil, fmt.Errorf("datasets: %d cells, expected %d", len(cells), len(c))
	}
	for j, cell := range cells {
		column, cell := c[j], strings.TrimSpace(cell)
		v, wrong := column.value(cell, nil)
		if wrong == nil && math.IsNaN(v) {
			if v = 0; column.Categories == nil && column.MayMiss {
				v = math.NaN()
			} else if column.Categories == nil || column.Categories[0] != "" { // which is the first in order
				wrong = column.without(cell)
			}
		}
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("datasets: column %d: %s", j+1, wrong.text))
			continue
		}
		x = column.append(x, v)
	}
	return x, err
}

// Fill replaces missing numbers in a row of inputs by the means of the training rows, on which s was fitted. If no
// training row misses the column, the input that marks a missing number becomes 0, as in training. It is an error if no
// training row has the row's category, or if a missing number's column has no value in any training row.
func (c Columns) Fill(row []float64, s Scaler) error {
	at := 0
	for _, column := range c {
		n := column.width()
		for k := range n {
			if column.Categories != nil && row[at+k] == 1 && s.Mean[at+k] == 0 {
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
			if s.Mean[at+1] == 0 {
				row[at+1] = 0
			}
		}
		at += n
	}
	return nil
}
