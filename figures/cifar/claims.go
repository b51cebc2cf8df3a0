package cifar

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

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
	// comparable says that the claim is not of a lead, but that the first is as good: its mean is behind by at most a
	// standard deviation of the other method.
	comparable bool
	// instead says, where runs are missing, where runs of ten epochs are compared.
	instead string
}

// Claims are the paper's claims about images, checked by paired tests over the seeds of full runs.
func Claims(lines []results.Result) ([]report.Claim, error) {
	index := results.ByID(lines)
	withDensityFirst := append(methods.List{methods.Density}, slices.DeleteFunc(slices.Clone(papersFive), func(m methods.Method) bool { return m.Name == methods.Density.Name })...)
	wide := append(slices.Clone(withDensityFirst), methods.SNGP, methods.DUE)
	accuracy, ece, nll := classificationMeasures[0], classificationMeasures[1], classificationMeasures[2]
	detection := []measure{
		{heading: "AUROC on SVHN", metric: detectionMetric(svhnTest, "auroc"), sign: -1},
		{heading: "AUPRC on SVHN", metric: detectionMetric(svhnTest, "auprc"), sign: -1},
	}
	full := func(where, claim string, p Protocol, list methods.List, measures ...measure) contest {
		return contest{where: where, claim: claim, first: p, others: p, list: list, measures: measures}
	}
	const best = "Density uncertainty is the best in accuracy, ECE and NLL"
	tenEpochs := func(c contest, table string) contest {
		c.instead = "ten epochs, not compared with the paper: table " + table
		return c
	}
	const smallest = "table CIFAR-10, ResNet-14"
	asAccurate := full(smallest, "Density uncertainty is about as accurate as the other methods", Paper(CIFAR10, ResNet14), withDensityFirst, accuracy)
	asAccurate.comparable = true
	contests := []contest{
		tenEpochs(full(smallest, "Density uncertainty has a lower ECE and NLL than the other methods", Paper(CIFAR10, ResNet14), withDensityFirst, ece, nll),
			"cifar-processor-differences"),
		tenEpochs(asAccurate, "cifar-processor-differences"),
		full("table CIFAR-100, ResNet-14", best, Paper(CIFAR100, ResNet14), withDensityFirst, accuracy, ece, nll),
		full("table CIFAR-10, WRN-28-10", best, Paper(CIFAR10, WRN28x10), wide, accuracy, ece, nll),
		// The paper has no DUE here: it was out of memory.
		full("table CIFAR-100, WRN-28-10", best, Paper(CIFAR100, WRN28x10), append(slices.Clone(withDensityFirst), methods.SNGP), accuracy, ece, nll),
	}
	for _, fraction := range ablationFractions {
		contests = append(contests, contest{
			where: "table of rank-1 components", claim: fmt.Sprintf("A rank-1 mixture with %g %% components is about as good as the full rank in accuracy and NLL", 100*fraction),
			first: Paper(CIFAR10, WRN28x10).withFraction(fraction), others: Paper(CIFAR10, WRN28x10), list: methods.List{methods.DensityMixture, methods.Density},
			measures: []measure{accuracy, nll}, comparable: true,
		})
	}
	contests = append(contests,
		tenEpochs(contest{
			where: "table of SVHN", claim: "The energy of density uncertainty detects SVHN better than the other methods' probabilities, trained on CIFAR-10",
			first: Paper(CIFAR10, ResNet14).WithHeldOut(), others: Paper(CIFAR10, ResNet14), list: withDensityFirst, measures: detection, ending: methods.ByEnergy,
		}, "cifar-processor-ood"),
		contest{
			where: "table of SVHN", claim: "The energy of density uncertainty detects SVHN better than the other methods' probabilities, trained on CIFAR-100",
			first: Paper(CIFAR100, ResNet14).WithHeldOut(), others: Paper(CIFAR100, ResNet14), list: withDensityFirst, measures: detection, ending: methods.ByEnergy,
		})
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

// check compares the first method with each other one, on the seeds on which neither diverged. The claim holds if every
// difference is decided for it, and does not hold if one is decided against it, or a run of the first method diverged.
func (c contest) check(index results.Index) (report.Claim, error) {
	claim := report.Claim{Where: c.where, Claim: c.claim, Verdict: report.NotRun, Evidence: c.instead}
	var differences []metrics.Difference
	var names, remarks []string
	behind, diverged := false, false // by more than a standard deviation; and runs of the first method
	for _, x := range c.measures {
		own := x
		own.metric += c.ending
		ours, lost, complete := own.bySeed(index, c.first, c.list[0])
		if !complete {
			return claim, nil
		}
		remark := func(m methods.Method, lost, left int) {
			if text := fmt.Sprintf("%s diverged on %d of %d seeds", m.Title, lost, lost+left); lost > 0 && !slices.Contains(remarks, text) {
				remarks = append(remarks, text)
			}
		}
		remark(c.list[0], lost, len(ours))
		diverged = diverged || lost > 0
		for _, m := range c.list[1:] {
			theirs, lost, complete := x.bySeed(index, c.others, m)
			if !complete {
				return claim, nil
			}
			remark(m, lost, len(theirs))
			var a, b []float64
			for _, seed := range slices.Sorted(maps.Keys(ours)) {
				if value, has := theirs[seed]; has {
					a, b = append(a, ours[seed]), append(b, value)
				}
			}
			if len(a) < 2 {
				continue // too few that did not diverge
			}
			d, err := metrics.PairedDifference(a, b, 0, level)
			if err != nil {
				return claim, fmt.Errorf("cifar: %s: %w", c.claim, err)
			}
			if _, std := stat.MeanStdDev(b, nil); d.Mean > std {
				behind = true
			}
			differences, names = append(differences, d), append(names, fmt.Sprintf("%s against %s", x.heading, m.Title))
		}
	}
	verdicts, err := report.Verdicts(differences, level)
	if err != nil {
		return claim, fmt.Errorf("cifar: %s: %w", c.claim, err)
	}
	var parts []string
	for i, v := range verdicts {
		parts = append(parts, names[i]+" "+v)
	}
	claim.Verdict = report.Holds
	switch {
	case diverged, c.comparable && behind, !c.comparable && slices.Contains(verdicts, report.Worse):
		claim.Verdict = report.DoesNotHold
	case len(verdicts) == 0, !c.comparable && slices.Contains(verdicts, report.Undecided):
		claim.Verdict = report.Undecided
	}
	claim.Evidence = strings.Join(append(parts, remarks...), ", ")
	return claim, nil
}

// bySeed is the measure of a method's full runs, by seed, with the sign by which lower is better, and how many diverged;
// not complete where one is not there or lacks the metric.
func (x measure) bySeed(index results.Index, p Protocol, m methods.Method) (values map[uint64]float64, diverged int, complete bool) {
	values = make(map[uint64]float64)
	for _, e := range p.Experiments(m) {
		line, done := index.Find(e)
		value, measured := line.Metrics[x.metric]
		switch {
		case done && line.Diverged:
			diverged++
		case !measured:
			return nil, 0, false
		default:
			values[e.Seed] = x.sign * value
		}
	}
	return values, diverged, true
}
