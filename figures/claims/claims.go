// Package claims is the account of the paper: each sentence of its abstract, captions and results that can be checked,
// with what our results say of it.
package claims

import (
	"densityuncertainty/figures/cifar"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
	"densityuncertainty/figures/toy"
	"densityuncertainty/figures/uci"
)

// Named is the table of claims under its name.
func Named() tables.Named {
	return tables.Named{Name: "claims", Doc: "every claim of the paper that can be checked: holds, does not hold, undecided or not run, with the evidence", Make: Table}
}

// studies are the claims that each study can check.
var studies = []func(x *tables.Index) ([]report.Claim, error){toy.Claims, uci.Claims, cifar.Claims}

// caption says how verdicts are made.
const caption = "What the paper claims, in our words, and what our runs say. Single differences are paired over splits or seeds, with the correction of Nadeau and Bengio where splits share examples, and are better, worse or undecided " +
	"at 5 % for all of the table together that the evidence names, as that table shows them, else for all of the claim (Holm). A claim about several data sets holds where a difference is decided for it and none against it, " +
	"does not hold where one is decided against it and none for it, and is undecided otherwise; runs that diverged were not compared, so that they refute nothing, but keep a claim from holding. " +
	"To outperform on 6 of 9 data sets is to be decided better than each other method on 6; it does not hold where more than 3 are lost, by being decided worse than a method or by diverging. " +
	"A claim about images holds where all its differences, over seeds, are decided for density uncertainty, and does not where one is decided against it or a run of it diverged; " +
	"it is about as good where no mean is worse by more than the standard deviation of the other's seeds. " +
	"A gap ratio is tested against the number that the claim names, over independent seeds; all of these tests have to be decided for the claim. " +
	"Two sentences are checked on networks instead of result lines: that energies are approximately normal, in notebook 08, section 6, and that a mixture of rank-1 Gaussians costs next to nothing, in notebooks 07 and 10."

// Table lists the paper's claims, in our words, and what the results say of each. A claim without results is said to be
// not run.
func Table(x *tables.Index) (report.Table, error) {
	var all []report.Claim
	for _, claims := range studies {
		found, err := claims(x)
		if err != nil {
			return report.Table{}, err
		}
		all = append(all, found...)
	}
	return report.ClaimsTable("claims", caption, all), nil
}
