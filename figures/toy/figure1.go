package toy

import (
	"errors"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"densityuncertainty/dul"
	"densityuncertainty/dul/energy"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

// named is a method under another name, which is the title of its panel or row.
func named(m experiment.Method, name string) experiment.Method {
	m.Name = name
	return m
}

// clipped is the density layer with the energies of LDL limited to [0, D].
var clipped = experiment.Method{Name: "Density Uncertainty (LDL, energy clipped)", Layers: dul.Density{Energy: energy.LDL{}, Clip: true}}

// figure1 is the paper's Figure 1. A panel has the data (red), the predictive
// mean, and the central 95% and 99% of the predictive draws (blue, the outer one lighter), on shared axes. Beside a cubic
// the bands are narrow, so a second panel below each has them less the mean, with the truth.
func figure1(x *tables.Index) (report.Figure, error) {
	list := []experiment.Method{methods.MFVI, methods.VDropout, methods.Rank1, methods.Density}
	for i, m := range list {
		list[i].Name = fmt.Sprintf("(%c) %s", 'a'+i, m.Name)
	}
	return bands("figure1", x, list)
}

// figure1Energies shows the density layer with its energy models, as figure1 shows methods.
func figure1Energies(x *tables.Index) (report.Figure, error) {
	list := []experiment.Method{named(methods.Density, "LDL, not clipped"), named(clipped, "LDL, clipped to [0, D]"), named(methods.DensityMixture, "Rank-1 mixture")}
	return bands("figure1-energies", x, list)
}

// Pictures shows runs on the cubic, whatever methods and settings they are of, as in Figure 1: a panel for each, three in a
// row.
func Pictures(list []experiment.Result) (report.Figure, error) {
	if len(list) == 0 {
		return report.Figure{}, errors.New("toy: there are no runs to show")
	}
	list = slices.Clone(list)
	for i, r := range list {
		if r.Experiment == nil {
			return report.Figure{}, fmt.Errorf("toy: the result %s does not know its experiment; find it with tables.Index.Find", r.ID)
		}
		if _, is := r.Experiment.Task.Data.(Cubic); !is {
			return report.Figure{}, fmt.Errorf("toy: %v is not on the cubic", r.Experiment)
		}
		list[i].Method += fmt.Sprintf(", seed %d", r.Seed)
	}
	f, _, err := cubicFigure("runs", list, 3, run.bands)
	f.Caption = prose.Caption("runs", nil)
	return f, err
}

// paleGrey is the colour of a band behind another.
var paleGrey = color.RGBA{R: 0xdd, G: 0xdd, B: 0xdd, A: 0xff}

// Over shows results on the cubic over a reference, such as the exact posterior, in a panel each, three in a row: the mean of each
// and the central 95% of its draws, less the reference's mean.
func Over(reference experiment.Result, list []experiment.Result) (report.Figure, error) {
	runs, err := runsOf("over", append([]experiment.Result{reference}, list...))
	if err != nil {
		return report.Figure{}, err
	}
	under := runs[0]
	less := func(values []float64) []float64 {
		return floats.SubTo(make([]float64, len(values)), values, under.mean)
	}
	low, high := less(under.quantile(0.025)), less(under.quantile(0.975))
	return panels{
		name: "over", results: list, columns: 3, right: 20, below: 10, axes: stripAxes,
		draw: func(p *plot.Plot, i int) error {
			r, name := runs[i+1], map[int]string{0: reference.Method}[i]
			p.X.Label.Text, p.Y.Label.Text, p.Legend.Top, p.Legend.Left = "x", "f − exact mean", true, true
			return errors.Join(
				report.Band(p, name, Grid(), low, high, paleGrey),
				report.Band(p, "", Grid(), less(r.quantile(0.025)), less(r.quantile(0.975)), report.MidBlue),
				report.Dashes(p, "", Grid(), low, report.Grey),
				report.Dashes(p, "", Grid(), high, report.Grey),
				report.Line(p, "", Grid(), less(r.mean), report.Navy),
				r.belowStrip(p),
			)
		},
	}.figure()
}

// The sizes, in points: a panel with its share of the axes, and by how much the row of strips makes the figure higher. Both rows
// get the same height.
const panelWidth, panelHeight, stripHeight = 150, 160, 100

// stripEnd is where the axis of a strip ends, on which the gap is seen.
const stripEnd = 25.0

// panels is a figure with a panel for each result on one problem, titled with the method's name.
type panels struct {
	name    string
	results []experiment.Result
	columns int
	// right and below are the points that the width and the height have besides the panels.
	right, below float64
	// draw draws result i, which did not diverge.
	draw func(p *plot.Plot, i int) error
	// axes sets the axes, which are the same for all panels.
	axes func(p *plot.Plot)
}

// figure draws the panels, without a caption. Only the lowest of a column and the first of a row have labels.
func (s panels) figure() (report.Figure, error) {
	f := report.Figure{Name: s.name}
	var panels []*plot.Plot
	for i, r := range s.results {
		p := report.New(r.Method, "", "")
		if r.Diverged {
			p.Title.Text += "\ndiverged"
		} else if err := s.draw(p, i); err != nil {
			return report.Figure{}, fmt.Errorf("toy: %s: %v: %w", s.name, r.Experiment, err)
		}
		s.axes(p)
		panels = append(panels, p)
	}
	f.Panels = report.InRows(panels, s.columns, report.ShareAxes)
	f.Width, f.Height = vg.Points(float64(panelWidth*len(f.Panels[0]))+s.right), vg.Points(float64(panelHeight*len(f.Panels))+s.below)
	return f, nil
}

// A run is a result on the cubic with its data and, unless it diverged, what it says.
type run struct {
	experiment.Result
	curve
	trainX, trainY []float64
}

// shownSeed is the seed of the runs in the named figures, and drawnSeeds how many seeds Pictures and distanceTable can show:
// predictions of the first ones are part of the repository.
const shownSeed, drawnSeeds = 0, 3

// predictionsOf reads the predictions of a result that is to be drawn.
func predictionsOf(r experiment.Result) (*experiment.Predictions, error) {
	p, err := r.Predictions()
	if errors.Is(err, experiment.ErrNoPredictions) {
		err = fmt.Errorf("%w; the repository keeps those of the seeds 0 to %d", err, drawnSeeds-1)
	}
	return p, err
}

// runsOf reads what is drawn of results on the cubic.
func runsOf(name string, list []experiment.Result) (runs []run, err error) {
	for _, r := range list {
		data := cubicData(r.Split)
		found := run{Result: r, trainX: data.X, trainY: data.Y}
		if !r.Diverged {
			p, err := predictionsOf(r)
			if err == nil {
				found.curve, err = curveOf(p)
			}
			if err != nil {
				return nil, fmt.Errorf("toy: %s: %w", name, err)
			}
		}
		runs = append(runs, found)
	}
	return runs, nil
}

// cubicFigure draws a panel for each result on the cubic, and returns the runs that it draws. The first panel has a legend.
func cubicFigure(name string, list []experiment.Result, columns int, draw func(r run, p *plot.Plot, withLegend bool) error) (report.Figure, []run, error) {
	runs, err := runsOf(name, list)
	if err != nil {
		return report.Figure{}, nil, err
	}
	f, err := panels{
		name: name, results: list, columns: columns, right: 20, below: 10,
		draw: func(p *plot.Plot, i int) error { return draw(runs[i], p, i == 0) }, axes: runs[0].axes,
	}.figure()
	return f, runs, err
}

// bands finds the runs of the methods and draws a panel of each, all in a row.
func bands(name string, x *tables.Index, list []experiment.Method) (report.Figure, error) {
	found, err := find(name, x, Cubic{Seeds: drawnSeeds}, list)
	if err != nil {
		return report.Figure{}, err
	}
	f, runs, err := cubicFigure(name, found, len(list), run.bands)
	if err != nil {
		return report.Figure{}, err
	}
	first := found[0].Experiment
	f.Caption = prose.Caption(name, map[string]any{"Samples": first.Recipe.Samples, "Steps": first.Recipe.Epochs, "Seed": first.Seed})
	err = addStrips(&f, runs)
	return f, err
}

// addStrips draws the bands of runs less their means below the one row of panels, with the truth, on an axis for all.
func addStrips(f *report.Figure, runs []run) error {
	panels := f.Panels[0]
	for i, r := range runs {
		p := report.New("", "x", "f − mean")
		if !r.Diverged {
			less := func(values []float64) []float64 { return floats.SubTo(make([]float64, len(values)), values, r.mean) }
			truth := Grid()
			for k, x := range truth {
				truth[k] = x * x * x
			}
			name := map[int]string{0: "truth"}[i]
			p.Legend.Top, p.Legend.Left = true, true
			if err := errors.Join(
				report.Band(p, "", Grid(), less(r.quantile(0.005)), less(r.quantile(0.995)), report.PaleBlue),
				report.Band(p, "", Grid(), less(r.quantile(0.025)), less(r.quantile(0.975)), report.MidBlue),
				report.Dashes(p, name, Grid(), less(truth), report.Navy),
				r.belowStrip(p),
			); err != nil {
				return fmt.Errorf("toy: %s: %v: %w", f.Name, r.Experiment, err)
			}
		}
		stripAxes(p)
		panels = append(panels, p)
	}
	f.Panels = report.InRows(panels, len(runs), report.ShareAxes)
	f.Height += vg.Points(stripHeight)
	return nil
}

// stripAxes sets the axes of a strip.
func stripAxes(p *plot.Plot) {
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = -gridEnd, gridEnd, -stripEnd, stripEnd
}

// belowStrip marks where the data are.
func (r run) belowStrip(p *plot.Plot) error {
	return report.Points(p, "", r.trainX, slices.Repeat([]float64{-stripEnd}, len(r.trainX)), report.Red, report.DotRadius)
}

// atLeast are the values, with low in the place of those below it.
func atLeast(low float64, values []float64) []float64 {
	values = slices.Clone(values)
	for i, v := range values {
		values[i] = max(v, low)
	}
	return values
}

// find finds the results of methods on data with the seed that figures show, or says which are missing.
func find(figure string, x *tables.Index, data experiment.Source, list []experiment.Method) ([]experiment.Result, error) {
	var found []experiment.Result
	var missing []string
	for _, m := range list {
		if r, done := x.Find(grid.Of(data, m)[shownSeed]); done {
			found = append(found, r)
		} else {
			missing = append(missing, m.Name)
		}
	}
	if len(missing) == 0 {
		return found, nil
	}
	return nil, fmt.Errorf("toy: %s needs seed %d of %s; run: reproduce run %[1]s", figure, shownSeed, strings.Join(missing, ", "))
}

// axes sets the axes of a panel. The y axis is twice as long as the range of the data. Wider bands are cut, so that the
// other panels stay readable.
func (r run) axes(p *plot.Plot) {
	low, high := slices.Min(r.trainY), slices.Max(r.trainY)
	room := (high - low) / 2
	p.X.Label.Text, p.X.Min, p.X.Max = "x", -gridEnd, gridEnd
	p.Y.Label.Text, p.Y.Min, p.Y.Max = "y", low-room, high+room
}

// bands draws one panel of figure1.
func (r run) bands(p *plot.Plot, withLegend bool) error {
	names := map[bool][4]string{true: {"99% of draws", "95% of draws", "mean", "data"}}[withLegend]
	return r.draw(p, names, r.quantile(0.005), r.quantile(0.995), r.quantile(0.025), r.quantile(0.975))
}

// draw draws the data and the mean in a band, and that in an outer one.
func (r run) draw(p *plot.Plot, names [4]string, outerLow, outerHigh, low, high []float64) error {
	x := Grid()
	p.Legend.Top, p.Legend.Left = true, true
	return errors.Join(
		report.Band(p, names[0], x, outerLow, outerHigh, report.PaleBlue),
		report.Band(p, names[1], x, low, high, report.MidBlue),
		report.Line(p, names[2], x, r.mean, report.Navy),
		report.Points(p, names[3], r.trainX, r.trainY, report.Red, report.DotRadius),
	)
}

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
