package cifar

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/gomlx/compute"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/checkpoint"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/notebook"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
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
	e.Task.Data, e.Task.Metrics, e.Task.AfterTraining = d, nil, nil
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

// Pictures are real images to look at and to train on for a minute, of the sample that comes with the program.
type Pictures struct {
	// Training, HeldOut and Test are of CIFAR-10: 800, 200 and 1000. HeldOut are training images that are not in Training;
	// the networks that come with the program were not trained on them.
	Training, HeldOut, Test *datasets.Images
	// CIFAR100 are its test images; SVHN the first of its training part, without labels.
	CIFAR100, SVHN *datasets.Images
}

// sampleHeldOut are the images of the sample that are held out.
const sampleHeldOut = 200

// OpenPictures reads them.
func OpenPictures() (*Pictures, error) {
	train, test, err := datasets.CIFAR10Sample()
	hundred, err1 := datasets.CIFAR100Sample()
	svhn, err2 := datasets.SVHNSample()
	if err := errors.Join(err, err1, err2); err != nil {
		return nil, err
	}
	rows, held := datasets.HoldOut(train.N, sampleHeldOut, heldOutSeed)
	svhn.Name = "SVHN"
	return &Pictures{Training: train.Take(rows), HeldOut: train.Take(held), Test: test, CIFAR100: hundred, SVHN: svhn}, nil
}

// Some are n images of a set at random, or all of them if there are no more; the seed says which.
func Some(m *datasets.Images, n int, seed uint64) *datasets.Images {
	return m.Take(datasets.Order(seed, 0, m.N)[:min(n, m.N)])
}

// The trained networks that are part of the program: a file for each, NAME.safetensors.
//
//go:embed networks
var networkFiles embed.FS

// networkFile is the file of a network.
func networkFile(name string) string { return "networks/" + name + ".safetensors" }

// The keys that the metadata of a network's file get where it becomes part of the program.
const (
	standardKey = "standard" // nets.Standardization of the images, as JSON
	metricsKey  = "metrics"  // some metrics of the experiment's result, as JSON
)

// exported are the methods whose networks are part of the program, each by its experiment of Processor with seed 0.
var exported = []experiment.Method{methods.Deterministic, methods.Rank1, methods.Density, methods.DensityConstant}

// exportedExperiment is the experiment whose network is part of the program.
func exportedExperiment(m experiment.Method) experiment.Experiment {
	return seeded(Chosen(Processor), 1).Of(ten, m)[0]
}

// A Classifier is a trained network that is part of the program.
type Classifier struct {
	// Origin says how the network was made and what it scored.
	Origin string
	// Progress, if not nil, hears how predictions go, from 0 to 1 for each set of images.
	Progress func(done float64, note string)

	model           *nets.Model
	standardization nets.Standardization
	energies        bool
}

// Trained returns a network that comes with the program by its name, such as "density": a classifier of CIFAR-10 with
// ResNet-14, trained by the preset Processor. For an unknown name the error lists the networks (fs.ErrNotExist).
func Trained(backend compute.Backend, name string) (*Classifier, error) {
	fail := func(err error) (*Classifier, error) {
		return nil, fmt.Errorf("cifar: the trained network %q: %w", name, err)
	}
	var names []string
	for _, m := range exported {
		names = append(names, m.Key)
	}
	i := slices.Index(names, name)
	if i < 0 {
		return fail(fmt.Errorf("there is none of that name, there are %q: %w", names, fs.ErrNotExist))
	}
	e := exportedExperiment(exported[i])
	content, err := networkFiles.ReadFile(networkFile(name))
	if err != nil {
		return fail(err)
	}
	named, metadata, err := checkpoint.ParseTensors(content)
	if err != nil {
		return fail(err)
	}
	m, err := e.Model(backend, 0, named)
	c := &Classifier{model: m, energies: e.Recipe.LogLikelihoodScale > 0}
	var found map[string]float64
	if err := errors.Join(err, json.Unmarshal([]byte(metadata[standardKey]), &c.standardization), json.Unmarshal([]byte(metadata[metricsKey]), &found)); err != nil {
		return fail(err)
	}
	d := e.Task.Data.(Images)
	c.Origin = fmt.Sprintf("%s: %d epochs of %s images of %s, seed %d; on %s test images accuracy %.1f%%, NLL %.3f, ECE %.3f", name, e.Recipe.Epochs, grouped(d.trainN()),
		titleOf(d.Name), e.Seed, grouped(d.testN()), 100*found[experiment.MetricAccuracy], found[experiment.MetricNLL], found[experiment.MetricECE])
	return c, nil
}

// Predict predicts images by the mean of so many draws, with the energies if the network has any. Images may be of classes
// that it does not know.
func (c *Classifier) Predict(ctx context.Context, images *datasets.Images, draws int) (*Predictions, error) {
	if images.N == 0 {
		return nil, fmt.Errorf("cifar: there are no images of %s to predict", images.Name)
	}
	options := predict.Options{Samples: draws, Energies: c.energies}
	if c.Progress != nil {
		options.Progress = func(done, total int) { c.Progress(float64(done)/float64(total), "predicting "+images.Name) }
	}
	said, err := predict.Sample(ctx, c.model, pixels(images, c.standardization), options)
	if err != nil {
		return nil, fmt.Errorf("cifar: predicting %s: %w", images.Name, err)
	}
	names, err := datasets.CIFARClasses(c.model.Likelihood.Outputs())
	return &Predictions{Images: images, Names: names, Prediction: *said}, err
}
