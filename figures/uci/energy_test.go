package uci

import (
	"slices"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

// Differences of -0.1 with 0.02 above and below in turn have a standard deviation of 0.02 sqrt(20/19) = 0.02052, a
// corrected standard error of 0.02052 sqrt(1/20 + 1/9) = 0.00824, and with the quantile 2.093 an interval of 0.01724
// to each side.
func TestEnergyTable(t *testing.T) {
	lines := slices.Concat(
		made(of(methods.DensityConstant, "yacht"), spread(2, 0, 0.1)),
		made(of(methods.DensityDiagonal, "yacht"), spread(2, 0, 0.12)),
		made(of(methods.Density, "yacht"), spread(1.9, 0, 0.12)),
		made(of(methods.DensityMixture, "yacht"), spread(2.1, 0, 0.12)),
		made(of(methods.DensityConstant, "wine")[1:], level(1)), // a split is missing
		made(of(methods.Density, "wine"), level(0.5)),
		made(of(methods.DensityConstant, "boston"), spread(2, 0, 0.1)), // t = 0.045 / 0.0206 = 2.19, p = 0.042, and twice that among four
		made(of(methods.Density, "boston"), spread(1.955, 0, 0.15)),
	)
	table := must.Get(EnergyTable(tables.Of(lines)))(t)
	check(t, table, [][3]string{
		{"Yacht Hydrodynamics, paper", "Density, constant", "2.000 ± 0.103 (n=20)"},
		{"Yacht Hydrodynamics, paper", "Density, diagonal", "2.000 ± 0.123 (n=20) | +0.00000 [-0.01724, +0.01724], undecided"},
		{"Yacht Hydrodynamics, paper", "Density Uncertainty", "1.900 ± 0.123 (n=20) | *-0.100 [-0.117, -0.083], better*"},
		{"Yacht Hydrodynamics, paper", "Density, rank-1 mixture", "2.100 ± 0.123 (n=20) | +0.100 [+0.083, +0.117], worse"},
		{"Wine Quality Red, paper", "Density Uncertainty", "0.500 ± 0.103 (n=20)"},
		{"Boston Housing, paper", "Density Uncertainty", "1.955 ± 0.154 (n=20) | -0.045 [-0.088, -0.002], undecided"},
		{"Concrete Strength, paper", "Density, constant", "not run"},
		{"Boston Housing, Adam", "Density Uncertainty", "not run"},
		{"Kin8nm, released", "Density Uncertainty", "not run"},
	})
}

func TestSpreadTable(t *testing.T) {
	measured := func(spread, coverage float64) func(experiment.Experiment) map[string]float64 {
		return func(e experiment.Experiment) map[string]float64 {
			return map[string]float64{results.MetricModelStd: spread, results.MetricCoverage: coverage, results.MetricRMSE: 2 * spread}
		}
	}
	table := must.Get(SpreadTable(tables.Of(slices.Concat(made(of(methods.DensityConstant, "yacht"), measured(2, 0.99)), made(of(methods.Density, "yacht"), measured(1, 0.96))))))(t)
	check(t, table, [][3]string{
		{"Yacht Hydrodynamics, paper", "deviation of the function, Density, constant", "2.000 ± 0.000 (n=20)"},
		{"Yacht Hydrodynamics, paper", "deviation of the function, Density Uncertainty", "1.000 ± 0.000 (n=20)"},
		{"Yacht Hydrodynamics, paper", "coverage, Density Uncertainty", "0.96 ± 0.00 (n=20)"},
		{"Yacht Hydrodynamics, paper", "rank correlation, Density Uncertainty", "not measured"},
		{"Yacht Hydrodynamics, paper", "RMSE, Density, constant", "4.000 ± 0.000 (n=20)"},
		{"Yacht Hydrodynamics, Adam", "RMSE, Density, constant", "not run"},
	})
}
