package where

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/cifar"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/spec"
	"densityuncertainty/figures/tables"
)

// halfImages are images of half the height and width. A pixel is the mean of the bytes of four, rounded; colours are
// standardised by the means and deviations of the small training images. A set with labels is added to
// cifar.Images: the first training images, to see how far the network is from them on others.
type halfImages struct{ cifar.Images }

// Identity implements spec.Identifier.
func (d halfImages) Identity() spec.Identity {
	return spec.Identity{Type: "where.HalfImages", Value: struct {
		Images     any
		TrainShown int
	}{d.Images.Identity().Value, fewShown}}
}

// fewImages are halfImages, and the first test images with each of datasets.Corruptions and strengths, for networks that
// memorise a few images.
type fewImages struct{ cifar.Images }

// fewShown is the number of the first training and test images that sets are added of, or all of them if there are fewer.
const fewShown = 1000

// strengths are those of corruptions.
var strengths = []int{1, 3, 5}

// Identity implements spec.Identifier, in the form that stored results have.
func (d fewImages) Identity() spec.Identity {
	return spec.Identity{Type: "where.FewImages", Value: struct {
		Images                any
		TrainShown, Corrupted int
		Strengths             []int
	}{d.Images.Identity().Value, fewShown, fewShown, strengths}}
}

// trainSet is the name of the set of training images.
const trainSet = "train"

// corruptionSeed draws the noise of corruptions, the same for all methods.
const corruptionSeed = 0

// Load implements experiment.Source.
func (d halfImages) Load(ctx context.Context, split int) (experiment.Data, error) {
	out, err := d.Images.Load(ctx, split)
	if err != nil {
		return out, err
	}
	stats := datasets.FitChannelStats(&datasets.Images{N: out.Train.Len(), Side: side, Pixels: halved(out.Train, datasets.ChannelStats{}).Inputs.(nets.Pixels).Bytes}, nil)
	out.Train, out.HeldOut = halved(out.Train, stats), halved(out.HeldOut, stats)
	for i, s := range out.Sets {
		out.Sets[i].Dataset = halved(s.Dataset, stats)
	}
	out.Sets = append(out.Sets, experiment.Set{Name: trainSet, Dataset: firstOf(out.Train)})
	return out, nil
}

// Load implements experiment.Source.
func (d fewImages) Load(ctx context.Context, split int) (experiment.Data, error) {
	out, err := halfImages(d).Load(ctx, split)
	if err != nil {
		return out, err
	}
	at := slices.IndexFunc(out.Sets, func(s experiment.Set) bool { return s.Name == cifar.TestSet })
	if at < 0 {
		return out, fmt.Errorf("where: images of the set %q are corrupted, and the sets are %v", cifar.TestSet, d.Sets)
	}
	test := firstOf(out.Sets[at].Dataset)
	pixels := test.Inputs.(nets.Pixels)
	clean := &datasets.Images{Name: d.Name, N: test.Len(), Side: side, Pixels: pixels.Bytes, Labels: test.Labels}
	for _, corruption := range datasets.Corruptions() {
		for _, strength := range strengths {
			corrupted, err := datasets.Corrupt(clean, corruption, strength, corruptionSeed)
			if err != nil {
				return out, err
			}
			pixels.Bytes = corrupted.Pixels
			out.Sets = append(out.Sets, experiment.Set{Name: fmt.Sprintf("%s-%d", corruption, strength), Dataset: train.Dataset{Labels: test.Labels, Inputs: pixels}})
		}
	}
	return out, nil
}

// side is the height and width of halfImages.
const side = datasets.ImageSide / 2

// halved are images of half the height and width, with the means and deviations of stats.
func halved(d train.Dataset, stats datasets.ChannelStats) train.Dataset {
	images, are := d.Inputs.(nets.Pixels)
	if !are { // no images are held out
		return d
	}
	small := make([]byte, len(images.Bytes)/4)
	for i := range small {
		at := i/side*4*side + i%side*2
		sum := 2
		for _, k := range []int{at, at + 1, at + 2*side, at + 2*side + 1} {
			sum += int(images.Bytes[k])
		}
		small[i] = byte(sum / 4)
	}
	d.Inputs = nets.Pixels{Bytes: small, Height: side, Width: side, Standardization: nets.Standardization{Mean: stats.Mean[:], Std: stats.Std[:]}}
	return d
}

