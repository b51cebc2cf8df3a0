package toy

import (
	"fmt"
	"strings"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

// A gapClaim says that the mean gap ratios of some methods, over seeds, are within bounds.
type gapClaim struct {
	text   string
	bounds []bound
	list   []experiment.Method
}

// A bound is a number, with the sign 1 if ratios are below it, and -1 if they are above it.
type bound struct{ at, sign float64 }

const below, above = 1, -1

// Claims are the paper's claims about Figure 1, checked by the gap ratios of twenty seeds (see gapRatios).
func Claims(x *tables.Index) ([]tables.Claim, error) {
	var all []tables.Claim
	for _, claim := range []gapClaim{
		{"No other method of Figure 1 widens in the gap", []bound{{1, below}}, []experiment.Method{methods.MFVI, methods.VDropout, methods.Rank1}},
		{"MFVI's uncertainty collapses in the gap (to less than half)", []bound{{0.5, below}}, []experiment.Method{methods.MFVI}},
		{"The uncertainty of variational dropout and Rank-1 BNN is flat (within a fifth)", []bound{{0.8, above}, {1.25, below}}, []experiment.Method{methods.VDropout, methods.Rank1}},
		{"The uncertainty of density layers is higher in the gap", []bound{{1, above}}, []experiment.Method{methods.Density}},
	} {
		c, err := claim.check(x)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// check tests the mean ratio of each method against each of the bounds, over the seeds, which are independent. The
// claim holds if all tests are significant for it, and does not hold if one is significant against it.
func (claim gapClaim) check(x *tables.Index) (tables.Claim, error) {
	c := tables.Claim{Group: "Figure 1", Where: "section 4", Claim: claim.text, Verdict: tables.NotRun}
	var family tables.Family[string] // differences are below 0 as claimed
	var parts []string
	for _, m := range claim.list {
		r, err := x.Summarize(gapRatio(m))
		if err != nil {
			return c, err
		}
		switch {
		case r.Complete():
		case r.Diverged > 0 && r.N+r.Diverged == r.Wanted:
			c.Verdict, c.Evidence = report.NotSignificant, fmt.Sprintf("%s diverged with %d of %d seeds", m.Name, r.Diverged, r.Wanted)
			return c, nil
		default:
			return c, nil
		}
		for _, bound := range claim.bounds {
			ours, bounds := map[int]float64{}, map[int]float64{}
			for seed, ratio := range x.Units(gapRatio(m)) {
				ours[seed], bounds[seed] = bound.sign*ratio, bound.sign*bound.at
			}
			family.Add(m.Name, ours, bounds, 0)
		}
		parts = append(parts, fmt.Sprintf("%s %.2f ± %.2f", m.Name, r.Mean, r.Std))
	}
	tests := family.Tests()
	switch n := tests.Verdicts(); {
	case n[report.Worse] > 0:
		c.Verdict = tables.DoesNotHold
	case n[report.NotSignificant] > 0:
		c.Verdict = report.NotSignificant
	default:
		c.Verdict = tables.Holds
	}
	c.Evidence = "Gap ratio: " + strings.Join(parts, ", ") + tests.Equal()
	return c, nil
}
