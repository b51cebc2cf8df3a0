package uci

import (
	"fmt"
	"slices"
	"strings"

	"densityuncertainty/datasets"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

// Claims are the paper's claims about UCI regression, checked in the settings of ClaimsTable. Verdicts on single
// differences are those of the table that has them.
func Claims(x *tables.Index) ([]report.Claim, error) {
	family, err := pairings(x)
	if err != nil {
		return nil, err
	}
	tests, err := family.ByName()
	if err != nil {
		return nil, err
	}
	var all []report.Claim
	for _, metric := range tableMetrics {
		for _, s := range claimSettings() {
			c, err := metric.bestOnMost(x, tests, s)
			if err != nil {
				return nil, err
			}
			all = append(all, c)
		}
	}
	for _, c := range []control{
		{"A variance that follows the density of the input is better than one that does not", "constant energy", "uci-energy", energyComparison(), energySettings(withoutYear()...)},
		{"It is better than as much variance on average that does not", "their mean", "uci-place", placeComparison(), placeSettings()},
	} {
		family, err := c.comparison.Tests(x)
		if err != nil {
			return nil, err
		}
		tests, err := family.ByName()
		if err != nil {
			return nil, err
		}
		for _, s := range c.settings {
			all = append(all, c.grounding(x, tests, s))
		}
	}
	for _, s := range gapSettings() {
		c, err := inBetween(x, s)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	tried, err := starts(x)
	if err != nil {
		return nil, err
	}
	return append(all, tried.lowerIsWorse(), tried.sensitivity()), nil
}

// mostSets is the number of the paper's data sets on which it has density uncertainty ahead.
const mostSets = 6

// bestOnMost checks that density uncertainty is ahead on most of the paper's data sets. A set is won if density is decided
// to be better than each other method, and lost if it is decided to be worse than one, or diverged. The claim holds if
// enough are won, and does not hold if so many are lost that the rest are too few. Sets that are neither, or were not
// run, may go either way.
func (x metric) bestOnMost(index *tables.Index, tests map[pairing]tables.Test[pairing], s setting) (report.Claim, error) {
	c := report.Claim{Where: "appendix, UCI results", Claim: fmt.Sprintf("Density uncertainty outperforms the other methods in %s on %d of the %d data sets (settings: %s)", x.title, mostSets, len(paperRows), s.name), Verdict: report.NotRun}
	var run []tables.Test[pairing]
	var won, lost []string
	sets, lowest := 0, 0
	for _, dataset := range s.datasets {
		if paperRows[dataset] == "" {
			continue
		}
		if text := s.diverged(index, dataset, methods.Density); text != "" {
			sets++
			lost = append(lost, fmt.Sprintf("%s: %s", DatasetTitle(dataset), text))
			continue
		}
		var here []tables.Test[pairing]
		var ahead []string
		for _, m := range rivals() {
			test, has := tests[pairing{x.name, dataset, s.name, m.Name}]
			if !has {
				continue
			}
			here = append(here, test)
			if test.Verdict == report.Worse {
				ahead = append(ahead, m.Name)
			}
		}
		if len(here) < len(rivals()) {
			continue
		}
		sets++
		run = append(run, here...)
		switch {
		case len(ahead) > 0:
			lost = append(lost, fmt.Sprintf("%s: %s", DatasetTitle(dataset), strings.Join(ahead, ", ")))
		case tables.Verdicts(here)[report.Undecided] == 0:
			won = append(won, DatasetTitle(dataset))
		}
		first, err := x.densityIsLowest(index, dataset, s)
		if err != nil {
			return c, err
		}
		if first {
			lowest++
		}
	}
	if sets == 0 {
		return c, nil
	}
	switch {
	case len(won) >= mostSets:
		c.Verdict = report.Holds
	case len(paperRows)-len(lost) < mostSets:
		c.Verdict = report.DoesNotHold
	default:
		c.Verdict = report.Undecided
	}
	c.Evidence = fmt.Sprintf("of the %d data sets that were run it is better than all others on %s, worse than one on %s; lowest mean on %d. %s",
		sets, counted(won), counted(lost), lowest, fromTable(tables.Tally(run), "uci-claims"))
	return c, nil
}

// counted is the number of things in a list, with their names.
func counted(list []string) string {
	if len(list) == 0 {
		return "0"
	}
	return fmt.Sprintf("%d (%s)", len(list), strings.Join(list, "; "))
}

// fromTable is a sentence with the table that it is from.
func fromTable(sentence, table string) string {
	return fmt.Sprintf("%s (table %s).", strings.TrimSuffix(sentence, "."), table)
}

// densityIsLowest says whether density uncertainty has the lowest mean of the paper's methods on a data set.
func (x metric) densityIsLowest(index *tables.Index, dataset string, s setting) (bool, error) {
	var means []results.Summary
	for _, m := range paperMethods() {
		mean, err := index.Summarize(s.cell(dataset, m), x.name)
		if err != nil {
			return false, err
		}
		means = append(means, mean)
	}
	lowest, _ := results.Lowest(means)
	return lowest >= 0 && paperMethods()[lowest].Name == methods.Density.Name, nil
}

// lead is the verdict on a claim that something is better on several data sets, by how many of the differences are
// decided for and against it. It holds with some for and none against, and does not hold the other way round. Runs that
// diverged were not compared: they keep a claim from holding, and refute none.
func lead(ahead, behind int, diverged bool) string {
	switch {
	case ahead > 0 && behind == 0 && !diverged:
		return report.Holds
	case behind > 0 && ahead == 0:
		return report.DoesNotHold
	}
	return report.Undecided
}

// A control is a layer whose noise follows nothing, the reference of a table. The claim is that density layers are better.
type control struct {
	claim, title, table string
	comparison          tables.MethodTable
	settings            []setting
}

// grounding checks what the paper's criterion asks for: that a variance which follows the energy is better than the
// control's.
func (k control) grounding(x *tables.Index, tests map[tables.Place]tables.Test[tables.Place], s setting) report.Claim {
	c := report.Claim{Where: "abstract, section 2", Claim: fmt.Sprintf("%s (settings: %s)", k.claim, s.name), Verdict: report.NotRun}
	var found []tables.Test[tables.Place]
	var remarks []string
	lower := 0
	for _, dataset := range s.datasets {
		if text := s.divergedOn(x, dataset, methods.Density); text != "" {
			remarks = append(remarks, " "+text)
		} else if test, has := tests[tables.Place{Row: s.row(dataset), Column: methods.Density.Name}]; has && len(x.Missing(s.runs(dataset, methods.Density))) == 0 {
			found = append(found, test)
			if test.Mean < 0 {
				lower++
			}
		}
	}
	if len(found) == 0 {
		return c
	}
	n := tables.Verdicts(found)
	c.Verdict = lead(n[report.Better], n[report.Worse], len(remarks) > 0)
	c.Evidence = fmt.Sprintf("NLL of LDL energies against %s: lower mean on %d of %d data sets. %s%s", k.title, lower, len(found),
		fromTable(tables.Tally(found), k.table), strings.Join(remarks, ""))
	return c
}

// inBetween checks the paper's criterion where it matters, on test inputs between the training inputs: that the variance of
// LDL energies ranks the errors better than constant energy does.
func inBetween(x *tables.Index, s setting) (report.Claim, error) {
	c := report.Claim{Where: "our test of the criterion", Claim: fmt.Sprintf("Between the training inputs the variance tells where the errors are, better than without the density (settings: %s)", s.name), Verdict: report.NotRun}
	var parts, remarks []string
	for _, dataset := range smallDatasets() {
		for _, m := range []experiment.Method{methods.Density, methods.DensityConstant} {
			if text := s.divergedOn(x, dataset, m); text != "" {
				remarks = append(remarks, " "+text)
			}
		}
	}
	compared := 0 // data sets
	for _, score := range gapScores {
		tests, err := score.againstConstant(x, s)
		if err != nil || len(tests) == 0 {
			return c, err
		}
		n := tables.Verdicts(tests)
		higher, lower := n[report.Worse], n[report.Better] // the verdicts are for scores that are better when lower
		parts = append(parts, fmt.Sprintf("%s higher on %d, lower on %d and undecided on %d", score.title, higher, lower, len(tests)-higher-lower))
		if score.metric == results.MetricSpearman {
			c.Verdict, compared = lead(higher, lower, len(remarks) > 0), len(tests)
		}
	}
	c.Evidence = fromTable(fmt.Sprintf("LDL energies against constant energy on gap splits of %s: %s", results.Counted(compared, "data set", "data sets"), strings.Join(parts, "; ")), "uci-gap, notes") +
		strings.Join(remarks, "")
	return c, nil
}

// start is the initial deviation of the paper's text.
const start = 0.1

// A startPair is what a test of initial deviations compares: the text's with a lower one, on a data set.
type startPair struct {
	dataset string // its title
	lower   float64
}

// startTests are tests of initial deviations. Better means that the text's is. The remarks name the sets on which runs
// with the text's diverged.
type startTests struct {
	tests   []tables.Test[startPair]
	remarks []string
}

// starts compares density uncertainty with the text's initial deviation to each lower one, on held-out training examples,
// by the runs with the text's optimizer from which settings were chosen.
func starts(x *tables.Index) (found startTests, err error) {
	family := tables.Family[startPair]{TestTrain: heldOutSplits}
	for _, dataset := range datasets.UCINames() {
		from := func(deviation float64) experiment.Experiments {
			return choice{sgd, deviation}.tried(dataset, Gal, methods.Density)
		}
		if lost, n := x.Diverged(from(start)); lost > 0 {
			found.remarks = append(found.remarks, fmt.Sprintf(" From 0.1 %s diverged on %d of %d splits of %s.", methods.Density.Name, lost, n, DatasetTitle(dataset)))
		}
		for _, lower := range noiseScales {
			if lower >= start {
				continue
			}
			if err := family.AddComplete(startPair{DatasetTitle(dataset), lower}, x, results.MetricNLL, from(start), from(lower)); err != nil {
				return found, err
			}
		}
	}
	found.tests, err = family.Tests()
	return found, err
}

// lowerIsWorse checks that posteriors that start with a deviation below the text's overfit.
func (s startTests) lowerIsWorse() report.Claim {
	c := report.Claim{Where: "appendix, UCI details", Claim: "Initial deviations below 0.1 lead to overfitting", Verdict: report.NotRun}
	if len(s.tests) == 0 {
		return c
	}
	n := tables.Verdicts(s.tests)
	c.Verdict = lead(n[report.Better], n[report.Worse], len(s.remarks) > 0)
	var parts []string
	for _, lower := range noiseScales {
		var better, worse []string
		for _, test := range s.tests {
			switch {
			case test.Of.lower != lower:
			case test.Verdict == report.Better:
				better = append(better, test.Of.dataset)
			case test.Verdict == report.Worse:
				worse = append(worse, test.Of.dataset)
			}
		}
		if lower < start {
			parts = append(parts, fmt.Sprintf("against %s better on %s, worse on %s", formatNoise(lower), counted(better), counted(worse)))
		}
	}
	c.Evidence = fmt.Sprintf("NLL of density uncertainty on held-out training examples with SGD, from 0.1 %s. %s%s", strings.Join(parts, "; "), tables.Tally(s.tests), strings.Join(s.remarks, ""))
	return c
}

// sensitivity checks that the performance on some data sets depends on hyperparameters, by the one that the text changes
// for these data: it does where the runs of two initial deviations are decided to differ.
func (s startTests) sensitivity() report.Claim {
	c := report.Claim{Where: "appendix, UCI results", Claim: "The performance on some data sets can be sensitive to the hyperparameters", Verdict: report.NotRun}
	if len(s.tests) == 0 {
		return c
	}
	var decided []string
	for _, test := range s.tests {
		if test.Verdict != report.Undecided && !slices.Contains(decided, test.Of.dataset) {
			decided = append(decided, test.Of.dataset)
		}
	}
	c.Verdict = report.Undecided
	if len(decided) > 0 {
		c.Verdict = report.Holds
	}
	c.Evidence = fmt.Sprintf("The initial deviation alone, 0.1 or lower, makes a decided difference of density uncertainty's NLL on held-out training examples on %s. %s", counted(decided), tables.Tally(s.tests))
	return c
}
