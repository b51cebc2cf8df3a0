package render

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/results"
)

// The series of a toy result, all in the data's own units. A predictive draw is the network's output for
// one draw of its noise, without observation noise; mean, standard deviation and percentiles at each x are
// those of the draws.
const (
	SeriesX      = "x"
	SeriesMean   = "mean"
	SeriesStd    = "std"
	SeriesQ005   = "q0.5"
	SeriesQ025   = "q2.5"
	SeriesQ975   = "q97.5"
	SeriesQ995   = "q99.5"
	SeriesTrainX = "train_x"
	SeriesTrainY = "train_y"
)

// Layout is how the panels of Figure 1 are arranged.
type Layout struct{ Rows, Columns int }

// The layouts of four panels.
var (
	Wide   = Layout{1, 4}
	Square = Layout{2, 2}
)

// toyPanel is one panel: a variant of the catalogue and its title.
type toyPanel struct{ variant, title string }

// figure1Panels are those of the paper's Figure 1.
var figure1Panels = []toyPanel{
	{experiment.MFVI, "(a) MFVI"},
	{experiment.VDropout, "(b) Variational Dropout"},
	{experiment.Rank1, "(c) Rank-1 BNN"},
	{experiment.Density, "(d) Density Uncertainty"},
}

// energyPanels compare the energy models of the density layers.
var energyPanels = []toyPanel{
	{experiment.Density, "LDL, not clipped"},
	{experiment.Density + " " + experiment.OptionClip + "=true", "LDL, clipped to [0, D]"},
	{experiment.DensityRank1Mix, "Rank-1 mixture"},
}

// Figure1 is the paper's Figure 1 for one seed: the data (red), the predictive mean, and the central 95%
// and 99% of the predictive draws (blue, the outer one lighter), on shared axes. It is made from quick
// runs, and says so, only when some of its full-scale runs are missing and the quick ones are not.
func Figure1(lines []results.Result, seed uint64, layout Layout) (Figure, error) {
	return toyFigure("figure1", "Predictive distributions on one-dimensional regression", lines, seed, layout, figure1Panels)
}

// Figure1Energies is a further figure: the density layer with its energy models.
func Figure1Energies(lines []results.Result, seed uint64) (Figure, error) {
	return toyFigure("figure1-energies", "Density uncertainty with three energy models", lines, seed, Layout{1, len(energyPanels)}, energyPanels)
}

// The sizes, in points: a panel with its share of the axes, and a data point.
const (
	panelWidth, panelHeight = 150, 160
	dotRadius               = vg.Length(1.3)
)

func toyFigure(name, title string, lines []results.Result, seed uint64, layout Layout, panels []toyPanel) (Figure, error) {
	if layout.Rows*layout.Columns != len(panels) {
		return Figure{}, fmt.Errorf("render: %s: %d panels do not fit in %d rows of %d", name, len(panels), layout.Rows, layout.Columns)
	}
	chosen, err := toyLines(name, "figure1", experiment.ToyCubic, lines, seed, panels)
	if err != nil {
		return Figure{}, err
	}
	low, high := dataRange(chosen[0].Series[SeriesTrainY])
	f := Figure{Name: name, Width: vg.Points(float64(panelWidth*layout.Columns) + 20), Height: vg.Points(float64(panelHeight*layout.Rows) + 10)}
	steps := chosen[0].Experiment.Epochs
	f.Caption = fmt.Sprintf("%s: training data, predictive mean, and central 95%% and 99%% of %d predictive draws; %d gradient steps, seed %d.",
		title, chosen[0].Experiment.Samples, steps, seed)
	quick := ""
	if chosen[0].Experiment.Scale == experiment.Quick {
		quick = fmt.Sprintf("\nquick run, %d steps", steps)
		f.Caption += " QUICK RUN: not comparable with the paper."
	}
	for j := range layout.Rows {
		var row []*plot.Plot
		for i := range layout.Columns {
			n := j*layout.Columns + i
			p, err := toyPlot(panels[n].title+quick, chosen[n], n == 0)
			if err != nil {
				return Figure{}, fmt.Errorf("render: %s: %v: %w", name, chosen[n].Experiment, err)
			}
			p.Y.Min, p.Y.Max = low, high
			share(p, j == layout.Rows-1, i == 0)
			row = append(row, p)
		}
		f.Panels = append(f.Panels, row)
	}
	return f, nil
}

// toyLines finds the lines of the panels in a set of the catalogue, all of full scale or all quick.
func toyLines(name, setName, dataset string, lines []results.Result, seed uint64, panels []toyPanel) ([]results.Result, error) {
	set, ok := experiment.SetByName(setName)
	if !ok {
		return nil, fmt.Errorf("render: the catalogue has no set %s", setName)
	}
	byID := results.ByID(lines)
	var missing []string
	for _, scale := range []string{experiment.Full, experiment.Quick} {
		wanted := make(map[string]experiment.Experiment)
		for _, e := range set.At(scale) {
			if e.Seed == seed && e.Dataset == dataset {
				wanted[e.Variant()] = e
			}
		}
		var chosen []results.Result
		var lacking []string
		for _, panel := range panels {
			if line, done := byID[wanted[panel.variant].ID()]; done {
				chosen = append(chosen, line)
			} else {
				lacking = append(lacking, panel.variant)
			}
		}
		if len(lacking) == 0 {
			return chosen, nil
		}
		if scale == experiment.Full {
			missing = lacking
		}
	}
	return nil, fmt.Errorf("render: %s needs seed %d of %s; run: reproduce run %s", name, seed, strings.Join(missing, ", "), setName)
}

// dataRange is the range of the y axis: that of the data with as much again on both sides together, so
// that a band that leaves it is cut and the other panels stay readable.
func dataRange(y []float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range y {
		low, high = min(low, v), max(high, v)
	}
	room := (high - low) / 2
	return low - room, high + room
}

// toyPlot draws one panel.
func toyPlot(title string, line results.Result, withLegend bool) (*plot.Plot, error) {
	p := New(title, "x", "y")
	if line.Diverged {
		p.Title.Text += "\ndiverged"
		return p, Points(p, "", line.Series[SeriesTrainX], line.Series[SeriesTrainY], Red, dotRadius)
	}
	s := func(name string) []float64 { return line.Series[name] }
	names := map[bool][4]string{true: {"99% of draws", "95% of draws", "mean", "data"}}[withLegend]
	for _, err := range []error{
		Band(p, names[0], s(SeriesX), s(SeriesQ005), s(SeriesQ995), PaleBlue),
		Band(p, names[1], s(SeriesX), s(SeriesQ025), s(SeriesQ975), MidBlue),
		Line(p, names[2], s(SeriesX), s(SeriesMean), Navy),
		Points(p, names[3], s(SeriesTrainX), s(SeriesTrainY), Red, dotRadius),
	} {
		if err != nil {
			return nil, err
		}
	}
	p.X.Min, p.X.Max = dataEnds(s(SeriesX))
	p.Legend.Top, p.Legend.Left = true, true
	return p, nil
}

// dataEnds are the first and last of ascending values.
func dataEnds(x []float64) (first, last float64) { return x[0], x[len(x)-1] }

