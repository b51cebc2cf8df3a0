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

// parseTable reads a table of numbers separated by blanks or tabs, one row a
// line, all rows equally long. Empty lines are passed over (some published files
// end with one). file is used in messages only.
//
// It returns the values row-major and the number of columns. A missing, surplus,
// malformed, infinite or not-a-number field and a table without rows are
// reported as a [*ParseError].
func parseTable(r io.Reader, file string) (values []float64, columns int, err error) {
	sc := newLineScanner(r)
	line := 0
	for sc.Scan() {
		line++
		fields := strings.Fields(sc.Text())
		if len(fields) == 0 {
			continue
		}
		if columns == 0 {
			columns = len(fields)
		}
		if len(fields) != columns {
			return nil, 0, &ParseError{File: file, Line: line, Err: fieldCountError(len(fields), columns)}
		}
		for j, field := range fields {
			v, err := parseFinite(field)
			if err != nil {
				return nil, 0, &ParseError{File: file, Line: line, Column: j + 1, Err: err}
			}
			values = append(values, v)
		}
	}
	if err := sc.Err(); err != nil {
		return nil, 0, &ParseError{File: file, Line: line + 1, Err: err}
	}
	if columns == 0 {
		return nil, 0, &ParseError{File: file, Err: ErrEmpty}
	}
	return values, columns, nil
}

func newLineScanner(r io.Reader) *bufio.Scanner {
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, maxLine)
	return sc
}

func fieldCountError(got, want int) error {
	return fmt.Errorf("%w: %d, expected %d", ErrFieldCount, got, want)
}

// parseFinite reads a decimal number. Go's own parser also takes hexadecimal
// floats, underscores between digits and the words "inf" and "nan"; in a data
// file each of these is damage.
func parseFinite(field string) (float64, error) {
	v, err := strconv.ParseFloat(field, 64)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && (math.IsNaN(v) || math.IsInf(v, 0)):
		return 0, fmt.Errorf("%w: %q", ErrNotFinite, field)
	case err != nil:
		return 0, err
	case strings.ContainsAny(field, "xX_"):
		return 0, fmt.Errorf("not a decimal number: %q: %w", field, strconv.ErrSyntax)
	}
	return v, nil
}
