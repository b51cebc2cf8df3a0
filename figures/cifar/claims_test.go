package cifar

import (
	"slices"
	"strings"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/tables"
)

// The verdicts on claims follow the runs' numbers.
func TestClaims(t *testing.T) {
	var found []experiment.Result
	add := func(accuracy, ece, nll float64, all experiment.Experiments) {
		found = append(found, resultsOf(func(e experiment.Experiment) map[string]float64 {
			uneven := 1 + 1e-9*float64(e.Seed) // differences that are all equal are not tested
			return map[string]float64{experiment.MetricAccuracy: accuracy * uneven, experiment.MetricECE: ece * uneven, experiment.MetricNLL: nll * uneven,
				"ood_svhn_auroc": 0.7, "ood_svhn_auroc_energy": 0.9 * uneven, "ood_svhn_auprc": 0.7, "ood_svhn_auprc_energy": 0.8 * uneven}
		}, all)...)
	}
	for _, m := range papersFive {
		worse := 1.0
		if m.Equal(methods.Density) {
			worse = 0
		}
		add(0.9-0.1*worse, 0.01+worse, 0.2+worse, seeded(Paper, paperSeeds).Of(ten, m))
		accuracy := 0.7 - 0.1*worse
		if m.Equal(methods.Rank1) {
			accuracy = 0.8
		}
		add(accuracy, 0.01+worse, 1+worse, seeded(Paper, paperSeeds).Of(hundred, m))
		add(0.9, 0.01, 0.2, seeded(Wide, paperSeeds).Of(ten, m))
	}
	add(0.9, 0.01, 0.2, seeded(Paper, paperSeeds).Of(withHeldOut(ten), methods.Density))
	// A run that diverged is no missing run.
	found[0].Diverged, found[0].Metrics = true, nil
	claims := must.Get(Claims(tables.Of(found)))(t)
	for _, c := range []struct{ claim, in, verdict, evidence string }{
		{"lower ECE and NLL", "", tables.Holds, "8 comparisons: 8 better, 0 worse, 0 not significant. In 2 of them one of the two methods diverged."},
		{"best in accuracy", "CIFAR-100 with ResNet-14", tables.DoesNotHold, "12 comparisons: 11 better, 1 worse, 0 not significant."},
		{"best in accuracy", "CIFAR-10 with WRN-28-10", tables.NotRun, ""},
		{"rank-1 mixture", "1.25%", tables.NotRun, ""},
		{"about as accurate", "", tables.Holds, "4 comparisons: 4 better, 0 worse, 0 not significant. In 1 of them one of the two methods diverged."},
		{"detects SVHN", "trained on CIFAR-10", tables.Holds, "8 comparisons: 8 better, 0 worse, 0 not significant. In 2 of them one of the two methods diverged."},
		{"detects SVHN", "trained on CIFAR-100", tables.NotRun, ""},
	} {
		i := slices.IndexFunc(claims, func(got tables.Claim) bool { return got.In == c.in && strings.Contains(got.Claim, c.claim) })
		if i < 0 {
			t.Fatalf("no claim %s, %s", c.claim, c.in)
		}
		if got := claims[i]; got.Verdict != c.verdict || got.Evidence != c.evidence {
			t.Errorf("%s, %s: %s (%s), want %s (%s)", c.claim, c.in, got.Verdict, got.Evidence, c.verdict, c.evidence)
		}
	}
}

// A claim that two methods are alike is judged by the spread over seeds. One about a method of which a run diverged is lost.
func TestComparableClaim(t *testing.T) {
	for _, c := range []struct {
		name     string
		behind   float64
		diverged bool
		verdict  string
	}{{"alike", 0.009, false, tables.Holds}, {"worse", 0.011, false, tables.DoesNotHold}, {"better", -0.011, false, tables.Holds}, {"diverged", 0, true, tables.DoesNotHold}} {
		t.Run(c.name, func(t *testing.T) {
			with := func(behind float64) func(experiment.Experiment) map[string]float64 {
				return func(e experiment.Experiment) map[string]float64 {
					return map[string]float64{experiment.MetricAccuracy: 0.9, experiment.MetricNLL: 0.2 + 0.01*float64(e.Seed) + behind*(1+1e-9*float64(e.Seed))}
				}
			}
			found := resultsOf(with(c.behind), seeded(Wide, paperSeeds).Of(ten, mixture(0.0125)))
			found[1].Diverged = c.diverged
			found = append(found, resultsOf(with(0), seeded(Wide, paperSeeds).Of(ten, methods.Density))...)
			claims := must.Get(Claims(tables.Of(found)))(t)
			i := slices.IndexFunc(claims, func(got tables.Claim) bool { return got.In == "1.25%" })
			if claims[i].Verdict != c.verdict {
				t.Errorf("%s (%s), want %s", claims[i].Verdict, claims[i].Evidence, c.verdict)
			}
		})
	}
}
