package cifar

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/notebook"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/report"
)

// Predictions are what a network says of N images. notebook.Keep can keep it for later cells.
type Predictions struct {
	Images *datasets.Images
	// Names are those of the classes that the network knows.
	Names []string
	predict.Prediction
}

// TrainAndPredict trains an experiment on labelled images, which take the place of its data, and predicts sets of images,
// which may be of other classes: for a look at what becomes of a network in a short time. Images are mirrored at random,
// but not shifted, which pays only over many epochs.
func TrainAndPredict(ctx context.Context, e experiment.Experiment, progress func(done float64, note string), images *datasets.Images, sets ...*datasets.Images) ([]*Predictions, error) {
	stats := datasets.FitChannelStats(images, nil)
	of := func(m *datasets.Images) train.Dataset {
		return train.Dataset{Inputs: pixels(m, standardization(stats))}
	}
	d := experiment.Arrays{Train: of(images)}
	d.Train.Labels = images.Labels
	for i, m := range sets {
		d.Sets = append(d.Sets, experiment.Set{Name: fmt.Sprint(i, " ", m.Name), Dataset: of(m)})
	}
	e.Task.Data, e.Task.Metrics, e.Task.After = d, nil, nil
	e.Recipe.Augmentation, e.Recipe.Padding = datasets.Augmentation{Flip: true}, 0
	found, err := experiment.Engine{Progress: progress}.Run(ctx, e)
	if err != nil {
		return nil, err
	}
	p, err := found[0].Predictions()
	if err == nil && p.Diverged {
		err = fmt.Errorf("cifar: %v diverged", e)
	}
	if err != nil {
		return nil, err
	}
	var all []*Predictions
	for i, s := range p.Sets {
		all = append(all, &Predictions{Images: sets[i], Names: images.Classes, Prediction: s.Prediction})
	}
	return all, nil
}

// Judged compares the predictions with the labels, for report.ReliabilityDiagrams under a name. The images must have labels
// that the network knows.
func (p *Predictions) Judged(name string) (report.Judged, error) {
	if !p.labelled() {
		return report.Judged{}, fmt.Errorf("cifar: %s has no labels that the network knows", p.Images.Name)
	}
	return report.Judged{Name: name, Outcomes: metrics.NewOutcomes(p.Probabilities, len(p.Names), p.Images.Labels)}, nil
}

// labelled says whether the images have labels, of the classes that the network knows.
func (p *Predictions) labelled() bool {
	return p.Images.Labels != nil && slices.Equal(p.Images.Classes, p.Names)
}

// Ranked are the numbers of the images from the one with the largest value to the one with the smallest. There is a value
// for each image.
func Ranked(values []float64) []int {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[b], values[a]) })
	return order
}

// NegativeMaxProbabilities are minus the largest probability of each image, [N]: the score by which the paper's other
// methods tell images out of distribution, larger for those that are.
func (p *Predictions) NegativeMaxProbabilities() []float64 {
	return negativeMaxProbability(&experiment.Prediction{Prediction: p.Prediction}, nil)
}

// LayerNames are the names of the layers in the order of Energies.
func (p *Predictions) LayerNames() []string {
	names := make([]string, len(p.Energies))
	for l, layer := range p.Energies {
		names[l] = layer.Layer
	}
	return names
}

// LastEnergies are the energies of the last convolution's input, by which the paper tells images out of distribution,
// averaged over the draws, [N]; nil without energies.
func (p *Predictions) LastEnergies() []float64 { return lastEnergy(p.Prediction).Mean }

// LayerSample is the energies of every layer for report.LayerEnergies.
func (p *Predictions) LayerSample(name string) report.LayerSample {
	s := report.LayerSample{Name: name}
	for _, layer := range p.Energies {
		s.Energies = append(s.Energies, layer.Mean)
	}
	return s
}

// Bitmaps are images, given by their numbers, with what the network says of them: their class, if it knows the classes of
// the set; the predicted class with its probability, after ✗ if it is wrong; the entropy of the prediction in nats; and the energy
// of the last convolution's input, if there are energies.
func (p *Predictions) Bitmaps(numbers ...int) (all []notebook.Bitmap, err error) {
	entropy, most, energies := metrics.Entropy(p.Probabilities, len(p.Names)), metrics.MaxProbability(p.Probabilities, len(p.Names)), p.LastEnergies()
	for _, i := range numbers {
		if i < 0 || i >= p.Images.N {
			return nil, fmt.Errorf("cifar: there is no image %d of %s, which has %d", i, p.Images.Name, p.Images.N)
		}
		predicted := p.Names[slices.Index(p.Probabilities[i*len(p.Names):], most[i])]
		caption := fmt.Sprintf("%s %.2f\nentropy %.2f", predicted, most[i], entropy[i])
		if p.labelled() {
			label := p.Names[p.Images.Labels[i]]
			if label != predicted {
				caption = "✗ " + caption
			}
			caption = label + "\n" + caption
		}
		if energies != nil {
			caption += fmt.Sprintf("\nenergy %.1f", energies[i])
		}
		all = append(all, notebook.Colour(caption, p.Images.Image(i), datasets.ImageSide))
	}
	return all, nil
}
