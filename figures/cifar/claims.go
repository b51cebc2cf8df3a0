package cifar

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

// A claim is one of the paper's: that a method is better than others, or as good, by paired tests over the seeds of full runs.
type claim struct {
	tables.Claim
	tests []tables.Tested // of the method, each against another one
	// comparable says that the claim is not of a lead, but that the method is as good: its mean is behind by at most a
	// standard deviation of the other method.
	comparable bool
}

// theClaims are the paper's, four about images and two about their detection.
func theClaims() []claim {
	four := slices.DeleteFunc(slices.Clone(papersFive), methods.Density.Equal)
	var all []claim
	add := func(group, where, in, text string, first experiment.Experiments, preset experiment.Preset, d Images, others []experiment.Method, numbers ...tables.Number) *claim {
		c := claim{Claim: tables.Claim{Group: group, Where: where, In: in, Claim: text}}
		for _, n := range numbers {
			mean := n.Over(first)
			mean.By, mean.Optional = func(e experiment.Experiment) int { return int(e.Seed) }, true
			for _, m := range others {
				test := mean.Against(seeded(preset, paperSeeds).Of(d, m))
				test.Other.Name = strings.TrimSuffix(n.Name, ByEnergy) // others detect images by their probabilities
				c.tests = append(c.tests, test)
			}
		}
		all = append(all, c)
		return &all[len(all)-1]
	}
	density := func(preset experiment.Preset, d Images) experiment.Experiments {
		return seeded(preset, paperSeeds).Of(d, methods.Density)
	}
	const images, small, best = "Images", "table CIFAR-10, ResNet-14", "Density uncertainty is the best in accuracy, ECE and NLL"
	add(images, small, "", "Density uncertainty has a lower ECE and NLL than the other methods", density(Paper, ten), Paper, ten, four, ece, nll)
	add(images, small, "", "Density uncertainty is about as accurate as the other methods", density(Paper, ten), Paper, ten, four, accuracy).comparable = true
	for _, in := range []struct {
		name    string
		preset  experiment.Preset
		data    Images
		further []experiment.Method
	}{
		{"CIFAR-100 with ResNet-14", Paper, hundred, nil}, {"CIFAR-10 with WRN-28-10", Wide, ten, processes},
		{"CIFAR-100 with WRN-28-10", Wide, hundred, processes[:1]}, // DUE was out of memory in the paper
	} {
		add(images, "tables", in.name, best, density(in.preset, in.data), in.preset, in.data, slices.Concat(four, in.further), accuracy, ece, nll)
	}
	for _, fraction := range ablationFractions {
		add(images, "table of rank-1 components", fmt.Sprintf("%g%%", 100*fraction), "A rank-1 mixture is about as good as the full rank in accuracy and NLL",
			seeded(Wide, paperSeeds).Of(ten, mixture(fraction)), Wide, ten, []experiment.Method{methods.Density}, accuracy, nll).comparable = true
	}
	for _, d := range []Images{ten, hundred} {
		add("Detection", "table of SVHN", "trained on "+titleOf(d.Name), "The energy of density uncertainty detects SVHN better than the other methods' probabilities",
			density(Paper, withHeldOut(d)), Paper, d, four, detected(SVHN, "auroc", ByEnergy), detected(SVHN, "auprc", ByEnergy))
	}
	return all
}

// Claims are the paper's claims about images, checked by paired tests over the seeds of full runs.
func Claims(x *tables.Index) ([]tables.Claim, error) {
	var all []tables.Claim
	for _, c := range theClaims() {
		checked, err := c.check(x)
		if err != nil {
			return nil, fmt.Errorf("cifar: %s: %w", c.Claim.Claim, err)
		}
		all = append(all, checked)
	}
	return all, nil
}

// check tests the method against each other one. The claim holds if every difference is significant for it, and does not hold
// if one is significant against it. If only one of two methods diverged, with some seed, that decides against it.
func (c claim) check(x *tables.Index) (tables.Claim, error) {
	c.Verdict = tables.NotRun
	var family tables.Family[string]
	behind, alone := false, 0
	for _, m := range c.tests {
		ours, err := x.Summarize(m.Mean)
		other, err2 := x.Summarize(m.Other)
		if err := errors.Join(err, err2); err != nil {
			return c.Claim, err
		}
		family.AddTested("", x, m)
		if ours.N+ours.Diverged < ours.Wanted || other.N+other.Diverged < other.Wanted {
			return c.Claim, nil
		}
		verdict, difference := x.DivergedAlone(m.Of, m.Other.Of), ours.Mean-other.Mean
		if m.Higher {
			difference = -difference
		}
		if behind = behind || verdict == report.Worse || verdict == "" && difference > other.Std; verdict != "" {
			alone++
		}
	}
	tests := family.Tests()
	n := tests.Verdicts()
	c.Verdict = tables.Holds
	switch {
	case c.comparable && behind, !c.comparable && n[report.Worse] > 0:
		c.Verdict = tables.DoesNotHold
	case len(tests) < len(c.tests), !c.comparable && n[report.NotSignificant] > 0:
		c.Verdict = report.NotSignificant
	}
	if c.Evidence = tests.Tally(); alone > 0 {
		c.Evidence += fmt.Sprintf(" In %d of them one of the two methods diverged.", alone)
	}
	return c.Claim, nil
}
