package where

import (
	"context"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/stat"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/cifar"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/spec"
	"densityuncertainty/figures/tables"
)

// FewImages are images of half the height and width, of which few are trained on, so that a network can memorise them. A pixel
// is the mean of the bytes of four, rounded; colours are standardised by the means and deviations of the small training images.
// Sets with labels are added to those of cifar.Images: the first training images, to see how far the network is from them on
// others, and the first test images with each of datasets.Corruptions and strengths.
type FewImages struct{ cifar.Images }

// fewShown is the number of the first training and test images that sets are added of, or all of them if there are fewer.
const fewShown = 1000

// strengths are those of corruptions.
var strengths = []int{1, 3, 5}

// fewIdentity is what decides the numbers of FewImages, in the form that stored results have.
type fewIdentity struct {
	Images                any
	TrainShown, Corrupted int
	Strengths             []int
}

// Identity implements spec.Identifier.
func (d FewImages) Identity() spec.Identity {
	return spec.Identity{Type: "where.FewImages", Value: fewIdentity{d.Images.Identity().Value, fewShown, fewShown, strengths}}
}

// trainSet is the name of the set of training images.
const trainSet = "train"

// corruptionSeed draws the noise of corruptions, the same for all methods.
const corruptionSeed = 0

// Load implements experiment.Source.
func (d FewImages) Load(ctx context.Context, split int) (experiment.Data, error) {
	out, err := d.Images.Load(ctx, split)
	if err != nil {
		return out, err
	}
	out.Train, out.HeldOut = halved(out.Train), halved(out.HeldOut)
	stats := datasets.FitChannelStats(&datasets.Images{N: out.Train.Len(), Side: side, Pixels: out.Train.Inputs.(nets.Pixels).Bytes}, nil)
	for i, s := range out.Sets {
		out.Sets[i].Dataset = standardised(halved(s.Dataset), stats)
	}
	out.Train, out.HeldOut = standardised(out.Train, stats), standardised(out.HeldOut, stats)
	at := slices.IndexFunc(out.Sets, func(s experiment.Set) bool { return s.Name == cifar.TestSet })
	if at < 0 {
		return out, fmt.Errorf("where.FewImages corrupts the set %q, and the sets are %v", cifar.TestSet, d.Sets)
	}
	test := firstOf(out.Sets[at].Dataset)
	out.Sets = append(out.Sets, experiment.Set{Name: trainSet, Dataset: firstOf(out.Train)})
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

// side is the height and width of FewImages.
const side = datasets.ImageSide / 2

// halved are images of half the height and width.
func halved(d train.Dataset) train.Dataset {
	if d.Inputs == nil { // no images are held out
		return d
	}
	images := d.Inputs.(nets.Pixels)
	small := make([]byte, len(images.Bytes)/4)
	for i := range small {
		at := i/side*4*side + i%side*2
		sum := 2
		for _, k := range []int{at, at + 1, at + 2*side, at + 2*side + 1} {
			sum += int(images.Bytes[k])
		}
		small[i] = byte(sum / 4)
	}
	images.Bytes, images.Height, images.Width = small, side, side
	d.Inputs = images
	return d
}

// standardised are images with the means and deviations of others.
func standardised(d train.Dataset, stats datasets.ChannelStats) train.Dataset {
	if images, are := d.Inputs.(nets.Pixels); are {
		images.Standardization = nets.Standardization{Mean: stats.Mean[:], Std: stats.Std[:]}
		d.Inputs = images
	}
	return d
}

// firstOf are the first images of a set.
func firstOf(d train.Dataset) train.Dataset {
	n, pixels := min(fewShown, d.Len()), d.Inputs.(nets.Pixels)
	pixels.Bytes = pixels.Bytes[:n*pixels.Size()]
	return train.Dataset{Labels: d.Labels[:n], Inputs: pixels}
}

// The metrics of LabelledImages that are not of one set.
const (
	mutualInformation = "mutual_information" // mean over the test images of that between label and draw, in nats
	corruptedNLL      = "corrupted_nll"      // mean over the corrupted sets
	corruptedECE      = "corrupted_ece10"
)

// LabelledImages measures the sets with labels beside the test set: "accuracy", "nll" and "ece10" with the set's name as a
// prefix, as in "contrast-3_nll"; their means over the corrupted sets; and the mutual information.
func LabelledImages(p *experiment.Predictions) (map[string]float64, error) {
	found := map[string]float64{}
	var nlls, eces []float64
	for i := range p.Sets {
		s := &p.Sets[i]
		if s.Set == cifar.TestSet {
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

// The scale of question 10.
const fewTrainN, fewHeldOut, fewEpochs, fewDraws, fewShift, fewSeeds = 5000, 1000, 100, 10, 2, 5

// noiseStarts are the standard deviations of density layers at the start: with either, draws differ visibly.
var noiseStarts = []float64{0.01, 0.1}

// startingAt is a density method with a standard deviation at the start, and called by it.
func startingAt(m experiment.Method, std float64) experiment.Method {
	m.Layers, _ = methods.WithNoise(m.Layers, std)
	m.Key, m.Name = fmt.Sprintf("%s-%g", m.Key, std), fmt.Sprintf("%s, start %g", m.Name, std)
	return m
}

// fewMethods are the methods of question 10. The ensemble is made of the plain networks.
func fewMethods() []experiment.Method {
	all := []experiment.Method{methods.Deterministic}
	for _, std := range noiseStarts {
		all = append(all, startingAt(methods.Density, std), startingAt(methods.DensityMean, std))
	}
	return append(all, startingAt(methods.DensityConstant, noiseStarts[1]), methods.Rank1, methods.MCDropout)
}

// Few is cifar.Paper for data of which few are trained on: 100 epochs, 10 draws, and shifts of at most 2 pixels. Data are
// FewImages.
func Few(data experiment.Source, m experiment.Method) (experiment.Experiment, error) {
	few, is := data.(FewImages)
	if !is {
		return experiment.Experiment{}, fmt.Errorf("where.Few is for where.FewImages, not for %T", data)
	}
	e, err := cifar.Paper(few.Images, m)
	if err != nil {
		return e, err
	}
	few.Images = e.Task.Data.(cifar.Images)
	e.Task.Data, e.Task.Metrics = few, append(e.Task.Metrics, LabelledImages)
	e.Preset, e.Recipe.Epochs = "where.Few", fewEpochs
	e.Recipe.Augmentation, e.Recipe.Padding = datasets.Augmentation{Pad: fewShift, Flip: true}, fewShift
	if e.Recipe.Samples > 1 {
		e.Recipe.Samples = fewDraws
	}
	return e, nil
}

// fewRuns are the experiments of a method, one for each seed.
func fewRuns(m experiment.Method) experiment.Experiments {
	data := FewImages{cifar.Images{Name: cifar.CIFAR10, TrainN: fewTrainN, HeldOut: fewHeldOut, Sets: []string{cifar.TestSet, cifar.HeldOutSet, cifar.CIFAR100, cifar.SVHNExcerpt}}}
	return crossed(experiments(Few, data, m)[0], 1, fewSeeds)
}

// ImageSet is the experiments of question 10.
func ImageSet() tables.Set {
	var all experiment.Experiments
	for _, m := range fewMethods() {
		all = append(all, fewRuns(m)...)
	}
	return tables.Set{Name: "where-images", Doc: "question 10: does the place of the noise matter in networks that have memorised 5,000 images of 16 x 16 pixels? (figures/questions.md)", Experiments: all}
}
