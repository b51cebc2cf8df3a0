package toy

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
)

func TestGapRatio(t *testing.T) {
	x := []float64{-5, -4, -3, -2, -1.5, -1, 0, 1, 1.5, 2, 3, 4, 5}
	std := []float64{9, 1, 2, 3, 9, 6, 7, 8, 9, 1, 2, 3, 9}
	if ratio := gapRatio(x, std); math.Abs(ratio-3.5) > 1e-15 {
		t.Errorf("got %v", ratio)
	}
}

// The curves are -1 and 1, so that x^3 is between them for |x| <= 1: of the five inputs in the gap three.
func TestGapCoverage(t *testing.T) {
	x := []float64{-3, -2, -1.5, -1, 0, 1, 1.5, 2, 3}
	low, high := make([]float64, len(x)), make([]float64, len(x))
	for i := range x {
		low[i], high[i] = -1, 1
	}
	if got := gapCoverage(x, low, high); got != 0.6 {
		t.Errorf("got %v, want 0.6", got)
	}
}

func TestGapRatios(t *testing.T) {
	ratios := map[string]float64{"density": 1.4, "density-rank1mix": 0.9, "mfvi": 0.25, "rank1": 0.7} // vdropout was not run
	var lines []results.Result
	for _, e := range figure1() {
		ratio := ratios[e.Method]
		if ratio == 0 || e.Scale == results.Full && (e.Seed == 2 || e.Options != nil) {
			continue
		}
		ratio += 0.1 * float64(e.Seed%2)
		lines = append(lines, results.Result{ID: e.ID(), Experiment: e, Diverged: e.Method == "mfvi" && e.Seed == 1,
			Metrics: map[string]float64{results.MetricGapRatio: ratio, results.MetricGapCoverage: 0.5}})
	}
	table := must.Get(GapRatios(lines))(t)
	figtest.Renders(t, table)
	for _, c := range []struct{ row, column, want string }{
		{"MFVI", "The paper's picture", "collapsed in the gap"},
		{"MFVI", "Gap ratio", "0.30 ± 0.05 (n=18 of 20) | 1 of 19 runs diverged"},
		{"MFVI", "Seeds with a ratio above 1", "0 of 18"},
		{"Density Uncertainty (LDL)", "Gap ratio", "1.45 ± 0.05 (n=19 of 20)"},
		{"Density Uncertainty (LDL)", "Seeds with a ratio above 1", "19 of 19"},
		{"Density Uncertainty (LDL)", "Truth in the band", "0.50 ± 0.00 (n=19 of 20)"},
		{"Density Uncertainty (LDL, energy clipped)", "Gap ratio", "quick, 800 epochs: 1.43 ± 0.06 (n=3)"},
		{"Density, rank-1 mixture", "Seeds with a ratio above 1", "0 of 19"},
		{"Variational Dropout", "Gap ratio", "not run"},
		{"Variational Dropout", "Seeds with a ratio above 1", "–"},
	} {
		t.Run(c.row+", "+c.column, func(t *testing.T) {
			if got := figtest.Cell(t, table, c.row, c.column); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestDistanceTable(t *testing.T) {
	lines := made(results.Filter{Scale: results.Full}.Apply(distance()))
	for i, line := range lines {
		e := line.Experiment
		lines[i].Metrics = map[string]float64{results.MetricEntropyData: 0.1 * float64(e.Seed), results.MetricEntropyFar: 0.5}
		if e.Dataset != CubicName {
			continue
		}
		std := []float64{4, 99, 1, 2, 2, 1, 99, 8}
		floats.Scale(1+float64(e.Seed), std)
		if e.Method == "deterministic" {
			floats.Scale(0, std)
		}
		lines[i].Series = map[string][]float64{results.SeriesX: {-6, -4.5, -3, 0, 0.5, 3, 4.5, 5}, results.SeriesStd: std}
	}
	table := must.Get(DistanceTable(lines))(t)
	figtest.Renders(t, table)
	for i, m := range DistanceMethods() {
		want := []string{"0.100 (0.000 to 0.200)", "0.500 (0.500 to 0.500)", "2.0 (2.0 to 2.0)", "6.0 (6.0 to 6.0)"}
		if m.Name == methods.Deterministic.Name {
			want[2], want[3] = "no spread", "no spread"
		}
		var got []string
		for _, c := range table.Rows[i].Cells {
			got = append(got, figtest.Text(c))
		}
		if table.Rows[i].Name != m.Title || !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", table.Rows[i].Name, got, want)
		}
	}
	// Of the single network one run is missing: on two moons, or of the cubic, it diverged.
	missing, diverged := slices.DeleteFunc(slices.Clone(lines), func(r results.Result) bool {
		return r.Experiment.Method == "deterministic" && r.Experiment.Dataset == MoonsName && r.Experiment.Seed == 1
	}), slices.Clone(lines)
	diverged[0].Diverged = true
	for _, c := range []struct {
		name  string
		lines []results.Result
		want  []string
	}{
		{"a run is missing", missing, []string{"not run", "not run", "no spread", "no spread"}},
		{"a run diverged", diverged, []string{"0.100 (0.000 to 0.200)", "0.500 (0.500 to 0.500)", "diverged", "diverged"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := must.Get(DistanceTable(c.lines))(t)
			for k, want := range c.want {
				if got := figtest.Text(table.Rows[0].Cells[k]); got != want {
					t.Errorf("%s: %q, want %q", table.Columns[k+1], got, want)
				}
			}
		})
	}
}
