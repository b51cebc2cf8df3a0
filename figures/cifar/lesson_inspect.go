// Package inspect is what notebooks look into networks with. It trains one image
// classifier and shows what it says of every image, and how improbable each layer
// finds its input; for the Gaussian-process baselines it has exact processes, what
// networks do to distances, what a step costs, and comparisons of stored runs. The
// runs behind the tables are those of package runner.
package inspect

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/render"
)

// Training is one training run of an image classifier.
type Training struct {
	Network nets.Network
	// Recipe is how it is trained, such as train.ResNet14(10) for fewer epochs;
	// generative pretraining is left out where the network has no energy models.
	Recipe train.Recipe
	// Images are those to train on, with their labels. They are mirrored at random,
	// but not shifted, which pays only over many epochs.
	Images *datasets.Images
	// Seed fixes every random choice.
	Seed uint64
	// Progress, if not nil, hears of every step, and later of the model's
	// predictions: the part that is done, from 0 to 1, and how it goes.
	Progress func(done float64, note string)
}

// A Model is a trained classifier with all that it needs to predict.
type Model struct {
	Classifier *nets.Model
	// Standardization has the mean and standard deviation of the training images.
	Standardization nets.Standardization
	// Names are those of the classes.
	Names []string

	hasEnergies bool
	progress    func(done float64, note string)
}

// hasEnergies says whether a network has layers with an energy model.
func hasEnergies(backend compute.Backend, network nets.Network, classes int) (bool, error) {
	counts, err := nets.Parameters(backend, network, datasets.ImageChannels, datasets.ImageSide, datasets.ImageSide, classes)
	return counts[params.Generative] > 0, err
}

// Fit trains the classifier.
func (t Training) Fit(ctx context.Context, backend compute.Backend) (*Model, error) {
	if t.Images.N == 0 || t.Images.Labels == nil {
		return nil, fmt.Errorf("inspect: training on %d images of %s with %d labels; there must be some, and as many of both", t.Images.N, t.Images.Name, len(t.Images.Labels))
	}
	if t.Progress == nil {
		t.Progress = func(float64, string) {}
	}
	stats := datasets.FitChannelStats(t.Images, nil)
	m := &Model{Standardization: nets.Standardization{Mean: stats.Mean[:], Std: stats.Std[:]}, Names: t.Images.Classes, progress: t.Progress}
	var err error
	if m.Classifier, err = nets.New(backend, t.Network, likelihood.Categorical{Classes: len(m.Names)}, t.Seed); err != nil {
		return nil, fmt.Errorf("inspect: building the network: %w", err)
	}
	if m.hasEnergies, err = hasEnergies(backend, t.Network, len(m.Names)); err != nil {
		return nil, fmt.Errorf("inspect: building the network: %w", err)
	}
	if !m.hasEnergies {
		t.Recipe.PretrainEpochs = 0
	}
	run := t.Recipe.Trainer()
	run.Order, run.Augmentation = datasets.Order, datasets.Augmentation{Flip: true}
	run.Progress = func(p train.Progress) {
		what := "training"
		if p.Pretraining {
			what = "generative pretraining"
		}
		t.Progress(float64(p.Step)/float64(p.Steps), fmt.Sprintf("%s, cross-entropy %.2f, accuracy %.0f %%", what, p.Losses.NLL, 100*p.Losses.Accuracy))
	}
	data := train.Dataset{Inputs: m.inputs(t.Images), Labels: t.Images.Labels}
	if err := run.Fit(ctx, m.Classifier, data); err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	return m, nil
}

// inputs are images as the network sees them.
func (m *Model) inputs(images *datasets.Images) nets.Pixels {
	return nets.Pixels{Bytes: images.Pixels, Height: datasets.ImageSide, Width: datasets.ImageSide, Standardization: m.Standardization}
}

// mostAtOnce is the number of images that are predicted at once.
const mostAtOnce = 125

// Views are what a classifier says of N images. The structure can be kept for
// later cells of a notebook.
type Views struct {
	Images *datasets.Images
	// Names are those of the classes that the classifier knows.
	Names []string
	predict.Prediction
}

