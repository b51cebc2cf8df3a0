package datasets

import (
	"errors"
	"fmt"
)

// Causes wrapped by [FileError].
var (
	errChecksum   = errors.New("not the published MD5")
	errLacking    = errors.New("files are missing")
	errShape      = errors.New("not the expected images")
	errEmpty      = errors.New("no data")
	errFieldCount = errors.New("wrong number of columns")
	errMissing    = errors.New("has no value")
	errNotFinite  = errors.New("not a finite number")
	errNotHeld    = errors.New("float64 does not hold the whole number")
)

// FileError says which data file cannot be used, where and why, and what to do.
type FileError struct {
	// File is the path, for a member of an archive that of the archive; Err
	// names the member.
	File string
	// Line and Column of a table count from 1 (a column is a field, not a byte); 0
	// where the fault is with the file or the line as a whole.
	Line, Column int
	// Err is the cause.
	Err error
	// Advice says what to do; it may be empty.
	Advice string
}

// Error returns "datasets: file: line L, column C: cause; advice", without the parts that there are not.
func (e *FileError) Error() string {
	text := "datasets: " + e.File + ": "
	if e.Line > 0 {
		text += fmt.Sprintf("line %d", e.Line)
		if e.Column > 0 {
			text += fmt.Sprintf(", column %d", e.Column)
		}
		text += ": "
	}
	text += e.Err.Error()
	if e.Advice != "" {
		text += "; " + e.Advice
	}
	return text
}

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }
