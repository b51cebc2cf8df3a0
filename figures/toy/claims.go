package toy

import (
	"fmt"
	"math"
	"strings"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

// A gapClaim says that the mean gap ratios of some methods, over seeds, are between two numbers. An infinite one says
// nothing.
type gapClaim struct {
	text      string
	low, high float64
	list      []experiment.Method
}

// Claims are the paper's claims about Figure 1, checked by the gap ratios of twenty seeds (see GapRatios).
func Claims(x *tables.Index) ([]report.Claim, error) {
	none := math.Inf(1)
	var all []report.Claim
	for _, claim := range []gapClaim{
		{"The other methods are not less certain in the gap than at the data", -none, 1, []experiment.Method{methods.MFVI, methods.VDropout, methods.Rank1}},
		{"MFVI's uncertainty collapses in the gap (to less than half)", -none, 0.5, []experiment.Method{methods.MFVI}},
		{"The uncertainty of variational dropout and Rank-1 BNN is flat (within a fifth)", 0.8, 1.25, []experiment.Method{methods.VDropout, methods.Rank1}},
		{"The uncertainty of density layers is higher in the gap", 1, none, []experiment.Method{methods.Density}},
	} {
		c, err := claim.check(x)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// claimLevel is 1 minus the level of all tests of a claim together.
const claimLevel = 0.95

// check tests the mean ratio of each method against each of the two numbers, over the seeds, which are independent. The
// claim holds if all tests are decided for it, and does not hold if one is decided against it.
func (claim gapClaim) check(x *tables.Index) (report.Claim, error) {
	c := report.Claim{Group: "Figure 1", Where: "section 4", Claim: claim.text, Verdict: report.NotRun}
	var tests []metrics.Difference // below 0 as claimed
	var parts []string
	for _, m := range claim.list {
		r, err := ratiosOf(x, tables.Cell{Full: gapCell(m).Full})
		if err != nil {
			return c, err
		}
		switch {
		case r.Complete():
		case r.Scale == results.Full && r.Diverged > 0 && r.N+r.Diverged == r.Wanted:
			c.Verdict, c.Evidence = report.Undecided, fmt.Sprintf("%s diverged with %d of %d seeds", m.Name, r.Diverged, r.Wanted)
			return c, nil
		default:
			return c, nil
		}
		for _, bound := range []struct{ at, sign float64 }{{claim.low, -1}, {claim.high, 1}} {
			if math.IsInf(bound.at, 0) {
				continue
			}
			ours, bounds := make([]float64, len(r.values)), make([]float64, len(r.values))
			for i, ratio := range r.values {
				ours[i], bounds[i] = bound.sign*ratio, bound.sign*bound.at
			}
			d, err := metrics.PairedDifference(ours, bounds, 0, claimLevel)
			if err != nil {
				return c, fmt.Errorf("toy: %s: %w", claim.text, err)
			}
			tests = append(tests, d)
		}
		parts = append(parts, fmt.Sprintf("%s %.2f ± %.2f", m.Name, r.Mean, r.Std))
	}
	verdicts, err := report.Verdicts(tests, claimLevel)
	if err != nil {
		return c, fmt.Errorf("toy: %s: %w", claim.text, err)
	}
	c.Verdict = report.Holds
	for _, v := range verdicts {
		switch {
		case v == report.Worse:
			c.Verdict = report.DoesNotHold
		case v == report.Undecided && c.Verdict == report.Holds:
			c.Verdict = report.Undecided
		}
	}
	c.Evidence = "Gap ratio: " + strings.Join(parts, ", ")
	return c, nil
}
