package must_test

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"testing"

	"densityuncertainty/environment/must"
)

// failing notes that a test failed.
type failing struct {
	testing.TB
	failed bool
}

func (*failing) Helper()                 {}
func (f *failing) Errorf(string, ...any) { f.failed = true }

func TestChecks(t *testing.T) {
	err := fmt.Errorf("reading: %w", fs.ErrNotExist)
	for _, c := range []struct {
		err   error
		parts []any
		fails bool
	}{
		{err, []any{"reading", os.ErrNotExist}, false}, {err, []any{"reading", "writing"}, true}, {err, []any{"reading", os.ErrExist}, true}, {nil, []any{"reading"}, true}, {nil, nil, true},
	} {
		f := &failing{TB: t}
		if must.Err(f, c.err, c.parts...); f.failed != c.fails {
			t.Errorf("%v, %q: failed %t", c.err, c.parts, f.failed)
		}
	}
	for got, fails := range map[float64]bool{1.25: false, 1.26: true, 0.74: true, math.NaN(): true} {
		f := &failing{TB: t}
		if must.Near(f, got, 1, 0.25, "the %s", "number"); f.failed != fails {
			t.Errorf("%g: failed %t", got, f.failed)
		}
	}
	for reason, fails := range map[any]bool{"an odd size": false, err: true, nil: true} {
		f := &failing{TB: t}
		must.Panic(f, func() {
			if reason != nil {
				panic(reason)
			}
		}, "odd")
		if f.failed != fails {
			t.Errorf("a panic with %v: failed %t", reason, f.failed)
		}
	}
	for z, fails := range map[float64]bool{-3.9: false, 4.1: true, -4.1: true, math.NaN(): true} {
		f := &failing{TB: t}
		if must.Z(f, z, "of %d", 1); f.failed != fails {
			t.Errorf("a z-score of %g: failed %t", z, f.failed)
		}
	}
}
