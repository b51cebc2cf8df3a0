package jobs

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/figures/results"
)

func TestLive(t *testing.T) {
	wanted := []results.Experiment{exp("density", "yacht", 1), exp("rank1", "boston", 0), exp("density", "yacht", 0)}
	var fractions []float64
	lines, err := Live(context.Background(), runnerFunc(good), wanted, func(done float64, note string) {
		fractions = append(fractions, done)
		if !strings.Contains(note, "yacht") && !strings.Contains(note, "boston") {
			t.Errorf("the note %q does not say what is running", note)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range wanted {
		if lines[i].ID != e.ID() {
			t.Errorf("line %d is of %v, want %v", i, lines[i].Experiment, e)
		}
	}
	if !slices.IsSorted(fractions) || fractions[0] != 0 || fractions[len(fractions)-1] != 1 {
		t.Errorf("progress went %v, want up from 0 to 1", fractions)
	}
}

func TestLiveFails(t *testing.T) {
	broken := errors.New("no backend")
	failing := runnerFunc(func(context.Context, []results.Experiment, func(float64, string)) ([]results.Result, error) {
		return nil, broken
	})
	wanted := []results.Experiment{exp("density", "yacht", 0)}
	if _, err := Live(context.Background(), failing, wanted, nil); !errors.Is(err, broken) || !strings.Contains(err.Error(), "yacht") {
		t.Errorf("a failing batch: %v", err)
	}
	silent := runnerFunc(func(context.Context, []results.Experiment, func(float64, string)) ([]results.Result, error) {
		return nil, nil
	})
	if _, err := Live(context.Background(), silent, wanted, nil); err == nil || !strings.Contains(err.Error(), "no result for 1 of 1") {
		t.Errorf("an empty answer: %v", err)
	}
}
