package uci

import (
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

// EnergyTable says whether the energy of the inputs matters: it has the negative log likelihood of density layers with
// each energy model, and its paired difference to constant energy. Seeds and all else are equal, but for the tuned
// settings, which are each model's own.
func EnergyTable(x *tables.Index) (report.Table, error) {
	t := report.Table{Name: "uci-energy", Columns: []string{"Data set, settings"}}
	t.Caption, t.Notes = prose.Text(t.Name, nil)
	return energyComparison().Fill(x, t)
}

// energyComparison are the rows and columns of EnergyTable.
func energyComparison() tables.MethodTable {
	return inSettings(energySettings(withoutYear()...), energyMethods())
}

// inSettings compares the negative log likelihood of methods with that of the first of them, with a row for each data set
// and setting.
func inSettings(settings []setting, list []experiment.Method) tables.MethodTable {
	t := tables.MethodTable{Methods: list, Decimals: 3, TestTrain: randomSplits}
	for _, dataset := range settings[0].datasets {
		for _, s := range settings {
			row := tables.MethodRow{Name: s.row(dataset), Metric: results.MetricNLL, Cell: func(m experiment.Method) tables.Cell { return s.cell(dataset, m) }}
			t.Rows = append(t.Rows, row.TestedAgainst(list[0]))
		}
	}
	return t
}

// placeSettings are those of PlaceTable, on all data sets but the two largest. Both columns have the settings that are
// tuned for LDL.
func placeSettings() []setting { return energySettings(without(withoutYear(), "protein")...) }

// placeMethods are the columns of PlaceTable.
func placeMethods() []experiment.Method {
	return []experiment.Method{methods.DensityMean, methods.Density}
}

// PlaceTable says whether it matters where the noise goes, and not only how much there is: it has the negative log
// likelihood of density layers whose noise follows the mean energy, the same for every input, and of density layers, with
// the paired difference.
func PlaceTable(x *tables.Index) (report.Table, error) {
	t := report.Table{Name: "uci-place", Columns: []string{"Data set, settings"}}
	t.Caption, t.Notes = prose.Text(t.Name, nil)
	return placeComparison().Fill(x, t)
}

// placeComparison are the rows and columns of PlaceTable.
func placeComparison() tables.MethodTable { return inSettings(placeSettings(), placeMethods()) }

// energyMarks are those of the energy models but the constant one, which has a colour in other pictures; see drawnColours.
var energyMarks = []mark{{colour: report.Green, shape: draw.BoxGlyph{}}, {colour: report.Blue, shape: draw.CircleGlyph{}}, {colour: color.Black, shape: draw.PyramidGlyph{}}}

// EnergyPicture shows EnergyTable as a picture: a panel for each setting and in it, for each data set, the difference of
// an energy model to constant energy, with its interval.
func EnergyPicture(x *tables.Index) (report.Figure, error) {
	f := report.Figure{Name: "uci-energy", Width: vg.Points(760), Height: vg.Points(290), Panels: make([][]*plot.Plot, 1)}
	f.Caption, _ = prose.Text("energy picture", nil)
	list := energyMethods()
	marks := slices.Clone(energyMarks)
	for i := range marks {
		marks[i].name = list[i+1].Name
	}
	f.Key = keyOf(marks...)
	family, err := energyComparison().Tests(x)
	if err != nil {
		return report.Figure{}, err
	}
	tests, err := family.ByName()
	if err != nil {
		return report.Figure{}, err
	}
	for n, s := range energySettings(withoutYear()...) {
		var labels []string
		series := make([]bars, len(marks))
		for i, m := range marks {
			series[i] = bars{colour: m.colour, shape: m.shape}
		}
		for row, dataset := range s.datasets {
			labels = append(labels, DatasetTitle(dataset))
			for i := range marks {
				if test, has := tests[tables.Place{Row: s.row(dataset), Column: list[i+1].Name}]; has {
					series[i].addDifference(test.Difference, float64(row))
				}
			}
		}
		p, err := forest(s.name, labels, n == 0, series)
		if err != nil {
			return report.Figure{}, err
		}
		f.Panels[0] = append(f.Panels[0], p)
	}
	return f, nil
}

// SpreadTable says what the energy does to a trained network, in the settings of EnergyTable. Each with constant energy
// and with LDL, it has how far the network's function spreads, what part of the targets is inside 95 % intervals, whether
// the variance ranks the errors, and the error.
func SpreadTable(x *tables.Index) (report.Table, error) {
	t := report.Table{Name: "uci-spread", Columns: []string{"Data set, settings"}}
	t.Caption, t.Notes = prose.Text(t.Name, nil)
	measures := []struct {
		title, name string
		decimals    int
	}{
		{"deviation of the function", results.MetricModelStd, 3}, {"coverage", results.MetricCoverage, 2},
		{"rank correlation", results.MetricSpearman, 2}, {"RMSE", results.MetricRMSE, 3},
	}
	list := []experiment.Method{methods.DensityConstant, methods.Density}
	for _, measure := range measures {
		for _, m := range list {
			t.Columns = append(t.Columns, measure.title+", "+m.Name)
		}
	}
	for _, dataset := range smallDatasets() {
		for _, s := range energySettings(dataset) {
			row := report.Row{Name: s.row(dataset)}
			for _, measure := range measures {
				for _, m := range list {
					summary, err := x.SummarizeOptional(s.cell(dataset, m), measure.name)
					if err != nil {
						return report.Table{}, err
					}
					row.Cells = append(row.Cells, report.SummaryCell(summary, measure.decimals))
				}
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t, nil
}
