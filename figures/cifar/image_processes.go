package runner

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/gomlx/compute/dtypes"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/experiment"
)

// isProcess reports whether a method has a Gaussian process as its last layer.
func isProcess(method string) bool { return method == experiment.SNGP || method == experiment.DUE }

// processPreset is the training with which the paper ran SNGP or DUE.
func processPreset(method string) train.Trainer {
	if method == experiment.DUE {
		return train.DUE()
	}
	return train.SNGP()
}

// processDecay is the weight decay of both, processDropout the dropout of the Wide
// ResNet that the code of the DUE authors trains for both. A ResNet-14 is a tenth
// as wide, and goes without.
const processDecay, processDropout = 5e-4, 0.3

// processRecipe sets the numbers of SNGP and DUE.
func (r *ImageRecipe) processRecipe(e experiment.Experiment) {
	preset := processPreset(e.Method)
	r.BatchSize, r.WeightDecay, r.LearningRate = preset.BatchSize, processDecay, preset.Schedule(0, preset.Epochs)
	if e.Network == experiment.WRN28x10 {
		r.BlockDropout = processDropout
	}
}

// processSchedule is the learning rate of SNGP and DUE, which falls in steps.
func (r ImageRecipe) processSchedule(method string) train.Schedule {
	preset := processPreset(method).Schedule
	return func(t, total int) float64 { return r.LearningRate * (preset(t, total) / preset(0, total)) }
}

// startImages are as many training images as the start of DUE is taken from, in
// batches of startBatch.
const startImages, startBatch = 1000, 100

// withProcess completes the network of SNGP or DUE, which need the data, and tells
// what is to be done after training. Other networks stay as they are.
func (run *imageRun) withProcess(ctx context.Context, recipe ImageRecipe, network nets.ResNet, classes int) (nets.ResNet, error) {
	run.finish = func() error { return nil }
	switch run.experiment.Method {
	case experiment.SNGP:
		// Orthogonal frequencies, as in the code with which the paper ran it.
		head := baselines.SNGP{Examples: run.data.train.N, Orthogonal: true}
		network.Layers = head
		run.finish = func() error { return head.Posterior(run.members[0].Store, processHead) }
	case experiment.DUE:
		needs, err := MemoryOfDUE(run.experiment)
		if err != nil {
			return network, err
		}
		run.note(fmt.Sprintf("%v: %s", run.experiment, needs))
		start, err := run.startOfDUE(ctx, inducingOf(recipe, classes), network)
		if err != nil {
			return network, err
		}
		head := baselines.DUE{Start: []baselines.Inducing{start}}
		network.Layers = head
		run.finish = func() error { return head.Check(run.members[0].Store, processHead) }
	}
	return network, nil
}

// inducingOf is the number of inducing points: as many as classes unless the recipe
// has one.
func inducingOf(recipe ImageRecipe, classes int) int {
	if recipe.Inducing > 0 {
		return recipe.Inducing
	}
	return classes
}

// MemoryOfDUE says in a line how much memory the Gaussian processes of an experiment
// with DUE take in a training step, and where that is more than this computer has,
// how many inducing points would fit. There is an error for more inducing points
// than training images that they are chosen among.
func MemoryOfDUE(e experiment.Experiment) (string, error) {
	recipe, err := ImageRecipeOf(e)
	if err != nil {
		return "", err
	}
	classes, err := classesOf(e.Dataset)
	if err != nil {
		return "", err
	}
	network, err := recipe.network(e)
	if err != nil {
		return "", err
	}
	size := baselines.DUESize{Classes: classes, Inducing: inducingOf(recipe, classes), Batch: recipe.BatchSize, Width: slices.Max(network.Widths), DType: dtypes.Float32}
	says := fmt.Sprintf("the Gaussian processes take up to %.0f MB of memory in a training step, with %d inducing points for %d classes; fewer by the option %s",
		float64(size.Bytes())/1e6, size.Inducing, size.Classes, optionInducing)
	images := startImages
	if e.TrainN > 0 {
		images = min(images, e.TrainN)
	}
	if size.Inducing > images {
		return "", fmt.Errorf("%s: %d are too many, since they start among the features of %d training images", says, size.Inducing, images)
	}
	if here := memory(); here > 0 && size.Bytes() > here {
		says += fmt.Sprintf(". This computer has %.0f MB", float64(here)/1e6)
		if most, err := size.MostInducing(here); err == nil {
			says += fmt.Sprintf(", for which at most %d inducing points are sure to fit; an accelerator has memory of its own", most)
		}
	}
	return says, nil
}

// memory is the size of this computer's memory in bytes, 0 where it is not known.
// It is a variable for tests.
var memory = func() int {
	content, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	kilobytes := 0
	if _, err := fmt.Sscanf(string(content), "MemTotal: %d kB", &kilobytes); err != nil {
		return 0
	}
	return kilobytes << 10
}

// startOfDUE are so many inducing points among the features of the untrained network.
func (run *imageRun) startOfDUE(ctx context.Context, count int, network nets.ResNet) (baselines.Inducing, error) {
	none := func(err error) (baselines.Inducing, error) {
		return baselines.Inducing{}, fmt.Errorf("inducing points of the untrained network: %w", err)
	}
	seed := trainingSeed(run.experiment)
	network.Layers = baselines.Headless{}
	untrained, err := nets.New(run.backend, network, nil, seed)
	if err != nil {
		return none(err)
	}
	found, err := predict.Sample(ctx, untrained, run.data.inputs(first(run.data.train, startImages)), predict.Options{Samples: 1, BatchSize: startBatch, Training: true})
	if err != nil {
		return none(err)
	}
	start, err := baselines.StartFrom(found.Outputs[0], found.Width, count, seed)
	if err != nil {
		return none(err)
	}
	return start, nil
}
