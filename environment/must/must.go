// Package must ends a test at an error that the test is not about, and checks errors and numbers that it is about.
package must

import (
	"errors"
	"fmt"
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

// Err fails the test if err is nil, does not contain each text among parts, or does not wrap each error among them.
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

// Panic fails the test unless f panics with a reason that contains the text.
func Panic(t testing.TB, f func(), text string) {
	t.Helper()
	defer func() {
		t.Helper()
		if reason := recover(); reason == nil || !strings.Contains(fmt.Sprint(reason), text) {
			t.Errorf("the panic is %v, want %q", reason, text)
		}
	}()
	f()
}

// maxZ bounds the z-scores of statistics tests. A right implementation exceeds 4 standard errors once in 16,000 checks. Seeds are
// fixed, so a test that passes keeps passing.
const maxZ = 4

// Z fails the test if a z-score is NaN or beyond 4. words names the statistic.
func Z(t testing.TB, z float64, words string, args ...any) {
	t.Helper()
	if !(math.Abs(z) < maxZ) {
		t.Errorf(words+": z-score %.2f", append(args, z)...)
	}
}

// Near fails the test if got is NaN, or further from want than the tolerance. words says what got is.
func Near(t testing.TB, got, want, tolerance float64, words string, args ...any) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf(words+": %g, want %g within %g", append(args, got, want, tolerance)...)
	}
}
