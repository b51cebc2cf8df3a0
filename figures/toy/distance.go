package render

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

// The further series of a result on two moons: the map has a value for each place of the grid SeriesX by
// SeriesY, row by row from below.
const (
	SeriesY       = "y"
	SeriesEntropy = "entropy" // of the predictive distribution, in nats
	SeriesLabel   = "label"   // the class of each training point, 0 or 1
)

// distanceSet is the catalogue's name of the runs.
const distanceSet = "distance"

// distanceLayout arranges the panels of experiment.DistanceMethods.
var distanceLayout = Layout{2, 3}

// distancePanels are a panel for each method.
func distancePanels() []toyPanel {
	var panels []toyPanel
	for _, method := range experiment.DistanceMethods() {
		panels = append(panels, toyPanel{method, tables.Title(method)})
	}
	return panels
}

// DistanceToy shows for one seed whether each method is less certain where the cubic toy has no data: the
// mean, two standard deviations of the function to each side (darker), and with the observation noise (lighter).
func DistanceToy(lines []results.Result, seed uint64) (Figure, error) {
	f, err := distanceFigure("distance-toy", experiment.ToyCubic, lines, seed, spreadPlot)
	f.Caption = fmt.Sprintf("Distance awareness on one-dimensional regression: training data, predictive mean, two standard deviations of the function "+
		"(darker) and of the target (lighter) to each side, seed %d.", seed) + f.Caption
	return f, err
}

// DistanceMoons shows for one seed where in the plane each method's classifier of two moons is uncertain: the
// entropy of its predictions, from 0 (white) to one bit (dark).
func DistanceMoons(lines []results.Result, seed uint64) (Figure, error) {
	f, err := distanceFigure("distance-moons", experiment.TwoMoons, lines, seed, moonsPlot)
	f.Caption = fmt.Sprintf("Distance awareness on two moons: entropy of the predictions from 0 (white) to log 2 (dark), and the training data of both classes, seed %d. "+
		"In the titles: mean entropy in nats at the training data and at places at least 1 away from all of them.", seed) + f.Caption
	return f, err
}

// distanceFigure makes a panel for each method.
func distanceFigure(name, dataset string, lines []results.Result, seed uint64, panel func(title string, line results.Result, first bool) (*plot.Plot, error)) (Figure, error) {
	panels := distancePanels()
	chosen, err := toyLines(name, distanceSet, dataset, lines, seed, panels)
	if err != nil {
		return Figure{}, err
	}
	f := Figure{Name: name, Width: vg.Points(float64(panelWidth*distanceLayout.Columns) + 40), Height: vg.Points(float64(panelHeight*distanceLayout.Rows) + 30)}
	quick := ""
	if e := chosen[0].Experiment; e.Scale == experiment.Quick {
		quick = fmt.Sprintf("\nquick run, %d steps", e.Epochs)
		f.Caption = " QUICK RUN."
	}
	for j := range distanceLayout.Rows {
		var row []*plot.Plot
		for i := range distanceLayout.Columns {
			n := j*distanceLayout.Columns + i
			title := panels[n].title + quick
			p, err := New(title+"\ndiverged", "", ""), error(nil)
			p.X.Max, p.X.Min, p.Y.Max, p.Y.Min = 1, 0, 1, 0
			if !chosen[n].Diverged {
				p, err = panel(title, chosen[n], n == 0)
			}
			if err != nil {
				return Figure{}, fmt.Errorf("render: %s: %v: %w", name, chosen[n].Experiment, err)
			}
			share(p, j == distanceLayout.Rows-1, i == 0)
			row = append(row, p)
		}
		f.Panels = append(f.Panels, row)
	}
	return f, nil
}

// spreadPlot draws one panel of DistanceToy.
func spreadPlot(title string, line results.Result, withLegend bool) (*plot.Plot, error) {
	p := New(title, "x", "y")
	s := func(name string) []float64 { return line.Series[name] }
	around := func(noise float64) (low, high []float64) {
		for i, mean := range s(SeriesMean) {
			spread := 2 * math.Hypot(s(SeriesStd)[i], noise)
			low, high = append(low, mean-spread), append(high, mean+spread)
		}
		return low, high
	}
	names := map[bool][4]string{true: {"target, ±2 sd", "function, ±2 sd", "mean", "data"}}[withLegend]
	outerLow, outerHigh := around(line.Metrics["noise_std"])
	low, high := around(0)
	for _, err := range []error{
		Band(p, names[0], s(SeriesX), outerLow, outerHigh, PaleBlue),
		Band(p, names[1], s(SeriesX), low, high, MidBlue),
		Line(p, names[2], s(SeriesX), s(SeriesMean), Navy),
		Points(p, names[3], s(SeriesTrainX), s(SeriesTrainY), Red, dotRadius),
	} {
		if err != nil {
			return nil, err
		}
	}
	p.X.Min, p.X.Max = dataEnds(s(SeriesX))
	p.Y.Min, p.Y.Max = dataRange(s(SeriesTrainY))
	p.Legend.Top, p.Legend.Left = true, true
	return p, nil
}

// moonsPlot draws one panel of DistanceMoons.
func moonsPlot(title string, line results.Result, _ bool) (*plot.Plot, error) {
	s := func(name string) []float64 { return line.Series[name] }
	p := New(title, "first input", "second input")
	p.Title.Text += fmt.Sprintf("\nat data %.2f, far away %.2f", line.Metrics["entropy_data"], line.Metrics["entropy_far"])
	grid := heights{x: s(SeriesX), y: s(SeriesY), z: s(SeriesEntropy)}
	if len(grid.x) < 2 || len(grid.y) < 2 || len(grid.z) != len(grid.x)*len(grid.y) {
		return nil, fmt.Errorf("a map of %d by %d places has %d values", len(grid.x), len(grid.y), len(grid.z))
	}
	heat := plotter.NewHeatMap(grid, shades{})
	heat.Min, heat.Max = 0, math.Ln2
	heat.Rasterized = true
	p.Add(heat)
	for label, c := range []color.Color{Orange, Red} {
		var x, y []float64
		for i, v := range s(SeriesLabel) {
			if int(v) == label {
				x, y = append(x, s(SeriesTrainX)[i]), append(y, s(SeriesTrainY)[i])
			}
		}
		if err := Points(p, "", x, y, c, dotRadius/2); err != nil {
			return nil, err
		}
	}
	p.X.Min, p.X.Max = dataEnds(grid.x)
	p.Y.Min, p.Y.Max = dataEnds(grid.y)
	return p, nil
}

// heights implements plotter.GridXYZ.
type heights struct{ x, y, z []float64 }

func (h heights) Dims() (c, r int)   { return len(h.x), len(h.y) }
func (h heights) Z(c, r int) float64 { return min(max(h.z[r*len(h.x)+c], 0), math.Ln2) }
func (h heights) X(c int) float64    { return h.x[c] }
func (h heights) Y(r int) float64    { return h.y[r] }

// shades is a palette from white to Navy.
type shades struct{}

// Colors implements palette.Palette.
func (shades) Colors() []color.Color {
	const steps = 64
	colours := make([]color.Color, steps)
	for i := range colours {
		part := float64(i) / (steps - 1)
		mix := func(end uint8) uint8 { return uint8(math.Round(255 - part*(255-float64(end)))) }
		colours[i] = color.RGBA{R: mix(Navy.R), G: mix(Navy.G), B: mix(Navy.B), A: 0xff}
	}
	return colours
}
