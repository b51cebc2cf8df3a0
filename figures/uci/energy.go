package uci

import (
	"fmt"
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// energyMethods are density layers that differ in their energy model alone. The first, whose noise follows nothing,
// is the control of the others.
func energyMethods() methods.List {
	return methods.List{methods.DensityConstant, methods.DensityDiagonal, methods.Density, methods.DensityMixture}
}

// A setting is a protocol in which the energy models are compared.
type setting struct {
	name     string
	protocol Protocol
}

// energySettings are the text, the same with the settings that did best on held-out training examples, one optimizer
// that is close to converged, and the released code.
func energySettings() []setting {
	rows := slices.DeleteFunc(tableDatasets(), func(d string) bool { return d == Year })
	return []setting{{"paper", Paper().On(rows...)}, {"tuned", Tuned().On(rows...)}, {"Adam", withAdam().On(rows...)}, {"released", Released().On(rows...)}}
}

// energyExperiments are the runs of EnergyTable.
func energyExperiments() []results.Experiment {
	var all []results.Experiment
	for _, s := range energySettings() {
		all = append(all, atBothScales(s.protocol, energyMethods())...)
	}
	return all
}

// EnergyTable says whether the energy of the inputs matters: the negative log likelihood of density layers with each
// energy model, and its paired difference to that with constant energy, seeds and all else equal but for the tuned
// settings, which are each model's own, with a verdict that holds for all cells of the table together.
func EnergyTable(lines []results.Result) (report.Table, error) {
	t := report.Table{Name: "uci-energy", Columns: []string{"Data set, settings"}}
	t.Caption, t.Notes = prose.Text(t.Name, nil)
	return energyComparison().fill(t, lines)
}

// energyComparison are the rows and columns of EnergyTable.
func energyComparison() methodTable {
	return inSettings(energySettings(), energyMethods(), methods.DensityConstant)
}

// inSettings compares the negative log likelihood of methods with that of one of them, with a row for each data set and
// setting.
func inSettings(settings []setting, list methods.List, reference methods.Method) methodTable {
	x := methodTable{list: list, decimals: 3, testTrain: randomSplits}
	for _, dataset := range tableDatasets() {
		for _, s := range settings {
			if slices.Contains(s.protocol.Datasets, dataset) {
				row := methodRow{name: s.rowOf(dataset), metric: results.MetricNLL, runs: s.protocol.On(dataset).experimentsOf}
				x.rows = append(x.rows, row.testedAgainst(reference))
			}
		}
	}
	return x
}

// rowOf is the name of a row on a data set in the setting.
func (s setting) rowOf(dataset string) string {
	return fmt.Sprintf("%s, %s", DatasetTitle(dataset), s.name)
}

// placeSettings are those of PlaceTable, on all data sets but the largest. Both columns have the settings that are tuned
// for LDL.
func placeSettings() []setting {
	all := energySettings()
	for i := range all {
		all[i].protocol.Datasets = slices.DeleteFunc(slices.Clone(all[i].protocol.Datasets), func(d string) bool { return d == "protein" })
	}
	return all
}

// placeMethods are the columns of PlaceTable.
func placeMethods() methods.List { return methods.List{methods.DensityMean, methods.Density} }

// placeExperiments are the runs of PlaceTable.
func placeExperiments() (all []results.Experiment) {
	for _, s := range placeSettings() {
		all = append(all, s.protocol.Experiments(placeMethods()...)...)
	}
	return all
}

// PlaceTable says whether it matters where the noise goes, and not only how much there is: the negative log likelihood
// of density layers whose noise follows the mean energy, the same for every input, and of density layers, with the
// paired difference.
func PlaceTable(lines []results.Result) (report.Table, error) {
	t := report.Table{Name: "uci-place", Columns: []string{"Data set, settings"}}
	t.Caption, t.Notes = prose.Text(t.Name, nil)
	return placeComparison().fill(t, lines)
}

// placeComparison are the rows and columns of PlaceTable.
func placeComparison() methodTable {
	return inSettings(placeSettings(), placeMethods(), methods.DensityMean)
}

// energyMarks are those of the energy models but the constant one, which has a colour in other pictures, see drawnColours.
var energyMarks = []mark{{colour: report.Green, shape: draw.BoxGlyph{}}, {colour: report.Blue, shape: draw.CircleGlyph{}}, {colour: color.Black, shape: draw.PyramidGlyph{}}}

// energyPicture shows EnergyTable as a picture: a panel for each setting and in it, for each data set, what an energy
// model does in the place of constant energy, with its interval.
func energyPicture(lines []results.Result, _ uint64) (report.Figure, error) {
	f := report.Figure{Name: "uci-energy", Width: vg.Points(760), Height: vg.Points(290), Panels: make([][]*plot.Plot, 1)}
	f.Caption, _ = prose.Text("energy picture", nil)
	list := energyMethods()
	marks := slices.Clone(energyMarks)
	for i := range marks {
		marks[i].name = list[i+1].Title
	}
	f.Key = keyOf(marks...)
	index := results.ByID(lines)
	for n, s := range energySettings() {
		var labels []string
		series := make([]bars, len(marks))
		for i, m := range marks {
			series[i] = bars{colour: m.colour, shape: m.shape}
		}
		for row, dataset := range s.protocol.Datasets {
			labels = append(labels, DatasetTitle(dataset))
			values := func(m methods.Method) map[int]float64 {
				return metricBySplit(index, s.protocol.On(dataset).Experiments(m), results.MetricNLL)
			}
			control := values(list[0])
			for i := range marks {
				var test paired
				if err := test.add(0, 0, values(list[i+1]), control, randomSplits); err != nil {
					return report.Figure{}, err
				}
				for _, c := range test.cells {
					series[i].addDifference(c, float64(row))
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

// SpreadTable says what the energy does to a trained network, in the settings of EnergyTable: how far its function
// spreads, what part of the targets is inside 95 % intervals, whether the variance ranks the errors, and the error,
// each with constant energy and with LDL.
func SpreadTable(lines []results.Result) (report.Table, error) {
	t := report.Table{Name: "uci-spread", Columns: []string{"Data set, settings"}}
	t.Caption, t.Notes = prose.Text(t.Name, nil)
	measures := []struct {
		title, name string
		decimals    int
	}{
		{"deviation of the function", results.MetricModelStd, 3}, {"coverage", results.MetricCoverage, 2},
		{"rank correlation", results.MetricSpearman, 2}, {"RMSE", results.MetricRMSE, 3},
	}
	list := methods.List{methods.DensityConstant, methods.Density}
	for _, x := range measures {
		for _, m := range list {
			t.Columns = append(t.Columns, x.title+", "+m.Title)
		}
	}
	index := results.ByID(lines)
	for _, dataset := range smallDatasets() {
		for _, s := range energySettings() {
			row := report.Row{Name: s.rowOf(dataset)}
			for _, x := range measures {
				for _, m := range list {
					summary, err := index.SummarizeOptional(s.protocol.On(dataset).Experiments(m), x.name)
					if err != nil {
						return report.Table{}, err
					}
					row.Cells = append(row.Cells, report.SummaryCell(summary, x.decimals))
				}
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t, nil
}
