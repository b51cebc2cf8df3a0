package uci

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

// energyTable says whether the energy of the inputs matters: it has the negative log likelihood of density layers with
// each energy model, tested against constant energy, and what the differences exclude. Seeds and all else are equal, but
// for the tuned settings, which are each model's own.
func energyTable(x *tables.Index) (report.Table, error) {
	return againstControl(x, "uci-energy", energyGrids(withoutYear()...), energyMethods)
}

// againstControl compares the negative log likelihood of each method with the control's. The control is the first method.
// The table has a row for each data set and setting. Its last column says how large a difference can still be.
func againstControl(x *tables.Index, name string, grids []experiment.Grid, list []experiment.Method) (report.Table, error) {
	t, err := bySetting(name, nll, list, grids, list[0]).Make(x)
	return withBounds(t), err
}

// placeGrids are those of placeTable, on all data sets but the two largest. Both columns have the settings that are
// tuned for LDL.
func placeGrids() []experiment.Grid { return energyGrids(without(withoutYear(), "protein")...) }

// placeMethods are the columns of placeTable.
var placeMethods = []experiment.Method{methods.DensityMean, methods.Density}

// placeTable says whether it matters where the noise goes, and not only how much there is: it has the negative log
// likelihood of density layers whose noise follows the mean energy, the same for every input, and of density layers, tested
// against it, and what the differences exclude.
func placeTable(x *tables.Index) (report.Table, error) {
	return againstControl(x, "uci-place", placeGrids(), placeMethods)
}

// allSets is the name of the rows that pool the data sets of a group.
const allSets = "mean of the data sets"

// withBounds adds to a table of tests the largest difference of density uncertainty to the control that an interval leaves
// possible, bound, and below each group a row with the mean differences of its data sets.
func withBounds(t report.Table) report.Table {
	density := slices.Index(t.Columns, methods.Density.Name) - 1
	if density < 0 {
		return t
	}
	t.Columns = append(t.Columns, methods.Density.Name+" differs by at most")
	var all []report.Row
	for i, row := range t.Rows {
		cell := report.Cell{}
		if d := row.Cells[density].Difference; d != nil {
			cell.Text = fmt.Sprintf("%.3f", bound(*d))
		}
		row.Cells = append(row.Cells, cell)
		all = append(all, row)
		if i+1 < len(t.Rows) && t.Rows[i+1].Group == row.Group {
			continue
		}
		means := report.Row{Group: row.Group, Name: allSets}
		for column := range t.Columns[2:] {
			cell := report.Cell{}
			if d, n := meanDifference(t, row.Group, column); n > 1 {
				cell.Text = tables.Test[string]{Difference: &d}.Text()
			}
			means.Cells = append(means.Cells, cell)
		}
		if d, n := meanDifference(t, row.Group, density); n > 1 {
			means.Cells = append(means.Cells, report.Cell{Text: fmt.Sprintf("%.3f", bound(d))})
			all = append(all, means)
		}
	}
	t.Rows = all
	return t
}

// bound is the end of the interval that is further from 0: a difference that is larger is excluded.
func bound(d metrics.Difference) float64 { return max(math.Abs(d.Low), math.Abs(d.High)) }

// meanDifference is the mean of the n differences in a column of a group's rows. These are of different inputs and so
// independent: with the reach h_i of their intervals to each side, the mean's is sqrt(sum h_i^2) / n, which is no
// less than it has to be. The two loads of Energy have the same inputs, and are one, with the means of both differences and reaches.
func meanDifference(t report.Table, group string, column int) (mean metrics.Difference, n int) {
	var of, reaches, loads, loadReaches []float64
	for _, row := range t.Rows {
		d := row.Cells[column].Difference
		switch {
		case d == nil || row.Group != group:
		case row.Name == DatasetTitle("energy") || row.Name == DatasetTitle("energy-cooling"):
			loads, loadReaches = append(loads, d.Mean), append(loadReaches, d.High-d.Mean)
		default:
			of, reaches = append(of, d.Mean), append(reaches, d.High-d.Mean)
		}
	}
	if len(loads) > 0 {
		of, reaches = append(of, stat.Mean(loads, nil)), append(reaches, stat.Mean(loadReaches, nil))
	}
	if n = len(of); n == 0 {
		return mean, 0
	}
	mean.Mean = stat.Mean(of, nil)
	reach := floats.Norm(reaches, 2) / float64(n)
	mean.Low, mean.High = mean.Mean-reach, mean.Mean+reach
	return mean, n
}

// spreadTable says what the energy does to a trained network, in the settings of energyTable. Each with constant energy
// and with LDL, it has how far the network's function spreads, what part of the targets is inside 95% intervals, whether
// the variance ranks the errors, and the error.
func spreadTable(x *tables.Index) (report.Table, error) {
	sheet := tables.Sheet{Table: newTable("uci-spread", "Data set", "")}
	numbers := []tables.Number{{Name: experiment.MetricModelStd, Title: "deviation of the function", Decimals: 3, Optional: true}, coverage, rank, rmse}
	for _, n := range numbers {
		sheet.Columns = append(sheet.Columns, n.Title+", "+methods.DensityConstant.Name, n.Title+", "+methods.Density.Name)
	}
	for _, s := range energyGrids(SmallDatasets()...) {
		for _, d := range s.Data {
			var cells []tables.Cell
			for _, n := range numbers {
				cells = append(cells, n.Over(s.Of(d, methods.DensityConstant)), n.Over(s.Of(d, methods.Density)))
			}
			sheet.Add(s.Title, title(d), cells...)
		}
	}
	return sheet.Make(x)
}

// conformalMethods are the methods whose intervals are made conformal.
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
	return map[string]float64{metricConformal: stat.Mean(inside, nil), metricConformalWidth: stat.Mean(width, nil)}, nil
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

// conformalTable says how many test targets are inside each method's own 95% intervals and inside conformal ones. It does so on
// random splits, where conformal intervals have a guarantee, and in holes, where they have none.
func conformalTable(x *tables.Index) (report.Table, error) {
	s := sheet("uci-conformal", "", conformalMethods)
	for _, of := range []struct {
		splits string
		kind   Splits
	}{{"random splits", Gal}, {"holes", Hole}} {
		for _, n := range []tables.Number{
			{Title: "own intervals", Name: experiment.MetricCoverage, Decimals: 3}, {Title: "conformal intervals", Name: metricConformal, Decimals: 3}, {Title: "conformal width", Name: metricConformalWidth, Decimals: 2},
		} {
			s.Rows = append(s.Rows, rows(conformalGrid(of.kind), n.Title+", "+of.splits, n, conformalMethods)...)
		}
	}
	return s.Make(x)
}
