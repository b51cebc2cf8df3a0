package toy

import (
	"context"
	"errors"
	"fmt"
	"image/color"
	"strconv"

	"gonum.org/v1/plot"

	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment"
	"densityuncertainty/environment/notebook"
	"densityuncertainty/figures/jobs"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// Inside is what goes on in one network trained on the cubic, along the grid.
type Inside struct {
	// Steps are those of its training.
	Steps int
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
	machine, err := jobs.OpenMachine(environment.ShortTrainings)
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
	_, s := d.summary(methods.Prediction{Mixture: drawn.Mixture})
	inside = Inside{Steps: p.Steps, X: s[results.SeriesX], Mean: s[results.SeriesMean], Std: s[results.SeriesStd],
		TrainX: s[results.SeriesTrainX], TrainY: s[results.SeriesTrainY]}
	for _, layer := range drawn.Energies {
		inside.Energies = append(inside.Energies, layer.Mean)
	}
	return inside, nil
}

// StepsSlider goes through networks that were trained for several numbers of steps; its positions are what
// InsideFigure shows.
func StepsSlider(runs []Inside) notebook.Slider {
	var steps []string
	for _, run := range runs {
		steps = append(steps, strconv.Itoa(run.Steps))
	}
	return notebook.Choice("gradient steps", 0, steps...)
}

// InsideFigure draws one of several networks, runs[shown], before the others in pale: along the grid, the energies of
// the inputs of its layers, of which all have the same number, and the standard deviation of what comes out. The axes
// are the same whichever is shown.
func InsideFigure(runs []Inside, shown int) (report.Figure, error) {
	fail := func(err error) (report.Figure, error) {
		return report.Figure{}, fmt.Errorf("toy: inside networks: %w", err)
	}
	if shown < 0 || shown >= len(runs) {
		return fail(fmt.Errorf("number %d is to be shown, and there are %d", shown, len(runs)))
	}
	layers := len(runs[shown].Energies)
	panels := make([]*plot.Plot, layers+1)
	for l := range layers {
		panels[l] = report.New(fmt.Sprintf("input of layer %d", l+1), "x", "energy")
		// That of the first layer is a number, whose energy is nearly 0 where it is: a logarithm would show little else.
		if l > 0 {
			var all []float64
			for _, run := range runs {
				if l < len(run.Energies) {
					all = append(all, run.Energies[l]...)
				}
			}
			report.LogAxis(&panels[l].Y, all)
			panels[l].Title.Text += ", logarithmic axis"
		}
	}
	panels[layers] = report.New("output", "x", "standard deviation")
	draw := func(run Inside, c color.Color) error {
		if len(run.Energies) != layers {
			return fmt.Errorf("after %d steps there are energies of %d layers, after %d of %d", run.Steps, len(run.Energies), runs[shown].Steps, layers)
		}
		for l, energy := range run.Energies {
			if l > 0 {
				energy = atLeast(panels[l].Y.Min, energy)
			}
			if err := report.Line(panels[l], "", run.X, energy, c); err != nil {
				return err
			}
		}
		return report.Line(panels[layers], "", run.X, run.Std, c)
	}
	for i, run := range runs {
		if i != shown {
			if err := draw(run, report.PaleBlue); err != nil {
				return fail(err)
			}
		}
	}
	if err := draw(runs[shown], report.Navy); err != nil {
		return fail(err)
	}
	return report.Figure{
		// One below the other, so that they can be read where notebook.Explore shows several pictures in a row.
		Name: "inside", Panels: report.InRows(panels, 1, report.ShareAxes), Width: 280, Height: 400,
		Caption: fmt.Sprintf("Inside a network after %d gradient steps: the energies of its layers, and the standard deviation of its output.", runs[shown].Steps),
	}, nil
}
