package where

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/figures/cifar"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

// imageScores are the scores that question 10 compares. The last two tell the images of a set from the test images, by the
// largest probability.
var imageScores = []struct {
	title, metric, set string
	higher             bool // is better
}{
	{"NLL", results.MetricNLL, "", false}, {"ECE", results.MetricECE, "", false}, {"Brier", "brier", "", false},
	{"AUROC, CIFAR-100", "ood_" + cifar.CIFAR100 + "_auroc", cifar.CIFAR100, true},
	{"AUROC, SVHN", "ood_" + cifar.SVHNExcerpt + "_auroc", cifar.SVHNExcerpt, true},
}

// By the rule of question 10 an arm with less mutual information (nats) has no verdict, and there is none if the plain network's
// test NLL is not at least leastGap above its training NLL, or a run is missing. imageDraws and imageSeed resample the images.
const leastInformation, leastGap, imageDraws, imageSeed = 0.01, 0.1, 1000, 1

// ImageTable answers question 10: the mean scores of each method, and those of density layers less those of their mean-energy
// control at both noise levels. The standard error of a difference has two parts,
//
//	SE^2 = Var_b(mean_s a_sb - mean_s b_sb) + s^2 (1/n_a + 1/n_b),
//
// the first over resamples b of the images, the second over trainings, with s^2 the variance over seeds, pooled over the
// methods. Its quantiles are those of t with the degrees of freedom of s^2. Both levels are tested together (Holm).
func ImageTable(x *tables.Index) (report.Table, error) {
	t := tables.Sheet{Table: prose.Table("where-images", map[string]any{"Seeds": fewSeeds, "Corrupted": fewShown, "Least": leastInformation}), Down: true}
	t.Legend = "▲ density is better, ▽ worse, significant at 5% for both noise levels together. No mark: not significant, or not tested."
	columns := []tables.Mean{{Metric: mutualInformation}, {Metric: corruptedNLL}, {Metric: corruptedECE}, {Metric: trainSet + "_nll"}}
	t.Columns = []string{"Method"}
	for i, s := range imageScores {
		t.Columns, columns = append(t.Columns, s.title), slices.Insert(columns, i, tables.Mean{Metric: s.metric})
	}
	t.Columns = append(t.Columns, "Mutual information", "NLL, corrupted", "ECE, corrupted", "NLL, training images")
	ensemble := fewRuns(methods.Ensemble)[:1]
	x, err := cifar.WithEnsemble(x, ensemble[0], fewRuns(methods.Deterministic))
	if err != nil {
		return t.Table, err
	}
	arms, all := map[string]arm{}, []arm(nil)
	for _, m := range append(fewMethods(), methods.Ensemble) {
		runs := fewRuns(m)
		if m.Same(methods.Ensemble) {
			runs = ensemble
		}
		var cells []tables.Mean
		for _, column := range columns {
			column.Of, column.Decimals, column.Optional = runs, 3, true
			cells = append(cells, column)
		}
		t.Add("means over trainings", m.Name, cells...)
		a := arm{}
		for _, e := range runs {
			if r, done := x.Find(e); done && !r.Diverged {
				a = append(a, r)
			}
		}
		if len(a) == fewSeeds {
			arms[m.Key], all = a, append(all, a)
		}
	}
	plain := arms[methods.Deterministic.Key]
	silent := len(all) < len(fewMethods()) || plain.mean(results.MetricNLL)-plain.mean(trainSet+"_nll") < leastGap
	const group = "density less its mean-energy control"
	for _, std := range noiseStarts {
		density, control := startingAt(methods.Density, std), startingAt(methods.DensityMean, std)
		ours, theirs := arms[density.Key], arms[control.Key]
		cells := slices.Repeat([]tables.Mean{tables.Waits}, len(columns))
		if ours == nil || theirs == nil {
			t.Add(group, fmt.Sprintf("start %g", std), cells...)
			continue
		}
		void := silent || min(ours.mean(mutualInformation), theirs.mean(mutualInformation)) < leastInformation
		for k := range cells {
			cells[k] = tables.Words("–")
		}
		for k, s := range imageScores {
			d, err := imageDifference(x, k, ours, theirs, all)
			if err != nil {
				return t.Table, err
			}
			if cells[k] = (tables.Mean{Words: report.Cell{Difference: &d}, Family: s.metric, Higher: s.higher}); void {
				cells[k] = tables.Words("%s", tables.Test[string]{Difference: &d}.Text())
			}
		}
		if void {
			t.Measured = append(t.Measured, fmt.Sprintf("Without a verdict, by the rule: start %g.", std))
		}
		t.Add(group, fmt.Sprintf("start %g", std), cells...)
	}
	return t.Make(x)
}

