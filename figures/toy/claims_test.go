package toy

import (
	"slices"
	"strings"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

// Twenty ratios of a mean m, with d above and below in turn, have a standard error of 0.23 d: a mean that is on the
// claimed side of a threshold by less than about half of d is not significant.
func TestClaims(t *testing.T) {
	const collapse, flat, higher, notLess = "MFVI's uncertainty collapses", "The uncertainty of variational dropout and Rank-1 BNN is flat", "The uncertainty of density layers is higher", "No other method of Figure 1"
	type ratio struct{ mean, spread float64 }
	claims := func(t *testing.T, ratios map[string]ratio, diverged uint64) map[string]tables.Claim {
		t.Helper()
		made := figtest.Results(exhibit(t, "gap-ratio").Runs(), func(e experiment.Experiment) map[string]float64 {
			r, has := ratios[e.Method.Name]
			if !has {
				return nil
			}
			value := r.mean + r.spread
			if e.Seed%2 == 1 {
				value = r.mean - r.spread
			}
			return map[string]float64{MetricGapRatio: value}
		})
		made = slices.DeleteFunc(made, func(r experiment.Result) bool { return r.Metrics == nil }) // these were not run
		for i, r := range made {
			made[i].Diverged = diverged > 0 && r.ID == grid.Of(Cubic{Seeds: gapSeeds}, methods.MFVI)[diverged].ID()
		}
		found := make(map[string]tables.Claim)
		for _, c := range must.Get(Claims(tables.Of(made)))(t) {
			for _, begins := range []string{collapse, flat, higher, notLess} {
				if strings.HasPrefix(c.Claim, begins) {
					found[begins] = c
				}
			}
		}
		if len(found) != 4 {
			t.Fatalf("%d claims", len(found))
		}
		return found
	}
	for _, c := range []struct {
		name, claim, verdict string
		ratios               map[string]ratio
	}{
		{"half is not less than half", collapse, report.NotSignificant, map[string]ratio{"MFVI": {0.5, 0.1}}},
		{"less, within the noise", collapse, report.NotSignificant, map[string]ratio{"MFVI": {0.47, 0.1}}},
		{"less", collapse, tables.Holds, map[string]ratio{"MFVI": {0.4, 0.1}}},
		{"more", collapse, tables.DoesNotHold, map[string]ratio{"MFVI": {0.6, 0.1}}},
		{"higher on average, not on every seed", higher, tables.Holds, map[string]ratio{"Density Uncertainty (LDL)": {1.5, 0.6}}},
		{"higher, within the noise", higher, report.NotSignificant, map[string]ratio{"Density Uncertainty (LDL)": {1.1, 0.6}}},
		{"flat", flat, tables.Holds, map[string]ratio{"Variational Dropout": {1, 0.1}, "Rank-1 BNN": {1.1, 0.1}}},
		{"one is not flat", flat, tables.DoesNotHold, map[string]ratio{"Variational Dropout": {1, 0.1}, "Rank-1 BNN": {0.6, 0.1}}},
		{"one may be flat", flat, report.NotSignificant, map[string]ratio{"Variational Dropout": {1, 0.1}, "Rank-1 BNN": {0.82, 0.1}}},
		{"less certain", notLess, tables.DoesNotHold, map[string]ratio{"MFVI": {0.2, 0.1}, "Variational Dropout": {0.2, 0.1}, "Rank-1 BNN": {1.2, 0.1}}},
		{"not less certain", notLess, tables.Holds, map[string]ratio{"MFVI": {0.2, 0.1}, "Variational Dropout": {0.2, 0.1}, "Rank-1 BNN": {0.9, 0.1}}},
		{"a method is missing", notLess, tables.NotRun, map[string]ratio{"MFVI": {0.2, 0.1}, "Variational Dropout": {0.2, 0.1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := claims(t, c.ratios, 0)[c.claim]; got.Verdict != c.verdict {
				t.Errorf("%s, want %s: %s", got.Verdict, c.verdict, got.Evidence)
			}
		})
	}
	if got := claims(t, map[string]ratio{"MFVI": {0.4, 0.1}}, 0)[collapse].Evidence; got != "Gap ratio: MFVI 0.40 ± 0.10" {
		t.Errorf("the evidence is %q", got)
	}
	if got := claims(t, map[string]ratio{"MFVI": {0.4, 0.1}}, 3)[collapse]; got.Verdict != report.NotSignificant || got.Evidence != "MFVI diverged with 1 of 20 seeds" {
		t.Errorf("with a run that diverged: %s: %s", got.Verdict, got.Evidence)
	}
}
