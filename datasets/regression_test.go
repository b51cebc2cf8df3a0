package datasets

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"math"
	"slices"
	"testing"

	"densityuncertainty/environment/must"
)

func comparePart(t *testing.T, name string, got []int, n int, head []int, sum string) {
	t.Helper()
	if len(got) != n || !slices.Equal(got[:len(head)], head) {
		t.Errorf("%s: %d rows starting %v, want %d starting %v", name, len(got), got[:min(len(got), len(head))], n, head)
		return
	}
	h := sha256.New()
	writeLines(h, got)
	if s := hex.EncodeToString(h.Sum(nil)); s != sum {
		t.Errorf("%s: SHA-256 %s, want %s", name, s, sum)
	}
}

func requirePartition(t *testing.T, name string, s Split, n int) {
	t.Helper()
	seen := make([]bool, n)
	for _, i := range slices.Concat(s.Train, s.Test) {
		if i < 0 || i >= n || seen[i] {
			t.Fatalf("%s: row %d is out of range or occurs twice", name, i)
		}
		seen[i] = true
	}
	if total := len(s.Train) + len(s.Test); total != n {
		t.Fatalf("%s: holds %d of %d rows", name, total, n)
	}
}

func writeLines(h hash.Hash, numbers []int) {
	for _, i := range numbers {
		fmt.Fprintln(h, i)
	}
}

func TestScalerUsesGivenRowsOnly(t *testing.T) {
	// Rows 0 and 2 have the columns {1, 3} and {10, 30}; row 1 would spoil both.
	x := []float64{1, 10, 1e9, -1e9, 3, 30}
	s := FitScaler(x, 2, []int{0, 2})
	if s.Mean[0] != 2 || s.Mean[1] != 20 {
		t.Errorf("means %v, want [2 20]", s.Mean)
	}
	if s.Std[0] != 1 || s.Std[1] != 10 { // population: the deviations are ±1 and ±10
		t.Errorf("standard deviations %v, want [1 10]", s.Std)
	}
}

func TestScalerOnConstantColumn(t *testing.T) {
	const n = 1001
	x := make([]float64, n)
	for i := range x {
		x[i] = 0.1 // a sum of 1001 of these is not 100.1 in floating point
	}
	s := FitScaler(x, 1, ascending(n))
	if s.Mean[0] != 0.1 || s.Std[0] != 1 {
		t.Fatalf("mean %v, sd %v, want 0.1, 1", s.Mean[0], s.Std[0])
	}
	for _, z := range s.Transform(x) {
		if z != 0 {
			t.Fatalf("standardised value %v, want 0", z)
		}
	}
}

func TestScalerOnNaval(t *testing.T) {
	r := must.Get(UCI("naval"))(t)
	splits := must.Get(GalSplits("naval"))(t)
	s := FitScaler(r.X, r.D, splits[0].Train)
	x, _ := r.Take(splits[0].Train)
	z := s.Transform(x)
	again := FitScaler(z, r.D, ascending(len(splits[0].Train)))
	for j := range r.D {
		must.Near(t, again.Mean[j], 0, 1e-9, "the mean of feature %d standardised", j)
		must.Near(t, again.Std[j], 1, 1e-9, "the deviation of feature %d standardised", j)
	}
	for i, back := range s.Inverse(z) {
		must.Near(t, back, x[i], 1e-12*(1+math.Abs(x[i])), "value %d that came back", i)
	}
}

func TestScalerRefusesNonsense(t *testing.T) {
	for want, f := range map[string]func(){
		"FitScaler: no rows to fit on":                     func() { FitScaler([]float64{1, 2}, 1, nil) },
		"FitScaler: 3 values do not form rows of 2":        func() { FitScaler([]float64{1, 2, 3}, 2, []int{0}) },
		"it has values from -Inf to -Inf":                  func() { FitScaler([]float64{math.Inf(-1)}, 1, []int{0}) },
		"it has values from 1 to +Inf":                     func() { FitScaler([]float64{1, math.Inf(1)}, 1, []int{0, 1}) },
		"it has values from -1e+200 to 1e+200":             func() { FitScaler([]float64{1e200, -1e200}, 1, []int{0, 1}) },
		"it has values from -1e-200 to 1e-200":             func() { FitScaler([]float64{1e-200, -1e-200}, 1, []int{0, 1}) },
		"datasets: Scaler: 1 values do not form rows of 2": func() { Scaler{Mean: []float64{0, 0}, Std: []float64{1, 1}}.Transform([]float64{1}) },
	} {
		must.Panic(t, f, want)
	}
}

func TestTakeCopies(t *testing.T) {
	r := &Regression{X: []float64{1, 2, 3, 4, 5, 6}, Y: []float64{7, 8, 9}, N: 3, D: 2}
	x, y := r.Take([]int{2, 0})
	if !slices.Equal(x, []float64{5, 6, 1, 2}) || !slices.Equal(y, []float64{9, 7}) {
		t.Fatalf("x = %v and y = %v, want [5 6 1 2] and [9 7]", x, y)
	}
	x[0], y[0] = 0, 0
	if r.X[4] != 5 || r.Y[2] != 9 {
		t.Error("a change to the copy shows in the set")
	}
}

// Columns far from 0, as times in nanoseconds and identifiers are, have the mean 0 and the deviation 1; those that differ by
// rounding alone are constant, and no target.
func TestScalerOnLargeOffset(t *testing.T) {
	for _, offset := range []float64{1e9, -1e12, 1.7e15, 1.7e18} {
		x, step := make([]float64, 1000), max(1, math.Abs(offset)*0x1p-53)
		for i := range x {
			x[i] = offset + float64(i%3)*math.Exp2(math.Ceil(math.Log2(step)))
		}
		z := FitScaler(x, 1, ascending(len(x))).Transform(x)
		mean, square := 0.0, 0.0
		for _, v := range z {
			mean, square = mean+v/1000, square+v*v/1000
		}
		must.Near(t, mean, 0, min(0.2*math.Abs(offset)*0x1p-52, 0.01)+1e-6, "offset %g: the mean", offset)
		must.Near(t, square, 1, 0.02, "offset %g: the mean square", offset)
	}
	x := make([]float64, 1000)
	for i := range x {
		x[i] = 14.62
	}
	x[7] = math.Nextafter(14.62, 15)
	z := FitScaler(x, 1, ascending(1000)).Transform(append(x, 14.7))
	must.Near(t, z[0], 0, 1e-14, "near a constant %g becomes", x[0])
	must.Near(t, z[1000], 0.08, 1e-9, "near a constant 14.7 becomes")
	must.Err(t, (&Regression{X: x, Y: x, N: 1000, D: 1}).Check(), "but for rounding")
}
