package datasets

import (
	"errors"
	"fmt"

	"densityuncertainty/datasets/internal/parse"
)

// FileError says which file of an image set cannot be used, why, and what to do.
type FileError struct {
	// File is the path, for a member of an archive that of the archive; Err
	// names the member.
	File string
	// Offset is the 0-based byte at which the fault is; -1 if it is with the
	// file as a whole. Within compressed data it counts as the message says.
	Offset int64
	// Err is the cause.
	Err error
	// Advice says what to do.
	Advice string
}

// Error names the file, the cause with its place, and what to do.
func (e *FileError) Error() string {
	return fmt.Sprintf("datasets: %s: %v; %s", e.File, e.Err, e.Advice)
}

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }

func fileError(file string, err error, advice string) error {
	e := &FileError{File: file, Offset: -1, Err: err, Advice: advice}
	var at *parse.Error
	if errors.As(err, &at) {
		e.Offset = at.Offset
	}
	return e
}

// Causes wrapped by [FileError], beside those of the readers.
var (
	ErrChecksum = errors.New("not the published MD5")
	ErrFileSize = errors.New("not the published size")
	ErrLacking  = errors.New("files are missing")
	ErrShape    = errors.New("not the expected images")
)