// Look predicts images, which may be of classes that the model does not know, by
// the mean of so many samples, together with the energies if it has any.
func (m *Model) Look(ctx context.Context, images *datasets.Images, samples int) (*Views, error) {
	sampling := predict.Options{Samples: samples, BatchSize: mostAtOnce, Energies: m.hasEnergies}
	sampling.Progress = func(done, total int) { m.progress(float64(done)/float64(total), "predicting "+images.Name) }
	found, err := predict.Sample(ctx, m.Classifier, m.inputs(images), sampling)
	if err != nil {
		return nil, fmt.Errorf("inspect: predicting %s: %w", images.Name, err)
	}
	return &Views{Images: images, Names: m.Names, Prediction: *found}, nil
}

// Judged is what became of the predictions, for render.ReliabilityDiagrams under a
// name. The images must have labels that the classifier knows.
func (v *Views) Judged(name string) (render.Judged, error) {
	if !v.labelled() {
		return render.Judged{}, fmt.Errorf("inspect: %s has no labels that the classifier knows", v.Images.Name)
	}
	outcomes, err := metrics.NewOutcomes(v.Probabilities, len(v.Names), v.Images.Labels)
	if err != nil {
		return render.Judged{}, fmt.Errorf("inspect: %s: %w", v.Images.Name, err)
	}
	return render.Judged{Name: name, Outcomes: outcomes}, nil
}

// labelled says whether the images have labels, of the classes that the classifier knows.
func (v *Views) labelled() bool {
	return v.Images.Labels != nil && slices.Equal(v.Images.Classes, v.Names)
}

// Ranked are the numbers of the images from the one with the largest value to the
// one with the smallest; there is a value for each image.
func Ranked(values []float64) []int {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[b], values[a]) })
	return order
}

// MaxProbabilities are the largest probability of each image, [N].
func (v *Views) MaxProbabilities() ([]float64, error) {
	return metrics.MaxProbability(v.Probabilities, len(v.Names))
}

// Doubts are minus the largest probability of each image, [N]: the score by which
// the paper's other methods tell images out of distribution, larger for stranger.
func (v *Views) Doubts() ([]float64, error) {
	doubts, err := v.MaxProbabilities()
	for i := range doubts {
		doubts[i] = -doubts[i]
	}
	return doubts, err
}

// Layers are the names of the layers in the order of Energies.
func (v *Views) Layers() []string {
	names := make([]string, len(v.Energies))
	for l, layer := range v.Energies {
		names[l] = layer.Layer
	}
	return names
}

// LastEnergies are the energies of the last convolution's input, by which the
// paper tells images out of distribution, averaged over the samples, [N]; nil
// without energies.
func (v *Views) LastEnergies() []float64 {
	if v.LastConvolution < 0 || v.LastConvolution >= len(v.Energies) {
		return nil
	}
	return v.Energies[v.LastConvolution].Mean
}

// LayerSample is the energies of every layer for render.LayerEnergies.
func (v *Views) LayerSample(name string) render.LayerSample {
	s := render.LayerSample{Name: name}
	for _, layer := range v.Energies {
		s.Energies = append(s.Energies, layer.Mean)
	}
	return s
}

// Strip is a row of images with what the classifier says of them. An image has a
// label where the classifier knows the classes of its set.
func (v *Views) Strip(title string, numbers ...int) (render.Strip, error) {
	strip := render.Strip{Title: title}
	entropy, err := metrics.Entropy(v.Probabilities, len(v.Names))
	if err != nil {
		return strip, fmt.Errorf("inspect: %s: %w", v.Images.Name, err)
	}
	energies := v.LastEnergies()
	for _, i := range numbers {
		if i < 0 || i >= v.Images.N {
			return strip, fmt.Errorf("inspect: there is no image %d of %s, which has %d", i, v.Images.Name, v.Images.N)
		}
		p := render.Picture{Pixels: v.Images.Image(i), Entropy: entropy[i], Energy: math.NaN()}
		for class, probability := range v.Probabilities[i*len(v.Names) : (i+1)*len(v.Names)] {
			if probability > p.Probability {
				p.Prediction, p.Probability = v.Names[class], probability
			}
		}
		if v.labelled() {
			p.Label = v.Names[v.Images.Labels[i]]
		}
		if energies != nil {
			p.Energy = energies[i]
		}
		strip.Pictures = append(strip.Pictures, p)
	}
	return strip, nil
}
