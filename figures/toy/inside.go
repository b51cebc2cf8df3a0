package toy

import (
	"context"
	"errors"
	"fmt"

	"densityuncertainty/dul/predict"
	"densityuncertainty/figures/jobs"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
)

// Inside is what goes on in one network trained on the cubic, along the grid.
type Inside struct {
	// X is the grid, Mean and Std the moments of the predictive draws there, all
	// in the units of the data.
	X, Mean, Std []float64
	// Energies are those of each layer's input, [layers][len(X)], means over the draws.
	Energies [][]float64
	// TrainX and TrainY are the training data.
	TrainX, TrainY []float64
}

// LookInside trains a method with energy models on the cubic, for the first of the protocol's seeds, as Run does,
// and returns the layers' energies as well.
func LookInside(ctx context.Context, p Protocol, m methods.Method) (inside Inside, err error) {
	if err := m.Validate(); err != nil {
		return Inside{}, err
	}
	if len(p.Seeds) == 0 {
		return Inside{}, errors.New("toy: looking inside a network: the protocol has no seeds, want at least one")
	}
	machine, err := jobs.OpenMachine()
	if err != nil {
		return Inside{}, err
	}
	e := p.Experiments(m)[0]
	defer jobs.Recover(&err, e)
	if p.Problem != CubicName {
		return Inside{}, fmt.Errorf("toy: looking inside %v: only the cubic has a grid to look along", e)
	}
	report := p.Progress
	if p, m, err = ProtocolOf(e, methods.List{m}); err != nil {
		return Inside{}, err
	}
	d := cubicOf(e)
	run := p.training(m, cubicN)
	run.Network, run.Seeds = m.Network(p.Options, p.Width, p.HiddenLayers), []uint64{methods.Seed(e, 0)}
	if report != nil {
		run.Progress = progressOf(report)
	}
	fitted, err := run.Fit(ctx, machine.Backend, d.train)
	if err != nil {
		return Inside{}, fmt.Errorf("%v: %w", e, err)
	}
	draws, err := predict.Regression(ctx, fitted, d.inputs, d.train.D, e.Samples)
	if err != nil {
		return Inside{}, fmt.Errorf("%v: predicting: %w", e, err)
	}
	energies, err := predict.Energies(ctx, fitted, d.inputs, d.train.D, e.Samples)
	if err != nil {
		return Inside{}, fmt.Errorf("%v: energies: %w", e, err)
	}
	_, s := d.summary(methods.OfDraws(draws))
	return Inside{X: s[results.SeriesX], Mean: s[results.SeriesMean], Std: s[results.SeriesStd], Energies: energies,
		TrainX: s[results.SeriesTrainX], TrainY: s[results.SeriesTrainY]}, nil
}
