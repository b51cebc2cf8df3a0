package toy

import (
	_ "embed"
	"maps"
	"slices"

	"gonum.org/v1/gonum/floats"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

// A gapRow is a row of the table of gap ratios.
type gapRow struct {
	experiment.Method
	picture string // what the paper's Figure 1 shows of the method
}

var gapRows = []gapRow{
	{methods.MFVI, "collapsed in the gap"},
	{methods.VDropout, "flat"},
	{methods.Rank1, "flat"},
	{named(methods.Density, methods.Density.Name+" (LDL)"), "wider in the gap"},
	{clipped, "–"},
	{methods.DensityMixture, "–"},
	{named(methods.DensityMean, methods.Density.Name+" (LDL, mean energy)"), "–"},
	{methods.DensityConstant, "–"},
}

// gapSeeds is how many seeds the table of gap ratios has.
const gapSeeds = 20

// gapRatio is the mean gap ratio of a method.
func gapRatio(m experiment.Method) tables.Mean {
	return tables.Number{Name: MetricGapRatio, Decimals: 2, Optional: true}.Over(grid.Of(Cubic{Seeds: gapSeeds}, m))
}

//go:embed prose.md
var proseText string

// prose has the words of the tables and figures.
var prose = report.ParseProse(proseText)

// gapRatios is Figure 1 in numbers: a row for each method, with what its uncertainty does in the gap.
func gapRatios(x *tables.Index) (report.Table, error) {
	settings := gapRatio(methods.Density).Of[0].Recipe
	s := tables.Sheet{Table: prose.Table("gap-ratio", map[string]int{"Seeds": gapSeeds, "Steps": settings.Epochs, "Samples": settings.Samples}), Down: true}
	s.Columns = []string{"Method", "The paper's picture", "Gap ratio", "Seeds above 1", "Truth in the band"}
	for _, row := range gapRows {
		ratio, above := gapRatio(row.Method), tables.Cell(tables.Done{NotRun: true})
		coverage := ratio
		coverage.Name = metricGapCoverage
		if ratios := x.Units(ratio); len(ratios) > 0 {
			n := floats.Count(func(ratio float64) bool { return ratio > 1 }, slices.Collect(maps.Values(ratios)))
			above = tables.Words("%d of %d", n, len(ratios))
		}
		s.Add("", row.Name, tables.Done{Text: row.picture, Theirs: true}, ratio, above, coverage)
	}
	return s.Make(x)
}

// distanceTable puts the pictures distanceCubic and distanceMoons into numbers. For each method it has the mean entropy at
// the data of two moons and far away from them, and the gap ratio on the cubic, which a function without spread lacks.
func distanceTable(x *tables.Index) (report.Table, error) {
	s := tables.Sheet{Table: prose.Table("distance", map[string]int{"Seeds": drawnSeeds}), Down: true}
	s.Columns = []string{"Method", "Moons: at data", "Moons: far away", "Cubic: gap ratio"}
	for _, m := range append(slices.Clone(distanceMethods), methods.LaplaceDraws) {
		cell := func(data experiment.Source, name string, decimals int) tables.Cell {
			return tables.Number{Name: name, Decimals: decimals, Optional: true}.Over(grid.Of(data, m))
		}
		moons, cubic := Moons{Seeds: drawnSeeds}, Cubic{Seeds: drawnSeeds}
		s.Add("", m.Name, cell(moons, metricEntropyData, 3), cell(moons, metricEntropyFar, 3), cell(cubic, MetricGapRatio, 2))
	}
	return s.Make(x)
}
