package uci

import (
	"slices"
	"strings"
	"testing"

	"densityuncertainty/dul"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

// A judged is a verdict that results lead to, with a part of its evidence.
type judged struct {
	name, verdict, evidence string
	lines                   []experiment.Result
}

// judge checks the verdicts on a kind's claim that begins with some words, in a setting.
func judge(t *testing.T, kind func(*tables.Index) ([]tables.Claim, error), begins, setting string, cases ...judged) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			claims := must.Get(kind(tables.Of(c.lines)))(t)
			i := slices.IndexFunc(claims, func(of tables.Claim) bool { return strings.HasPrefix(of.Claim, begins) && of.In == setting })
			if i < 0 {
				t.Fatalf("there is no claim %q in the settings %s", begins, setting)
			}
			if got := claims[i]; got.Verdict != c.verdict || !strings.Contains(got.Evidence, c.evidence) {
				t.Errorf("%s: %s, want %s: %s", got.Verdict, got.Evidence, c.verdict, c.evidence)
			}
		})
	}
}

// A set is won where density is significantly better than each other method, and lost where it is significantly worse
// than one or diverged: six of nine are needed, and four lost leave too few.
func TestBestOnMost(t *testing.T) {
	sets := []string{"boston", "concrete", "energy-cooling", "kin8nm", "naval", "wine"}
	text := paperGrid(withoutYear()...)
	// on are lines of the paper's methods on the first sets: density's number, Rank-1's, and that of the others.
	on := func(s experiment.Grid, density, rank1, others float64, datasets ...string) (lines []experiment.Result) {
		for _, dataset := range datasets {
			for _, m := range paperMethods {
				v := map[string]float64{methods.Density.Name: density, methods.Rank1.Name: rank1}[m.Name]
				if v == 0 {
					v = others
				}
				lines = append(lines, figtest.Results(s.Of(Data{Name: dataset}, m), level(v))...)
			}
		}
		return lines
	}
	diverging := func(lines []experiment.Result) []experiment.Result {
		for i, line := range lines {
			if line.Method == methods.Density.Name && line.Split < 18 {
				lines[i].Diverged, lines[i].Metrics = true, nil
			}
		}
		return lines
	}
	// Rank-1 is lower by 0.05 with an interval of 0.1 or so to each side, and so not significant.
	barely := func(datasets ...string) []experiment.Result {
		lines := on(text, 1, 0.95, 3, datasets...)
		for i, line := range lines {
			if line.Method == methods.Rank1.Name {
				lines[i].Metrics = map[string]float64{experiment.MetricNLL: spread(0.95, 0, 0.3)(*line.Experiment)[experiment.MetricNLL], experiment.MetricRMSE: 0}
			}
		}
		return lines
	}
	judge(t, claimsOfBest, "Density uncertainty is best in NLL", "paper's text", []judged{
		{"nothing", tables.NotRun, "", nil},
		{"a method is missing", tables.NotRun, "", on(text, 1, 2, 2, "yacht")[20:]},
		{"six won", tables.Holds, "best on 6 of 6", on(text, 1, 2, 2, sets...)},
		{"five won", report.NotSignificant, "best on 5 of 5", on(text, 1, 2, 2, sets[1:]...)},
		{"three lost", report.NotSignificant, "worse than Rank-1 BNN on 3 of 3", on(text, 2, 1, 3, sets[:3]...)},
		{"four lost", tables.DoesNotHold, "worse than Rank-1 BNN on 4 of 4", on(text, 2, 1, 3, sets[:4]...)},
		{"three lost and one diverged", tables.DoesNotHold, "worse than Rank-1 BNN on 4 of 4", slices.Concat(on(text, 2, 1, 3, sets[:3]...), diverging(on(text, 1, 2, 2, "yacht")))},
		{"behind by the mean alone", report.NotSignificant, "best on none of 6, worse than another on none", barely(sets...)},
		{"other settings", tables.NotRun, "", on(releasedGrid(withoutYear()...), 1, 2, 2, sets...)},
		{"the heating load, which the paper does not have", tables.NotRun, "", on(text, 1, 2, 2, "energy")},
	}...)
}

