package datasets

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// Each fuzz test holds a parser to what it promises: a *FileError that points
// into the file, or a result of consistent shape that, written out and read
// again, is the same.

func FuzzParseTable(f *testing.F) {
	for _, seed := range []string{"", "1 2\n3 4\n", "\t-1.5e-3 0\r\n\n7 8", "nan\n", "1 2\n3\n", "1e999", "0x1p2", "1_0", "\x00", "é 1\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		values, columns, err := parseTable(strings.NewReader(text), "fuzz")
		if err != nil {
			requireWellPlaced(t, err, text)
			return
		}
		if columns < 1 || len(values) == 0 || len(values)%columns != 0 {
			t.Fatalf("%d values in %d columns", len(values), columns)
		}
		requireFinite(t, values)
		var again strings.Builder
		for i, v := range values {
			again.WriteString(fmt.Sprint(v))
			again.WriteByte(" \n"[btoi((i+1)%columns == 0)])
		}
		values2, columns2, err := parseTable(strings.NewReader(again.String()), "again")
		if err != nil || columns2 != columns || !slices.Equal(values, values2) {
			t.Fatalf("read again: %v in %d columns, error %v; want %v in %d", values2, columns2, err, values, columns)
		}
	})
}

// A row of the year set has 91 fields, which mutation rarely hits. So the text
// is padded: each of its lines is followed by that many features of value 0.
func FuzzParseYear(f *testing.F) {
	row := "2001" + strings.Repeat(",1", yearD)
	for _, seed := range []string{"", row, row + "\n" + row, "2001,1", "1999.5" + row[4:], "nan" + row[4:], "2001, 1 ,-2e3", ",,", "\r"} {
		f.Add(seed, uint8(0))
		f.Add(seed, uint8(yearD))
		f.Add(seed, uint8(yearD-2))
	}
	f.Fuzz(func(t *testing.T, text string, pad uint8) {
		if pad > 0 {
			text = strings.ReplaceAll(text, "\n", strings.Repeat(",0", int(pad))+"\n") + strings.Repeat(",0", int(pad))
		}
		r, err := parseYear(strings.NewReader(text), "fuzz", 0)
		if err != nil {
			requireWellPlaced(t, err, text)
			return
		}
		if r.N < 1 || r.D != yearD || len(r.Y) != r.N || len(r.X) != r.N*r.D {
			t.Fatalf("N = %d, D = %d, %d inputs, %d targets", r.N, r.D, len(r.X), len(r.Y))
		}
		requireFinite(t, r.X)
		requireFinite(t, r.Y)
		for _, y := range r.Y {
			if y != math.Trunc(y) {
				t.Fatalf("year %v", y)
			}
		}
	})
}

func requireWellPlaced(t *testing.T, err error, text string) {
	t.Helper()
	var parse *FileError
	if !errors.As(err, &parse) {
		t.Fatalf("error of type %T: %v", err, err)
	}
	if lines := strings.Count(text, "\n") + 1; parse.Line < 0 || parse.Line > lines || parse.Column < 0 || parse.Err == nil {
		t.Fatalf("%v points outside a text of %d lines", err, lines)
	}
}

func requireFinite(t *testing.T, values []float64) {
	t.Helper()
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			t.Fatalf("value %v", v)
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
