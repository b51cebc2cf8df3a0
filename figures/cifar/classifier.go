package cifar

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/compute"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
)

// A Classifier is a trained network, or the members of an ensemble, with all that it needs to predict images.
type Classifier struct {
	Method methods.Method
	// Classes are the names of the classes.
	Classes []string
	// Standardization has the mean and standard deviation of the training images.
	Standardization nets.Standardization
	// Origin says how a network that was loaded was made.
	Origin string

	members  []*nets.Model
	finish   []func() error      // what a Gaussian process does after training
	counts   map[params.Role]int // parameters of a member
	progress func(done float64, note string)
}

// TrainClassifier trains a classifier of a method on labelled images, to look into: with the protocol's epochs,
// options and first seed, its network and its progress; scale, samples and numbers of images have no part. Images
// are mirrored at random, but not shifted, which pays only over many epochs.
func TrainClassifier(ctx context.Context, backend compute.Backend, p Protocol, m methods.Method, images *datasets.Images) (*Classifier, error) {
	p.Options = m.Changed(p.Options)
	r, network, err := p.recipe(m)
	if err != nil {
		return nil, fmt.Errorf("cifar: %w", err)
	}
	return trainClassifier(ctx, backend, p, m, r, network, images)
}

func trainClassifier(ctx context.Context, backend compute.Backend, p Protocol, m methods.Method, r recipe, network nets.ResNet,
	images *datasets.Images) (*Classifier, error) {
	if images.N == 0 || images.Labels == nil {
		return nil, fmt.Errorf("cifar: training on %d images of %s with %d labels; there must be some, and as many of both",
			images.N, images.Name, len(images.Labels))
	}
	if len(p.Seeds) == 0 {
		return nil, errors.New("cifar: the protocol has no seed")
	}
	progress := p.Progress
	if progress == nil {
		progress = func(float64, string) {}
	}
	c := &Classifier{Method: m, Classes: images.Classes, Standardization: standardization(images, r.ChannelStats), progress: progress}
	if err := c.build(ctx, backend, r, network, images, p.Experiments(m)[0]); err != nil {
		return nil, fmt.Errorf("cifar: building the network: %w", err)
	}
	run := r.training(p.Epochs, m.ImageSchedule)
	if r.Augmentation {
		run.Augmentation, run.Padding = datasets.Augmentation{Flip: true}, 0
	}
	err := c.fit(ctx, run, images, func(member int, run *train.Trainer) {
		run.Progress = func(t train.Progress) {
			note := fmt.Sprintf("%s%s, cross-entropy %.2f, accuracy %.0f %%", c.who(member), phase(t), t.Losses.NLL, 100*t.Losses.Accuracy)
			progress(c.trained(member, t), note)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("cifar: %w", err)
	}
	return c, nil
}

// fit trains the members one after the other, each as prepare completes it, and finishes what a Gaussian process
// needs then.
func (c *Classifier) fit(ctx context.Context, run train.Trainer, images *datasets.Images, prepare func(member int, run *train.Trainer)) error {
	data := train.Dataset{Inputs: c.inputs(images), Labels: images.Labels}
	for i, member := range c.members {
		prepare(i, &run)
		if err := run.Fit(ctx, member, data); err != nil {
			if len(c.members) > 1 {
				err = fmt.Errorf("member %d of %d of the ensemble: %w", i+1, len(c.members), err)
			}
			return err
		}
	}
	for _, finish := range c.finish {
		if err := finish(); err != nil {
			return err
		}
	}
	return nil
}

// trained is the part of the training of all members that is done.
func (c *Classifier) trained(member int, t train.Progress) float64 {
	return (float64(member) + float64(t.Step)/float64(t.Steps)) / float64(len(c.members))
}

// who names a member of an ensemble in what is said of its training.
func (c *Classifier) who(member int) string {
	if len(c.members) == 1 {
		return ""
	}
	return fmt.Sprintf("member %d of %d, ", member+1, len(c.members))
}

// phase says which part of the training it is.
func phase(t train.Progress) string {
	if t.Pretraining {
		return "generative pretraining"
	}
	return "training"
}

// startImages are as many training images as inducing points start among, in batches of startBatch.
const startImages, startBatch = 1000, 100

// build makes the untrained members of an experiment. A Gaussian process takes the place of the network's last layer,
// for which it is shown images.
func (c *Classifier) build(ctx context.Context, backend compute.Backend, r recipe, network nets.ResNet, images *datasets.Images,
	e results.Experiment) error {
	for i := range c.Method.Networks() {
		complete, seed := network, methods.Seed(e, i)
		if c.Method.Process != nil {
			head, err := c.Method.Process.Head(methods.Task{
				Kind: methods.Pictures, Examples: images.N, Classes: len(c.Classes), Inducing: r.Inducing, LengthScale: r.LengthScale, Seeds: []uint64{seed},
				Features: func() ([][]float64, int, error) {
					return c.features(ctx, backend, network, first(images, startImages), seed)
				},
			})
			if err != nil {
				return err
			}
			layers, has := head.Layers.(nets.ConvLayers)
			if !has {
				return fmt.Errorf("the Gaussian process of %s has layers of type %T, which have no convolution", c.Method.Name, head.Layers)
			}
			complete.Layers = layers
			c.finish = append(c.finish, func() error { return head.Finish(c.members[i].Store) })
		}
		member, err := nets.New(backend, complete, likelihood.Categorical{Classes: len(c.Classes)}, seed)
		if err != nil {
			return err
		}
		c.members = append(c.members, member)
	}
	var err error
	if c.counts, err = nets.Parameters(backend, c.members[0].Network, datasets.ImageChannels, datasets.ImageSide, datasets.ImageSide, len(c.Classes)); err != nil {
		return err
	}
	if c.counts[params.Generative] > 0 != c.Method.HasEnergies {
		return fmt.Errorf("the layers of %s have %d parameters of energy models, but HasEnergies is %v; make the method with methods.New, which finds out, or set it",
			c.Method.Name, c.counts[params.Generative], c.Method.HasEnergies)
	}
	return nil
}

// features are those of the untrained network without its last layer.
func (c *Classifier) features(ctx context.Context, backend compute.Backend, network nets.ResNet, images *datasets.Images,
	seed uint64) ([][]float64, int, error) {
	fail := func(err error) ([][]float64, int, error) {
		return nil, 0, fmt.Errorf("features of the untrained network: %w", err)
	}
	untrained, err := nets.New(backend, network, nil, seed)
	if err != nil {
		return fail(err)
	}
	found, err := predict.Sample(ctx, untrained, c.inputs(images), predict.Options{Samples: 1, BatchSize: startBatch, Training: true})
	if err != nil {
		return fail(err)
	}
	return found.Outputs, found.Width, nil
}

// inputs are images to predict.
func (c *Classifier) inputs(m *datasets.Images) nets.Pixels {
	return nets.Pixels{Bytes: m.Pixels, Height: datasets.ImageSide, Width: datasets.ImageSide, Standardization: c.Standardization}
}

// The batches of prediction.
const hostBatch, deviceBatch = 128, 500

// classify predicts images by so many samples of each member, whose mixture is the prediction of an ensemble, with
// the energies and the first sample's logits of its first member if they are wanted.
func (c *Classifier) classify(ctx context.Context, m *datasets.Images, samples int, energies, logits bool,
	report func(done float64)) (*predict.Prediction, error) {
	var mixture *predict.Prediction
	var each [][]float64 // the members' probabilities
	for i, member := range c.members {
		sampling := predict.Options{Samples: c.Method.SamplesOf(samples), BatchSize: min(deviceBatch, m.N), Energies: energies, KeepOutputs: logits}
		if member.Host != nil {
			sampling.BatchSize = min(hostBatch, m.N)
		}
		sampling.Progress = func(images, total int) {
			report((float64(i) + float64(images)/float64(total)) / float64(len(c.members)))
		}
		classes, err := predict.Sample(ctx, member, c.inputs(m), sampling)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			mixture = classes
		}
		each = append(each, classes.Probabilities)
	}
	if len(each) > 1 {
		var err error
		if mixture.Probabilities, mixture.MutualInformation, err = predict.MixClasses(each, len(c.Classes)); err != nil {
			return nil, err
		}
	}
	return mixture, nil
}

// Watch lets progress hear how predictions go, from 0 to 1 for each set of images; for a network that was loaded, since
// one that TrainClassifier made tells its protocol's.
func (c *Classifier) Watch(progress func(done float64, note string)) { c.progress = progress }

// Predict predicts images, which may be of classes that the classifier does not know, by the mean of so many
// samples, together with the energies if it has any.
func (c *Classifier) Predict(ctx context.Context, images *datasets.Images, samples int) (*Predictions, error) {
	if images.N == 0 {
		return nil, fmt.Errorf("cifar: there are no images of %s to predict", images.Name)
	}
	report := func(done float64) { c.progress(done, "predicting "+images.Name) }
	classes, err := c.classify(ctx, images, samples, c.Method.HasEnergies, false, report)
	if err != nil {
		return nil, fmt.Errorf("cifar: predicting %s: %w", images.Name, err)
	}
	return &Predictions{Images: images, Names: slices.Clone(c.Classes), Prediction: *classes}, nil
}
