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
	must.Panic(t, func() { RandomSplits(1, 1) }, "datasets: RandomSplits: n = 1 ")
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
	must.Panic(t, func() { GapSplits(&Regression{N: 2, D: 1, X: []float64{1, 2}}) }, "has 2 rows, want at least 3")
}
