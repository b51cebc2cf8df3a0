package results

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Committed returns the result lines of [DefaultDir], those that come with the checkout: none where
// that folder does not exist. Unlike Read it takes repeated and unfinished lines for errors, so that
// what a notebook shows is all that the files hold.
func Committed() ([]Result, error) {
	dir, err := DefaultDir()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	lines, notes, err := Read(dir)
	if err != nil {
		return nil, err
	}
	if len(notes) > 0 {
		return nil, fmt.Errorf("results: the committed lines are not in order: %s", notes[0])
	}
	return lines, nil
}
