package mt19937

import (
	"slices"
	"testing"
)

// The reference values were printed by NumPy 2.4.6.
func TestWords(t *testing.T) {
	s := New(5489) // the seed of the reference implementation
	for i, want := range []uint32{3499211612, 581869302, 3890346734} {
		if got := s.Uint32(); got != want {
			t.Errorf("word %d: got %d, want %d", i, got, want)
		}
	}
}

// The state has 624 words, so the 1000th word is past a refill.
func TestRefill(t *testing.T) {
	s := New(42)
	var word uint32
	for range 1000 {
		word = s.Uint32()
	}
	if want := uint32(1946654618); word != want {
		t.Errorf("1000th word: got %d, want %d", word, want)
	}
}

// Two permutations in a row also show that the first used up the right number
// of words.
func TestPerm(t *testing.T) {
	s := New(0)
	for _, want := range [][]int{{6, 11, 4, 10, 2, 8, 1, 7, 9, 3, 0, 5}, {3, 1, 2, 4, 0}} {
		if got := s.Perm(len(want)); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	if got := s.Perm(0); len(got) != 0 {
		t.Errorf("Perm(0): got %v", got)
	}
}
