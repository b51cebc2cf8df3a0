package runner

import (
	"context"
	"slices"
	"testing"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/render"
)

// The map has the places that its axes say.
func TestMoonsGrid(t *testing.T) {
	if got := gridOf([]float64{1, 2}, []float64{3, 4}); !slices.Equal(got, []float64{1, 3, 2, 3, 1, 4, 2, 4}) {
		t.Errorf("grid %v; want rows from below", got)
	}
	if got := axisOf(moonsLow); len(got) != moonsPoints || got[0] != moonsLow || got[moonsPoints-1] != moonsLow+moonsSide {
		t.Errorf("axis %v", got)
	}
	// Of the two places, on the point and the whole square away, one is far.
	if far := farOf([]float64{1, 2, 3, 4}, []float64{0, 6}, []float64{0, 6}, []float64{0, 0}); !slices.Equal(far, []float64{2, 3, 4}) {
		t.Errorf("far places have values %v", far)
	}
}

// A Gaussian process is uncertain far away, and a single network is not.
func TestMoonsDistanceAwareness(t *testing.T) {
	r := newRunner(t)
	far := map[string]float64{}
	for _, method := range []string{experiment.Deterministic, experiment.SNGP, experiment.DUE, experiment.Ensemble} {
		e := toy(method, 0)
		e.Dataset, e.Epochs, e.Samples = experiment.TwoMoons, 60, 2
		found, err := r.Run(context.Background(), []experiment.Experiment{e}, ignore)
		if err != nil {
			t.Fatal(err)
		}
		s := found[0].Series
		if len(s[render.SeriesEntropy]) != len(s[render.SeriesX])*len(s[render.SeriesY]) || len(s[render.SeriesTrainX]) != moonsN {
			t.Errorf("%s: %d values of a map of %d by %d, %d points", method, len(s[render.SeriesEntropy]), len(s[render.SeriesX]), len(s[render.SeriesY]), len(s[render.SeriesTrainX]))
		}
		if a := found[0].Metrics["accuracy"]; a < 0.8 {
			t.Errorf("%s: accuracy %.3f", method, a)
		}
		far[method] = found[0].Metrics["entropy_far"]
	}
	if far[experiment.SNGP] < 0.6 || far[experiment.DUE] < 0.5 || far[experiment.Deterministic] > 0.2 {
		t.Errorf("entropies far from the data: %v", far)
	}
}