func TestGrounding(t *testing.T) {
	pair := func(density, control float64, wide bool) []experiment.Result {
		measured := level(density)
		if wide { // differences of -0.5 and 0.5 in turn
			measured = spread(density, 0, 1)
		}
		return append(figtest.Results(of(methods.Density, "yacht"), measured), figtest.Results(of(methods.DensityConstant, "yacht"), level(control))...)
	}
	lost := append(figtest.Results(of(methods.Density, "naval"), level(1)), figtest.Results(of(methods.DensityConstant, "naval"), level(1))...)
	for i := range lost[:20] {
		lost[i].Diverged, lost[i].Metrics = true, nil
	}
	judge(t, claimsOfControls, "A variance that follows", "paper's text", []judged{
		{"better, and diverged alone elsewhere", tables.Mixed, "", append(pair(1, 2, false), lost...)},
		{"either way, and diverged alone elsewhere", tables.DoesNotHold, "", append(pair(1, 1, true), lost...)},
		{"not all splits", tables.NotRun, "", pair(1, 2, false)[1:]}, {"nothing", tables.NotRun, "", nil}, {"better", tables.Holds, "", pair(1, 2, false)},
		{"worse", tables.DoesNotHold, "", pair(2, 1, false)}, {"either way", report.NotSignificant, "", pair(1, 1, true)},
	}...)
}

func TestInBetween(t *testing.T) {
	gaps := gapGrids()[0]
	lines := func(density, constant float64) []experiment.Result {
		scores := func(rank float64) func(experiment.Experiment) map[string]float64 {
			return func(e experiment.Experiment) map[string]float64 {
				return map[string]float64{experiment.MetricNLL: 1, experiment.MetricCoverage: 0.9, experiment.MetricSpearman: rank * uneven(e)}
			}
		}
		return append(figtest.Results(gaps.Of(Data{Name: "yacht", Kind: Gap}, methods.Density), scores(density)), figtest.Results(gaps.Of(Data{Name: "yacht", Kind: Gap}, methods.DensityConstant), scores(constant))...)
	}
	lost := append(figtest.Results(gaps.Of(Data{Name: "boston", Kind: Gap}, methods.Density), level(1)), figtest.Results(gaps.Of(Data{Name: "boston", Kind: Gap}, methods.DensityConstant), level(1))...)
	lost[0].Diverged, lost[0].Metrics = true, nil
	judge(t, claimsOfGaps, "Between the training inputs", "paper's text", judged{"higher", tables.Holds, "rank correlation higher on 1, lower on 0 of 1", lines(0.5, 0.1)},
		judged{"diverged alone elsewhere", tables.Mixed, "rank correlation higher on 1, lower on 1 of 2", append(lines(0.5, 0.1), lost...)})
}

// startsScored are the runs of a search over initial deviations on a data set, with the NLLs of those with SGD.
func startsScored(dataset string, of map[float64]float64) (list []experiment.Result) {
	for _, c := range searchSpace(methods.Density) {
		nll := of[c.noise]
		if c.optimizer == adam {
			nll = -c.noise // with which the text's start is the best
		}
		list = append(list, figtest.Results(c.heldOut(Data{Name: dataset}, methods.Density), func(e experiment.Experiment) map[string]float64 {
			return map[string]float64{experiment.MetricNLL: nll * uneven(e)}
		})...)
	}
	return list
}

// The text's start is compared with lower ones on held-out examples, with SGD alone.
func TestLowerStart(t *testing.T) {
	worseBelow := startsScored("yacht", map[float64]float64{0.003: 2, 0.01: 2, 0.03: 2, 0.1: 1})
	lost := startsScored("wine", map[float64]float64{0.003: 2, 0.01: 2, 0.03: 2, 0.1: 1}) // where the text's start diverged on one split
	for i, r := range lost {
		if r.Split == 3 && r.Experiment.Method.Layers.(dul.Density).InitStd == start {
			lost[i].Diverged, lost[i].Metrics = true, nil
		}
	}
	shifted := startsScored("yacht", map[float64]float64{0.003: 1, 0.01: 1, 0.03: 1, 0.1: 1})
	for _, r := range shifted { // by the same on all splits
		if r.Experiment.Method.Layers.(dul.Density).InitStd < start {
			r.Metrics[experiment.MetricNLL]++
		}
	}
	judge(t, claimsOfStarts, "Initial deviations below", "", []judged{
		{"nothing", tables.NotRun, "", nil},
		{"full runs, which are measured on test examples", tables.NotRun, "", figtest.Results(of(methods.Density, "yacht"), level(1))},
		{"lower ones are worse", tables.Holds, "better in 3, worse in 0 of 3 comparisons", worseBelow},
		{"both", tables.Mixed, "better in 1, worse in 2 of 3", startsScored("yacht", map[float64]float64{0.003: 3, 0.01: 1, 0.03: 1, 0.1: 2})},
		{"the text's start diverged alone", tables.DoesNotHold, "better in 0, worse in 3 of 3", lost},
		{"all differences are equal", report.NotSignificant, "better in 0, worse in 0 of 3 comparisons with lower ones; all differences are equal in 3, so that there is no test", shifted},
		{"and elsewhere lower ones are worse", tables.Mixed, "better in 3, worse in 3 of 6", slices.Concat(worseBelow, lost)},
	}...)
}
