package uci

import (
	"fmt"
	"slices"
	"strings"

	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// Claims are the paper's claims about UCI regression, checked in the settings of ClaimsTable. Verdicts on single
// differences are those of the table that has them.
func Claims(lines []results.Result) ([]report.Claim, error) {
	index := results.ByID(lines)
	tests, err := rivalries(index)
	if err != nil {
		return nil, err
	}
	var all []report.Claim
	for _, x := range theMetrics {
		for _, s := range claimSettings() {
			c, err := x.bestOnMost(index, tests, s)
			if err != nil {
				return nil, err
			}
			all = append(all, c)
		}
	}
	for _, x := range []control{
		{"A variance that follows the density of the input is better than one that does not", "constant energy", "uci-energy", energyComparison(), energySettings()},
		{"It is better than as much variance on average that does not", "their mean", "uci-place", placeComparison(), placeSettings()},
	} {
		decided, err := x.comparison.decided(index)
		if err != nil {
			return nil, err
		}
		for _, s := range x.settings {
			all = append(all, x.grounding(index, decided, s))
		}
	}
	for _, s := range gapSettings() {
		c, err := inBetween(index, s)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	tried, err := starts(index)
	if err != nil {
		return nil, err
	}
	return append(all, tried.lowerIsWorse(), tried.sensitivity()), nil
}

// mostSets are those of the paper's data sets on which it has density uncertainty ahead.
const mostSets = 6

// bestOnMost checks that density uncertainty is ahead on most of the paper's data sets. A set is won where it is decided
// to be better than each other method, and lost where it is decided to be worse than one, or diverged. The claim holds
// if enough are won, and does not hold if so many are lost that the rest are too few; sets that are neither, or were not
// run, may go either way.
func (x metric) bestOnMost(index results.Index, tests map[rivalry]tested, s setting) (report.Claim, error) {
	c := report.Claim{Where: "appendix, UCI results", Claim: fmt.Sprintf("Density uncertainty outperforms the other methods in %s on %d of the %d data sets (settings: %s)", x.title, mostSets, len(paperRows), s.name), Verdict: report.NotRun}
	var verdicts, won, lost []string
	run, lowest := 0, 0
	for _, dataset := range s.protocol.Datasets {
		if paperRows[dataset] == "" {
			continue
		}
		if text := s.protocol.diverged(index, dataset, methods.Density); text != "" {
			run++
			lost = append(lost, fmt.Sprintf("%s: %s", DatasetTitle(dataset), text))
			continue
		}
		var here, ahead []string
		for _, m := range rivals() {
			test, has := tests[rivalry{x.name, dataset, s.name, m.Name}]
			if !has {
				continue
			}
			here = append(here, test.verdict)
			if test.verdict == report.Worse {
				ahead = append(ahead, m.Title)
			}
		}
		if len(here) < len(rivals()) {
			continue
		}
		run++
		verdicts = append(verdicts, here...)
		switch {
		case len(ahead) > 0:
			lost = append(lost, fmt.Sprintf("%s: %s", DatasetTitle(dataset), strings.Join(ahead, ", ")))
		case !slices.Contains(here, report.Undecided):
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
	if run == 0 {
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
		run, counted(won), counted(lost), lowest, fromTable(tally(verdicts), "uci-claims"))
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
func (x metric) densityIsLowest(index results.Index, dataset string, s setting) (bool, error) {
	var means []results.Summary
	for _, m := range PaperMethods() {
		mean, err := index.Summarize(s.protocol.On(dataset).Experiments(m), x.name)
		if err != nil {
			return false, err
		}
		means = append(means, mean)
	}
	lowest, _ := results.Lowest(means)
	return lowest >= 0 && isDensity(PaperMethods()[lowest]), nil
}

// lead is the verdict on a claim that something is better on several data sets, by how many of the differences are
// decided for and against it: it holds with some for and none against, and does not hold the other way round. Runs that
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

// A control is a layer whose noise follows nothing, the reference of a table, and what density layers being better than
// it would say.
type control struct {
	claim, title, table string
	comparison          methodTable
	settings            []setting
}

// grounding checks what the paper's criterion asks for: that a variance which follows the energy is better than that of
// the control.
func (x control) grounding(index results.Index, decided map[rowAndColumn]tested, s setting) report.Claim {
	c := report.Claim{Where: "abstract, section 2", Claim: fmt.Sprintf("%s (settings: %s)", x.claim, s.name), Verdict: report.NotRun}
	var verdicts, remarks []string
	lower := 0
	for _, dataset := range s.protocol.Datasets {
		if text := s.protocol.divergedOn(index, dataset, methods.Density); text != "" {
			remarks = append(remarks, " "+text)
		} else if test, has := decided[rowAndColumn{s.rowOf(dataset), methods.Density.Title}]; has && s.protocol.complete(index, dataset, methods.Density) {
			verdicts = append(verdicts, test.verdict)
			if test.difference.Mean < 0 {
				lower++
			}
		}
	}
	if len(verdicts) == 0 {
		return c
	}
	n := counts(verdicts)
	c.Verdict = lead(n[report.Better], n[report.Worse], len(remarks) > 0)
	c.Evidence = fmt.Sprintf("NLL of LDL energies against %s: lower mean on %d of %d data sets. %s%s", x.title, lower, len(verdicts),
		fromTable(tally(verdicts), x.table), strings.Join(remarks, ""))
	return c
}

// inBetween checks the paper's criterion where it matters, on test inputs between those of training: that the variance
// of LDL energies ranks the errors better than that of constant energy.
func inBetween(index results.Index, s setting) (report.Claim, error) {
	c := report.Claim{Where: "our test of the criterion", Claim: fmt.Sprintf("Between the training inputs the variance tells where the errors are, better than without the density (settings: %s)", s.name), Verdict: report.NotRun}
	var parts, remarks []string
	for _, dataset := range smallDatasets() {
		for _, m := range []methods.Method{methods.Density, methods.DensityConstant} {
			if text := s.protocol.divergedOn(index, dataset, m); text != "" {
				remarks = append(remarks, " "+text)
			}
		}
	}
	compared := 0 // data sets
	for _, score := range gapScores {
		tests, err := score.againstConstant(index, s)
		if err != nil {
			return c, err
		}
		verdicts, err := tests.verdicts()
		if err != nil {
			return c, err
		}
		if len(verdicts) == 0 {
			return c, nil
		}
		n := counts(verdicts)
		higher, lower := n[report.Worse], n[report.Better] // the verdicts are for scores that are better when lower
		parts = append(parts, fmt.Sprintf("%s higher on %d, lower on %d and undecided on %d", score.title, higher, lower, len(verdicts)-higher-lower))
		if score.metric == results.MetricSpearman {
			c.Verdict, compared = lead(higher, lower, len(remarks) > 0), len(verdicts)
		}
	}
	c.Evidence = fromTable(fmt.Sprintf("LDL energies against constant energy on gap splits of %s: %s", results.Counted(compared, "data set", "data sets"), strings.Join(parts, "; ")), "uci-gap, notes") +
		strings.Join(remarks, "")
	return c, nil
}

// start is the initial deviation of the paper's text.
const start = 0.1

// startTests are comparisons of initial deviations, by the data set and the lower one, with their verdicts on the text's.
// The remarks name the sets on which runs with the text's diverged.
type startTests struct {
	family[rowAndColumn]
	verdicts, remarks []string
}

// starts compares, by the runs with the text's optimizer from which settings were chosen, density uncertainty with the
// text's initial deviation against each lower one, on held-out training examples.
func starts(index results.Index) (tests startTests, err error) {
	p := Paper()
	p.Scale = results.Grid
	for _, dataset := range p.Datasets {
		at := func(scale float64) Protocol { return choice{methods.SGD, scale}.apply(p, methods.Density) }
		from := func(scale float64) map[int]float64 {
			return at(scale).bySplit(index, dataset, methods.Density, results.MetricNLL)
		}
		if lost := at(start).divergedOn(index, dataset, methods.Density); lost != "" {
			tests.remarks = append(tests.remarks, " From 0.1 "+lost)
		}
		for _, lower := range noiseScales {
			if lower >= start {
				continue
			}
			if err := tests.add(rowAndColumn{DatasetTitle(dataset), formatScale(lower)}, from(start), from(lower), heldOutSplits, p.splitCount(dataset)); err != nil {
				return tests, err
			}
		}
	}
	tests.verdicts, err = tests.family.verdicts()
	return tests, err
}

// lowerIsWorse checks that posteriors that start with a deviation below the text's overfit.
func (x startTests) lowerIsWorse() report.Claim {
	c := report.Claim{Where: "appendix, UCI details", Claim: "Initial deviations below 0.1 lead to overfitting", Verdict: report.NotRun}
	if len(x.verdicts) == 0 {
		return c
	}
	n := counts(x.verdicts)
	c.Verdict = lead(n[report.Better], n[report.Worse], len(x.remarks) > 0)
	var parts []string
	for _, lower := range noiseScales {
		better, worse := []string{}, []string{}
		for i, name := range x.names {
			switch {
			case name.column != formatScale(lower):
			case x.verdicts[i] == report.Better:
				better = append(better, name.row)
			case x.verdicts[i] == report.Worse:
				worse = append(worse, name.row)
			}
		}
		if lower < start {
			parts = append(parts, fmt.Sprintf("against %s better on %s, worse on %s", formatScale(lower), counted(better), counted(worse)))
		}
	}
	c.Evidence = fmt.Sprintf("NLL of density uncertainty on held-out training examples with SGD, from 0.1 %s. %s%s", strings.Join(parts, "; "), tally(x.verdicts), strings.Join(x.remarks, ""))
	return c
}

// sensitivity checks that the performance on some data sets depends on hyperparameters, by the one that the text changes
// for these data: where the runs of two initial deviations are decided to differ, it does.
func (x startTests) sensitivity() report.Claim {
	c := report.Claim{Where: "appendix, UCI results", Claim: "The performance on some data sets can be sensitive to the hyperparameters", Verdict: report.NotRun}
	if len(x.verdicts) == 0 {
		return c
	}
	var decided []string
	for i, name := range x.names {
		if x.verdicts[i] != report.Undecided && !slices.Contains(decided, name.row) {
			decided = append(decided, name.row)
		}
	}
	c.Verdict = report.Undecided
	if len(decided) > 0 {
		c.Verdict = report.Holds
	}
	c.Evidence = fmt.Sprintf("The initial deviation alone, 0.1 or lower, makes a decided difference of density uncertainty's NLL on held-out training examples on %s. %s", counted(decided), tally(x.verdicts))
	return c
}
