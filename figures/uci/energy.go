package uci

import (
	"fmt"
	"math"
	"slices"

	"densityuncertainty/dul/metrics"
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

// energySettings are the paper fidelity, the text in the two places where that follows the released code, one
// optimizer that is close to converged, and the released code.
func energySettings() []setting {
	text := Paper().On(smallDatasets()...)
	text.Variance, text.Gradients = methods.Plain, methods.PaperGradients
	return []setting{
		{"paper", Paper().On(slices.DeleteFunc(tableDatasets(), func(d string) bool { return d == Year })...)},
		{"text", text},
		{"Adam", withAdam()},
		{"released", Released().On(smallDatasets()...)},
	}
}

// energyExperiments are the runs of EnergyTable.
func energyExperiments() []results.Experiment {
	var all []results.Experiment
	for _, s := range energySettings() {
		all = append(all, atBothScales(s.protocol, energyMethods())...)
	}
	return all
}

// testTrain is the ratio of test to training examples of a split, for the correction of paired differences.
const testTrain = 1.0 / 9

// energyLevel is the level of the intervals of EnergyTable, and 1 minus that of its verdicts.
const energyLevel = 0.95

// EnergyTable says whether the energy of the inputs matters: the negative log likelihood of density layers with each
// energy model, and its paired difference to that with constant energy, seeds and all else equal (see
// metrics.PairedDifference), with a verdict at 5 % that holds for all cells of the table together (metrics.Holm).
func EnergyTable(lines []results.Result) (report.Table, error) {
	t := report.Table{Name: "uci-energy", Columns: []string{"Data set, settings"}}
	t.Caption, t.Notes = prose.Text(t.Name, nil)
	list := energyMethods()
	for _, m := range list {
		t.Columns = append(t.Columns, m.Title)
	}
	type tested struct {
		row, column int
		metrics.Difference
	}
	var all []tested
	var p []float64
	index := results.ByID(lines)
	for _, dataset := range tableDatasets() {
		for _, s := range energySettings() {
			if !slices.Contains(s.protocol.Datasets, dataset) {
				continue
			}
			row := report.Row{Name: fmt.Sprintf("%s, %s", DatasetTitle(dataset), s.name)}
			var bySplit [][]float64
			for _, m := range list {
				runs := s.protocol.On(dataset).Experiments(m)
				summary, err := index.Summarize(runs, results.MetricNLL)
				if err != nil {
					return report.Table{}, err
				}
				row.Cells = append(row.Cells, report.SummaryCell(summary, 3))
				bySplit = append(bySplit, valuesOf(index, runs, results.MetricNLL))
			}
			for i := 1; i < len(list); i++ {
				if bySplit[0] == nil || bySplit[i] == nil {
					continue
				}
				d, err := metrics.PairedDifference(bySplit[i], bySplit[0], testTrain, energyLevel)
				if err != nil {
					return report.Table{}, fmt.Errorf("uci: %s: %w", row.Name, err)
				}
				all, p = append(all, tested{len(t.Rows), i, d}), append(p, d.P)
			}
			t.Rows = append(t.Rows, row)
		}
	}
	if len(all) == 0 {
		return t, nil
	}
	adjusted, err := metrics.Holm(p)
	if err != nil {
		return report.Table{}, fmt.Errorf("uci: %w", err)
	}
	for i, d := range all {
		verdict := "undecided"
		switch {
		case adjusted[i] > 1-energyLevel:
		case d.Mean < 0:
			verdict = "better"
		default:
			verdict = "worse"
		}
		cell := &t.Rows[d.row].Cells[d.column]
		*cell = append(*cell, report.CellLine{Text: fmt.Sprintf("%+.3f [%+.3f, %+.3f], %s", d.Mean, d.Low, d.High, verdict), Bold: verdict == "better"})
	}
	return t, nil
}

// valuesOf are the values of a metric in the order of the runs; nil where one has none.
func valuesOf(index results.Index, runs []results.Experiment, metric string) []float64 {
	var values []float64
	for _, e := range runs {
		line, done := index.Find(e)
		value, measured := line.Metrics[metric]
		if !done || line.Diverged || !measured || math.IsNaN(value) {
			return nil
		}
		values = append(values, value)
	}
	return values
}