// firstOf are the first images of a set.
func firstOf(d train.Dataset) train.Dataset {
	x := nets.First(d.Inputs, fewShown)
	return train.Dataset{Labels: d.Labels[:x.Len()], Inputs: x}
}

// The metrics of labelledImages that are not of one set.
const (
	mutualInformation = cifar.MetricMutualInformation
	corruptedNLL      = "corrupted_nll" // mean over the corrupted sets
	corruptedECE      = "corrupted_ece10"
)

// labelledImages measures the sets with labels beside the test set: "accuracy", "nll" and "ece10" with the set's name as a
// prefix, as in "contrast-3_nll"; their means over the corrupted sets, if there are some; and the mutual information.
func labelledImages(p *experiment.Predictions) (map[string]float64, error) {
	found := map[string]float64{}
	var nlls, eces []float64
	for i := range p.Sets {
		s := &p.Sets[i]
		if s.Set == cifar.TestSet && s.MutualInformation != nil { // which a closed form has not
			found[mutualInformation] = stat.Mean(s.MutualInformation, nil)
		}
		if s.Labels == nil || s.Set == cifar.TestSet || s.Set == cifar.HeldOutSet {
			continue
		}
		accuracy := metrics.Accuracy(s.Probabilities, s.Width, s.Labels)
		nll := metrics.CategoricalNLL(s.Probabilities, s.Width, s.Labels)
		ece := metrics.NewOutcomes(s.Probabilities, s.Width, s.Labels).ECE(10)
		found[s.Set+"_accuracy"], found[s.Set+"_nll"], found[s.Set+"_ece10"] = accuracy, nll, ece
		if s.Set != trainSet {
			nlls, eces = append(nlls, nll), append(eces, ece)
		}
	}
	if len(nlls) > 0 {
		found[corruptedNLL], found[corruptedECE] = stat.Mean(nlls, nil), stat.Mean(eces, nil)
	}
	return found, nil
}

// imageParts is the number of parts of a set's images: part b is the images with a number that leaves b.
const imageParts = 20

// withoutPart names a score without one part of the images.
func withoutPart(metric string, part int) string { return fmt.Sprintf("%s_without_%d", metric, part) }

// withoutParts measures the compared scores of questions 10 and 12 without one part of the images after the other, as in
// "nll_without_7". imageTable finds standard errors by them, so that no predictions need be kept.
func withoutParts(p *experiment.Predictions) (map[string]float64, error) {
	all := map[string]float64{}
	for part := range imageParts {
		var rest experiment.Predictions
		for i := range p.Sets {
			from, s := &p.Sets[i], experiment.Prediction{Set: p.Sets[i].Set}
			s.Width = from.Width
			for k := range len(from.Probabilities) / from.Width {
				if k%imageParts == part {
					continue
				}
				s.Probabilities = append(s.Probabilities, from.Probabilities[k*s.Width:(k+1)*s.Width]...)
				if from.Labels != nil {
					s.Labels = append(s.Labels, from.Labels[k])
				}
			}
			rest.Sets = append(rest.Sets, s)
		}
		found, err := cifar.Scores(&rest)
		if err != nil {
			return nil, err
		}
		for _, score := range imageScores[:comparedScores] {
			if v, has := found[score.Name]; has {
				all[withoutPart(score.Name, part)] = v
			}
		}
	}
	return all, nil
}

// The scale of question 10.
const fewTrainN, fewHeldOut, fewEpochs, fewDraws, fewShift, fewSeeds = 5000, 1000, 100, 10, 2, 5

// noiseStarts are the standard deviations of density layers at the start: with either, draws differ visibly.
var noiseStarts = []float64{0.01, 0.1}

// startingAt is a density method with a standard deviation at the start, and called by it.
func startingAt(m experiment.Method, std float64) experiment.Method {
	m.Layers, _ = methods.WithNoise(m.Layers, std)
	return called(m, fmt.Sprintf("%s-%g", m.Key, std), fmt.Sprintf("%s, start %g", m.Name, std))
}

// halfRuns are experiments of a method with images of half the height and width, one for each seed: cifar.Paper with 10 draws and
// shifts of at most 2 pixels, and what else a question changes.
func halfRuns(m experiment.Method, trainN, heldOut, epochs int, change func(e *experiment.Experiment)) experiment.Experiments {
	return experiment.Grid{Preset: cifar.Paper, Seeds: fewSeeds, Change: func(e *experiment.Experiment) {
		e.Task.Data, e.Task.Metrics = halfImages{e.Task.Data.(cifar.Images)}, append(e.Task.Metrics, labelledImages, withoutParts)
		e.Recipe.Epochs, e.Recipe.Augmentation, e.Recipe.Padding = epochs, datasets.Augmentation{Pad: fewShift, Flip: true}, fewShift
		drawing(fewDraws)(e)
		change(e)
	}}.Of(cifar.Images{
		Name: cifar.CIFAR10, TrainN: trainN, HeldOut: heldOut, Sets: []string{cifar.TestSet, cifar.HeldOutSet, cifar.CIFAR100, cifar.SVHNExcerpt},
	}, m)
}

