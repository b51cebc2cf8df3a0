package uci

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"densityuncertainty/datasets"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

// Claims are the paper's claims about UCI regression, each checked in several settings. Verdicts on single differences come
// from the tables that show them. A method that diverged alone counts as significantly worse.
func Claims(x *tables.Index) (all []tables.Claim, err error) {
	for _, kind := range []func(*tables.Index) ([]tables.Claim, error){claimsOfBest, claimsOfControls, claimsOfGaps, claimsOfStarts} {
		claims, wrong := kind(x)
		all, err = append(all, claims...), errors.Join(err, wrong)
	}
	return all, err
}

// claimsOfBest are those about the paper's methods.
func claimsOfBest(x *tables.Index) (all []tables.Claim, err error) {
	tested, err := claimsTable(x)
	if err != nil {
		return nil, err
	}
	for _, n := range tableNumbers {
		for _, s := range claimGrids {
			all = append(all, bestOnMost(tested, n, s))
		}
	}
	return all, nil
}

// claimsOfControls are those about the energy that scales the variance.
func claimsOfControls(x *tables.Index) (all []tables.Claim, err error) {
	for _, c := range []struct {
		claim string
		table func(*tables.Index) (report.Table, error)
	}{
		{"A variance that follows the density of the input beats one that does not", energyTable},
		{"It beats the same average variance, given to every input alike", placeTable},
	} {
		t, err := c.table(x)
		if err != nil {
			return nil, err
		}
		for _, s := range energyGrids() {
			all = append(all, beatsControl(t, c.claim, s))
		}
	}
	return all, nil
}

// claim is a claim about a number of comparisons, by how many are significant for and against it. It holds with some for and
// none against, fails the other way round, and is mixed with some of both.
func claim(where, text, in, evidence string, compared, ahead, behind int) tables.Claim {
	c := tables.Claim{Group: "UCI regression", Claim: text, Where: where, In: in, Verdict: report.NotSignificant, Evidence: evidence}
	switch {
	case compared == 0:
		c.Verdict, c.Evidence = tables.NotRun, ""
	case ahead > 0 && behind == 0:
		c.Verdict = tables.Holds
	case behind > 0 && ahead == 0:
		c.Verdict = tables.DoesNotHold
	case behind > 0:
		c.Verdict = tables.Mixed
	}
	return c
}

// mostSets is the number of the paper's data sets on which it has density uncertainty ahead.
const mostSets = 6

// bestOnMost checks that density uncertainty is ahead on most of the paper's data sets. A set is won if density is better
// than each other method, and lost if a method is better than density (tables.Test). The claim holds if enough sets are
// won, and fails if so many are lost that the rest are too few. Sets that are neither, or were not run, may go either way.
func bestOnMost(tested report.Table, of tables.Number, s experiment.Grid) tables.Claim {
	won, lost, sets := 0, 0, 0
	ahead := map[string]int{} // of density, by the rival
	for _, d := range s.Data {
		dataset := d.(Data).Name
		n := map[string]int{}
		for _, m := range rivals {
			verdict := tested.Cell(in(of, s), DatasetTitle(dataset), m.Name).Verdict
			n[verdict]++
			if verdict == report.Better && paperRows[dataset] != "" {
				ahead[m.Name]++
			}
		}
		if paperRows[dataset] == "" || n[""] > 0 { // not in the paper, or not all were run
			continue
		}
		sets++
		switch {
		case n[report.Better] > 0:
			lost++
		case n[report.Worse] == len(rivals):
			won++
		}
	}
	holds, fails := 0, 0
	switch {
	case won >= mostSets:
		holds = 1
	case len(paperRows)-lost < mostSets:
		fails = 1
	}
	var parts []string
	if won > 0 {
		parts = append(parts, fmt.Sprintf("best on %d", won))
	}
	if lost > 0 {
		rival := slices.MaxFunc(slices.Sorted(maps.Keys(ahead)), func(a, b string) int { return ahead[a] - ahead[b] })
		parts = append(parts, fmt.Sprintf("worse than %s on %d", rival, ahead[rival]))
	}
	evidence := fmt.Sprintf("%s of %d", strings.Join(parts, ", "), sets)
	if len(parts) == 0 {
		evidence = fmt.Sprintf("best on none of %d, worse than another on none", sets)
	}
	return claim("appendix, UCI results", fmt.Sprintf("Density uncertainty is best in %s on %d of the %d data sets", of.Title, mostSets, len(paperRows)), s.Title, evidence, sets, holds, fails)
}

