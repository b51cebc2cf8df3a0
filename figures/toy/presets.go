// Package toy has the problems that can be drawn: the cubic of the paper's Figure 1, and two moons, which the paper does not
// have. The paper does not state the number of examples, the noise or the training; with the presets its figure comes out.
//
//	list, err := experiment.Cross(toy.Paper, []experiment.Source{toy.Cubic{Seeds: 3}}, methods.Density, methods.MFVI)
package toy

import (
	"fmt"

	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/tables"
)

// Paper trains by steps of Adam on all examples at once, with a learning rate that falls along half a cosine: 4000 from
// 1e-3 on the cubic, with one hidden layer of 50 units, and 1000 from 1e-2 on two moons, with two. Energy models are
// trained for half as many steps before.
func Paper(data experiment.Source, m experiment.Method) (experiment.Experiment, error) {
	m = defaults.Fill(m)
	e := experiment.Experiment{Method: m, Preset: "toy.Paper"}
	samples := 1000
	switch data.(type) {
	case Cubic:
		e.Task = experiment.Task{Name: "cubic", Data: data, Network: nets.MLP{Widths: []int{50}}, Likelihood: likelihood.Gaussian{}, Metrics: []experiment.Metric{gapMetrics}}
		e.Recipe = experiment.Adam(4000, cubicExamples, 1e-3)
	case Moons: // whose map is a mean, for which fewer draws are enough than for percentiles
		samples = 100
		e.Task = experiment.Task{Name: "two moons", Data: data, Network: nets.MLP{Widths: []int{50, 50}}, Likelihood: likelihood.Categorical{Classes: moonsClasses}, Metrics: []experiment.Metric{distanceMetrics}}
		e.Recipe = experiment.Adam(1000, moonsExamples, 1e-2)
		e.Recipe.PredictBatch = moonsExamples
	default:
		return e, fmt.Errorf("toy.Paper is for toy.Cubic and toy.Moons, not for %T", data)
	}
	r := e.Recipe
	r.SharedNoise, r.SeedWithoutSplit = true, true
	// With dul.Attached, energy models move the weights too.
	r.PretrainEpochs, r.PretrainGroups, r.LogLikelihoodScale = r.Epochs/2, r.Groups, 1
	var err error
	if e.Recipe, err = r.For(m, e.Task.Likelihood, samples); err != nil {
		return e, fmt.Errorf("toy.Paper: %s: %w", m.Name, err)
	}
	return e, nil
}

// Steps changes an experiment to so many steps of training, after half as many of pretraining if it has any.
func Steps(n int) func(e *experiment.Experiment) {
	return func(e *experiment.Experiment) {
		e.Recipe.Epochs = n
		if e.Recipe.PretrainEpochs > 0 {
			e.Recipe.PretrainEpochs = max(1, n/2)
		}
	}
}

// grid has the experiments of this package.
var grid = experiment.Grid{Preset: Paper}

// defaults fill in what a method leaves open. MFVI's usual prior is too tight for 50 units to bend into a cubic.
var defaults = methods.Defaults{InitStd: 0.01, MFVIPriorStd: 1, VDropoutAlpha: 0.1, Inducing: 20}

// Exhibits are the tables and pictures of the toy problems.
func Exhibits() tables.Exhibits {
	return tables.Exhibits{
		{Name: "figure1", Doc: "the paper's Figure 1, the same with each energy model, and in numbers: uncertainty inside the gap over that at the data", Picture: figure1, Parts: tables.Exhibits{
			{Name: "figure1-energies", Picture: figure1Energies}, {Name: "gap-ratio", Table: gapRatios},
		}},
		{Name: "distance", Doc: "are methods less certain far from their data? entropy on two moons, and the gap ratio of the cubic", Table: distanceTable, Parts: tables.Exhibits{
			{Name: "distance-toy", Picture: distanceCubic}, {Name: "distance-moons", Picture: distanceMoons},
		}},
	}
}
