package toy

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

// DistanceMethods are the methods whose distance awareness is compared.
func DistanceMethods() []experiment.Method {
	return []experiment.Method{methods.Deterministic, methods.MCDropout, methods.Density, methods.SNGP, methods.DUE, methods.Ensemble}
}

// DistanceCubic shows for one seed whether each method is less certain where the cubic has no data: the mean, two standard
// deviations of the function to each side (darker), and with the observation noise (lighter).
func DistanceCubic(x *tables.Index, seed uint64) (report.Figure, error) {
	f, err := distanceFigure("distance-toy", x, Cubic{}, seed, spreadPanel)
	f.Caption = prose.Caption("distance-toy", map[string]uint64{"Seed": seed}) + f.Caption
	return f, err
}

// DistanceMoons shows for one seed where in the plane each method's classifier of two moons is uncertain: the entropy of
// its predictions, from 0 (white) to one bit (dark).
func DistanceMoons(x *tables.Index, seed uint64) (report.Figure, error) {
	f, err := distanceFigure("distance-moons", x, Moons{}, seed, moonsPanel)
	f.Caption = prose.Caption("distance-moons", map[string]uint64{"Seed": seed}) + f.Caption
	return f, err
}

// A panel draws a run, which did not diverge. Only the first one of a figure has a legend.
type panel func(title string, r experiment.Result, withLegend bool) (*plot.Plot, error)

// distanceFigure makes a panel for each method.
func distanceFigure(name string, x *tables.Index, data experiment.Source, seed uint64, draw panel) (report.Figure, error) {
	list := DistanceMethods()
	found, err := find(name, x, data, seed, list, Paper, Quick)
	if err != nil {
		return report.Figure{}, err
	}
	return panelsOf(name, found, names(list), draw)
}

// panelsOf makes a panel for each run, three in a row. The caption says no more than that some are quick.
func panelsOf(name string, list []experiment.Result, titles []string, draw panel) (report.Figure, error) {
	caption := ""
	var drawn []*plot.Plot
	for i, r := range list {
		title := titles[i] + quickTitle(r)
		if r.Preset == quickPreset {
			caption = quickCaption()
		}
		p, err := report.New(title+"\ndiverged", "", ""), error(nil)
		p.X.Max, p.X.Min, p.Y.Max, p.Y.Min = 1, 0, 1, 0
		if !r.Diverged {
			p, err = draw(title, r, i == 0)
		}
		if err != nil {
			return report.Figure{}, fmt.Errorf("toy: %s: %v: %w", name, r.Experiment, err)
		}
		drawn = append(drawn, p)
	}
	f := inRows(name, drawn, 3, 40, 30)
	f.Caption = caption
	return f, nil
}

// spreadPanel draws one panel of DistanceCubic.
func spreadPanel(title string, result experiment.Result, withLegend bool) (*plot.Plot, error) {
	p := report.New(title, "x", "y")
	r, err := runOf(result)
	if err != nil {
		return nil, err
	}
	around := func(noise float64) (low, high []float64) {
		for i, mean := range r.mean {
			spread := 2 * math.Hypot(r.std[i], noise)
			low, high = append(low, mean-spread), append(high, mean+spread)
		}
		return low, high
	}
	names := map[bool][4]string{true: {"target, ±2 sd", "function, ±2 sd", "mean", "data"}}[withLegend]
	outerLow, outerHigh := around(r.noise)
	low, high := around(0)
	err = r.draw(p, names, outerLow, outerHigh, low, high)
	p.Y.Min, p.Y.Max = dataRange(r.trainY)
	return p, err
}

// moonsPanel draws one panel of DistanceMoons.
func moonsPanel(title string, r experiment.Result, _ bool) (*plot.Plot, error) {
	p := report.New(title, "first input", "second input")
	p.Title.Text += fmt.Sprintf("\nat data %.2f, far away %.2f", r.Metrics[results.MetricEntropyData], r.Metrics[results.MetricEntropyFar])
	kept, err := predictionsOf(r)
	if err != nil {
		return nil, err
	}
	entropy, _, err := entropies(kept)
	if err != nil {
		return nil, err
	}
	xs, ys := Map()
	if err := report.Shades(p, xs, ys, entropy[:mapCells], 0, math.Ln2); err != nil {
		return nil, err
	}
	points, labels := moonsData(r.Split)
	first, second := make([]float64, len(labels)), make([]float64, len(labels))
	for i := range labels {
		first[i], second[i] = points[2*i], points[2*i+1]
	}
	return p, report.Classes(p, first, second, labels, report.DotRadius/2)
}
