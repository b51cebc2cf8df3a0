package runner

import (
	"context"
	"fmt"

	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/render"
)

// An Inspection is the inside of one trained toy network along the toy's grid.
type Inspection struct {
	// X is the grid, Mean and Std the moments of the predictive draws there, all
	// in the units of the data.
	X, Mean, Std []float64
	// Energies are those of each layer's input, [layers][len(X)], means over the draws.
	Energies [][]float64
	// TrainX and TrainY are the training data.
	TrainX, TrainY []float64
}

// Inspect trains one toy experiment of a method with energy models as Run does,
// and returns the layers' energies as well. It calls progress, which may be nil,
// with the fraction of the training that is done.
func (r *Runner) Inspect(ctx context.Context, e experiment.Experiment, progress func(done float64, note string)) (inside Inspection, err error) {
	defer recoverTo(&err, e)
	if e.Dataset != experiment.ToyCubic {
		return Inspection{}, fmt.Errorf("runner: inspecting %v: only the cubic toy has a grid to look along", e)
	}
	recipe, err := RecipeOf(e)
	if err != nil {
		return Inspection{}, err
	}
	t, err := toyTask(ctx, e)
	if err != nil {
		return Inspection{}, err
	}
	network, training, err := recipe.regression(e)
	if err != nil {
		return Inspection{}, err
	}
	training.Progress = func(p train.Progress) {
		if progress != nil {
			progress(float64(p.Step)/float64(p.Steps), fmt.Sprintf("loss %.3g", p.Losses.Total))
		}
	}
	m, err := nets.New(r.backend, network, likelihood.Gaussian{}, trainingSeed(e))
	if err != nil {
		return Inspection{}, fmt.Errorf("%v: %w", e, err)
	}
	if err := training.Fit(ctx, m, t.train); err != nil {
		return Inspection{}, fmt.Errorf("%v: %w", e, err)
	}
	draws, err := predict.Sample(ctx, m, nets.Rows(t.inputs, 1), predict.Options{Samples: e.Samples, Energies: true})
	if err != nil {
		return Inspection{}, fmt.Errorf("%v: predicting: %w", e, err)
	}
	var energies [][]float64
	for _, layer := range draws.Energies {
		energies = append(energies, layer.Mean)
	}
	summary, err := evaluateToy(t, ofDraws(draws.Mixture))
	if err != nil {
		return Inspection{}, fmt.Errorf("%v: evaluating: %w", e, err)
	}
	s := summary.Series
	return Inspection{X: s[render.SeriesX], Mean: s[render.SeriesMean], Std: s[render.SeriesStd], Energies: energies,
		TrainX: s[render.SeriesTrainX], TrainY: s[render.SeriesTrainY]}, nil
}
