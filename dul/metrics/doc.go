// Package metrics computes the numbers by which predictions are judged, from plain slices.
//
// Conventions. Tables of values are flat and row-major: probs of N examples and C classes has length
// N*C. Lists of Monte Carlo samples are [sample][example]. Every function returns an error, and never
// a number, for an empty input, slices whose lengths do not match, NaN, infinities and values outside
// the domain (a negative variance, probabilities that do not sum to 1), and where values are so large that
// the result overflows. Inputs are never changed.
package metrics

import (
	"errors"
	"fmt"
	"math"
)

// ErrEmpty is wrapped by the error for an input without examples, samples or values.
var ErrEmpty = errors.New("no values")

// ErrLength is wrapped by the error for slices whose lengths do not match.
var ErrLength = errors.New("lengths do not match")

// ErrValue is wrapped by the error for NaN, an infinity or a value outside the domain.
var ErrValue = errors.New("value outside the domain")

// checkFinite reports the first NaN or infinity.
func checkFinite(what string, values []float64) error {
	for i, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("metrics: %s[%d] is %v: %w", what, i, v, ErrValue)
		}
	}
	return nil
}

// finite is a result, and an error if it overflowed.
func finite(what string, value float64) (float64, error) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return 0, fmt.Errorf("metrics: the %s overflows: %w", what, ErrValue)
	}
	return value, nil
}

// checkSome reports an empty or not finite list.
func checkSome(what string, values []float64) error {
	if len(values) == 0 {
		return fmt.Errorf("metrics: %s: %w", what, ErrEmpty)
	}
	return checkFinite(what, values)
}

// checkLength reports a list of the wrong length.
func checkLength(what string, got int, like string, want int) error {
	if got != want {
		return fmt.Errorf("metrics: %s has %d values, %s has %d: %w", what, got, like, want, ErrLength)
	}
	return nil
}
