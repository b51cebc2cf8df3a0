// Command uci trains a small network of density layers on every split of a UCI regression, as the paper's text says, and prints
// a cell of its tables: the mean and the standard deviation over the splits.
//
//	go run ./dul/examples/uci               # yacht, half a minute
//	go run ./dul/examples/uci -data energy
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"gonum.org/v1/gonum/stat"

	"densityuncertainty/datasets"
	"densityuncertainty/dul"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment"
)

func main() {
	name := flag.String("data", "yacht", "a UCI data set: boston, concrete, energy, ...")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *name); err != nil {
		fmt.Fprintln(os.Stderr, "uci:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, name string) error {
	data, err := datasets.UCI(name)
	splits, splitsErr := datasets.GalSplits(name)
	if err := errors.Join(err, splitsErr); err != nil {
		return err
	}
	var nlls, rmses []float64
	for i, split := range splits {
		nll, rmse, err := one(ctx, data, split, nets.SeedOf(uint64(i), i, 0))
		if err != nil {
			return fmt.Errorf("split %d: %w", i, err)
		}
		nlls, rmses = append(nlls, nll), append(rmses, rmse)
	}
	_, err = fmt.Fprintf(out, "%s: NLL %.3f ± %.3f, RMSE %.3f ± %.3f\n", name, stat.Mean(nlls, nil), stat.StdDev(nlls, nil), stat.Mean(rmses, nil), stat.StdDev(rmses, nil))
	return err
}

// one trains on a split, and returns the scores on its test examples in the data's own units.
func one(ctx context.Context, data *datasets.Regression, split datasets.Split, seed uint64) (nll, rmse float64, err error) {
	// Data: inputs and targets standardised by the training examples.
	inputs, target := datasets.FitScaler(data.X, data.D, split.Train), datasets.FitScaler(data.Y, 1, split.Train)
	part := func(rows []int) train.Dataset {
		x, y := data.Take(rows)
		return train.Dataset{Inputs: nets.Rows(inputs.Transform(x), data.D), Targets: target.Transform(y)}
	}
	test := part(split.Test)

	// Model: a Gaussian whose mean is the network's output.
	backend, _, err := environment.OpenFor(environment.SmallNetworks)
	if err != nil {
		return 0, 0, err
	}
	network := nets.MLP{Widths: []int{50, 50}, Layers: dul.Density{Energy: energy.LDL{}, InitStd: 0.1}}
	m, err := nets.New(backend, network, likelihood.Gaussian{}, seed)
	if err != nil {
		return 0, 0, err
	}

	// Training: SGD; the energy models have Adam, and train alone for ten epochs first.
	energies := train.Group{Roles: []params.Role{params.Generative}, Optimizer: train.Adam{Decay: 1e-5}, Rate: 1}
	fit := train.Trainer{Settings: train.Settings{
		Epochs: 100, BatchSize: 128, Schedule: train.Cosine{Start: 0.01}, LogLikelihoodScale: 1,
		PretrainEpochs: 10, PretrainGroups: []train.Group{energies},
		Groups: []train.Group{energies,
			{Roles: []params.Role{params.Weight}, Optimizer: train.SGD{Momentum: 0.9, Decay: 1e-4}, Rate: 1},
			{Roles: []params.Role{params.Variational, params.Likelihood}, Optimizer: train.SGD{Momentum: 0.9}, Rate: 1}},
	}}
	if err := fit.Fit(ctx, m, part(split.Train)); err != nil {
		return 0, 0, err
	}

	// Prediction: a mixture of ten Gaussians, one for each draw of the noise.
	p, err := predict.Sample(ctx, m, test.Inputs, predict.Options{Samples: 10})
	if err != nil {
		return 0, 0, err
	}
	unit := target.Std[0] // of the data, for a target of 1
	mean, _ := p.Moments()
	nll, err = p.NLL(test.Targets, nil, unit)
	return nll, unit * metrics.RMSE(mean, test.Targets), err
}
