package toy

import (
	"context"
	"errors"
	"fmt"

	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment"
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
	machine, err := jobs.OpenMachine(environment.SmallNetworks)
	if err != nil {
		return Inside{}, err
	}
	defer machine.Backend.Finalize()
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
	model, err := nets.New(machine.Backend, m.Network(p.Options, p.Width, p.HiddenLayers), likelihood.Gaussian{}, methods.Seed(e, 0))
	if err != nil {
		return Inside{}, fmt.Errorf("%v: %w", e, err)
	}
	trainer := p.trainer(m, cubicN)
	if report != nil {
		trainer.Progress = func(at train.Progress) { report(methods.Describe(at)) }
	}
	if err := trainer.Fit(ctx, model, d.train); err != nil {
		return Inside{}, fmt.Errorf("%v: %w", e, err)
	}
	drawn, err := predict.Sample(ctx, model, d.inputs, predict.Options{Samples: e.Samples, Energies: true})
	if err != nil {
		return Inside{}, fmt.Errorf("%v: predicting: %w", e, err)
	}
	_, s, err := d.summary(methods.Prediction{Mixture: drawn.Mixture})
	if err != nil {
		return Inside{}, fmt.Errorf("%v: %w", e, err)
	}
	inside = Inside{X: s[results.SeriesX], Mean: s[results.SeriesMean], Std: s[results.SeriesStd],
		TrainX: s[results.SeriesTrainX], TrainY: s[results.SeriesTrainY]}
	for _, layer := range drawn.Energies {
		inside.Energies = append(inside.Energies, layer.Mean)
	}
	return inside, nil
}
