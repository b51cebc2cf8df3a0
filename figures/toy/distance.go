package toy

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

// distanceMethods are the methods whose distance awareness is compared.
var distanceMethods = []experiment.Method{methods.Deterministic, methods.MCDropout, methods.Density, methods.SNGP, methods.DUE, methods.Ensemble, methods.Laplace, methods.SWAG}

// distanceCubic shows whether each method is less certain where the cubic has no data: the mean, two standard
// deviations of the function to each side (darker), and with the observation noise (lighter).
func distanceCubic(x *tables.Index) (report.Figure, error) {
	const name = "distance-toy"
	found, err := find(name, x, Cubic{Seeds: drawnSeeds}, distanceMethods)
	if err != nil {
		return report.Figure{}, err
	}
	f, _, err := cubicFigure(name, found, 3, run.spread)
	f.Width, f.Height = f.Width+20, f.Height+20 // as large as distanceMoons
	f.Caption = prose.Caption(name, map[string]int{"Seed": shownSeed})
	return f, err
}

// distanceMoons shows where in the plane each method's classifier of two moons is uncertain: the entropy of
// its predictions, from 0 (white) to one bit (dark).
func distanceMoons(x *tables.Index) (report.Figure, error) {
	const name = "distance-moons"
	found, err := find(name, x, Moons{Seeds: drawnSeeds}, distanceMethods)
	if err != nil {
		return report.Figure{}, err
	}
	f, err := panels{
		name: name, results: found, columns: 3, right: 40, below: 30,
		draw: func(p *plot.Plot, i int) error { return drawMoons(p, found[i]) },
		axes: func(p *plot.Plot) {
			p.X.Label.Text, p.X.Min, p.X.Max = "first input", mapLeft, mapLeft+mapSide
			p.Y.Label.Text, p.Y.Min, p.Y.Max = "second input", mapLow, mapLow+mapSide
		},
	}.figure()
	f.Caption = prose.Caption(name, map[string]int{"Seed": shownSeed})
	return f, err
}

// spread draws one panel of distanceCubic.
func (r run) spread(p *plot.Plot, withLegend bool) error {
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
	return r.draw(p, names, outerLow, outerHigh, low, high)
}

// drawMoons draws one panel of distanceMoons.
func drawMoons(p *plot.Plot, r experiment.Result) error {
	p.Title.Text += fmt.Sprintf("\nat data %.2f, far away %.2f", r.Metrics[metricEntropyData], r.Metrics[metricEntropyFar])
	kept, err := predictionsOf(r)
	if err != nil {
		return err
	}
	entropy, _, err := entropies(kept)
	if err != nil {
		return err
	}
	xs, ys := mapAxes()
	if err := report.Shades(p, xs, ys, entropy[:mapCells], 0, math.Ln2); err != nil {
		return err
	}
	points, labels := moonsData(r.Split)
	first, second := make([]float64, len(labels)), make([]float64, len(labels))
	for i := range labels {
		first[i], second[i] = points[2*i], points[2*i+1]
	}
	return report.Classes(p, first, second, labels, report.DotRadius/2)
}
