package runner

import (
	"context"
	"fmt"

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
func processPreset(method string) train.Classification {
	if method == experiment.DUE {
		return train.DUE()
	}
	return train.SNGP()
}

// processDecay is the weight decay of both.
const processDecay = 5e-4

// processRecipe sets the numbers of SNGP and DUE, whatever the network.
func (r *ImageRecipe) processRecipe(method string) {
	preset := processPreset(method)
	r.BatchSize, r.WeightDecay, r.LearningRate = preset.BatchSize, processDecay, preset.Schedule(0, preset.Epochs)
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
		run.finish = func() error { return head.Posterior(run.classifier.Store, processHead) }
	case experiment.DUE:
		start, size, err := run.startOfDUE(ctx, recipe, network, classes)
		if err != nil {
			return network, err
		}
		run.note(fmt.Sprintf("%v: the Gaussian processes take up to %.0f MB of memory in a training step, with %d inducing points for %d classes; fewer by the option %s",
			run.experiment, float64(size.Bytes())/1e6, size.Inducing, size.Classes, optionInducing))
		head := baselines.DUE{Start: []baselines.Inducing{start}}
		network.Layers = head
		run.finish = func() error { return head.Check(run.classifier.Store, processHead) }
	}
	return network, nil
}

// startOfDUE are inducing points among the features of the untrained network, as
// many as classes unless the recipe has a number.
func (run *imageRun) startOfDUE(ctx context.Context, recipe ImageRecipe, network nets.ResNet, classes int) (baselines.Inducing, baselines.DUESize, error) {
	none := func(err error) (baselines.Inducing, baselines.DUESize, error) {
		return baselines.Inducing{}, baselines.DUESize{}, fmt.Errorf("inducing points of the untrained network: %w", err)
	}
	seed := trainingSeed(run.experiment)
	network.Layers = baselines.Headless{}
	untrained, err := nets.NewClassifier(run.backend, network, classes, seed, dtypes.Float32)
	if err != nil {
		return none(err)
	}
	features, width, err := predict.ImageFeatures(ctx, untrained, network, run.data.inputs(first(run.data.train, startImages)), startBatch)
	if err != nil {
		return none(err)
	}
	count := classes
	if recipe.Inducing > 0 {
		count = recipe.Inducing
	}
	start, err := baselines.StartFrom(features, width, count, seed)
	if err != nil {
		return none(err)
	}
	return start, baselines.DUESize{Classes: classes, Inducing: count, Batch: recipe.BatchSize, Width: width, DType: dtypes.Float32}, nil
}
