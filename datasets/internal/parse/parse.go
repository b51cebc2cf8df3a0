// Package parse holds the error that the readers of binary files share.
package parse

import "fmt"

// Error says at which byte of a file something is wrong, and what.
type Error struct {
	Offset int64 // 0-based
	Err    error // the cause
}

// Error returns "byte N: cause".
func (e *Error) Error() string { return fmt.Sprintf("byte %d: %v", e.Offset, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an [*Error] with a cause made by [fmt.Errorf].
func Errorf(offset int64, format string, args ...any) error {
	return &Error{Offset: offset, Err: fmt.Errorf(format, args...)}
}
