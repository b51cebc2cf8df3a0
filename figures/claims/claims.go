// Package claims has each sentence of the paper's abstract, captions and results that can be checked, with what our results
// say of it. On the toys and on images one sentence needs every test to be significant; on UCI wins and losses over data
// sets are counted.
package claims

import (
	_ "embed"

	"densityuncertainty/figures/cifar"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
	"densityuncertainty/figures/toy"
	"densityuncertainty/figures/uci"
)

// Exhibit is the table of claims under its name.
func Exhibit() tables.Exhibit {
	return tables.Exhibit{Name: "claims", Doc: "every claim of the paper that can be checked: holds, fails, not significant or mixed, with the evidence", Table: Table}
}

// studies are the claims that each study can check.
var studies = []func(x *tables.Index) ([]tables.Claim, error){toy.Claims, uci.Claims, cifar.Claims}

//go:embed prose.md
var prose string

// Table lists the paper's claims, in our words, and what the results say of each.
func Table(x *tables.Index) (report.Table, error) {
	var all []tables.Claim
	for _, claims := range studies {
		found, err := claims(x)
		if err != nil {
			return report.Table{}, err
		}
		all = append(all, found...)
	}
	t := report.ParseProse(prose).Table("claims", nil)
	tables.AddClaims(&t, all)
	return t, nil
}
