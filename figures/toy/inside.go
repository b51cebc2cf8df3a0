package toy

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot"

	"densityuncertainty/environment/notebook"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/report"
)

// Inside is what goes on in a network on the cubic, along the grid.
type Inside struct {
	Steps int // of its training
	// X is the grid, and Std the standard deviation of the function there, in the units of the data.
	X, Std []float64
	// Energies are the energies of each layer's input, [layers][len(X)], means over the draws.
	Energies [][]float64
}

// LookInside looks inside networks with energy models that were trained on the cubic.
func LookInside(list []experiment.Result) ([]Inside, error) {
	var all []Inside
	for _, r := range list {
		p, err := r.Predictions()
		if err != nil {
			return nil, err
		}
		s, err := p.Set(gridSet)
		if err != nil {
			return nil, fmt.Errorf("toy: only runs on the cubic have a grid to look along: %w", err)
		}
		if r.Diverged || len(s.Energies) == 0 {
			return nil, fmt.Errorf("toy: looking inside %s, seed %d: it diverged, or has no energy model", r.Method, r.Seed)
		}
		c, err := curveOf(p)
		if err != nil {
			return nil, err
		}
		inside := Inside{Steps: r.Experiment.Recipe.Epochs, X: Grid(), Std: c.std}
		for _, layer := range s.Energies {
			inside.Energies = append(inside.Energies, layer.Mean)
		}
		all = append(all, inside)
	}
	return all, nil
}

// StepsSlider goes through networks that were trained for several numbers of steps.
func StepsSlider(runs []Inside) notebook.Slider {
	s := notebook.Slider{Name: "gradient steps"}
	for _, run := range runs {
		s.Positions = append(s.Positions, float64(run.Steps))
	}
	return s
}

// InsideFigure draws one of several networks, the one that was trained for so many steps, before the others in pale. It shows the energies of the inputs
// of its layers along the grid, and the standard deviation of what comes out. All networks must have the same number of
// layers. The axes are the same whichever is shown.
func InsideFigure(runs []Inside, steps int) (report.Figure, error) {
	fail := func(err error) (report.Figure, error) {
		return report.Figure{}, fmt.Errorf("toy: inside networks: %w", err)
	}
	shown := slices.IndexFunc(runs, func(r Inside) bool { return r.Steps == steps })
	if shown < 0 {
		return fail(fmt.Errorf("none of %d was trained for %d steps", len(runs), steps))
	}
	layers := len(runs[shown].Energies)
	for _, run := range runs {
		if len(run.Energies) != layers {
			return fail(fmt.Errorf("after %d steps there are energies of %d layers, after %d of %d", run.Steps, len(run.Energies), steps, layers))
		}
	}
	panels := make([]*plot.Plot, layers+1)
	for l := range layers {
		panels[l] = report.New(fmt.Sprintf("input of layer %d", l+1), "x", "energy")
		// The energy of the first layer's input, a number, is nearly 0 near 0: a logarithm would show little else.
		if l > 0 {
			var all []float64
			for _, run := range runs {
				all = append(all, run.Energies[l]...)
			}
			report.LogAxis(&panels[l].Y, all)
			panels[l].Title.Text += ", logarithmic axis"
		}
	}
	panels[layers] = report.New("output", "x", "standard deviation")
	others := slices.Delete(slices.Clone(runs), shown, shown+1)
	for i, run := range append(others, runs[shown]) {
		colour := report.PaleBlue
		if i == len(others) {
			colour = report.Navy
		}
		for l, values := range append(slices.Clone(run.Energies), run.Std) {
			if l > 0 && l < layers {
				values = atLeast(panels[l].Y.Min, values)
			}
			if err := report.Line(panels[l], "", run.X, values, colour); err != nil {
				return fail(err)
			}
		}
	}
	return report.Figure{
		Name: "inside", Panels: [][]*plot.Plot{panels}, Width: 540, Height: 170,
		Caption: prose.Caption("inside", runs[shown].Steps),
	}, nil
}
