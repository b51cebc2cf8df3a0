package uci

import (
	"math"
	"slices"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/tables"
)

// Yacht has six inputs, so six gaps. The differences 1.5 k - 2 of gaps 0 to 5 have the mean 1.75 and the standard deviation
// 2.806, a corrected standard error of 2.806 sqrt(1/6 + 1/2) = 2.291, and with the quantile 2.571 an interval of 5.890
// to each side.
func TestGapTable(t *testing.T) {
	in := func(m experiment.Method) experiment.Experiments {
		return gapGrids()[0].Of(Data{Name: "yacht", Kind: Gap}, m)
	}
	measured := func(nll float64) func(experiment.Experiment) map[string]float64 {
		return func(e experiment.Experiment) map[string]float64 {
			return map[string]float64{experiment.MetricNLL: nll*uneven(e) + float64(e.Split)}
		}
	}
	x := tables.Of(slices.Concat(
		made(in(methods.Density), measured(2)),
		made(in(methods.Rank1), func(e experiment.Experiment) map[string]float64 { // lower on the first two gaps
			return map[string]float64{experiment.MetricNLL: 2.5 * float64(e.Split)}
		}),
		made(in(methods.Deterministic), measured(3)),
		made(in(methods.DUE)[1:], measured(1)),
		made(of(methods.MFVI, "yacht"), level(1)), // other splits
	))
	table := must.Get(gapTable(x))(t)
	check(t, table, [][3]string{
		{"paper's text, Yacht Hydrodynamics", "Density Uncertainty", "*4.5 ± 1.9*"}, {"paper's text, Yacht Hydrodynamics", "Rank-1 BNN", "6.2 ± 4.7, not significant"},
		{"paper's text, Yacht Hydrodynamics", "Deterministic", "5.5 ± 1.9, worse"}, {"paper's text, Yacht Hydrodynamics", "DUE", "4.0 ± 1.6 (n=5 of 6)"},
	})
	if d := table.Rows[0].Cells[slices.Index(table.Columns, "Rank-1 BNN")-1].Difference; math.Abs(d.Mean-1.75) > 1e-9 || math.Abs(d.High-d.Mean-5.89) > 1e-3 {
		t.Errorf("the difference of Rank-1 is %+v", d)
	}
}