// fewRuns are question 10's.
func fewRuns(m experiment.Method) experiment.Experiments {
	return halfRuns(m, fewTrainN, fewHeldOut, fewEpochs, func(e *experiment.Experiment) {
		e.Preset, e.Task.Data = "where.Few", fewImages(e.Task.Data.(halfImages))
	})
}

// The scale of question 12: all training images but those held out, in 351 whole batches, so that one graph is compiled.
const allTrainN, allHeldOut, allEpochs = 44928, 5072, 30

// allDecay is the weight decay of the log-variances of noise in question 12, that of the weights.
const allDecay = 1e-4

// noiseRates are the levels of noise of question 12: the learning rate of log-variances, relative to the weights'.
var noiseRates = []struct {
	name string
	rate float64
}{{"mild", 2}, {"full", 200. / allEpochs}}

// allRuns are those of question 12, with a learning rate of log-variances if the method has some. Its name is followed by the
// level's.
func allRuns(m experiment.Method, level string, rate float64) experiment.Experiments {
	if level != "" {
		m = called(m, m.Key+"-"+level, m.Name+", "+level)
	}
	return halfRuns(m, allTrainN, allHeldOut, allEpochs, func(e *experiment.Experiment) {
		e.Preset, e.Task.Metrics = "where.All", append(e.Task.Metrics, cifar.Tempered)
		for i, g := range e.Recipe.Groups {
			if slices.Contains(g.Roles, params.Variational) {
				e.Recipe.Groups[i].Rate, e.Recipe.Groups[i].Optimizer = rate, train.SGD{Momentum: 0.9, Decay: allDecay}
			}
		}
	})
}

// An imageStudy is question 10 or 12: the trainings of each method, the plain network first, then density layers and their
// mean-energy control at some levels of noise.
type imageStudy struct {
	name     string // of its table
	arms     []experiment.Experiments
	later    []experiment.Experiments // arms that were added: they have rows, and no part in tests
	ensemble experiment.Experiment
	levels   []imageLevel
	scores   []tables.Number
	untested []string // names of compared scores
	bound    float64  // for answer; 0 for none
	// void says whether a level has no verdict, by the rule of the question. of is the mean of a metric.
	void func(l imageLevel, plain experiment.Experiments, of func(runs experiment.Experiments, metric string) float64) bool
}

type imageLevel struct {
	name         string
	ours, theirs experiment.Experiments
}

// fewStudy is question 10.
func fewStudy() imageStudy {
	q := imageStudy{name: "where-images", arms: []experiment.Experiments{fewRuns(methods.Deterministic)}, ensemble: fewRuns(methods.Ensemble)[0], scores: imageScores}
	for _, std := range noiseStarts {
		level := imageLevel{fmt.Sprintf("start %g", std), fewRuns(startingAt(methods.Density, std)), fewRuns(startingAt(methods.DensityMean, std))}
		q.levels, q.arms = append(q.levels, level), append(q.arms, level.ours, level.theirs)
	}
	q.arms = append(q.arms, fewRuns(startingAt(methods.DensityConstant, noiseStarts[1])), fewRuns(methods.Rank1), fewRuns(methods.MCDropout))
	q.void = func(l imageLevel, plain experiment.Experiments, of func(experiment.Experiments, string) float64) bool {
		return of(plain, experiment.MetricNLL)-of(plain, trainSet+"_nll") < leastGap || min(of(l.ours, mutualInformation), of(l.theirs, mutualInformation)) < leastInformation
	}
	return q
}