// beatsControl checks what the paper's criterion asks for: that a variance which follows the energy is better than a control's
// that does not, by a table with bounds in which the control is the reference.
func beatsControl(t report.Table, text string, s experiment.Grid) tables.Claim {
	column := slices.Index(t.Columns, methods.Density.Name) - 1
	var tests tables.Tests[string]
	bound := ""
	var alone []string // the data sets on which density uncertainty diverged and the control did not
	for _, row := range t.Rows {
		switch {
		case row.Group != s.Title:
		case row.Name == allSets:
			bound = row.Cells[len(row.Cells)-1].Text
		case row.Cells[column].Verdict != "":
			tests = append(tests, tables.Test[string]{Of: row.Name, Difference: row.Cells[column].Difference, Verdict: row.Cells[column].Verdict})
			if row.Cells[column].Verdict == report.Worse && row.Cells[column].Difference == nil {
				alone = append(alone, row.Name)
			}
		}
	}
	n, compared := tests.Verdicts(), len(tests)
	var counted []string
	for _, verdict := range []string{report.Better, report.Worse} {
		if n[verdict] > 0 {
			counted = append(counted, fmt.Sprintf("%s on %d", verdict, n[verdict]))
		}
	}
	var evidence []string
	if len(counted) > 0 {
		counts := fmt.Sprintf("%s of %d", strings.Join(counted, ", "), compared)
		if len(alone) > 0 {
			counts += fmt.Sprintf(" (%s, where density layers alone diverge)", strings.Join(alone, ", "))
		}
		evidence = append(evidence, counts)
	}
	if n[report.Better] == 0 && bound != "" {
		evidence = append(evidence, "mean within "+bound+" nats")
	}
	return claim("abstract, section 2", text, s.Title, strings.TrimPrefix(strings.Join(evidence, ", ")+tests.Equal(), "; "), compared, n[report.Better], n[report.Worse])
}

// claimsOfGaps check the paper's criterion where it matters, on test inputs between the training inputs: that the variance of
// LDL energies ranks the errors better than constant energy does.
func claimsOfGaps(x *tables.Index) (all []tables.Claim, err error) {
	for _, s := range gapGrids() {
		tests := againstConstant(x, rank, s)
		n := tests.Verdicts()
		higher, lower, compared := n[report.Better], n[report.Worse], len(tests)
		evidence := fmt.Sprintf("rank correlation higher on %d, lower on %d of %d", higher, lower, compared)
		if higher+lower == 0 {
			evidence = fmt.Sprintf("rank correlation significant on none of %d", compared)
		}
		evidence += tests.Equal()
		all = append(all, claim("section 2", "Between the training inputs the density makes the variance rank errors better", s.Title, evidence, compared, higher, lower))
	}
	return all, nil
}

// start is the initial deviation of the paper's text.
const start = 0.1

// claimsOfStarts checks that posteriors that start with a deviation below the text's overfit: that density uncertainty with the
// text's is better on held-out training examples, by the runs with the text's optimizer from which settings were chosen.
func claimsOfStarts(x *tables.Index) ([]tables.Claim, error) {
	var family tables.Family[string]
	for _, dataset := range datasets.UCINames() {
		from := func(deviation float64) experiment.Experiments {
			return hyperparameters{sgd, deviation}.heldOut(Data{Name: dataset}, methods.Density)
		}
		for _, lower := range noiseScales {
			if lower >= start {
				continue
			}
			family.AddTested(dataset, x, nll.Over(from(start)).Against(from(lower)))
		}
	}
	tests := family.Tests()
	n, compared := tests.Verdicts(), len(tests)
	better, worse := n[report.Better], n[report.Worse]
	evidence := fmt.Sprintf("held-out NLL with 0.1 better in %d, worse in %d of %d comparisons with lower ones", better, worse, compared) + tests.Equal()
	return []tables.Claim{claim("appendix, UCI details", "Initial deviations below 0.1 overfit", "", evidence, compared, better, worse)}, nil
}
