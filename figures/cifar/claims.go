package cifar

import (
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

// A claim is one of the paper's: that a method is better than each of several others, or as good, in some columns, over the
// seeds of full runs.
type claim struct {
	tables.Claim
	first   experiment.Experiments   // of the method
	others  []experiment.Experiments // of each other method
	columns []column
	ending  string // of the names of the first method's metrics, after those of the others
	// comparable says that the claim is not of a lead, but that the method is as good: its mean is behind by at most a
	// standard deviation of the other method.
	comparable bool
}

// theClaims are the paper's, four about images and two about their detection.
func theClaims() []claim {
	four := slices.DeleteFunc(slices.Clone(papersFive), methods.Density.Same)
	wide := onWide.experiment
	var all []claim
	add := func(group, where, in, text string, first experiment.Experiments, preset experiment.Preset, d Images, others []experiment.Method, columns ...column) *claim {
		c := claim{Claim: tables.Claim{Group: group, Where: where, In: in, Claim: text}, first: first, columns: columns}
		for _, m := range others {
			c.others = append(c.others, list(preset, d, paperSeeds, m))
		}
		all = append(all, c)
		return &all[len(all)-1]
	}
	density := func(preset experiment.Preset, d Images) experiment.Experiments {
		return list(preset, d, paperSeeds, methods.Density)
	}
	const images, small, best = "Images", "table CIFAR-10, ResNet-14", "Density uncertainty is the best in accuracy, ECE and NLL"
	add(images, small, "", "Density uncertainty has a lower ECE and NLL than the other methods", density(Paper, ten), Paper, ten, four, eceColumn, nllColumn)
	add(images, small, "", "Density uncertainty is about as accurate as the other methods", density(Paper, ten), Paper, ten, four, accuracyColumn).comparable = true
	for _, in := range []struct {
		name    string
		preset  experiment.Preset
		data    Images
		further []experiment.Method
	}{
		{"CIFAR-100 with ResNet-14", Paper, hundred, nil}, {"CIFAR-10 with WRN-28-10", wide, ten, processes},
		{"CIFAR-100 with WRN-28-10", wide, hundred, processes[:1]}, // DUE was out of memory in the paper
	} {
		add(images, "tables", in.name, best, density(in.preset, in.data), in.preset, in.data, slices.Concat(four, in.further), accuracyColumn, eceColumn, nllColumn)
	}
	for _, fraction := range ablationFractions {
		add(images, "table of rank-1 components", fmt.Sprintf("%g%%", 100*fraction), "A rank-1 mixture is about as good as the full rank in accuracy and NLL",
			list(wide, ten, paperSeeds, mixture(fraction)), wide, ten, []experiment.Method{methods.Density}, accuracyColumn, nllColumn).comparable = true
	}
	var detection []column
	for _, name := range []string{"auroc", "auprc"} {
		mean := tables.Mean{Metric: detectionMetric(SVHN, name), Higher: true}
		detection = append(detection, column{heading: strings.ToUpper(name) + " on SVHN", Mean: mean})
	}
	for _, d := range []Images{ten, hundred} {
		add("Detection", "table of SVHN", "trained on "+titleOf(d.Name), "The energy of density uncertainty detects SVHN better than the other methods' probabilities",
			density(Paper, withHeldOut(d)), Paper, d, four, detection...).ending = ByEnergy
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

// check compares the first method with each other one, on the seeds on which neither diverged. The claim holds if every
// difference is significant for it, and does not hold if one is significant against it. If only one of two methods diverged, with
// some seed, that decides against it.
func (c claim) check(x *tables.Index) (tables.Claim, error) {
	c.Verdict = tables.NotRun
	var family tables.Family[string]
	alone := map[string]int{} // how often each verdict was given because only one of two methods diverged
	behind := false           // by more than a standard deviation
	for _, column := range c.columns {
		ours, complete := bySeed(x, c.first, column, c.ending)
		for _, other := range c.others {
			theirs, measured := bySeed(x, other, column, "")
			if !complete || !measured {
				return c.Claim, nil
			}
			if verdict := x.DivergedAlone(c.first, other); verdict != "" {
				alone[verdict]++
				continue
			}
			a, b := map[int]float64{}, map[int]float64{}
			var own, spread []float64
			for seed := range len(other) {
				value, has := theirs[seed]
				if mine, both := ours[seed]; has && both {
					a[seed], b[seed], own, spread = mine, value, append(own, mine), append(spread, value)
				}
			}
			family.Add(column.heading+" against "+other[0].Method.Name, a, b, 0)
			mean, std := stat.MeanStdDev(spread, nil)
			behind = behind || stat.Mean(own, nil)-mean > std
		}
	}
	tests := family.Tests()
	n := tables.Verdicts(tests)
	c.Verdict = tables.Holds
	switch {
	case alone[report.Worse] > 0, c.comparable && behind, !c.comparable && n[report.Worse] > 0:
		c.Verdict = tables.DoesNotHold
	case len(tests) == 0 && alone[report.Better] == 0, !c.comparable && n[report.NotSignificant] > 0:
		c.Verdict = report.NotSignificant
	}
	evidence := []string{tables.Tally(tests)}
	for _, all := range append([]experiment.Experiments{c.first}, c.others...) {
		if diverged, _ := x.Diverged(all); diverged > 0 {
			evidence = append(evidence, fmt.Sprintf("%s diverged on %d of %d seeds.", all[0].Method.Name, diverged, len(all)))
		}
	}
	c.Evidence = strings.Join(evidence, " ")
	return c.Claim, nil
}

// bySeed is a column of full runs that did not diverge, by seed, with the sign by which lower is better. It is not complete
// if a run is not there or lacks the metric.
func bySeed(x *tables.Index, all experiment.Experiments, of column, ending string) (values map[int]float64, complete bool) {
	values = map[int]float64{}
	for _, e := range all {
		r, done := x.Find(e)
		value, measured := r.Metrics[of.Metric+ending]
		switch {
		case done && r.Diverged:
		case !measured:
			return nil, false
		case of.Higher:
			values[int(e.Seed)] = -value
		default:
			values[int(e.Seed)] = value
		}
	}
	return values, true
}
