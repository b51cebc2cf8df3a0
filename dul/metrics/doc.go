// Package metrics scores predictions. Values of N examples and C classes are row-major, [N*C]; draws are
// [draw][example]. As in gonum, wrong arguments, such as lists of different lengths, panic. A result is NaN if it is
// undefined or if an argument has a NaN. README.md computes each definition on one small input and compares it with
// other packages.
package metrics

import (
	"errors"
	"fmt"
)

// ErrValue is wrapped by errors about a value that is NaN, infinite or outside its domain.
var ErrValue = errors.New("value outside the domain")

// same panics if two lists have different lengths.
func same(what string, got int, like string, want int) {
	if got != want {
		panic(fmt.Errorf("metrics: %s has %d values, %s has %d", what, got, like, want))
	}
}

// inUnit panics if a level is not in (0, 1).
func inUnit(level float64) {
	if !(level > 0 && level < 1) {
		panic(fmt.Sprintf("metrics: the level is %v, want one in (0, 1)", level))
	}
}
