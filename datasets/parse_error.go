package datasets

import (
	"errors"
	"fmt"
)

// Causes wrapped by [ParseError]. A field that is no number at all is reported
// with the error of strconv instead.
var (
	ErrEmpty      = errors.New("no data")
	ErrFieldCount = errors.New("wrong number of columns")
	ErrNotFinite  = errors.New("not a finite number")
	ErrNotInteger = errors.New("not a whole number")
	ErrRange      = errors.New("out of range")
	ErrDuplicate  = errors.New("duplicate")
	ErrRowCount   = errors.New("wrong number of rows")
)

// ParseError says where in a data file something is wrong, and what.
type ParseError struct {
	// File names the file.
	File string
	// Line is the 1-based line; 0 if the fault is with the file as a whole.
	Line int
	// Column is the 1-based column of the table (a field, not a byte); 0 if the
	// fault is with the line as a whole.
	Column int
	// Err is the cause.
	Err error
}

// Error returns "file: line L, column C: cause", without the parts that are 0.
func (e *ParseError) Error() string {
	switch {
	case e.Line == 0:
		return fmt.Sprintf("datasets: %s: %v", e.File, e.Err)
	case e.Column == 0:
		return fmt.Sprintf("datasets: %s: line %d: %v", e.File, e.Line, e.Err)
	default:
		return fmt.Sprintf("datasets: %s: line %d, column %d: %v", e.File, e.Line, e.Column, e.Err)
	}
}

// Unwrap returns the cause.
func (e *ParseError) Unwrap() error { return e.Err }