// allStudy is question 12.
func allStudy() imageStudy {
	q := imageStudy{name: "where-images-all", ensemble: allRuns(methods.Ensemble, "", 0)[0], untested: []string{experiment.MetricECE, "brier"}, bound: 0.01}
	q.scores = append(slices.Clone(imageScores[:comparedScores+1]), imageScore("Accuracy", experiment.MetricAccuracy, true),
		imageScore("AUROC, SVHN, by energy", "ood_"+cifar.SVHNExcerpt+"_auroc"+cifar.ByEnergy, true), imageScores[len(imageScores)-1])
	q.arms = []experiment.Experiments{allRuns(methods.Deterministic, "", 0), allRuns(methods.MCDropout, "", 0)}
	for _, m := range []experiment.Method{methods.Laplace, methods.LaplaceDraws, methods.SWAG} {
		q.later = append(q.later, allRuns(m, "", 0))
	}
	for _, l := range noiseRates {
		level := imageLevel{l.name, allRuns(methods.Density, l.name, l.rate), allRuns(methods.DensityMean, l.name, l.rate)}
		q.levels, q.arms = append(q.levels, level), append(q.arms, level.ours, level.theirs)
	}
	q.void = func(l imageLevel, plain experiment.Experiments, of func(experiment.Experiments, string) float64) bool {
		return min(of(l.ours, mutualInformation), of(l.theirs, mutualInformation)) < leastInformation || of(l.ours, experiment.MetricAccuracy) < of(plain, experiment.MetricAccuracy)-mostLost
	}
	return q
}

// trainings are the experiments of all arms, seed by seed, with the later arms last. The ensemble has none: it is made of the plain
// networks' predictions.
func (q imageStudy) trainings() experiment.Experiments {
	all := slices.Concat(q.arms...)
	slices.SortStableFunc(all, func(a, b experiment.Experiment) int { return cmp.Compare(a.Seed, b.Seed) })
	return append(all, slices.Concat(q.later...)...)
}

// imageScores are the columns of question 10, of which the first comparedScores are compared.
var imageScores = []tables.Number{
	imageScore("NLL", experiment.MetricNLL, false), imageScore("ECE", experiment.MetricECE, false), imageScore("Brier", "brier", false),
	imageScore("AUROC, CIFAR-100", "ood_"+cifar.CIFAR100+"_auroc", true), imageScore("AUROC, SVHN", "ood_"+cifar.SVHNExcerpt+"_auroc", true),
	imageScore("Mutual information", mutualInformation, false), imageScore("NLL, corrupted", corruptedNLL, false), imageScore("ECE, corrupted", corruptedECE, false),
	imageScore("NLL, training images", trainSet+"_nll", false),
}

func imageScore(title, name string, higher bool) tables.Number {
	return tables.Number{Title: title, Name: name, Higher: higher, Decimals: 3, Optional: true}
}

const comparedScores = 5

// By the rules an arm with less mutual information (nats) has no verdict. In question 10 there is none if the plain network's
// test NLL is not at least leastGap above its training NLL, in question 12 if density layers lose more than mostLost of its
// accuracy, and in both if a run is missing.
const leastInformation, leastGap, mostLost = 0.01, 0.1, 0.03

