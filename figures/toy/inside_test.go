package runner

import (
	"context"
	"strings"
	"testing"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/render"
)

func inspected(method string) experiment.Experiment {
	return experiment.Experiment{Study: experiment.Toy, Method: method, Dataset: experiment.ToyCubic, Epochs: 20, Samples: 200,
		Fidelity: experiment.Paper, Scale: experiment.Quick}
}

// What Inspect sees is the network that Run trains: the same mean, up to the noise of the draws.
func TestInspect(t *testing.T) {
	r, err := New()
	if err != nil {
		t.Fatal(err)
	}
	last := 0.0
	inside, err := r.Inspect(context.Background(), inspected(experiment.Density), func(done float64, _ string) { last = done })
	if err != nil {
		t.Fatal(err)
	}
	if last != 1 || len(inside.Energies) != 2 {
		t.Fatalf("progress ended at %g with energies of %d layers, want 1 and 2", last, len(inside.Energies))
	}
	lines, err := r.Run(context.Background(), []experiment.Experiment{inspected(experiment.Density)}, func(float64, string) {})
	if err != nil {
		t.Fatal(err)
	}
	want := lines[0].Series
	for i, x := range want[render.SeriesX] {
		// Two means of 200 draws differ by their standard errors.
		bound := 5 * want[render.SeriesStd][i] * 0.1
		if d := inside.Mean[i] - want[render.SeriesMean][i]; d > bound || d < -bound {
			t.Errorf("at x = %g the mean is %g, that of Run %g", x, inside.Mean[i], want[render.SeriesMean][i])
		}
		for l, energy := range inside.Energies {
			if len(energy) != len(inside.X) || energy[i] < 0 {
				t.Fatalf("energies of layer %d: %d values for %d inputs, %g at x = %g", l, len(energy), len(inside.X), energy[i], x)
			}
		}
	}
}

func TestInspectRefuses(t *testing.T) {
	r, err := New()
	if err != nil {
		t.Fatal(err)
	}
	uci := inspected(experiment.Density)
	uci.Study, uci.Dataset, uci.Splits = experiment.UCI, "yacht", experiment.GalSplits
	if _, err := r.Inspect(context.Background(), uci, nil); err == nil || !strings.Contains(err.Error(), "toy") {
		t.Errorf("a UCI experiment: %v", err)
	}
	if _, err := r.Inspect(context.Background(), inspected(experiment.Rank1), nil); err == nil || !strings.Contains(err.Error(), "energy model") {
		t.Errorf("a method without energies: %v", err)
	}
}
