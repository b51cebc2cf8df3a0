// Package claims is the account of the paper: each sentence of its abstract, captions and results that can be checked,
// with what our result lines say of it.
package claims

import (
	"slices"

	"densityuncertainty/figures/cifar"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/toy"
	"densityuncertainty/figures/uci"
)

// Tables are the tables of the package.
func Tables() []report.NamedTable {
	return []report.NamedTable{{Name: "claims", Doc: "every claim of the paper that can be checked: holds, does not hold, undecided or not run, with the evidence", Make: Table}}
}

// Table lists the paper's claims, in our words, and what came of them by the result lines: what was not run is said to
// be not run.
func Table(lines []results.Result) (report.Table, error) {
	var all []report.Claim
	for _, of := range []func([]results.Result) ([]report.Claim, error){toy.Claims, uci.Claims, cifar.Claims} {
		found, err := of(lines)
		if err != nil {
			return report.Table{}, err
		}
		all = slices.Concat(all, found)
	}
	return report.ClaimsTable("claims", "What the paper claims, in our words, and what our runs say. Differences are paired over splits or seeds, with the correction of Nadeau and Bengio where splits share examples; "+
		"better, worse and undecided are at 5 % for all comparisons of a claim together (Holm).", all), nil
}
