package datasets

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// maxLine is the longest line, in bytes, that a parser accepts; the longest of
// the known files has about 1500.
const maxLine = 1 << 20

// parseRows reads a table of finite decimal numbers, one row a line, all rows
// equally long: as the first one, or with columns above 0 as that says. fields
// divides a line. Empty lines are passed over (some published files end with one).
// Each row is handed to add, which must not keep it.
//
// file is used in messages only. Faults, an error of add, and a table without rows
// are reported as a [*FileError].
func parseRows(r io.Reader, file string, columns int, fields func(line string) []string, add func(row []float64) error) error {
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, maxLine)
	var row []float64
	line, rows := 0, 0
	for ; sc.Scan(); line++ {
		text := strings.TrimSpace(sc.Text())
		if text == "" {
			continue
		}
		row = row[:0]
		split := fields(text)
		if columns == 0 {
			columns = len(split)
		}
		if len(split) != columns {
			return &FileError{File: file, Line: line + 1, Err: fmt.Errorf("%w: %d, expected %d", errFieldCount, len(split), columns)}
		}
		for j, field := range split {
			v, err := parseFinite(strings.TrimSpace(field))
			if err != nil {
				return &FileError{File: file, Line: line + 1, Column: j + 1, Err: err}
			}
			row = append(row, v)
		}
		if err := add(row); err != nil {
			return &FileError{File: file, Line: line + 1, Err: err}
		}
		rows++
	}
	if err := sc.Err(); err != nil {
		return &FileError{File: file, Line: line + 1, Err: err}
	}
	if rows == 0 {
		return &FileError{File: file, Err: errEmpty}
	}
	return nil
}

// parseFinite reads a decimal number. Go's own parser also takes hexadecimal
// floats, underscores between digits and the words "inf" and "nan"; in a data
// file each of these is damage.
func parseFinite(field string) (float64, error) {
	v, err := strconv.ParseFloat(field, 64)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && (math.IsNaN(v) || math.IsInf(v, 0)):
		return 0, fmt.Errorf("%w: %q", errNotFinite, field)
	case err != nil:
		return 0, err
	case strings.ContainsAny(field, "xX_"):
		return 0, fmt.Errorf("not a decimal number: %q: %w", field, strconv.ErrSyntax)
	}
	return v, nil
}

// parseTable reads a table with blanks or tabs between its numbers, and returns the
// values row-major and the number of columns.
func parseTable(r io.Reader, file string) (values []float64, columns int, err error) {
	err = parseRows(r, file, 0, strings.Fields, func(row []float64) error {
		values, columns = append(values, row...), len(row)
		return nil
	})
	return values, columns, err
}

// parseYear reads examples in the official form of YearPredictionMSD.txt: one a
// line, 91 comma-separated numbers, the first the year (the target, a whole
// number), the others the 90 timbre features.
//
// With rows above 0 room is made for so many, as growing slices of this size would
// take twice the memory for a while, and more are refused; with 0 any number is
// accepted, so that excerpts can be read.
func parseYear(r io.Reader, file string, rows int) (*Regression, error) {
	set, err := lookup(yearName)
	if err != nil {
		return nil, err
	}
	out := set.describe()
	out.X = make([]float64, 0, rows*yearD)
	out.Y = make([]float64, 0, rows)
	commas := func(line string) []string { return strings.Split(line, ",") }
	err = parseRows(r, file, yearD+1, commas, func(row []float64) error {
		if year := row[0]; year != math.Trunc(year) {
			return fmt.Errorf("%w: year %v", errNotInteger, year)
		}
		if rows > 0 && len(out.Y) == rows {
			return fmt.Errorf("%w: more than %d", errRowCount, rows)
		}
		out.Y, out.X = append(out.Y, row[0]), append(out.X, row[1:]...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	out.N = len(out.Y)
	return out, nil
}
