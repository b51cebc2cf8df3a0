package cifar

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

// A contest is the paper's claim that one method is the best of several in a metric, over the seeds of full runs.
type contest struct {
	where, claim string
	first        experiment.Experiments   // of the method that the claim is about
	others       []experiment.Experiments // of each other method; at least one
	measures     []measure
	ending       string // of the names of the first method's metrics, after those of the others
	// comparable says that the claim is not of a lead, but that the first is as good: its mean is behind by at most a
	// standard deviation of the other method.
	comparable bool
	// instead says, where runs are missing, where runs of ten epochs are compared.
	instead string
}

// contests are the paper's claims.
func contests() []contest {
	others := slices.DeleteFunc(slices.Clone(papersFive), methods.Density.Same)
	each := func(preset experiment.Preset, d Images, methods ...experiment.Method) []experiment.Experiments {
		var all []experiment.Experiments
		for _, m := range methods {
			all = append(all, list(preset, d, paperSeeds, m))
		}
		return all
	}
	accuracy, ece, nll := classificationMeasures[0], classificationMeasures[1], classificationMeasures[2]
	detection := []measure{
		{heading: "AUROC on SVHN", metric: detectionMetric(SVHN, "auroc"), sign: -1},
		{heading: "AUPRC on SVHN", metric: detectionMetric(SVHN, "auprc"), sign: -1},
	}
	full := func(where, claim string, preset experiment.Preset, d Images, others []experiment.Method, measures ...measure) contest {
		return contest{where: where, claim: claim, first: list(preset, d, paperSeeds, methods.Density), others: each(preset, d, others...), measures: measures}
	}
	const best = "Density uncertainty is the best in accuracy, ECE and NLL"
	tenEpochs := func(c contest, table string) contest {
		c.instead = "ten epochs, not compared with the paper: table " + table
		return c
	}
	const smallest = "table CIFAR-10, ResNet-14"
	asAccurate := full(smallest, "Density uncertainty is about as accurate as the other methods", Paper, ten, others, accuracy)
	asAccurate.comparable = true
	wide := onWide.experiment
	all := []contest{
		tenEpochs(full(smallest, "Density uncertainty has a lower ECE and NLL than the other methods", Paper, ten, others, ece, nll), "cifar-processor-differences"),
		tenEpochs(asAccurate, "cifar-processor-differences"),
		full("table CIFAR-100, ResNet-14", best, Paper, hundred, others, accuracy, ece, nll),
		full("table CIFAR-10, WRN-28-10", best, wide, ten, slices.Concat(others, processes), accuracy, ece, nll),
		// The paper has no DUE here: it was out of memory.
		full("table CIFAR-100, WRN-28-10", best, wide, hundred, slices.Concat(others, processes[:1]), accuracy, ece, nll),
	}
	for _, fraction := range ablationFractions {
		all = append(all, contest{
			where: "table of rank-1 components", claim: fmt.Sprintf("A rank-1 mixture with %g %% components is about as good as the full rank in accuracy and NLL", 100*fraction),
			first: list(wide, ten, paperSeeds, mixture(fraction)), others: each(wide, ten, methods.Density), measures: []measure{accuracy, nll}, comparable: true,
		})
	}
	for _, d := range []Images{ten, hundred} {
		c := contest{
			where: "table of SVHN", claim: "The energy of density uncertainty detects SVHN better than the other methods' probabilities, trained on " + titleOf(d.Name),
			first: list(Paper, withHeldOut(d), paperSeeds, methods.Density), others: each(Paper, d, others...), measures: detection, ending: ByEnergy,
		}
		if d.Name == CIFAR10 {
			c = tenEpochs(c, "cifar-processor-ood")
		}
		all = append(all, c)
	}
	return all
}

// Claims are the paper's claims about images, checked by paired tests over the seeds of full runs.
func Claims(x *tables.Index) ([]report.Claim, error) {
	var all []report.Claim
	for _, c := range contests() {
		claim, err := c.check(x)
		if err != nil {
			return nil, err
		}
		all = append(all, claim)
	}
	return all, nil
}

// check compares the first method with each other one, on the seeds on which neither diverged. The claim holds if every
// difference is decided for it, and does not hold if one is decided against it, or a run of the first method diverged.
func (c contest) check(x *tables.Index) (report.Claim, error) {
	claim := report.Claim{Where: c.where, Claim: c.claim, Verdict: report.NotRun, Evidence: c.instead}
	var differences []metrics.Difference
	var names, remarks []string
	behind, diverged := false, false // by more than a standard deviation; and runs of the first method
	for _, m := range c.measures {
		own := m
		own.metric += c.ending
		ours, lost, complete := own.bySeed(x, c.first)
		if !complete {
			return claim, nil
		}
		remark := func(list experiment.Experiments, lost, left int) {
			if text := fmt.Sprintf("%s diverged on %d of %d seeds", list[0].Method.Name, lost, lost+left); lost > 0 && !slices.Contains(remarks, text) {
				remarks = append(remarks, text)
			}
		}
		remark(c.first, lost, len(ours))
		diverged = diverged || lost > 0
		for _, other := range c.others {
			theirs, lost, complete := m.bySeed(x, other)
			if !complete {
				return claim, nil
			}
			remark(other, lost, len(theirs))
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
			differences, names = append(differences, d), append(names, fmt.Sprintf("%s against %s", m.heading, other[0].Method.Name))
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

// bySeed is the measure of full runs, by seed, with the sign by which lower is better, and how many diverged. It is not
// complete if one is not there or lacks the metric.
func (m measure) bySeed(x *tables.Index, all experiment.Experiments) (values map[uint64]float64, diverged int, complete bool) {
	values = map[uint64]float64{}
	for _, e := range all {
		r, done := x.Find(e)
		value, measured := r.Metrics[m.metric]
		switch {
		case done && r.Diverged:
			diverged++
		case !measured:
			return nil, 0, false
		default:
			values[e.Seed] = m.sign * value
		}
	}
	return values, diverged, true
}
