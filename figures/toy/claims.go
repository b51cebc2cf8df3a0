package toy

import (
	"fmt"
	"math"
	"strings"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// A gapClaim says that the gap ratios of some methods are, on average over seeds, between two numbers, of which an
// infinite one says nothing.
type gapClaim struct {
	claim     string
	low, high float64
	list      methods.List
}

// Claims are the paper's claims about Figure 1, checked by the gap ratios of twenty seeds (see GapRatios): the mean
// standard deviation in the gap over that at the data.
func Claims(lines []results.Result) ([]report.Claim, error) {
	none := math.Inf(1)
	index := results.ByID(lines)
	var all []report.Claim
	for _, x := range []gapClaim{
		{"The other methods are not less certain in the gap than at the data", -none, 1, methods.List{methods.MFVI, methods.VDropout, methods.Rank1}},
		{"MFVI's uncertainty collapses in the gap (less than half)", -none, 0.5, methods.List{methods.MFVI}},
		{"That of variational dropout and Rank-1 BNN is flat (within a fifth of that at the data)", 0.8, 1.25, methods.List{methods.VDropout, methods.Rank1}},
		{"That of density uncertainty is higher in the gap", 1, none, methods.List{methods.Density}},
	} {
		c, err := x.check(index)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// claimLevel is 1 minus the level of the tests of a claim together.
const claimLevel = 0.95

// check tests the mean ratio of each method against each of the two numbers, over the seeds, which are independent. The
// claim holds if all of the tests are decided for it, and does not hold if one is decided against it.
func (x gapClaim) check(index results.Index) (report.Claim, error) {
	c := report.Claim{Where: "Figure 1, section 4", Claim: x.claim, Verdict: report.NotRun}
	var tests []metrics.Difference // below 0 as claimed
	var parts []string
	for _, m := range x.list {
		r, err := ratiosOf(index, manySeeds(Cubic()).Experiments(m))
		if err != nil {
			return c, err
		}
		switch {
		case r.Complete():
		case r.Scale == results.Full && r.Diverged > 0 && r.N+r.Diverged == r.Wanted:
			c.Verdict, c.Evidence = report.Undecided, fmt.Sprintf("%s diverged with %d of %d seeds", m.Title, r.Diverged, r.Wanted)
			return c, nil
		default:
			return c, nil
		}
		for _, bound := range []struct{ at, sign float64 }{{x.low, -1}, {x.high, 1}} {
			if math.IsInf(bound.at, 0) {
				continue
			}
			ours, its := make([]float64, len(r.values)), make([]float64, len(r.values))
			for i, ratio := range r.values {
				ours[i], its[i] = bound.sign*ratio, bound.sign*bound.at
			}
			d, err := metrics.PairedDifference(ours, its, 0, claimLevel)
			if err != nil {
				return c, fmt.Errorf("toy: %s: %w", x.claim, err)
			}
			tests = append(tests, d)
		}
		parts = append(parts, fmt.Sprintf("%s %.2f ± %.2f, above 1 on %d of %d seeds", m.Title, r.Mean, r.Std, r.above(), r.N))
	}
	verdicts, err := report.Verdicts(tests, claimLevel)
	if err != nil {
		return c, fmt.Errorf("toy: %s: %w", x.claim, err)
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
	c.Evidence = "gap ratio: " + strings.Join(parts, "; ")
	return c, nil
}
