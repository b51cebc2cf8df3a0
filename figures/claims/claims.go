// Package claims has each sentence of the paper's abstract, captions and results that can be checked, with what our results
// say of it. On the toys and on images one sentence needs every test to be significant; on UCI wins and losses over data
// sets are counted.
package claims

import (
	_ "embed"
	"fmt"
	"strings"

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
	addClaims(&t, all)
	return t, nil
}

// addClaims appends a row with verdict and evidence for each claim that was checked; NotRun has the others. A claim that
// was checked in several settings holds if it holds in all. It fails if it fails in one and is not significant in the
// others. If it holds in some only, or is mixed in one, it is mixed.
func addClaims(t *report.Table, claims []tables.Claim) {
	t.Columns = []string{"Claim", "Verdict", "Evidence", "Where"}
	for len(claims) > 0 {
		n := 1
		for n < len(claims) && claims[n].Claim == claims[0].Claim && claims[n].Group == claims[0].Group {
			n++
		}
		addClaim(t, claims[:n])
		claims = claims[n:]
	}
}

// addClaim appends one claim, in several settings.
func addClaim(t *report.Table, list []tables.Claim) {
	var waiting, evidence []string
	verdicts := map[string]bool{}
	for _, c := range list {
		if c.Verdict == tables.NotRun {
			waiting = append(waiting, c.In)
			continue
		}
		verdicts[c.Verdict] = true
		evidence = append(evidence, strings.TrimPrefix(c.In+": "+c.Evidence, ": "))
	}
	c := list[0]
	if len(waiting) > 0 {
		where := strings.TrimSuffix(c.Where+": "+strings.Join(waiting, ", "), ": ")
		t.NotRun = append(t.NotRun, fmt.Sprintf("the claim “%s” (%s)", c.Claim, where))
	}
	if len(evidence) == 0 {
		return
	}
	verdict := report.NotSignificant
	switch {
	case verdicts[tables.Holds] && len(verdicts) == 1:
		verdict = tables.Holds
	case verdicts[tables.Holds], verdicts[tables.Mixed]:
		verdict = tables.Mixed
	case verdicts[tables.DoesNotHold]:
		verdict = tables.DoesNotHold
	}
	t.Rows = append(t.Rows, report.Row{Group: c.Group, Name: c.Claim, Cells: report.TextCells(verdict, strings.Join(evidence, "; "), c.Where)})
}
