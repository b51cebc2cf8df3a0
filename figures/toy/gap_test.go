package toy

import (
	"slices"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/tables"
)

func TestGapRatios(t *testing.T) {
	ratios := map[string]float64{"Density Uncertainty (LDL)": 1.4, "Density, rank-1 mixture": 0.9, "MFVI": 0.25, "Rank-1 BNN": 0.7} // the others were not run
	metrics := func(e experiment.Experiment) map[string]float64 {
		ratio := ratios[e.Method.Name]
		if ratio == 0 || e.Preset != "toy.Paper" || e.Seed == 2 {
			return nil
		}
		return map[string]float64{MetricGapRatio: ratio + 0.1*float64(e.Seed%2), metricGapCoverage: 0.5}
	}
	made := measured(exhibit(t, "gap-ratio").Runs(), metrics)
	diverged := grid.Of(Cubic{Seeds: 2}, methods.MFVI)[1].ID()
	made[diverged] = experiment.Result{ID: diverged, Diverged: true}
	table := must.Get(GapRatios(tables.NewIndex(made)))(t)
	if want := []string{"Variational Dropout", clipped.Name, "Density Uncertainty (LDL, mean energy)", methods.DensityConstant.Name}; !slices.Equal(table.NotRun, want) {
		t.Errorf("not run: %q, want %q", table.NotRun, want)
	}
	for _, c := range []struct{ row, column, want string }{
		{"MFVI", "The paper's picture", "collapsed in the gap"},
		{"MFVI", "Gap ratio", "0.30 ± 0.05 (n=18 of 20, 1 of 19 diverged)"},
		{"MFVI", "Seeds above 1", "0 of 18"},
		{"Density Uncertainty (LDL)", "Gap ratio", "1.45 ± 0.05 (n=19 of 20)"},
		{"Density Uncertainty (LDL)", "Seeds above 1", "19 of 19"},
		{"Density Uncertainty (LDL)", "Truth in the band", "0.50 ± 0.00 (n=19 of 20)"},
		{"Density, rank-1 mixture", "Seeds above 1", "0 of 19"},
	} {
		t.Run(c.row+", "+c.column, func(t *testing.T) {
			if got := figtest.Cell(t, table, c.row, c.column); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// The numbers of the stored runs, some of which figures/README.md has too.
func TestDistanceTable(t *testing.T) {
	table := must.Get(DistanceTable(must.Get(committed())(t)))(t)
	for _, c := range []struct{ row, column, want string }{
		{"Density Uncertainty", "Moons: far away", "0.069 ± 0.009"}, {"Deep Ensemble", "Moons: at data", "0.001 ± 0.000"},
		{"DUE", "Cubic: gap ratio", "1.13 ± 0.05"}, {"Deterministic", "Cubic: gap ratio", "not measured"},
	} {
		if got := figtest.Cell(t, table, c.row, c.column); got != c.want {
			t.Errorf("%s, %s: %q, want %q", c.row, c.column, got, c.want)
		}
	}
}
