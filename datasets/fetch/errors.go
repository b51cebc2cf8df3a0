package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
)

// ErrNoAddress is wrapped by the error for a file that is not on this machine and that nobody offers.
var ErrNoAddress = errors.New("it has no address to download it from")

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
	var space *noSpaceError
	if errors.As(e.Err, &space) || errors.Is(e.Err, context.Canceled) {
		return text
	}
	return text + fmt.Sprintf("; there is no good copy at %s; without network access, get the file elsewhere, put it into a folder as %s and set %s to that folder",
		strings.Join(e.Looked, " or "), e.Name, EnvData)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ErrCache is the cause where the folder of the cache cannot be made, or nothing can be written there.
var ErrCache = errors.New("the cache is not usable")

// ErrDamaged is the cause where a file has another size or checksum than the expected
// one; the message names it and both numbers.
var ErrDamaged = errors.New("it is damaged or another version")

// errLimit is the cause where an address sends more than a file may have.
var errLimit = errors.New("it is another file, or does not end")

// statusError is a server's refusal.
func statusError(r *http.Response) error { return errors.New("the server answered " + r.Status) }

func sizeError(place string, got, want int64) error {
	return fmt.Errorf("%s has %d bytes, expected %d: %w", place, got, want, ErrDamaged)
}

// limitError is for an address that sends more than a file may
// have, or more than the published size.
func limitError(url string, limit int64) error {
	return fmt.Errorf("%s sends more than the %d bytes that are allowed for this file: %w", url, limit, errLimit)
}

// noSpaceError reports that the disk filled up.
type noSpaceError struct {
	path string // the file being written
	need int64  // bytes still to be written; -1 if the server did not say
	err  error
}

// Error says how much room is missing and how to give it.
func (e *noSpaceError) Error() string {
	need := "an unknown number of bytes is still needed (the server did not say)"
	if e.need >= 0 {
		need = fmt.Sprintf("%d more bytes are needed", e.need)
	}
	return fmt.Sprintf("no space left for %s: %s; free some or set %s to a folder on another disk (what was downloaded of it was removed): %v",
		e.path, need, EnvCache, e.err)
}

// Unwrap returns the system's error.
func (e *noSpaceError) Unwrap() error { return e.err }

// writeError explains a failed write of which need bytes were left to do.
func writeError(path string, need int64, err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return &noSpaceError{path, need, err}
	}
	return fmt.Errorf("writing %s: %w", path, err)
}
