package tables

import (
	"fmt"
	"strings"

	"densityuncertainty/figures/report"
)

// The verdicts on claims, besides report.NotSignificant.
const (
	Holds       = "holds"
	DoesNotHold = "fails"
	Mixed       = "mixed"
	NotRun      = "not run"
)

// A Claim is a sentence of the paper that can be checked, in our words, with its verdict.
type Claim struct {
	Group string // what it is about, such as "UCI regression"
	Claim string
	Where string // in the paper
	// In is what it was checked in, such as "authors' code"; "" for a claim that was checked once. A claim that was checked in
	// several settings is several Claims, one after the other.
	In       string
	Verdict  string // Holds, DoesNotHold, Mixed, report.NotSignificant or NotRun
	Evidence string // one line
}

// AddClaims appends a row with verdict and evidence for each claim that was checked; NotRun has the others. A claim that
// was checked in several settings holds if it holds in all. It fails if it fails in one and is not significant in the
// others. If it holds in some only, or is mixed in one, it is mixed.
func AddClaims(t *report.Table, claims []Claim) {
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
func addClaim(t *report.Table, list []Claim) {
	var waiting, evidence []string
	verdicts := map[string]bool{}
	for _, c := range list {
		if c.Verdict == NotRun {
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
	case verdicts[Holds] && len(verdicts) == 1:
		verdict = Holds
	case verdicts[Holds], verdicts[Mixed]:
		verdict = Mixed
	case verdicts[DoesNotHold]:
		verdict = DoesNotHold
	}
	t.Rows = append(t.Rows, report.Row{Group: c.Group, Name: c.Claim, Cells: report.TextCells(verdict, strings.Join(evidence, "; "), c.Where)})
}
