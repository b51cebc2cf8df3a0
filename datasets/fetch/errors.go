package fetch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// Error says which file could not be had, from where, and why.
type Error struct {
	Name   string   // the file's name
	URL    string   // the address tried
	Looked []string // where on this machine the file was looked for before
	Err    error    // the cause
}

// Error returns the cause together with what the user can do about it.
func (e *Error) Error() string {
	text := fmt.Sprintf("fetch: %s from %s: %v", e.Name, e.URL, e.Err)
	var space *NoSpaceError
	if errors.As(e.Err, &space) || errors.Is(e.Err, context.Canceled) {
		return text
	}
	return text + fmt.Sprintf("; there is no good copy at %s; without network access, get the file elsewhere, put it into a folder as %s and set %s to that folder",
		strings.Join(e.Looked, " or "), e.Name, EnvData)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// StatusError is a server's refusal.
type StatusError struct {
	Code   int    // HTTP status code
	Status string // the code and its text
}

// Error returns the status.
func (e *StatusError) Error() string { return "the server answered " + e.Status }

// ChecksumError reports a file whose contents are not the expected ones.
type ChecksumError struct {
	Path      string
	Got, Want string // SHA-256, hexadecimal
}

// Error names the file and both checksums.
func (e *ChecksumError) Error() string {
	return fmt.Sprintf("%s has SHA-256 %s, expected %s: it is damaged or another version", e.Path, e.Got, e.Want)
}

// SizeError reports a file that is longer or shorter than published.
type SizeError struct {
	Path      string
	Got, Want int64 // bytes
}

// Error names the file and both sizes.
func (e *SizeError) Error() string {
	return fmt.Sprintf("%s has %d bytes, expected %d: it is damaged or another version", e.Path, e.Got, e.Want)
}

// LimitError reports an address that sends more than a file of unknown size may
// have, or more than the published size.
type LimitError struct {
	URL   string
	Limit int64 // bytes
}

// Error names the address and the limit.
func (e *LimitError) Error() string {
	return fmt.Sprintf("%s sends more than the %d bytes that are allowed for this file: it is another file, or does not end", e.URL, e.Limit)
}

// NoSpaceError reports that the disk filled up.
type NoSpaceError struct {
	Path string // the file being written
	Need int64  // bytes still to be written; -1 if the server did not say
	Err  error
}

// Error says how much room is missing and how to give it.
func (e *NoSpaceError) Error() string {
	need := "an unknown number of bytes is still needed (the server did not say)"
	if e.Need >= 0 {
		need = fmt.Sprintf("%d more bytes are needed", e.Need)
	}
	return fmt.Sprintf("no space left for %s: %s; free some or set %s to a folder on another disk (what was downloaded of it was removed): %v",
		e.Path, need, EnvCache, e.Err)
}

// Unwrap returns the system's error.
func (e *NoSpaceError) Unwrap() error { return e.Err }

// writeError explains a failed write of which need bytes were left to do.
func writeError(path string, need int64, err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return &NoSpaceError{Path: path, Need: need, Err: err}
	}
	return fmt.Errorf("writing %s: %w", path, err)
}
