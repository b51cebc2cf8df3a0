package toy

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// clipped are density layers with the energies of LDL limited to [0, D].
func clipped(title string) methods.Method {
	return methods.Density.Variant(title, func(o *methods.Options) { o.Clip = true })
}

// figure1Methods are those of the paper's Figure 1.
func figure1Methods() methods.List {
	return methods.List{methods.MFVI, methods.VDropout, methods.Rank1, methods.Density}
}

// lettered are the methods with the titles of their panels in Figure 1: "(a) MFVI" and so on.
func lettered(list methods.List) methods.List {
	list = slices.Clone(list)
	for i := range list {
		list[i].Title = fmt.Sprintf("(%c) %s", 'a'+i, list[i].Title)
	}
	return list
}

// Figures are the figures of the study. Further methods, such as one's own, get panels in those that compare all
// methods.
func Figures(further ...methods.Method) []report.NamedFigure {
	return []report.NamedFigure{
		{Name: "figure1", Doc: "the paper's Figure 1, four panels in a row", Make: func(lines []results.Result, seed uint64) (report.Figure, error) {
			return Figure1(lines, seed, 4, further...)
		}},
		{Name: "figure1-square", Doc: "Figure 1, two rows of two", Make: func(lines []results.Result, seed uint64) (report.Figure, error) {
			f, err := Figure1(lines, seed, 2, further...)
			f.Name = "figure1-square"
			return f, err
		}},
		{Name: "figure1-energies", Doc: "the density layer with each of its energy models", Make: Figure1Energies},
		{Name: "distance-toy", Doc: "six methods on one-dimensional regression: are they less certain where there are no data?",
			Make: func(lines []results.Result, seed uint64) (report.Figure, error) {
				return DistanceCubic(lines, seed, further...)
			}},
		{Name: "distance-moons", Doc: "six methods on two moons: are they uncertain far away from the data?",
			Make: func(lines []results.Result, seed uint64) (report.Figure, error) {
				return DistanceMoons(lines, seed, further...)
			}},
	}
}

// Figure1 is the paper's Figure 1 for one seed: the data (red), the predictive mean, and the central 95%
// and 99% of the predictive draws (blue, the outer one lighter), on shared axes, with so many panels in a row. Below each
// panel is a strip with the standard deviation of the draws, since beside a cubic the bands are narrow. It is made from
// quick runs, and says so, only when some of its full-scale runs are missing and the quick ones are not.
// Further methods have panels of their own.
func Figure1(lines []results.Result, seed uint64, columns int, further ...methods.Method) (report.Figure, error) {
	return bands("figure1", "Predictive distributions on one-dimensional regression", lines, seed, columns, lettered(append(figure1Methods(), further...)))
}

// Figure1Energies is a further figure: the density layer with its energy models.
func Figure1Energies(lines []results.Result, seed uint64) (report.Figure, error) {
	list := methods.List{methods.Density.Variant("LDL, not clipped", nil), clipped("LDL, clipped to [0, D]"), methods.DensityMixture.Variant("Rank-1 mixture", nil)}
	return bands("figure1-energies", "Density uncertainty with three energy models", lines, seed, len(list), list)
}

// Pictures shows runs on the cubic as Figure 1 does, whatever methods and settings they are of: a panel for each line
// in their order, three in a row.
func Pictures(lines []results.Result) (report.Figure, error) {
	if len(lines) == 0 {
		return report.Figure{}, fmt.Errorf("toy: no runs to show")
	}
	var titles []string
	for _, line := range lines {
		if line.Experiment.Dataset != CubicName {
			return report.Figure{}, fmt.Errorf("toy: %v is no run on the cubic", line.Experiment)
		}
		titles = append(titles, fmt.Sprintf("%s, seed %d", line.Experiment.Variant(), line.Experiment.Seed))
	}
	f, err := bandsOf("runs", lines, titles, 3)
	f.Caption = "Predictive distributions on one-dimensional regression: training data, predictive mean, and central 95% and 99% of the predictive draws of each run." + f.Caption
	return f, err
}

// The sizes, in points: a panel with its share of the axes, and what a strip below it adds.
const panelWidth, panelHeight, stripHeight = 150, 160, 40

// bands finds the lines of the methods and draws a panel of each.
func bands(name, title string, lines []results.Result, seed uint64, columns int, list methods.List) (report.Figure, error) {
	chosen, err := linesOf(name, Cubic(), lines, seed, list)
	if err != nil {
		return report.Figure{}, err
	}
	var titles []string
	for _, m := range list {
		titles = append(titles, m.Title)
	}
	f, err := bandsOf(name, chosen, titles, columns)
	if err != nil {
		return report.Figure{}, err
	}
	first := chosen[0].Experiment
	f.Caption = fmt.Sprintf("%s: training data, predictive mean, and central 95%% and 99%% of %d predictive draws; below, the standard deviation of the draws, "+
		"on a logarithmic axis, and where the data are; settings paper, %d gradient steps, seed %d.", title, first.Samples, first.Epochs, first.Seed) + f.Caption
	err = addStrips(&f, chosen)
	return f, err
}

