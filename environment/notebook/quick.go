package notebook

import (
	"fmt"
	"os"
	"strconv"
)

// FullVariable names the environment variable that asks for full runs,
// "DENSITYUNCERTAINTY_FULL". It holds a Go boolean such as 1 or 0.
const FullVariable = "DENSITYUNCERTAINTY_FULL"

// Quick tells whether the notebook is to run in quick mode: the same code as a
// full run with smaller numbers. It is the default; DENSITYUNCERTAINTY_FULL=1
// asks for full runs. A value that is not a boolean stops the cell, because
// guessing could pass off quick numbers as full ones.
func Quick() bool {
	value := os.Getenv(FullVariable)
	if value == "" {
		return true
	}
	full, err := strconv.ParseBool(value)
	if err != nil {
		panic(fmt.Errorf("%s=%q: want 1 for full runs, 0 or nothing for quick ones", FullVariable, value))
	}
	return !full
}

// Must returns value, or stops the cell if there is an error. It wraps a call
// that returns both: samples := notebook.Must(load(path)).
func Must[T any](value T, err error) T {
	Check(err)
	return value
}

// Check stops the cell if there is an error.
func Check(err error) {
	if err != nil {
		panic(err)
	}
}
