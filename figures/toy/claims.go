package toy

import (
	"fmt"
	"strings"

	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// Claims are the paper's claims about Figure 1, checked by the gap ratios of twenty seeds (see GapRatios): the mean
// standard deviation in the gap over that at the data.
func Claims(lines []results.Result) ([]report.Claim, error) {
	index := results.ByID(lines)
	all := map[string]gapRatios{}
	for _, m := range figure1Methods() {
		r, err := ratiosOf(index, manySeeds(Cubic()).Experiments(m))
		if err != nil {
			return nil, err
		}
		all[m.Name] = r
	}
	of := func(holds func(r gapRatios) bool, list ...methods.Method) (verdict, evidence string) {
		verdict = report.Holds
		var parts []string
		for _, m := range list {
			r := all[m.Name]
			if !r.Complete() {
				return report.NotRun, ""
			}
			if !holds(r) {
				verdict = report.DoesNotHold
			}
			parts = append(parts, fmt.Sprintf("%s %.2f ± %.2f, above 1 on %d of %d seeds", m.Title, r.Mean, r.Std, r.above, r.N))
		}
		return verdict, "gap ratio: " + strings.Join(parts, "; ")
	}
	claim := func(text string, holds func(r gapRatios) bool, list ...methods.Method) report.Claim {
		verdict, evidence := of(holds, list...)
		return report.Claim{Where: "Figure 1, section 4", Claim: text, Verdict: verdict, Evidence: evidence}
	}
	return []report.Claim{
		claim("The other methods are not less certain in the gap than at the data", func(r gapRatios) bool { return r.above == 0 }, methods.MFVI, methods.VDropout, methods.Rank1),
		claim("MFVI's uncertainty collapses in the gap (less than half)", func(r gapRatios) bool { return r.Mean < 0.5 }, methods.MFVI),
		claim("That of variational dropout and Rank-1 BNN is flat (within a fifth of that at the data)", func(r gapRatios) bool { return r.Mean > 0.8 && r.Mean < 1.25 }, methods.VDropout, methods.Rank1),
		claim("That of density uncertainty is higher in the gap", func(r gapRatios) bool { return r.above == r.N }, methods.Density),
	}, nil
}
