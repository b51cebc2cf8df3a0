package toy

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"

	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// DistanceMethods are those whose distance awareness is compared.
func DistanceMethods() methods.List {
	return methods.List{methods.Deterministic, methods.MCDropout, methods.Density, methods.SNGP, methods.DUE, methods.Ensemble}
}

// distanceColumns is the number of panels in a row.
const distanceColumns = 3

// DistanceCubic shows for one seed whether each method is less certain where the cubic has no data: the
// mean, two standard deviations of the function to each side (darker), and with the observation noise (lighter).
// Further methods have panels of their own.
func DistanceCubic(lines []results.Result, seed uint64, further ...methods.Method) (report.Figure, error) {
	f, err := distanceFigure("distance-toy", Cubic(), lines, seed, further, spreadPlot)
	f.Caption = fmt.Sprintf("Distance awareness on one-dimensional regression: training data, predictive mean, two standard deviations of the function "+
		"(darker) and of the target (lighter) to each side, settings paper, seed %d.", seed) + f.Caption
	return f, err
}

// DistanceMoons shows for one seed where in the plane each method's classifier of two moons is uncertain: the
// entropy of its predictions, from 0 (white) to one bit (dark). Further methods have panels of their own.
func DistanceMoons(lines []results.Result, seed uint64, further ...methods.Method) (report.Figure, error) {
	f, err := distanceFigure("distance-moons", Moons(), lines, seed, further, moonsPlot)
	f.Caption = fmt.Sprintf("Distance awareness on two moons: entropy of the predictions from 0 (white) to log 2 (dark), and the training data of both classes, settings paper, seed %d. "+
		"In the titles: mean entropy in nats at the training data and at places at least 1 away from all of them.", seed) + f.Caption
	return f, err
}

// distanceFigure makes a panel for each method.
func distanceFigure(name string, protocol Protocol, lines []results.Result, seed uint64, further []methods.Method,
	draw func(title string, line results.Result, first bool) (*plot.Plot, error)) (report.Figure, error) {
	list := append(DistanceMethods(), further...)
	chosen, err := linesOf(name, protocol, lines, seed, list)
	if err != nil {
		return report.Figure{}, err
	}
	quick, caption := "", ""
	if e := chosen[0].Experiment; e.Scale == results.Quick {
		quick, caption = fmt.Sprintf("\nquick run, %d steps", e.Epochs), " QUICK RUN."
	}
	var drawn []*plot.Plot
	for n, line := range chosen {
		title := list[n].Title + quick
		p, err := report.New(title+"\ndiverged", "", ""), error(nil)
		p.X.Max, p.X.Min, p.Y.Max, p.Y.Min = 1, 0, 1, 0
		if !line.Diverged {
			p, err = draw(title, line, n == 0)
		}
		if err != nil {
			return report.Figure{}, fmt.Errorf("toy: %s: %v: %w", name, line.Experiment, err)
		}
		drawn = append(drawn, p)
	}
	f := inRows(name, drawn, distanceColumns, 40, 30)
	f.Caption = caption
	return f, nil
}

// spreadPlot draws one panel of DistanceCubic.
func spreadPlot(title string, line results.Result, withLegend bool) (*plot.Plot, error) {
	p := report.New(title, "x", "y")
	s := func(name string) []float64 { return line.Series[name] }
	around := func(noise float64) (low, high []float64) {
		for i, mean := range s(results.SeriesMean) {
			spread := 2 * math.Hypot(s(results.SeriesStd)[i], noise)
			low, high = append(low, mean-spread), append(high, mean+spread)
		}
		return low, high
	}
	names := map[bool][4]string{true: {"target, ±2 sd", "function, ±2 sd", "mean", "data"}}[withLegend]
	outerLow, outerHigh := around(line.Metrics[results.MetricNoiseStd])
	low, high := around(0)
	err := drawBands(p, names, line, outerLow, outerHigh, low, high)
	p.Y.Min, p.Y.Max = dataRange(s(results.SeriesTrainY))
	return p, err
}

// moonsPlot draws one panel of DistanceMoons.
func moonsPlot(title string, line results.Result, _ bool) (*plot.Plot, error) {
	s := func(name string) []float64 { return line.Series[name] }
	p := report.New(title, "first input", "second input")
	p.Title.Text += fmt.Sprintf("\nat data %.2f, far away %.2f", line.Metrics[results.MetricEntropyData], line.Metrics[results.MetricEntropyFar])
	if err := report.Shades(p, s(results.SeriesX), s(results.SeriesY), s(results.SeriesEntropy), 0, math.Ln2); err != nil {
		return nil, err
	}
	return p, report.Classes(p, s(results.SeriesTrainX), s(results.SeriesTrainY), s(results.SeriesLabel), report.DotRadius/2)
}
