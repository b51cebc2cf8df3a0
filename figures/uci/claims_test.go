package uci

import (
	"slices"
	"strings"
	"testing"

	"densityuncertainty/dul"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

// verdictOn is the verdict on the claim that begins with some words, in a setting, and its evidence.
func verdictOn(t *testing.T, lines []experiment.Result, begins, setting string) (verdict, evidence string) {
	t.Helper()
	claims := must.Get(Claims(tables.Of(lines)))(t)
	i := slices.IndexFunc(claims, func(c report.Claim) bool {
		return strings.HasPrefix(c.Claim, begins) && strings.Contains(c.Claim, "settings: "+setting)
	})
	if i < 0 {
		t.Fatalf("there is no claim %q in the settings %s", begins, setting)
	}
	return claims[i].Verdict, claims[i].Evidence
}

// A set is won where density is decided to be better than each other method, and lost where it is decided to be worse
// than one or diverged: six of nine are needed, and four lost leave too few.
func TestBestOnMost(t *testing.T) {
	sets := []string{"boston", "concrete", "energy-cooling", "kin8nm", "naval", "wine"}
	text := paperSetting(withoutYear()...)
	// on are lines of the paper's methods on the first sets: density's number, Rank-1's, and that of the others.
	on := func(s setting, density, rank1, others float64, datasets ...string) (lines []experiment.Result) {
		for _, dataset := range datasets {
			for _, m := range paperMethods() {
				v := map[string]float64{methods.Density.Name: density, methods.Rank1.Name: rank1}[m.Name]
				if v == 0 {
					v = others
				}
				lines = append(lines, made(s.runs(dataset, m), level(v))...)
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
	// Rank-1 is lower by 0.05 with an interval of 0.1 or so to each side, and so undecided.
	barely := func(datasets ...string) []experiment.Result {
		lines := on(text, 1, 0.95, 3, datasets...)
		for i, line := range lines {
			if line.Method == methods.Rank1.Name {
				lines[i].Metrics = spread(0.95, 0.95, 0.3)(*line.Experiment)
			}
		}
		return lines
	}
	const claim = "Density uncertainty outperforms the other methods in NLL"
	for _, c := range []struct {
		name              string
		lines             []experiment.Result
		verdict, evidence string
	}{
		{"nothing", nil, report.NotRun, ""},
		{"a method is missing", on(text, 1, 2, 2, "yacht")[20:], report.NotRun, ""},
		{"six won", on(text, 1, 2, 2, sets...), report.Holds, "of the 6 data sets that were run it is better than all others on 6 (Boston Housing; "},
		{"five won", on(text, 1, 2, 2, sets[1:]...), report.Undecided, "worse than one on 0; lowest mean on 5. 15 comparisons: 15 better, 0 worse, 0 undecided (table uci-claims)."},
		{"three lost", on(text, 2, 1, 3, sets[:3]...), report.Undecided, "worse than one on 3 (Boston Housing: Rank-1 BNN; "},
		{"four lost", on(text, 2, 1, 3, sets[:4]...), report.DoesNotHold, "worse than one on 4"},
		{"three lost and one diverged", slices.Concat(on(text, 2, 1, 3, sets[:3]...), diverging(on(text, 1, 2, 2, "yacht"))), report.DoesNotHold,
			"Yacht Hydrodynamics: Density Uncertainty diverged on 18 of 20 splits"},
		{"behind by the mean alone", barely(sets...), report.Undecided, "better than all others on 0, worse than one on 0; lowest mean on 0. 18 comparisons: 12 better, 0 worse, 6 undecided"},
		{"other settings", on(releasedSetting(withoutYear()...), 1, 2, 2, sets...), report.NotRun, ""},
		{"the heating load, which the paper does not have", on(text, 1, 2, 2, "energy"), report.NotRun, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			verdict, evidence := verdictOn(t, c.lines, claim, "paper")
			if verdict != c.verdict || !strings.Contains(evidence, c.evidence) {
				t.Errorf("%s: %s, want %s: %s", verdict, evidence, c.verdict, c.evidence)
			}
		})
	}
}

func TestGrounding(t *testing.T) {
	pair := func(density, control float64, wide bool) []experiment.Result {
		measured := level(density)
		if wide { // differences of -0.5 and 0.5 in turn
			measured = spread(density, 0, 1)
		}
		return append(made(of(methods.Density, "yacht"), measured), made(of(methods.DensityConstant, "yacht"), level(control))...)
	}
	lost := made(paperSetting("naval").runs("naval", methods.Density), level(1))
	for i := range lost {
		lost[i].Diverged, lost[i].Metrics = true, nil
	}
	for _, c := range []struct {
		name    string
		lines   []experiment.Result
		verdict string
	}{
		{"better, and diverged elsewhere", append(pair(1, 2, false), lost...), report.Undecided},
		{"worse, and diverged elsewhere", append(pair(2, 1, false), lost...), report.DoesNotHold},
		{"either way, and diverged elsewhere", append(pair(1, 1, true), lost...), report.Undecided},
		{"not all splits", pair(1, 2, false)[1:], report.NotRun},
		{"nothing", nil, report.NotRun}, {"better", pair(1, 2, false), report.Holds}, {"worse", pair(2, 1, false), report.DoesNotHold}, {"either way", pair(1, 1, true), report.Undecided},
	} {
		t.Run(c.name, func(t *testing.T) {
			if verdict, evidence := verdictOn(t, c.lines, "A variance that follows", "paper"); verdict != c.verdict {
				t.Errorf("%s: %s, want %s", verdict, evidence, c.verdict)
			}
		})
	}
}

// The verdicts of the claims are those of the table: a difference of 0.045 with an interval of 0.043 to each side, decided
// by itself, is not decided beside a second one.
func TestClaimsHaveTheVerdictsOfTheTable(t *testing.T) {
	alone := append(made(of(methods.DensityConstant, "boston"), spread(2, 0, 0.1)), made(of(methods.Density, "boston"), spread(1.955, 0, 0.15))...)
	for _, c := range []struct {
		name, verdict string
		lines         []experiment.Result
	}{{"alone", report.Holds, alone}, {"beside another energy", report.Undecided, append(made(of(methods.DensityDiagonal, "boston"), spread(2, 0, 0.15)), alone...)}} {
		t.Run(c.name, func(t *testing.T) {
			if verdict, evidence := verdictOn(t, c.lines, "A variance that follows", "paper"); verdict != c.verdict || !strings.Contains(evidence, "(table uci-energy).") {
				t.Errorf("%s: %s, want %s", verdict, evidence, c.verdict)
			}
		})
	}
}

func TestInBetween(t *testing.T) {
	gaps := gapSettings()[0]
	lines := func(density, constant float64) []experiment.Result {
		scores := func(rank float64) func(experiment.Experiment) map[string]float64 {
			return func(experiment.Experiment) map[string]float64 {
				return map[string]float64{results.MetricNLL: 1, results.MetricCoverage: 0.9, results.MetricSpearman: rank}
			}
		}
		return append(made(gaps.runs("yacht", methods.Density), scores(density)), made(gaps.runs("yacht", methods.DensityConstant), scores(constant))...)
	}
	lost := made(gaps.runs("boston", methods.Density), level(1))
	lost[0].Diverged, lost[0].Metrics = true, nil
	for _, c := range []struct {
		name, verdict, evidence string
		lines                   []experiment.Result
	}{
		{"nothing", report.NotRun, "", nil},
		{"higher", report.Holds, "coverage higher on 0, lower on 0 and undecided on 1; rank correlation higher on 1, lower on 0 and undecided on 0", lines(0.5, 0.1)},
		{"lower", report.DoesNotHold, "rank correlation higher on 0, lower on 1", lines(0.1, 0.5)},
		{"the same", report.Undecided, "", lines(0.5, 0.5)},
		{"not all gaps", report.NotRun, "", lines(0.5, 0.1)[1:]},
		{"one diverged elsewhere", report.Undecided, "on gap splits of 1 data set: coverage higher on 0, lower on 0 and undecided on 1; rank correlation higher on 1, lower on 0 and undecided on 0 (table uci-gap, notes). " +
			"Density Uncertainty diverged on 1 of 13 splits of Boston Housing.", append(lines(0.5, 0.1), lost...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if verdict, evidence := verdictOn(t, c.lines, "Between the training inputs", "paper"); verdict != c.verdict || !strings.Contains(evidence, c.evidence) {
				t.Errorf("%s: %s, want %s: %s", verdict, evidence, c.verdict, c.evidence)
			}
		})
	}
}

// startsScored are the runs of a search over initial deviations on a data set, with the NLLs of those with SGD.
func startsScored(dataset string, of map[float64]float64) []experiment.Result {
	return scored(dataset, methods.Density, func(c choice) float64 {
		if c.optimizer == adam {
			return -c.noise // with which the text's start is the best
		}
		return of[c.noise]
	})
}

// Settings matter where a start makes a difference, for better or worse.
func TestSensitivity(t *testing.T) {
	for _, c := range []struct {
		name, verdict, evidence string
		lines                   []experiment.Result
	}{
		{"nothing", report.NotRun, "", nil},
		{"one start is better", report.Holds, "on 1 (Yacht Hydrodynamics). 3 comparisons: 0 better, 1 worse, 2 undecided.", startsScored("yacht", map[float64]float64{0.003: 2, 0.01: 2, 0.03: 1, 0.1: 2})},
		{"all are alike", report.Undecided, "on 0. 3 comparisons", startsScored("yacht", map[float64]float64{0.003: 2, 0.01: 2, 0.03: 2, 0.1: 2})},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := must.Get(starts(tables.Of(c.lines)))(t).sensitivity(); got.Verdict != c.verdict || !strings.Contains(got.Evidence, c.evidence) {
				t.Errorf("%s: %s, want %s: %s", got.Verdict, got.Evidence, c.verdict, c.evidence)
			}
		})
	}
}

// The text's start is compared with lower ones on held-out examples, with SGD alone.
func TestLowerStart(t *testing.T) {
	worse := startsScored("yacht", map[float64]float64{0.003: 1, 0.01: 1, 0.03: 1, 0.1: 2})
	worseBelow := startsScored("yacht", map[float64]float64{0.003: 2, 0.01: 2, 0.03: 2, 0.1: 1})
	lost := startsScored("wine", map[float64]float64{0.003: 2, 0.01: 2, 0.03: 2, 0.1: 1}) // where the text's start diverged on one split
	for i, r := range lost {
		if r.Split == 3 && r.Experiment.Method.Layers.(dul.Density).InitStd == start {
			lost[i].Diverged, lost[i].Metrics = true, nil
		}
	}
	for _, c := range []struct {
		name, verdict, evidence string
		lines                   []experiment.Result
	}{
		{"nothing", report.NotRun, "", nil},
		{"full runs, which are measured on test examples", report.NotRun, "", made(of(methods.Density, "yacht"), level(1))},
		{"lower ones are worse", report.Holds, "from 0.1 against 0.003 better on 1 (Yacht Hydrodynamics), worse on 0; against 0.01 better on 1", worseBelow},
		{"lower ones are better", report.DoesNotHold, "against 0.03 better on 0, worse on 1 (Yacht Hydrodynamics). 3 comparisons: 0 better, 3 worse, 0 undecided.", worse},
		{"both", report.Undecided, "3 comparisons: 1 better, 2 worse, 0 undecided.", startsScored("yacht", map[float64]float64{0.003: 3, 0.01: 1, 0.03: 1, 0.1: 2})},
		{"the text's start diverged", report.NotRun, "", lost},
		{"and elsewhere lower ones are worse", report.Undecided, "3 better, 0 worse, 0 undecided. From 0.1 Density Uncertainty diverged on 1 of 20 splits of Wine Quality Red.", slices.Concat(worseBelow, lost)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := must.Get(starts(tables.Of(c.lines)))(t).lowerIsWorse(); got.Verdict != c.verdict || !strings.Contains(got.Evidence, c.evidence) {
				t.Errorf("%s: %s, want %s: %s", got.Verdict, got.Evidence, c.verdict, c.evidence)
			}
		})
	}
}
