package uci

import (
	"slices"
	"strings"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

// Yacht has six inputs, so six gaps. The differences 1.5 k - 2 of gaps 0 to 5 have the mean 1.75 and the standard deviation
// 2.806, a corrected standard error of 2.806 sqrt(1/6 + 1/2) = 2.291, and with the quantile 2.571 an interval of 5.890
// to each side.
func TestGapTable(t *testing.T) {
	in := func(m experiment.Method) experiment.Experiments { return gapSettings()[0].runs("yacht", m) }
	measured := func(nll, coverage float64, others map[string]float64) func(experiment.Experiment) map[string]float64 {
		return func(e experiment.Experiment) map[string]float64 {
			found := map[string]float64{results.MetricNLL: nll + float64(e.Split), results.MetricCoverage: coverage}
			for name, value := range others {
				found[name] = value
			}
			return found
		}
	}
	table := must.Get(GapTable(tables.Of(slices.Concat(
		made(in(methods.Density), measured(2, 0.9, map[string]float64{results.MetricSpearman: 0.25})),
		made(in(methods.Rank1), func(e experiment.Experiment) map[string]float64 { // lower on the first two gaps
			return map[string]float64{results.MetricNLL: 2.5 * float64(e.Split), results.MetricCoverage: 0.5, results.MetricSpearman: -0.5}
		}),
		made(in(methods.Deterministic), measured(3, 0.75, nil)), // has no variance to rank by
		made(in(methods.DUE)[1:], measured(1, 0.75, nil)),
		made(in(methods.DensityConstant), measured(3, 0.95, map[string]float64{results.MetricSpearman: 0.125})),
		made(of(methods.MFVI, "yacht"), level(1)), // other splits
	))))(t)
	check(t, table, [][3]string{
		{"Yacht Hydrodynamics, paper, NLL", "Density Uncertainty", "*4.50 ± 1.87 (n=6)*"},
		{"Yacht Hydrodynamics, paper, NLL", "Rank-1 BNN", "6.25 ± 4.68 (n=6) | +1.750 [-4.140, +7.640], undecided"},
		{"Yacht Hydrodynamics, paper, NLL", "Deterministic", "5.50 ± 1.87 (n=6) | +1.000 [+1.000, +1.000], worse"},
		{"Yacht Hydrodynamics, paper, NLL", "DUE", "4.00 ± 1.58 (n=5 of 6)"},
		{"Yacht Hydrodynamics, paper, NLL", "MFVI", "not run"},
		{"Yacht Hydrodynamics, paper, coverage", "Rank-1 BNN", "0.50 ± 0.00 (n=6)"},
		{"Yacht Hydrodynamics, paper, rank correlation", "Density Uncertainty", "0.25 ± 0.00 (n=6)"},
		{"Yacht Hydrodynamics, paper, rank correlation", "Deterministic", "not measured"},
		{"Boston Housing, tuned, NLL", "Density Uncertainty", "not run"},
		{"Boston Housing, paper, NLL", "Density, mean energy", "not run"},
		{"Boston Housing, tuned, NLL", "Density, mean energy", "–"},
	})
	for _, want := range []string{
		"Settings paper, coverage of Density Uncertainty less that of constant energy", "Yacht Hydrodynamics -0.050 [-0.050, -0.050], lower.",
		"Settings paper, rank correlation of", "Yacht Hydrodynamics +0.125 [+0.125, +0.125], higher.",
	} {
		if !strings.Contains(strings.Join(table.Notes, "\n"), want) {
			t.Errorf("the notes lack %q:\n%q", want, table.Notes)
		}
	}
	if text := strings.Join(table.Notes, "\n"); strings.Contains(text, "Settings tuned") {
		t.Errorf("the notes have tests of what was not run:\n%s", text)
	}
}
