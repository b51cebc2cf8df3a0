package uci

import (
	"fmt"
	"slices"
	"strings"

	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// Claims are the paper's claims about UCI regression, checked in the settings of ClaimsTable.
func Claims(lines []results.Result) ([]report.Claim, error) {
	index := results.ByID(lines)
	var all []report.Claim
	for _, x := range theMetrics {
		for _, s := range claimSettings() {
			c, err := x.bestOnMost(index, s)
			if err != nil {
				return nil, err
			}
			all = append(all, c)
		}
	}
	for _, control := range []control{
		{"A variance that follows the density of the input is better than one that does not", "constant energy", methods.DensityConstant, energySettings()},
		{"It is better than as much variance on average that does not", "their mean", methods.DensityMean, placeSettings()},
	} {
		for _, s := range control.settings {
			c, err := control.grounding(index, s)
			if err != nil {
				return nil, err
			}
			all = append(all, c)
		}
	}
	return append(all, lowerStart(tuned())), nil
}

// bestOnMost checks that density uncertainty has the lowest mean of the methods of the paper's tables on two thirds of
// its data sets, and says how many of the differences are decided. Where the means say one thing and no difference is
// decided that way, it is undecided.
func (x metric) bestOnMost(index results.Index, s setting) (report.Claim, error) {
	c := report.Claim{Where: "appendix, UCI results", Claim: fmt.Sprintf("Density uncertainty has the lowest mean %s on 6 of the 9 data sets (settings: %s)", x.title, s.name), Verdict: report.NotRun}
	var tests paired
	best, complete := 0, 0
	var lost []string
	for _, dataset := range s.protocol.Datasets {
		if paperRows[dataset] == "" {
			continue
		}
		var means []results.Summary
		values := make([]map[int]float64, len(PaperMethods()))
		for i, m := range PaperMethods() {
			runs := s.protocol.On(dataset).Experiments(m)
			mean, err := index.Summarize(runs, x.name)
			if err != nil {
				return c, err
			}
			means, values[i] = append(means, mean), metricBySplit(index, runs, x.name)
		}
		if text := s.protocol.diverged(index, dataset, methods.Density); text != "" {
			complete++
			lost = append(lost, fmt.Sprintf("%s (%s)", DatasetTitle(dataset), text))
			continue
		}
		lowest, n := results.Lowest(means)
		if n < len(means) {
			continue
		}
		complete++
		density := slices.IndexFunc(PaperMethods(), isDensity)
		if lowest == density {
			best++
		} else {
			lost = append(lost, fmt.Sprintf("%s (%s)", DatasetTitle(dataset), PaperMethods()[lowest].Title))
		}
		for i := range values {
			if i != density {
				if err := tests.add(0, 0, values[density], values[i], randomSplits); err != nil {
					return c, err
				}
			}
		}
	}
	if complete == 0 {
		return c, nil
	}
	verdicts, err := tests.verdicts()
	if err != nil {
		return c, err
	}
	c.Verdict = report.Undecided // by means alone
	switch decided := func(verdict string) bool { return slices.Contains(verdicts, verdict) }; {
	case 3*best >= 2*complete && decided(report.Better):
		c.Verdict = report.Holds
	case 3*best < 2*complete && decided(report.Worse):
		c.Verdict = report.DoesNotHold
	}
	c.Evidence = fmt.Sprintf("lowest mean on %d of the %d data sets that were run", best, complete)
	if len(lost) > 0 {
		c.Evidence += ", not on " + strings.Join(lost, ", ")
	}
	c.Evidence += ". " + tally(verdicts)
	return c, nil
}

// A control is a layer whose noise follows nothing, and what density layers being better than it would say.
type control struct {
	claim, title string
	method       methods.Method
	settings     []setting
}

// grounding checks what the paper's criterion asks for: that a variance which follows the energy is better than that of
// the control.
func (x control) grounding(index results.Index, s setting) (report.Claim, error) {
	c := report.Claim{Where: "abstract, section 2", Claim: fmt.Sprintf("%s (settings: %s)", x.claim, s.name), Verdict: report.NotRun}
	var tests paired
	var lost []string
	lower, n := 0, 0
	for _, dataset := range s.protocol.Datasets {
		if text := s.protocol.diverged(index, dataset, methods.Density); text != "" {
			lost = append(lost, fmt.Sprintf("%s of %s", text, DatasetTitle(dataset)))
			continue
		}
		density, its := s.protocol.bySplit(index, dataset, methods.Density, results.MetricNLL), s.protocol.bySplit(index, dataset, x.method, results.MetricNLL)
		before := len(tests.cells)
		if err := tests.add(0, 0, density, its, randomSplits); err != nil {
			return c, err
		}
		for _, cell := range tests.cells[before:] {
			n++
			if cell.difference.Mean < 0 {
				lower++
			}
		}
	}
	if n == 0 {
		return c, nil
	}
	verdicts, err := tests.verdicts()
	if err != nil {
		return c, err
	}
	better, worse := slices.Contains(verdicts, report.Better), slices.Contains(verdicts, report.Worse) || len(lost) > 0
	switch {
	case better && !worse:
		c.Verdict = report.Holds
	case worse && !better:
		c.Verdict = report.DoesNotHold
	default:
		c.Verdict = report.Undecided
	}
	c.Evidence = fmt.Sprintf("NLL of LDL energies against %s: lower mean on %d of %d data sets. %s", x.title, lower, n, tally(verdicts))
	for _, text := range lost {
		c.Evidence += " " + text + "."
	}
	return c, nil
}

// lowerStart checks that posteriors must not start with a deviation below 0.1, by which values did best on held-out
// training examples.
func lowerStart(all choices) report.Claim {
	c := report.Claim{Where: "appendix, UCI details", Claim: "Initial deviations below 0.1 lead to overfitting", Verdict: report.NotRun}
	below, n := 0, 0
	for what, chosen := range all {
		if what.method == methods.Density.Name && what.splits == GalSplits {
			n++
			if chosen.scale < 0.1 {
				below++
			}
		}
	}
	if n == 0 {
		return c
	}
	c.Verdict = report.Holds
	if 2*below > n {
		c.Verdict = report.DoesNotHold
	}
	c.Evidence = fmt.Sprintf("for density uncertainty a lower one did best on held-out training examples of %d of %d splits", below, n)
	return c
}
