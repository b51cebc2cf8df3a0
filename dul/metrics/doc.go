// Package metrics computes the numbers by which predictions are judged. Values of N examples and C classes are row-major,
// [N*C]; draws are [draw][example]. As in gonum, a programming mistake panics; what is not defined, or has a NaN, is NaN.
// README.md has the definitions on one small input, beside what other packages call by the same names.
package metrics

import (
	"errors"
	"fmt"
)

// ErrValue is wrapped by the error for NaN, an infinity or a value outside the domain.
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
