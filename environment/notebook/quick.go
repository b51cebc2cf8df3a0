package notebook

import (
	"fmt"
	"os"
	"strconv"
)

// fullVariable is the environment variable that asks for full runs, "DENSITYUNCERTAINTY_FULL". Its value is a Go
// boolean such as 1 or 0.
const fullVariable = "DENSITYUNCERTAINTY_FULL"

// Quick reports whether the notebook runs in quick mode, the default: the same code with smaller numbers.
// DENSITYUNCERTAINTY_FULL=1 asks for full runs. A value that is no boolean stops the cell, so that quick numbers do not
// pass for full ones.
func Quick() bool {
	value := os.Getenv(fullVariable)
	if value == "" {
		return true
	}
	full, err := strconv.ParseBool(value)
	if err != nil {
		panic(fmt.Errorf("%s=%q: want 1 for full runs, 0 or nothing for quick ones", fullVariable, value))
	}
	return !full
}

// Must returns value, or stops the cell if err is not nil. Use it around a call that returns both: samples :=
// notebook.Must(load(path)).
func Must[T any](value T, err error) T {
	Check(err)
	return value
}

// Check stops the cell if err is not nil.
func Check(err error) {
	if err != nil {
		panic(err)
	}
}
