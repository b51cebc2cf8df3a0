package uci

import (
	"slices"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/methods"
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
	table := must.Get(energyTable(tables.Of(lines)))(t)
	const bound = "Density Uncertainty differs by at most"
	check(t, table, [][3]string{
		{"paper's text, Yacht Hydrodynamics", "Density, constant", "2.00 ± 0.10"},
		{"paper's text, Yacht Hydrodynamics", "Density, diagonal", "2.00 ± 0.12, not significant"},
		{"paper's text, Yacht Hydrodynamics", "Density Uncertainty", "*1.90 ± 0.12*, better"},
		{"paper's text, Yacht Hydrodynamics", bound, "0.117"},
		{"paper's text, Yacht Hydrodynamics", "Density, rank-1 mixture", "2.10 ± 0.12, worse"},
		{"paper's text, Wine Quality Red", "Density Uncertainty", "*0.50 ± 0.10*"},
		{"paper's text, Wine Quality Red", bound, ""},
		{"paper's text, Boston Housing", "Density Uncertainty", "*1.96 ± 0.15*, not significant"},
		{"paper's text, Boston Housing", bound, "0.088"},
		// The mean of -0.1 and -0.045 is -0.0725, and sqrt(0.01724^2 + 0.04310^2) / 2 = 0.0232 its reach.
		{"paper's text, " + allSets, "Density Uncertainty", "-0.073 [-0.096, -0.049]"},
		{"paper's text, " + allSets, bound, "0.096"},
		{"paper's text, " + allSets, "Density, diagonal", ""}, // of one data set
	})
	if len(table.Rows) != 5 { // wine has also tuned settings that are the paper's
		t.Errorf("%d rows, want those of four data sets and settings, and of a mean", len(table.Rows))
	}
}
