package cifar

import (
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
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
)

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

// Trained is one of the trained networks that are part of the program, by its name, such as "density": a classifier of
// CIFAR-10 with ResNet-14, trained by the preset Processor. An error says which networks there are (fs.ErrNotExist).
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

// Predict predicts images, which may be of classes that the network does not know, by the mean of so many draws, together
// with the energies if it has any.
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
