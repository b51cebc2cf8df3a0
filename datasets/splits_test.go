package datasets

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"testing"

	"densityuncertainty/environment/must"
)

func TestGalSplits(t *testing.T) {
	for _, want := range facts {
		splits := must.Get(GalSplits(want.name))(t)
		if len(splits) != want.splits {
			t.Errorf("%s: %d splits, want %d", want.name, len(splits), want.splits)
		}
		for i, s := range splits {
			if len(s.Train) != want.train || len(s.Test) != want.test {
				t.Errorf("%s: split %d has %d + %d rows, want %d + %d", want.name, i, len(s.Train), len(s.Test), want.train, want.test)
			}
			requirePartition(t, fmt.Sprintf("%s split %d", want.name, i), s, want.n)
		}
	}
}

// The drawn splits are, number for number in the same order, the published index
// files.
func TestGalSplitsArePublishedFiles(t *testing.T) {
	for _, set := range publishedSets {
		splits := must.Get(GalSplits(set.name))(t)
		h := sha256.New()
		for _, s := range splits {
			writeLines(h, s.Train)
			writeLines(h, s.Test)
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != set.splits {
			t.Errorf("%s: SHA-256 of the splits is %s, published %s", set.name, got, set.splits)
		}
	}
}

func TestEnergySetsShareSplits(t *testing.T) {
	heating := must.Get(GalSplits("energy"))(t)
	cooling := must.Get(GalSplits("energy-cooling"))(t)
	if !reflect.DeepEqual(heating, cooling) {
		t.Error("the splits differ")
	}
}

func TestYearSplitIsOfficial(t *testing.T) {
	splits := must.Get(GalSplits("year"))(t)
	if len(splits) != 1 {
		t.Fatalf("%d splits, want 1", len(splits))
	}
	s := splits[0]
	requirePartition(t, "year", s, 515345)
	if len(s.Train) != 463715 || s.Train[463714] != 463714 || len(s.Test) != 51630 || s.Test[0] != 463715 {
		t.Errorf("got %d training rows ending with %d, %d test rows starting with %d",
			len(s.Train), s.Train[len(s.Train)-1], len(s.Test), s.Test[0])
	}
}

func TestRandomSplitsEqualScikitLearn(t *testing.T) {
	text := must.Get(os.ReadFile("testdata/sklearn_splits.json"))(t)
	var want struct {
		Splits []struct {
			N, Seed, TrainLen, TestLen int
			TrainSHA256, TestSHA256    string
			TrainHead, TestHead        []int
		}
	}
	must.Do(t, json.Unmarshal(text, &want))
	if len(want.Splits) == 0 {
		t.Fatal("no reference splits")
	}
	for _, w := range want.Splits {
		got := RandomSplits(w.N, w.Seed+1)[w.Seed]
		name := fmt.Sprintf("n = %d, random_state = %d", w.N, w.Seed)
		requirePartition(t, name, got, w.N)
		comparePart(t, name+" train", got.Train, w.TrainLen, w.TrainHead, w.TrainSHA256)
		comparePart(t, name+" test", got.Test, w.TestLen, w.TestHead, w.TestSHA256)
	}
}

func TestRandomSplitsRefusesTooFewRows(t *testing.T) {
	requirePanic(t, func() { RandomSplits(1, 1) })
	requirePanic(t, func() { RandomSplits(10, -1) })
}

// Appending to one part must not overwrite the other.
func TestSplitPartsDoNotAlias(t *testing.T) {
	gal := must.Get(GalSplits("yacht"))(t)
	for _, s := range []Split{gal[0], RandomSplits(308, 1)[0]} {
		test, train := slices.Clone(s.Test), slices.Clone(s.Train)
		_ = append(s.Train, -1)
		_ = append(s.Test, -1)
		if !slices.Equal(s.Test, test) || !slices.Equal(s.Train, train) {
			t.Error("appending to one part changed the other")
		}
	}
}

// The reference values were printed by NumPy 2.4.6. The state has 624 words, so
// the 1000th is past a refill; two permutations in a row also show that the first
// used up the right number of words.
func TestLegacyNumPy(t *testing.T) {
	nth := func(seed uint32, n int) (word uint32) {
		g := legacyNumPy(seed)
		for range n {
			word = g.words.Uint32()
		}
		return word
	}
	for _, c := range []struct {
		seed uint32
		n    int
		want uint32
	}{{5489, 1, 3499211612}, {5489, 2, 581869302}, {5489, 3, 3890346734}, {42, 1000, 1946654618}} {
		t.Run(fmt.Sprintf("word %d of seed %d", c.n, c.seed), func(t *testing.T) {
			if got := nth(c.seed, c.n); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
	t.Run("permutations", func(t *testing.T) {
		g := legacyNumPy(0)
		for _, want := range [][]int{{6, 11, 4, 10, 2, 8, 1, 7, 9, 3, 0, 5}, {3, 1, 2, 4, 0}, {}} {
			if got := g.perm(len(want)); !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		}
	})
}

func TestGapSplits(t *testing.T) {
	// Input 0 falls with the row; input 1 has two values, so that only the order
	// of the set decides within each.
	r := &Regression{N: 7, D: 2, X: []float64{6, 1, 5, 0, 4, 1, 3, 0, 2, 1, 1, 0, 0, 1}}
	want := []Split{
		{Train: []int{6, 5, 2, 1, 0}, Test: []int{4, 3}},
		{Train: []int{1, 3, 2, 4, 6}, Test: []int{5, 0}},
	}
	if got := GapSplits(r); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, facts := range facts {
		t.Run(facts.name, func(t *testing.T) {
			r := must.Get(UCI(facts.name))(t)
			splits := GapSplits(r)
			if len(splits) != r.D {
				t.Fatalf("%d splits, want one for each of %d inputs", len(splits), r.D)
			}
			for d, s := range splits {
				requirePartition(t, fmt.Sprintf("input %d", d), s, r.N)
				if len(s.Test) != 2*r.N/3-r.N/3 {
					t.Errorf("input %d: %d test rows", d, len(s.Test))
				}
				value := func(row int) float64 { return r.Row(row)[d] }
				below, above := s.Train[:r.N/3], s.Train[r.N/3:]
				for _, row := range s.Test {
					if v := value(row); v < value(below[len(below)-1]) || v > value(above[0]) {
						t.Fatalf("input %d: row %d with %v is not in the gap from %v to %v", d, row, v, value(below[len(below)-1]), value(above[0]))
					}
				}
			}
		})
	}
	t.Run("too few rows", func(t *testing.T) { requirePanic(t, func() { GapSplits(&Regression{N: 2, D: 1, X: []float64{1, 2}}) }) })
}