// addStrips draws the standard deviations of runs below their panels, on an axis for all.
func addStrips(f *report.Figure, lines []results.Result) error {
	for _, row := range f.Panels {
		for _, p := range row {
			if p != nil {
				report.ShareAxes(p, false, true) // the strips have the labels of x
			}
		}
	}
	var all []float64
	for _, line := range lines {
		all = append(all, line.Series[results.SeriesStd]...)
	}
	var strips []*plot.Plot
	for _, line := range lines {
		p := report.New("", "x", "sd")
		report.LogAxis(&p.Y, all)
		p.Y.Min /= 1.3 // room for the marks of the data
		p.X.Min, p.X.Max = -gridEnd, gridEnd
		if !line.Diverged {
			trainX := line.Series[results.SeriesTrainX]
			floor := slices.Repeat([]float64{p.Y.Min}, len(trainX))
			if err := errors.Join(
				report.Line(p, "", line.Series[results.SeriesX], atLeast(p.Y.Min, line.Series[results.SeriesStd]), report.Blue),
				report.Points(p, "", trainX, floor, report.Red, report.DotRadius),
			); err != nil {
				return fmt.Errorf("toy: %s: %v: %w", f.Name, line.Experiment, err)
			}
		}
		strips = append(strips, p)
	}
	f.Strips = report.InRows(strips, len(f.Panels[0]), report.ShareAxes)
	f.Height += vg.Points(float64(stripHeight * len(f.Strips)))
	return nil
}

// atLeast are the values, and low in the place of those below it.
func atLeast(low float64, values []float64) []float64 {
	values = slices.Clone(values)
	for i, v := range values {
		values[i] = max(v, low)
	}
	return values
}

// bandsOf draws a panel for each line. The caption says no more than that some are quick.
func bandsOf(name string, lines []results.Result, titles []string, columns int) (report.Figure, error) {
	low, high := 0.0, 1.0
	if i := slices.IndexFunc(lines, func(line results.Result) bool { return !line.Diverged }); i >= 0 {
		low, high = dataRange(lines[i].Series[results.SeriesTrainY])
	}
	caption := ""
	var panels []*plot.Plot
	for n, line := range lines {
		title := titles[n]
		if e := line.Experiment; e.Scale == results.Quick {
			title += fmt.Sprintf("\nquick run, %d steps", e.Epochs)
			caption = " QUICK RUN: not comparable with the paper."
		}
		p, err := bandsPlot(title, line, n == 0)
		if err != nil {
			return report.Figure{}, fmt.Errorf("toy: %s: %v: %w", name, line.Experiment, err)
		}
		p.Y.Min, p.Y.Max = low, high
		panels = append(panels, p)
	}
	f := inRows(name, panels, columns, 20, 10)
	f.Caption = caption
	return f, nil
}

// inRows is a figure of panels, of which only the lowest of a column and the first of a row have labels; right and below
// are the points that its width and height have besides the panels.
func inRows(name string, panels []*plot.Plot, columns int, right, below float64) report.Figure {
	f := report.Figure{Name: name, Panels: report.InRows(panels, columns, report.ShareAxes)}
	f.Width, f.Height = vg.Points(float64(panelWidth*len(f.Panels[0]))+right), vg.Points(float64(panelHeight*len(f.Panels))+below)
	return f
}

// linesOf finds the lines of the methods, all of full scale or all quick.
func linesOf(name string, protocol Protocol, lines []results.Result, seed uint64, list methods.List) ([]results.Result, error) {
	index := results.ByID(lines)
	var missing []string
	for _, scale := range []string{results.Full, results.Quick} {
		var chosen []results.Result
		var lacking []string
		for _, m := range list {
			p := protocol
			if scale == results.Quick {
				p = p.Quick()
			}
			p.Seeds = []uint64{seed}
			e := p.Experiments(m)[0]
			if line, done := index.Find(e); done && (line.Diverged || len(line.Series) > 0) {
				chosen = append(chosen, line)
			} else {
				lacking = append(lacking, e.Variant())
			}
		}
		if len(lacking) == 0 {
			return chosen, nil
		}
		if scale == results.Full {
			missing = lacking
		}
	}
	if !Drawn(results.Experiment{Seed: seed}) {
		return nil, fmt.Errorf("toy: %s of seed %d: only runs of the seeds %v keep the curves that it draws", name, seed, Cubic().Seeds)
	}
	return nil, fmt.Errorf("toy: %s needs seed %d of %s; run: reproduce run %s", name, seed, strings.Join(missing, ", "), setOf(name))
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

// bandsPlot draws one panel.
func bandsPlot(title string, line results.Result, withLegend bool) (*plot.Plot, error) {
	p := report.New(title, "x", "y")
	if line.Diverged {
		p.Title.Text += "\ndiverged" // and left no series
		p.X.Min, p.X.Max = -gridEnd, gridEnd
		return p, nil
	}
	s := func(name string) []float64 { return line.Series[name] }
	names := map[bool][4]string{true: {"99% of draws", "95% of draws", "mean", "data"}}[withLegend]
	return p, drawBands(p, names, line, s(results.SeriesQ005), s(results.SeriesQ995), s(results.SeriesQ025), s(results.SeriesQ975))
}

// drawBands draws the data and the mean of a run on the cubic in a band, and that in an outer one.
func drawBands(p *plot.Plot, names [4]string, line results.Result, outerLow, outerHigh, low, high []float64) error {
	s := func(name string) []float64 { return line.Series[name] }
	for _, err := range []error{
		report.Band(p, names[0], s(results.SeriesX), outerLow, outerHigh, report.PaleBlue),
		report.Band(p, names[1], s(results.SeriesX), low, high, report.MidBlue),
		report.Line(p, names[2], s(results.SeriesX), s(results.SeriesMean), report.Navy),
		report.Points(p, names[3], s(results.SeriesTrainX), s(results.SeriesTrainY), report.Red, report.DotRadius),
	} {
		if err != nil {
			return err
		}
	}
	x := s(results.SeriesX)
	p.X.Min, p.X.Max = x[0], x[len(x)-1]
	p.Legend.Top, p.Legend.Left = true, true
	return nil
}
