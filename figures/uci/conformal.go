package uci

import (
	"errors"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

// conformalMethods are those whose intervals are made conformal.
var conformalMethods = append([]experiment.Method{methods.Density, methods.Deterministic, methods.MCDropout, methods.Ensemble}, laterMethods...)

// The set of examples to calibrate by, see Data.Calibration, and the numbers of conformal.
const calibrationSet, metricConformal, metricConformalWidth = "calibration", "conformal_coverage95", "conformal_width"

// conformal measures 95% intervals of predict.ConformalIntervals on the test set: the part of the targets inside, and the mean
// width in the target's own units.
func conformal(p *experiment.Predictions) (map[string]float64, error) {
	test, err := p.Set("test")
	calibration, missing := p.Set(calibrationSet)
	if err := errors.Join(err, missing); err != nil {
		return nil, err
	}
	low, high, err := test.ConformalIntervals(&calibration.Prediction, calibration.Targets, 0.95)
	if err != nil {
		return nil, err
	}
	inside, width := make([]float64, len(low)), make([]float64, len(low))
	for i, y := range test.Targets {
		if width[i] = (high[i] - low[i]) * p.Unit; low[i] <= y && y <= high[i] {
			inside[i] = 1
		}
	}
	return map[string]float64{metricConformal: metrics.Mean(inside), metricConformalWidth: metrics.Mean(width)}, nil
}

// conformalGrid is the text on splits of a kind, with a fifth of the training examples to calibrate by.
func conformalGrid(kind Splits) experiment.Grid {
	g := paperGrid()
	for _, name := range SmallDatasets() {
		g.Data = append(g.Data, Data{Name: name, Kind: kind, Calibration: true})
	}
	g.Change = func(e *experiment.Experiment) { e.Task.Metrics = append(e.Task.Metrics, conformal) }
	return g
}

// conformalTable says how many test targets are inside 95% intervals, of each method and made conformal, on random splits, for
// which conformal intervals have a promise, and in holes, for which they have none.
func conformalTable(x *tables.Index) (report.Table, error) {
	s := sheet("uci-conformal", "", conformalMethods)
	for _, of := range []struct {
		splits string
		kind   Splits
	}{{"random splits", Gal}, {"holes", Hole}} {
		for _, n := range []tables.Number{
			{Title: "own intervals", Name: experiment.MetricCoverage, Decimals: 3}, {Title: "conformal intervals", Name: metricConformal, Decimals: 3}, {Title: "conformal width", Name: metricConformalWidth, Decimals: 2},
		} {
			s.Lines = append(s.Lines, lines(conformalGrid(of.kind), n.Title+", "+of.splits, n, conformalMethods)...)
		}
	}
	return s.Make(x)
}
