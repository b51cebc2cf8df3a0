package datasets

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// parseIndices reads 0-based row or column numbers, one a line, in the form of
// Gal & Ghahramani's index files. Order is kept; empty lines are passed over.
// Each number must be whole, in [0, n), and occur once. file is used in messages
// only. Faults, and a file without numbers, are reported as a [*ParseError].
func parseIndices(r io.Reader, file string, n int) ([]int, error) {
	var indices []int
	seen := make(map[int]int) // number -> its line
	sc := newLineScanner(r)
	line := 0
	for sc.Scan() {
		line++
		fields := strings.Fields(sc.Text())
		if len(fields) == 0 {
			continue
		}
		if len(fields) != 1 {
			return nil, &ParseError{File: file, Line: line, Err: fieldCountError(len(fields), 1)}
		}
		i, err := parseIndex(fields[0], n)
		if err == nil && seen[i] != 0 {
			err = fmt.Errorf("%w: %d stands on line %d too", ErrDuplicate, i, seen[i])
		}
		if err != nil {
			return nil, &ParseError{File: file, Line: line, Column: 1, Err: err}
		}
		seen[i] = line
		indices = append(indices, i)
	}
	if err := sc.Err(); err != nil {
		return nil, &ParseError{File: file, Line: line + 1, Err: err}
	}
	if len(indices) == 0 {
		return nil, &ParseError{File: file, Err: ErrEmpty}
	}
	return indices, nil
}

// parseIndex reads a whole number in [0, n).
func parseIndex(field string, n int) (int, error) {
	i, err := strconv.Atoi(field)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && (i < 0 || i >= n):
		return 0, fmt.Errorf("%w: %s is not in [0, %d)", ErrRange, field, n)
	case err != nil:
		return 0, fmt.Errorf("%w: %q", ErrNotInteger, field)
	}
	return i, nil
}
