package toy

import (
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/tables"
)

// Seeds are counted by their ratios, of those that have one. What was not run has no row.
func TestGapRatios(t *testing.T) {
	made := measured(grid.Of(Cubic{Seeds: gapSeeds}, methods.Density), func(e experiment.Experiment) map[string]float64 {
		return map[string]float64{MetricGapRatio: 0.95 + 0.1*float64(e.Seed%2), metricGapCoverage: 0.5}
	})
	diverged := grid.Of(Cubic{Seeds: 2}, methods.Density)[1].ID()
	made[diverged] = experiment.Result{ID: diverged, Diverged: true}
	table := must.Get(gapRatios(tables.NewIndex(made)))(t)
	if got := figtest.Cell(t, table, "Density Uncertainty (LDL)", "Seeds above 1"); got != "9 of 19" || len(table.Rows) != 1 {
		t.Errorf("%d rows, %s seeds above 1", len(table.Rows), got)
	}
}

// The numbers of the stored runs, some of which figures/README.md has too.
func TestDistanceTable(t *testing.T) {
	table := must.Get(distanceTable(must.Get(committed())(t)))(t)
	for _, c := range []struct{ row, column, want string }{
		{"Density Uncertainty", "Moons: far away", "0.069 ± 0.009"}, {"Deep Ensemble", "Moons: at data", "0.001 ± 0.000"},
		{"DUE", "Cubic: gap ratio", "1.13 ± 0.05"}, {"Deterministic", "Cubic: gap ratio", "not measured"},
	} {
		if got := figtest.Cell(t, table, c.row, c.column); got != c.want {
			t.Errorf("%s, %s: %q, want %q", c.row, c.column, got, c.want)
		}
	}
}
