package toy

import (
	_ "embed"
	"fmt"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

// A gapRow is a row of the table of gap ratios.
type gapRow struct {
	experiment.Method
	picture string // what the paper's Figure 1 shows of the method
}

func gapRows() []gapRow {
	return []gapRow{
		{methods.MFVI, "collapsed in the gap"},
		{methods.VDropout, "flat"},
		{methods.Rank1, "flat"},
		{named(methods.Density, methods.Density.Name+" (LDL)"), "wider in the gap"},
		{clipped, "–"},
		{methods.DensityMixture, "–"},
		{named(methods.DensityMean, methods.Density.Name+" (LDL, mean energy)"), "–"},
		{methods.DensityConstant, "–"},
	}
}

// gapSeeds is how many seeds the table of gap ratios has.
const gapSeeds = 20

// gapRuns are the runs of a method on the cubic.
func gapRuns(m experiment.Method) experiment.Experiments {
	return runs(Cubic{Seeds: gapSeeds}, m)
}

// gapRatio is the mean gap ratio of a method.
func gapRatio(m experiment.Method) tables.Mean {
	return tables.Mean{Of: gapRuns(m), Metric: results.MetricGapRatio, Decimals: 2, Optional: true}
}

// Tables are the tables of the toy problems.
func Tables() []tables.Named {
	return []tables.Named{{Name: "gap-ratio", Doc: "Figure 1 in numbers: uncertainty inside the gap over that at the data", Make: GapRatios}}
}

//go:embed prose.md
var proseText string

// prose has the words of the tables and figures.
var prose = report.ParseProse(proseText)

// GapRatios is Figure 1 in numbers: a row for each method, with what its uncertainty does in the gap.
func GapRatios(x *tables.Index) (report.Table, error) {
	settings := gapRuns(methods.Density)[0].Recipe
	s := tables.Sheet{Table: prose.Table("gap-ratio", map[string]int{"Seeds": gapSeeds, "Steps": settings.Epochs, "Samples": settings.Samples}), Down: true}
	s.Columns = []string{"Method", "The paper's picture", "Gap ratio", "Seeds above 1", "Truth in the band"}
	for _, row := range gapRows() {
		ratio, above := gapRatio(row.Method), tables.Waits
		coverage := ratio
		coverage.Metric = results.MetricGapCoverage
		if ratios := x.Units(ratio); len(ratios) > 0 {
			n := floats.Count(func(ratio float64) bool { return ratio > 1 }, slices.Collect(maps.Values(ratios)))
			above = tables.Words("%d of %d", n, len(ratios))
		}
		s.Add("", row.Name, tables.Mean{Words: report.Cell{Text: row.picture, Theirs: true}}, ratio, above, coverage)
	}
	return s.Make(x)
}

// beyond is from where on the cubic's inputs are outside of its data, which end at 4.
const beyond = 5

// DistanceTable puts the pictures DistanceCubic and DistanceMoons into numbers, from full runs. For each method it has the
// mean entropy at the data of two moons and far away from them. On the cubic it has the mean standard deviation of the
// function in the gap, |x| <= 1, and outside, |x| >= 5, over that at the data. Each cell has the mean and the range over
// the seeds.
func DistanceTable(x *tables.Index) (report.Table, error) {
	t := prose.Table("distance", nil)
	t.Columns = []string{"Method", "Moons: at data", "Moons: far away", "Cubic: in the gap", "Cubic: beyond the data"}
	for _, m := range DistanceMethods() {
		row := report.Row{Name: m.Name}
		for _, part := range []struct {
			list     experiment.Experiments
			measure  func(experiment.Result) ([2]float64, error)
			decimals int
		}{{runs(Moons{Seeds: drawnSeeds}, m), entropyAtAndFar, 3}, {runs(Cubic{Seeds: drawnSeeds}, m), gapAndBeyond, 1}} {
			cells, err := ranges(x, part.list, part.measure, part.decimals)
			if err != nil {
				return t, fmt.Errorf("toy: the table of distances: %w", err)
			}
			row.Cells = append(row.Cells, cells...)
		}
		t.Rows = append(t.Rows, row)
	}
	return t.WithoutNotRun(), nil
}

// ranges are two cells with the mean and the range of two numbers of each run. A NaN is left out.
func ranges(x *tables.Index, list experiment.Experiments, measure func(experiment.Result) ([2]float64, error), decimals int) ([]report.Cell, error) {
	var values [2][]float64
	diverged := false
	for _, e := range list {
		r, done := x.Find(e)
		if !done {
			return []report.Cell{{NotRun: true}, {NotRun: true}}, nil
		}
		if r.Diverged {
			diverged = true
			continue
		}
		found, err := measure(r)
		if err != nil {
			return nil, err
		}
		for i, v := range found {
			if !math.IsNaN(v) {
				values[i] = append(values[i], v)
			}
		}
	}
	switch {
	case diverged:
		return report.TextCells("diverged", "diverged"), nil
	case len(values[0]) == 0:
		return report.TextCells("no spread", "no spread"), nil
	}
	var cells []report.Cell
	for _, v := range values {
		cells = append(cells, report.Cell{Text: fmt.Sprintf("%.*f (%.*f to %.*f)", decimals, stat.Mean(v, nil), decimals, slices.Min(v), decimals, slices.Max(v))})
	}
	return cells, nil
}

func entropyAtAndFar(r experiment.Result) ([2]float64, error) {
	return [2]float64{r.Metrics[results.MetricEntropyData], r.Metrics[results.MetricEntropyFar]}, nil
}

// gapAndBeyond are the standard deviations in the gap and beyond the data over that at the data; NaN for a function without
// spread.
func gapAndBeyond(r experiment.Result) ([2]float64, error) {
	found, err := runOf(r)
	if err != nil || !found.hasSpread() {
		return [2]float64{math.NaN(), math.NaN()}, err
	}
	return [2]float64{found.gapRatio(), found.stdFrom(beyond, math.Inf(1)) / found.stdFrom(2, 4)}, nil
}
