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

// Exhibits has the table of claims.
func Exhibits() tables.Exhibits {
	return tables.Exhibits{{Name: "claims", Doc: "every claim of the paper that can be checked: holds, fails, not significant or mixed, with the evidence", Table: made}}
}

// studies are the claims that each study can check.
var studies = []func(x *tables.Index) ([]tables.Claim, error){toy.Claims, uci.Claims, cifar.Claims}

//go:embed prose.md
var prose string

// made lists the paper's claims, in our words, and what the results say of each.
func made(x *tables.Index) (report.Table, error) {
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
