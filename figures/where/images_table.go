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

// imageScores are the columns of question 10, of which the first comparedScores are compared. Those with a set tell its images
// from the test images, by the largest probability; higher ones are better.
var imageScores = []struct{ title, metric, set string }{
	{"NLL", results.MetricNLL, ""}, {"ECE", results.MetricECE, ""}, {"Brier", "brier", ""},
	{"AUROC, CIFAR-100", "ood_" + cifar.CIFAR100 + "_auroc", cifar.CIFAR100},
	{"AUROC, SVHN", "ood_" + cifar.SVHNExcerpt + "_auroc", cifar.SVHNExcerpt},
	{"Mutual information", mutualInformation, ""}, {"NLL, corrupted", corruptedNLL, ""}, {"ECE, corrupted", corruptedECE, ""},
	{"NLL, training images", trainSet + "_nll", ""},
}

const comparedScores = 5

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
	s := tables.Sheet{Table: prose.Table("where-images", map[string]any{"Seeds": fewSeeds, "Corrupted": fewShown, "Least": leastInformation}), Down: true}
	s.Legend = "▲ density is better, ▽ worse, significant at 5% for both noise levels together. No mark: not significant, or not tested."
	s.Columns = []string{"Method"}
	for _, score := range imageScores {
		s.Columns = append(s.Columns, score.title)
	}
	ensemble := fewRuns(methods.Ensemble)[:1]
	x, err := cifar.WithEnsemble(x, ensemble[0], fewRuns(methods.Deterministic))
	if err != nil {
		return s.Table, err
	}
	const means, difference = "means over trainings", "density less its mean-energy control"
	add := func(name string, runs experiment.Experiments) (a arm) {
		var cells []tables.Mean
		for _, score := range imageScores {
			cells = append(cells, tables.Mean{Of: runs, Metric: score.metric, Decimals: 3, Optional: true})
		}
		s.Add(means, name, cells...)
		for _, e := range runs {
			if r, done := x.Find(e); done && !r.Diverged {
				a = append(a, r)
			}
		}
		return a
	}
	arms, all := map[string]arm{}, []arm(nil) // those of which no run is missing
	for _, m := range fewMethods() {
		if a := add(m.Name, fewRuns(m)); len(a) == fewSeeds {
			arms[m.Key], all = a, append(all, a)
		}
	}
	add(methods.Ensemble.Name, ensemble)
	plain := arms[methods.Deterministic.Key]
	silent := len(all) < len(fewMethods()) || plain.mean(results.MetricNLL)-plain.mean(trainSet+"_nll") < leastGap
	for _, std := range noiseStarts {
		name, cells := fmt.Sprintf("start %g", std), slices.Repeat([]tables.Mean{tables.Waits}, len(imageScores))
		ours, theirs := arms[startingAt(methods.Density, std).Key], arms[startingAt(methods.DensityMean, std).Key]
		if ours != nil && theirs != nil {
			void := silent || min(ours.mean(mutualInformation), theirs.mean(mutualInformation)) < leastInformation
			if void {
				s.Measured = append(s.Measured, fmt.Sprintf("Without a verdict, by the rule: %s.", name))
			}
			for k, score := range imageScores {
				if k >= comparedScores {
					cells[k] = tables.Words("–")
					continue
				}
				d, err := imageDifference(k, ours, theirs, all)
				if err != nil {
					return s.Table, err
				}
				if cells[k] = (tables.Mean{Words: report.Cell{Difference: &d}, Family: score.metric, Higher: score.set != ""}); void {
					cells[k] = tables.Words("%s", tables.Test[string]{Difference: &d}.Text())
				}
			}
		}
		s.Add(difference, name, cells...)
	}
	return s.Make(x)
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
func imageDifference(k int, ours, theirs arm, pooled []arm) (d metrics.Difference, err error) {
	metric, spread := imageScores[k].metric, make([]float64, imageDraws)
	for i, side := range []arm{ours, theirs} {
		sign := float64(1 - 2*i)
		d.Mean += sign * side.mean(metric)
		for _, r := range side {
			drawn, err := resampled(r, k)
			if err != nil {
				return d, err
			}
			floats.AddScaled(spread, sign/float64(len(side)), drawn)
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

// resampled is score k of a run on resamples of its images, which are the same for all runs.
func resampled(r experiment.Result, k int) ([]float64, error) {
	p, err := r.Predictions()
	if err != nil {
		return nil, err
	}
	test, err := p.Set(cifar.TestSet)
	if err != nil {
		return nil, err
	}
	score, sizes := imageScores[k], []int{len(test.Labels)}
	outcomes := metrics.NewOutcomes(test.Probabilities, test.Width, test.Labels)
	at := map[string]func(at []int) float64{
		results.MetricNLL: metrics.MeanAt(metrics.CategoricalNLLs(test.Probabilities, test.Width, test.Labels)),
		results.MetricECE: outcomes.ECEAt(10),
		"brier":           metrics.MeanAt(metrics.Briers(test.Probabilities, test.Width, test.Labels)),
	}[score.metric]
	if score.set != "" {
		other, err := p.Set(score.set)
		if err != nil {
			return nil, err
		}
		outside := metrics.MaxProbability(other.Probabilities, other.Width)
		sizes = append(sizes, len(outside))
		ranks := metrics.NewRanks(slices.Concat(outcomes.Confidence, outside), append(slices.Repeat([]bool{true}, sizes[0]), make([]bool, sizes[1])...))
		at = func(at []int) float64 { return ranks.Sweep(at).AUROC() }
	}
	return slices.Concat(metrics.Replicates(sizes, imageDraws, imageSeed, func(indices []int) []float64 { return []float64{at(indices)} })...), nil
}
