package uci

import (
	"slices"
	"strings"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// verdictOn is the verdict on the claim that begins with some words, in a setting, and its evidence.
func verdictOn(t *testing.T, lines []results.Result, begins, setting string) (verdict, evidence string) {
	t.Helper()
	claims := must.Get(Claims(lines))(t)
	i := slices.IndexFunc(claims, func(c report.Claim) bool {
		return strings.HasPrefix(c.Claim, begins) && strings.Contains(c.Claim, "settings: "+setting)
	})
	if i < 0 {
		t.Fatalf("there is no claim %q in the settings %s", begins, setting)
	}
	return claims[i].Verdict, claims[i].Evidence
}

// On two data sets every method of the paper has the same number on each split, or one that is higher by a step.
func TestBestOnMost(t *testing.T) {
	of := func(p Protocol, dataset string, density, others float64) (lines []results.Result) {
		for _, m := range PaperMethods() {
			v := others
			if isDensity(m) {
				v = density
			}
			lines = append(lines, made(p.On(dataset).Experiments(m), level(v))...)
		}
		return lines
	}
	diverging := func(lines []results.Result) []results.Result {
		for i, line := range lines {
			if line.Experiment.Method == methods.Density.Name && line.Experiment.Split < 18 {
				lines[i].Diverged, lines[i].Metrics = true, nil
			}
		}
		return lines
	}
	const claim = "Density uncertainty has the lowest mean NLL"
	for _, c := range []struct {
		name              string
		lines             []results.Result
		verdict, evidence string
	}{
		{"nothing", nil, report.NotRun, ""},
		{"a method is missing", of(Paper(), "yacht", 1, 2)[20:], report.NotRun, ""},
		{"best", slices.Concat(of(Paper(), "yacht", 1, 2), of(Paper(), "wine", 1, 3)), report.Holds, "lowest mean on 2 of the 2 data sets that were run. Of 6 comparisons 6 are better"},
		{"behind", slices.Concat(of(Paper(), "yacht", 2, 1), of(Paper(), "wine", 1, 3)), report.DoesNotHold, "not on Yacht Hydrodynamics"},
		{"diverged", slices.Concat(of(Paper(), "wine", 1, 3), diverging(of(Paper(), "yacht", 1, 2))), report.Undecided,
			"lowest mean on 1 of the 2 data sets that were run, not on Yacht Hydrodynamics (Density Uncertainty diverged on 18 of 20 splits). Of 3 comparisons 3 are better"},
		{"other settings", of(Released(), "yacht", 1, 2), report.NotRun, ""},
		{"the heating load, which the paper does not have", of(Paper(), "energy", 1, 2), report.NotRun, ""},
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
	pair := func(density, control float64, wide bool) []results.Result {
		of := level(density)
		if wide { // differences of -0.5 and 0.5 in turn
			of = spread(density, 0, 1)
		}
		return append(made(Paper().On("yacht").Experiments(methods.Density), of), made(Paper().On("yacht").Experiments(methods.DensityConstant), level(control))...)
	}
	lost := made(Paper().On("naval").Experiments(methods.Density), level(1))
	for i := range lost {
		lost[i].Diverged, lost[i].Metrics = true, nil
	}
	for _, c := range []struct {
		name    string
		lines   []results.Result
		verdict string
	}{
		{"better, and diverged elsewhere", append(pair(1, 2, false), lost...), report.Undecided},
		{"nothing", nil, report.NotRun}, {"better", pair(1, 2, false), report.Holds}, {"worse", pair(2, 1, false), report.DoesNotHold}, {"either way", pair(1, 1, true), report.Undecided},
	} {
		t.Run(c.name, func(t *testing.T) {
			if verdict, evidence := verdictOn(t, c.lines, "A variance that follows", "paper"); verdict != c.verdict {
				t.Errorf("%s: %s, want %s", verdict, evidence, c.verdict)
			}
		})
	}
}

func TestLowerStart(t *testing.T) {
	of := func(scales ...float64) choices {
		all := make(choices)
		for split, scale := range scales {
			all[chosenFor{"yacht", GalSplits, split, methods.Density.Name}] = choice{methods.Adam, scale}
			all[chosenFor{"yacht", GalSplits, split, methods.Rank1.Name}] = choice{methods.Adam, 0.1}
		}
		return all
	}
	for _, c := range []struct {
		all  choices
		want string
	}{{nil, report.NotRun}, {of(0.1, 0.1, 0.01), report.Holds}, {of(0.03, 0.1, 0.01), report.DoesNotHold}} {
		if got := lowerStart(c.all); got.Verdict != c.want {
			t.Errorf("%d choices: %s, want %s", len(c.all), got.Verdict, c.want)
		}
	}
}
