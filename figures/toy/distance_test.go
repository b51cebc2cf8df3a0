package render

import (
	"math"
	"strings"
	"testing"

	"densityuncertainty/datasets"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/results"
)

// distanceResults are made up: maps of moons whose entropy grows with the distance from the middle, for
// single networks from a line.
func distanceResults(t *testing.T) []results.Result {
	t.Helper()
	set, ok := experiment.SetByName(distanceSet)
	if !ok {
		t.Fatalf("no set %s", distanceSet)
	}
	var lines []results.Result
	for _, e := range set.At(experiment.Full) {
		if e.Dataset == experiment.ToyCubic {
			r := madeUp(e)
			r.Metrics = map[string]float64{"noise_std": 3}
			lines = append(lines, r)
			continue
		}
		r := results.Result{ID: e.ID(), Experiment: e, Metrics: map[string]float64{"entropy_data": 0.1, "entropy_far": 0.5}, Series: map[string][]float64{}}
		add := func(name string, v float64) { r.Series[name] = append(r.Series[name], v) }
		const cells = 30
		for i := range cells {
			add(SeriesX, -2.5+6*float64(i)/(cells-1))
			add(SeriesY, -2.75+6*float64(i)/(cells-1))
		}
		for _, y := range r.Series[SeriesY] {
			for _, x := range r.Series[SeriesX] {
				far := math.Hypot(x-0.5, y-0.25) / 2
				if e.Method == experiment.Deterministic || e.Method == experiment.Ensemble {
					far = math.Exp(-8 * math.Abs(y-x/2))
				}
				add(SeriesEntropy, math.Ln2*min(far, 1))
			}
		}
		points, labels := datasets.TwoMoons(100, 0.1, e.Seed)
		for i, label := range labels {
			add(SeriesTrainX, points[2*i])
			add(SeriesTrainY, points[2*i+1])
			add(SeriesLabel, float64(label))
		}
		lines = append(lines, r)
	}
	return lines
}

func TestDistanceFigures(t *testing.T) {
	lines := distanceResults(t)
	f, err := DistanceMoons(lines, 1)
	if err != nil {
		t.Fatal(err)
	}
	if title := f.Panels[1][0].Title.Text; title != "SNGP\nat data 0.10, far away 0.50" {
		t.Errorf("title %q", title)
	}
	if !strings.Contains(f.Caption, "seed 1") || strings.Contains(f.Caption, "QUICK") {
		t.Errorf("caption %q", f.Caption)
	}
	for i := range lines {
		switch {
		case lines[i].Experiment.Method == experiment.DUE:
			lines[i].Diverged, lines[i].Series = true, nil
		case lines[i].Experiment.Method == experiment.SNGP && lines[i].Experiment.Seed == 2 && lines[i].Experiment.Dataset == experiment.TwoMoons:
			lines[i].Series[SeriesEntropy] = lines[i].Series[SeriesEntropy][1:]
		}
	}
	for _, figure := range []func([]results.Result, uint64) (Figure, error){DistanceToy, DistanceMoons} {
		f, err := figure(lines, 0)
		if err != nil || !strings.Contains(f.Panels[1][1].Title.Text, "diverged") {
			t.Errorf("diverged panel: %v", err)
		}
		if _, err := f.Bytes(SVG); err != nil {
			t.Errorf("drawing it: %v", err)
		}
	}
	if _, err := DistanceMoons(lines, 2); err == nil || !strings.Contains(err.Error(), "30 by 30 places has 899") {
		t.Errorf("a map with a value too few: %v", err)
	}
	if _, err := DistanceToy(nil, 0); err == nil || !strings.Contains(err.Error(), "run: reproduce run distance") {
		t.Errorf("no runs: %v", err)
	}
}
