// Package must ends a test at an error that the test is not about, and checks errors and numbers that it is about.
package must

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// Get ends the test if err is not nil, and else returns the value:
//
//	text := must.Get(os.ReadFile(path))(t)
func Get[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Do(t, err)
		return value
	}
}

// Do ends the test if err is not nil.
func Do(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Get2 is Get for a function of two values.
func Get2[A, B any](a A, b B, err error) func(testing.TB) (A, B) {
	return func(t testing.TB) (A, B) {
		t.Helper()
		Do(t, err)
		return a, b
	}
}

// Err fails the test if err is nil, or one of the parts is a text that it does not say or an error that it does not wrap.
func Err(t testing.TB, err error, parts ...any) {
	t.Helper()
	if err == nil {
		t.Errorf("there is no error, want all of %q", parts)
		return
	}
	for _, part := range parts {
		wrapped, is := part.(error)
		if is && !errors.Is(err, wrapped) || !is && !strings.Contains(err.Error(), part.(string)) {
			t.Errorf("the error is %v, want %q", err, part)
		}
	}
}

// GetErr is Err for a function of a value and an error:
//
//	must.GetErr(os.ReadFile(path))(t, path, fs.ErrNotExist)
func GetErr[T any](_ T, err error) func(t testing.TB, parts ...any) {
	return func(t testing.TB, parts ...any) {
		t.Helper()
		Err(t, err, parts...)
	}
}

// maxZ bounds the z-scores of statistics tests. A right implementation exceeds 4 standard errors once in 16,000 checks; seeds are
// fixed, so a test that passes keeps passing.
const maxZ = 4

// Z fails the test if a z-score is NaN or beyond 4. The words say of what it is.
func Z(t testing.TB, z float64, words string, args ...any) {
	t.Helper()
	if !(math.Abs(z) < maxZ) {
		t.Errorf(words+": z-score %.2f", append(args, z)...)
	}
}

// Near fails the test if a number is NaN or further from the wanted one than the tolerance. The words say what it is.
func Near(t testing.TB, got, want, tolerance float64, words string, args ...any) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf(words+": %g, want %g within %g", append(args, got, want, tolerance)...)
	}
}
