package jobs

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/results"
)

func TestLive(t *testing.T) {
	wanted := []results.Experiment{exp("density", "yacht", 1), exp("rank1", "boston", 0), exp("density", "yacht", 0)}
	var fractions []float64
	lines := must.Get(Live(context.Background(), runnerFunc(good), wanted, func(done float64, note string) {
		fractions = append(fractions, done)
		if !strings.Contains(note, "yacht") && !strings.Contains(note, "boston") {
			t.Errorf("the note %q does not say what is running", note)
		}
	}))(t)
	for i, e := range wanted {
		if lines[i].ID != e.ID() {
			t.Errorf("line %d is of %v, want %v", i, lines[i].Experiment, e)
		}
	}
	if !slices.ContainsFunc(fractions, func(f float64) bool { return math.Abs(f-2./3) < 1e-6 }) { // two of the three runs, which cost the same, are done
		t.Errorf("progress went %v, want it to pass 2/3", fractions)
	}
	if !slices.IsSorted(fractions) || fractions[0] != 0 || fractions[len(fractions)-1] != 1 {
		t.Errorf("progress went %v, want up from 0 to 1", fractions)
	}
}

func TestLiveFails(t *testing.T) {
	broken := errors.New("no backend")
	for _, c := range []struct {
		name  string
		err   error
		wants []string
	}{
		{"a failing batch", broken, []string{"yacht", "no backend"}},
		{"an empty answer", nil, []string{"yacht", "no result for 1 of 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			calls := 0
			runner := runnerFunc(func(context.Context, []results.Experiment, func(float64, string)) ([]results.Result, error) {
				calls++
				return nil, c.err
			})
			wanted := []results.Experiment{exp("density", "yacht", 0), exp("rank1", "yacht", 0)}
			_, err := Live(context.Background(), runner, wanted, nil)
			if err == nil || c.err != nil && !errors.Is(err, c.err) || calls != 1 {
				t.Errorf("%d calls, error %v", calls, err)
			}
			for _, want := range c.wants {
				if err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want one with %q", err, want)
				}
			}
		})
	}
}