// An arm is the results of a method, one for each seed.
type arm []experiment.Result

// values are those of a metric, and mean is their mean.
func (a arm) values(metric string) []float64 {
	all := make([]float64, len(a))
	for i, r := range a {
		all[i] = r.Metrics[metric]
	}
	return all
}

func (a arm) mean(metric string) float64 { return stat.Mean(a.values(metric), nil) }

// imageDifference is score k of one method less that of another; see ImageTable.
func imageDifference(x *tables.Index, k int, ours, theirs arm, pooled []arm) (d metrics.Difference, err error) {
	metric, spread := imageScores[k].metric, make([]float64, imageDraws)
	for _, side := range []struct {
		arm
		sign float64
	}{{ours, 1}, {theirs, -1}} {
		d.Mean += side.sign * side.mean(metric)
		for _, r := range side.arm {
			type key string
			all, err := tables.Once(x, key(r.ID), func() ([][]float64, error) { return resampled(r) })
			if err != nil {
				return d, err
			}
			floats.AddScaled(spread, side.sign/float64(len(side.arm)), all[k])
		}
	}
	squares, free := 0.0, 0.0
	for _, a := range pooled {
		n := float64(len(a) - 1)
		squares, free = squares+n*stat.Variance(a.values(metric), nil), free+n
	}
	se := math.Sqrt(stat.Variance(spread, nil) + squares/free*(1/float64(len(ours))+1/float64(len(theirs))))
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: free}
	half := t.Quantile((1+tables.Confidence)/2) * se
	d.Low, d.High, d.P = d.Mean-half, d.Mean+half, 2*t.Survival(math.Abs(d.Mean)/se)
	return d, nil
}

// resampled are the scores of a run on resamples of its images, [scores][resamples]; the resamples are the same for all runs.
func resampled(r experiment.Result) (all [][]float64, err error) {
	p, err := r.Predictions()
	if err != nil {
		return nil, err
	}
	test, err := p.Set(cifar.TestSet)
	if err != nil {
		return nil, err
	}
	outcomes := metrics.NewOutcomes(test.Probabilities, test.Width, test.Labels)
	for k, s := range imageScores {
		sizes := []int{len(test.Labels)}
		var of func(at []int) float64
		switch {
		case s.set != "":
			other, err := p.Set(s.set)
			if err != nil {
				return nil, err
			}
			outside := metrics.MaxProbability(other.Probabilities, other.Width)
			sizes = append(sizes, len(outside))
			ranks := metrics.NewRanks(slices.Concat(outcomes.Confidence, outside), append(slices.Repeat([]bool{true}, sizes[0]), make([]bool, sizes[1])...))
			of = func(at []int) float64 { return ranks.Sweep(at).AUROC() }
		case s.metric == results.MetricNLL:
			of = metrics.MeanAt(metrics.CategoricalNLLs(test.Probabilities, test.Width, test.Labels))
		case s.metric == results.MetricECE:
			of = outcomes.ECEAt(10)
		default:
			of = metrics.MeanAt(metrics.Briers(test.Probabilities, test.Width, test.Labels))
		}
		all = append(all, make([]float64, imageDraws))
		for b, found := range metrics.Replicates(sizes, imageDraws, imageSeed, func(at []int) []float64 { return []float64{of(at)} }) {
			all[k][b] = found[0]
		}
	}
	return all, nil
}