// table answers the question: the mean scores of each method, and density layers' scores less their mean-energy
// control's at both noise levels. The standard error of a difference d has two parts,
//
//	SE^2 = (B-1)/B sum_b (d_b - mean_b d_b)^2 + s^2 (1/n_a + 1/n_b),
//
// the first a jackknife over images, with d_b the difference without part b of B = 20, the second over trainings, with s^2 the
// variance over seeds, pooled over the methods. Its quantiles are t's with the degrees of freedom of the part that has
// fewer. Both levels are tested together (Holm).
func (q imageStudy) table(x *tables.Index) (report.Table, error) {
	s := tables.Sheet{Table: prose.Table(q.name, map[string]any{"Seeds": fewSeeds, "Corrupted": fewShown, "Least": leastInformation}), Down: true}
	s.Legend = "▲ density is better, ▽ worse, significant at 5% for both noise levels together. No mark: not significant, or not tested."
	s.Columns = []string{"Method"}
	for _, score := range q.scores {
		s.Columns = append(s.Columns, score.Title)
	}
	if with, err := cifar.WithEnsemble(x, q.ensemble, q.arms[0]); err == nil {
		x = with
	} else if !errors.Is(err, experiment.ErrNoPredictions) {
		return s.Table, err
	}
	var lacking error // that a run has no such metric
	of := func(runs experiment.Experiments, metric string) tables.Summary {
		found, err := x.Summarize(tables.Number{Name: metric}.Over(runs))
		lacking = errors.Join(lacking, err)
		return found
	}
	mean := func(runs experiment.Experiments, metric string) float64 { return of(runs, metric).Mean }
	add := func(name string, runs experiment.Experiments, ending string) {
		var cells []tables.Cell
		for _, score := range q.scores {
			score.Name += ending
			mean := score.Over(runs)
			cells = append(cells, mean)
			if found, _ := x.Summarize(mean); found.N == 0 && found.Unmeasured > 0 {
				cells[len(cells)-1] = tables.Words("–")
			}
		}
		s.Add("means over trainings", name, cells...)
	}
	var complete []experiment.Experiments // the arms that lack no run
	for i, runs := range slices.Concat(q.arms, q.later, []experiment.Experiments{{q.ensemble}}) {
		add(runs[0].Method.Name, runs, "")
		if i < len(q.arms) && of(runs, experiment.MetricNLL).Complete() {
			complete = append(complete, runs)
		}
	}
	if slices.ContainsFunc(x.Results(q.arms[0]), func(r experiment.Result) bool { return r.Metrics[experiment.MetricNLL+cifar.TemperedEnding] > 0 }) {
		add(methods.Deterministic.Name+", temperature", q.arms[0], cifar.TemperedEnding)
	}
	missing := len(complete) < len(q.arms)
	for _, l := range q.levels {
		cells := slices.Repeat([]tables.Cell{tables.Done{NotRun: true}}, len(q.scores))
		if of(l.ours, experiment.MetricNLL).Complete() && of(l.theirs, experiment.MetricNLL).Complete() {
			void := missing || q.void(l, q.arms[0], mean)
			if void {
				s.Measured = append(s.Measured, fmt.Sprintf("Without a verdict, by the rule: %s.", l.name))
			}
			for k, score := range q.scores {
				if k >= comparedScores {
					cells[k] = tables.Words("–")
					continue
				}
				d := imageDifference(score.Name, l.ours, l.theirs, complete, of)
				cells[k] = tables.Difference{Difference: d, Family: score.Name, Higher: score.Higher, NoVerdict: void || slices.Contains(q.untested, score.Name)}
			}
		}
		s.Add("density less its mean-energy control", l.name, cells...)
	}
	if lacking != nil {
		return s.Table, lacking
	}
	t, err := s.Make(x)
	if err == nil && q.bound > 0 && !missing {
		t.Measured = append(t.Measured, fmt.Sprintf("Answer, by the rule: %s.", q.answer(t.Rows[len(t.Rows)-len(q.levels):])))
	}
	return t, err
}

// answer answers question 12 from the rows of its levels. Only tested cells have a Difference; a void level has none.
func (q imageStudy) answer(levels []report.Row) string {
	void, better, worse, bounded := true, false, false, true
	for _, row := range levels {
		for _, c := range row.Cells {
			if d := c.Difference; d != nil {
				void, better, worse = false, better || c.Verdict == report.Better, worse || c.Verdict == report.Worse
				bounded = bounded && -q.bound <= d.Low && d.High <= q.bound
			}
		}
	}
	switch {
	case void:
		return "void"
	case worse:
		return "worse"
	case better:
		return "place"
	case bounded:
		return "amount"
	}
	return "undecided"
}

func imageTable(x *tables.Index) (report.Table, error)    { return fewStudy().table(x) }
func allImageTable(x *tables.Index) (report.Table, error) { return allStudy().table(x) }

// comparedImageTable is imageTable with the compared scores alone, for a picture.
func comparedImageTable(x *tables.Index) (report.Table, error) {
	t, err := imageTable(x)
	if err == nil {
		t.Columns = t.Columns[:1+comparedScores]
	}
	return t, err
}

// imageDifference is a score of one method less that of another; see imageTable.
func imageDifference(metric string, ours, theirs experiment.Experiments, pooled []experiment.Experiments, of func(experiment.Experiments, string) tables.Summary) metrics.Difference {
	less := func(metric string) float64 { return of(ours, metric).Mean - of(theirs, metric).Mean }
	var parts []float64
	for part := range imageParts {
		parts = append(parts, less(withoutPart(metric, part)))
	}
	squares, free := 0.0, 0.0
	for _, runs := range pooled {
		s := of(runs, metric)
		squares, free = squares+float64(s.N-1)*s.Std*s.Std, free+float64(s.N-1)
	}
	images := (imageParts - 1) * stat.PopVariance(parts, nil)
	se := math.Sqrt(images + squares/free*2/fewSeeds)
	return metrics.NewDifference(less(metric), se, tables.Confidence, distuv.StudentsT{Sigma: 1, Nu: min(free, imageParts-1)})
}
