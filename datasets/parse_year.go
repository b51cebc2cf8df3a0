package datasets

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// parseYear reads examples in the official form of YearPredictionMSD.txt: one a
// line, 91 comma-separated numbers, the first the year (the target, a whole
// number), the others the 90 timbre features. file is used in messages only.
//
// With rows above 0 room is made for so many, as growing slices of this size would
// take twice the memory for a while, and more are refused; with 0 any number is
// accepted, so that excerpts can be read. Faults are reported as a [*ParseError].
func parseYear(r io.Reader, file string, rows int) (*Regression, error) {
	set, err := lookup(yearName)
	if err != nil {
		return nil, err
	}
	out := set.describe()
	out.X = make([]float64, 0, rows*yearD)
	out.Y = make([]float64, 0, rows)
	sc := newLineScanner(r)
	line := 0
	for sc.Scan() {
		line++
		rest := strings.TrimSpace(sc.Text())
		if rest == "" {
			continue
		}
		if n := strings.Count(rest, ",") + 1; n != yearD+1 {
			return nil, &ParseError{File: file, Line: line, Err: fieldCountError(n, yearD+1)}
		}
		for column := range yearD + 1 {
			var field string
			field, rest, _ = strings.Cut(rest, ",")
			v, err := parseFinite(strings.TrimSpace(field))
			if err == nil && column == 0 && v != math.Trunc(v) {
				err = fmt.Errorf("%w: year %q", ErrNotInteger, field)
			}
			if err != nil {
				return nil, &ParseError{File: file, Line: line, Column: column + 1, Err: err}
			}
			if column == 0 {
				out.Y = append(out.Y, v)
			} else {
				out.X = append(out.X, v)
			}
		}
		if rows > 0 && len(out.Y) > rows {
			return nil, &ParseError{File: file, Line: line, Err: fmt.Errorf("%w: more than %d", ErrRowCount, rows)}
		}
	}
	if err := sc.Err(); err != nil {
		return nil, &ParseError{File: file, Line: line + 1, Err: err}
	}
	out.N = len(out.Y)
	if out.N == 0 {
		return nil, &ParseError{File: file, Err: ErrEmpty}
	}
	return out, nil
}
