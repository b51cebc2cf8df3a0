package inspect

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/render"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

// beyond is from where on the cubic's inputs are outside of its data, which end at 4.
const beyond = 5

// Awareness puts the pictures render.DistanceToy and render.DistanceMoons into
// numbers, from the full-scale lines of the set distance: for each method the mean
// entropy at the data of two moons and far away from them, and on the cubic the
// mean standard deviation of the function in the gap, |x| <= 1, and outside,
// |x| >= 5, over that at the data (see tables.GapRatio). Each cell has the mean and
// the range over the seeds.
func Awareness(lines []results.Result) (tables.Table, error) {
	t := tables.Table{
		Name: "awareness",
		Caption: "Mean over three seeds, and their range. Two moons: mean entropy of the predictions in nats, at most 0.693, at the training data and at least 1 away from all of them. " +
			"Cubic: mean standard deviation of the function in the gap and beyond the ends of the data, over that at the data.",
		Columns: []string{"Method", "moons: at data", "moons: far away", "cubic: gap / data", "cubic: beyond / data"},
	}
	set, ok := experiment.SetByName(distanceSet)
	if !ok {
		return tables.Table{}, fmt.Errorf("inspect: the catalogue has no set %s", distanceSet)
	}
	byID := results.ByID(lines)
	for _, method := range experiment.DistanceMethods() {
		values := make([][]float64, len(t.Columns)-1)
		missing := false
		for _, e := range (experiment.Filter{Methods: []string{method}, Scale: experiment.Full}).Apply(set.Experiments) {
			line, done := byID[e.ID()]
			if !done || line.Diverged {
				missing = true
				continue
			}
			if e.Dataset == experiment.TwoMoons {
				values[0] = append(values[0], line.Metrics["entropy_data"])
				values[1] = append(values[1], line.Metrics["entropy_far"])
				continue
			}
			x, std := line.Series[render.SeriesX], line.Series[render.SeriesStd]
			if len(std) == 0 || slices.Max(std) == 0 {
				continue // a function without spread
			}
			gap, err := tables.GapRatio(x, std)
			if err != nil {
				return tables.Table{}, fmt.Errorf("inspect: %v: %w", e, err)
			}
			at := func(low, high float64) float64 {
				var inside []float64
				for i, v := range x {
					if a := math.Abs(v); a >= low && a <= high {
						inside = append(inside, std[i])
					}
				}
				return stat.Mean(inside, nil)
			}
			values[2], values[3] = append(values[2], gap), append(values[3], at(beyond, math.Inf(1))/at(2, 4))
		}
		row := tables.Row{Name: tables.Title(method)}
		for i, v := range values {
			cell := "no spread"
			switch {
			case missing:
				cell = "not run"
			case len(v) > 0:
				decimals := 3
				if i >= 2 {
					decimals = 1
				}
				cell = fmt.Sprintf("%.*f (%.*f to %.*f)", decimals, stat.Mean(v, nil), decimals, slices.Min(v), decimals, slices.Max(v))
			}
			row.Cells = append(row.Cells, tables.Cell{{Text: cell}})
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}

// pairedMethods are the columns of a paired table; the first is what the others are
// compared with. The paper's other methods have larger errors than rank-1 networks
// on all of these sets.
func pairedMethods() []string {
	return append([]string{experiment.Density, experiment.Rank1}, experiment.ProcessMethods()...)
}

// PairedRMSE compares methods with density uncertainty on the sets of
// experiment.ProcessDatasets, split by split: a cell has the mean and the standard
// deviation of the root mean squared error over the full-scale runs with the
// published splits, and on how many of them, of those that both have, the method is
// better. The lowest mean of each row is bold.
func PairedRMSE(lines []results.Result) (tables.Table, error) {
	return paired(lines, tables.MetricRMSE, "root mean squared error")
}

// PairedNLL is PairedRMSE for the negative log likelihood, in nats.
func PairedNLL(lines []results.Result) (tables.Table, error) {
	return paired(lines, tables.MetricNLL, "negative log likelihood")
}

func paired(lines []results.Result, metric, what string) (tables.Table, error) {
	methods := pairedMethods()
	t := tables.Table{
		Name: "paired-" + metric,
		Caption: fmt.Sprintf("Test %s, lower is better: mean ± standard deviation over 20 splits, and on how many of them the method is better than %s. Bold: lowest mean of the row.",
			what, tables.Title(methods[0])),
		Columns: []string{"Data set"},
	}
	var wanted []experiment.Experiment
	for _, name := range []string{"uci", "uci-gp"} {
		set, ok := experiment.SetByName(name)
		if !ok {
			return tables.Table{}, fmt.Errorf("inspect: the catalogue has no set %s", name)
		}
		wanted = append(wanted, set.At(experiment.Full)...)
	}
	byID := results.ByID(lines)
	for _, method := range methods {
		t.Columns = append(t.Columns, tables.Title(method))
	}
	for _, dataset := range experiment.ProcessDatasets() {
		row := tables.Row{Name: tables.DatasetTitle(dataset)}
		var reference map[int]float64
		lowest, best := math.Inf(1), -1
		for i, method := range methods {
			bySplit := map[int]float64{}
			var values []float64
			for _, e := range (experiment.Filter{Methods: []string{method}, Datasets: []string{dataset}}).Apply(wanted) {
				if line, done := byID[e.ID()]; done && !line.Diverged {
					bySplit[e.Split] = line.Metrics[metric]
					values = append(values, line.Metrics[metric])
				}
			}
			if i == 0 {
				reference = bySplit
			}
			if len(values) == 0 {
				row.Cells = append(row.Cells, tables.Cell{{Text: "not run"}})
				continue
			}
			mean, std := stat.MeanStdDev(values, nil)
			cell := tables.Cell{{Text: fmt.Sprintf("%.3f ± %.3f", mean, std)}}
			if i > 0 {
				better, both := 0, 0
				for split, value := range bySplit {
					if other, has := reference[split]; has {
						both++
						if value < other {
							better++
						}
					}
				}
				cell = append(cell, tables.Line{Text: fmt.Sprintf("better on %d of %d", better, both)})
			}
			row.Cells = append(row.Cells, cell)
			if mean < lowest {
				lowest, best = mean, i
			}
		}
		if best >= 0 {
			row.Cells[best][0].Bold = true
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}
