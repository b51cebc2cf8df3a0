package cifar

import (
	"fmt"
	"slices"
	"strings"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// A contest is the paper's claim that one method is the best of several in a metric, over the seeds of full runs.
type contest struct {
	where, claim  string
	first, others Protocol     // of the first method of the list, which the claim is about, and of the others
	list          methods.List // of at least two
	measures      []measure
	ending        string // of the names of the first method's metrics, after those of the others
}

// Claims are the paper's claims about images, checked by paired tests over the seeds of full runs.
func Claims(lines []results.Result) ([]report.Claim, error) {
	index := results.ByID(lines)
	withDensityFirst := append(methods.List{methods.Density}, slices.DeleteFunc(slices.Clone(papersFive), func(m methods.Method) bool { return m.Name == methods.Density.Name })...)
	wide := append(slices.Clone(withDensityFirst), methods.SNGP, methods.DUE)
	accuracy, ece, nll := classificationMeasures[0], classificationMeasures[1], classificationMeasures[2]
	detection := []measure{{heading: "AUROC on SVHN", metric: detectionMetric(svhnTest, "auroc"), sign: -1}}
	full := func(where, claim string, p Protocol, list methods.List, measures ...measure) contest {
		return contest{where: where, claim: claim, first: p, others: p, list: list, measures: measures}
	}
	const best = "Density uncertainty is the best in accuracy, ECE and NLL"
	contests := []contest{
		full("table CIFAR-10, ResNet-14", "Density uncertainty has a lower ECE and NLL than the other methods", Paper(CIFAR10, ResNet14), withDensityFirst, ece, nll),
		full("table CIFAR-100, ResNet-14", best, Paper(CIFAR100, ResNet14), withDensityFirst, accuracy, ece, nll),
		full("table CIFAR-10, WRN-28-10", best, Paper(CIFAR10, WRN28x10), wide, accuracy, ece, nll),
		full("table CIFAR-100, WRN-28-10", best, Paper(CIFAR100, WRN28x10), wide, accuracy, ece, nll),
		{
			where: "table of rank-1 components", claim: "A rank-1 mixture with 1.25 % components has a lower NLL than the full rank",
			first: Paper(CIFAR10, WRN28x10).withFraction(0.0125), others: Paper(CIFAR10, WRN28x10), list: methods.List{methods.DensityMixture, methods.Density}, measures: []measure{nll},
		},
		{
			where: "table of SVHN", claim: "The energy of density uncertainty detects SVHN better than the other methods' probabilities, trained on CIFAR-10",
			first: Paper(CIFAR10, ResNet14).WithHeldOut(), others: Paper(CIFAR10, ResNet14), list: withDensityFirst, measures: detection, ending: methods.ByEnergy,
		},
		{
			where: "table of SVHN", claim: "The energy of density uncertainty detects SVHN better than the other methods' probabilities, trained on CIFAR-100",
			first: Paper(CIFAR100, ResNet14).WithHeldOut(), others: Paper(CIFAR100, ResNet14), list: withDensityFirst, measures: detection, ending: methods.ByEnergy,
		},
	}
	var all []report.Claim
	for _, c := range contests {
		claim, err := c.check(index)
		if err != nil {
			return nil, err
		}
		all = append(all, claim)
	}
	return all, nil
}

// check compares the first method with each other one. The claim holds if every difference is decided for it, and does
// not hold if one is decided against it.
func (c contest) check(index results.Index) (report.Claim, error) {
	claim := report.Claim{Where: c.where, Claim: c.claim, Verdict: report.NotRun}
	var differences []metrics.Difference
	var names []string
	for _, x := range c.measures {
		own := x
		own.metric += c.ending
		ours := own.bySeed(index, c.first, c.list[0])
		for _, m := range c.list[1:] {
			theirs := x.bySeed(index, c.others, m)
			if ours == nil || theirs == nil {
				return claim, nil
			}
			d, err := metrics.PairedDifference(ours, theirs, 0, level)
			if err != nil {
				return claim, fmt.Errorf("cifar: %s: %w", c.claim, err)
			}
			differences, names = append(differences, d), append(names, fmt.Sprintf("%s against %s", x.heading, m.Title))
		}
	}
	verdicts, err := report.Verdicts(differences, level)
	if err != nil {
		return claim, fmt.Errorf("cifar: %s: %w", c.claim, err)
	}
	claim.Verdict = report.Holds
	var parts []string
	for i, v := range verdicts {
		parts = append(parts, names[i]+" "+v)
	}
	switch {
	case slices.Contains(verdicts, report.Worse):
		claim.Verdict = report.DoesNotHold
	case slices.Contains(verdicts, report.Undecided):
		claim.Verdict = report.Undecided
	}
	claim.Evidence = strings.Join(parts, ", ")
	return claim, nil
}

// bySeed is the measure of a method's full runs, by seed, with the sign by which lower is better; nil where one is not
// there, diverged or lacks the metric.
func (x measure) bySeed(index results.Index, p Protocol, m methods.Method) []float64 {
	var values []float64
	for _, e := range p.Experiments(m) {
		line, done := index.Find(e)
		value, measured := line.Metrics[x.metric]
		if !done || line.Diverged || !measured {
			return nil
		}
		values = append(values, x.sign*value)
	}
	return values
}
