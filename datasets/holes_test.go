package datasets

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/environment/must"
)

// Gaps of four sets, of which three are no holes, with numbers that SciPy and NumPy computed. Ordinary distances were of other random
// splits there.
func TestHoles(t *testing.T) {
	for _, want := range []struct {
		set                               string
		gap                               int
		distance, beyond, energy, outside float64
	}{
		{"boston", 1, 2.2057, 0.7396, 16.6145, 0.3254},
		{"boston", 5, 1.0083, 0.2189, 0.7793, 0.0059},
		{"yacht", 0, 6.0908, 0.9806, 6.4585, 0.6796},
		{"concrete", 7, 1.3003, 0.2770, 1.0700, 0.0262},
		{"wine", 3, 1.2461, 0.3340, 0.8022, 0.0113},
	} {
		r := must.Get(UCI(want.set))(t)
		h := must.Get(Holes(r, GapSplits(r)[want.gap]))(t)[0]
		must.Near(t, h.Distance/want.distance, 1, 0.02, "%+v: distance", want)
		must.Near(t, h.Beyond, want.beyond, 0.02, "%+v: beyond", want)
		must.Near(t, h.Energy/want.energy, 1, 1e-3, "%+v: energy", want)
		must.Near(t, h.Outside, want.outside, 1e-4, "%+v: outside", want)
		if h.IsHole() != (want.beyond >= 0.5) {
			t.Errorf("%+v, want %+v", h, want)
		}
	}
}

// A random split is no hole. A missing number is the mean. What has no distance is an error.
func TestHolesOfTables(t *testing.T) {
	r := &Regression{Name: "mine", N: 300, D: 2, Columns: Columns{{Name: "x", MayMiss: true}}, X: make([]float64, 600), Y: ascendingFloats(300)}
	for i := range r.N {
		if r.X[2*i] = float64(i); i%10 == 7 {
			r.X[2*i], r.X[2*i+1] = math.NaN(), 1
		}
	}
	if h := must.Get(Holes(r, RandomSplits(r.N, 1)[0]))(t)[0]; h.IsHole() || !(h.Distance > 0.7 && h.Distance < 1.3 && h.Energy > 0.5 && h.Energy < 2) {
		t.Errorf("of a random split: %+v", h)
	}
	must.GetErr(Holes(r, Split{Train: []int{0, 1}, Test: []int{1}}))(t, "split 0 of set \"mine\" has the row 1")
	copies := &Regression{Name: "copies", N: 40, D: 1, X: make([]float64, 40), Y: ascendingFloats(40)}
	must.GetErr(Holes(copies, RandomSplits(40, 1)[0]))(t, "leave copies out")
}

func ascendingFloats(n int) (all []float64) {
	for _, i := range ascending(n) {
		all = append(all, float64(i))
	}
	return all
}

// Cuts are between values, the ends stay, and rows with ties stay together.
func TestBetween(t *testing.T) {
	values := []float64{5, 1, 1, 2, 2, 2, 3, 4, 9}
	for _, c := range []struct {
		first, end int
		test       []int
	}{
		{3, 5, []int{3, 4, 5}}, // the places of the value 2 are 2 to 4
		{4, 7, []int{6, 7}},
		{0, 3, []int{1, 2}},
		{7, 9, []int{0, 8}},
		{3, 4, []int{3, 4, 5}},
		{2, 3, nil},
	} {
		s := Between(values, c.first, c.end)
		if !slices.Equal(s.Test, c.test) || len(s.Train)+len(s.Test) != len(values) {
			t.Errorf("from %d to %d: %+v, want %v", c.first, c.end, s, c.test)
		}
	}
}

// Of a table's inputs, those are axes that are numbers with enough values: no words, nothing that misses, no switch.
func TestHoleSplits(t *testing.T) {
	r := must.Get(CSV{Target: "y", FillMissing: true, Categories: []string{"word"}}.parse(holeTable(), "t.csv"))(t)
	splits, inputs, err := HoleSplits(r)
	if err != nil || !slices.Equal(inputs, []string{"x", "ties"}) {
		t.Fatalf("axes are %q of %q, error %v", inputs, r.Features, err)
	}
	at := slices.Index(r.Features, "ties")
	for i, s := range splits {
		requirePartition(t, inputs[i], s, r.N)
		if 6*len(s.Test) < r.N || 2*len(s.Test) > r.N {
			t.Errorf("%s tests on %d of %d rows", inputs[i], len(s.Test), r.N)
		}
	}
	for _, a := range splits[1].Test {
		for _, b := range splits[1].Train {
			if r.Row(a)[at] == r.Row(b)[at] {
				t.Fatal("rows with one value are in both parts")
			}
		}
	}
	_, _, err = HoleSplits(&Regression{Name: "s", N: 4, D: 1, X: []float64{0, 0, 1, 1}, Y: []float64{1, 2, 3, 4}})
	must.Err(t, err, "no input of set \"s\" has a gap")
}

// holeTable has a column of numbers, one with ties, a switch, words, a column with a missing number and the target.
func holeTable() string {
	var b strings.Builder
	b.WriteString("x,ties,switch,word,some,y\n")
	for i := range 60 {
		some := fmt.Sprint(i)
		if i == 5 {
			some = ""
		}
		fmt.Fprintf(&b, "%d.5,%d,%d,%s,%s,%d\n", i, i*i%7, i%2, []string{"a", "b", "c"}[i%3], some, i)
	}
	return b.String()
}
