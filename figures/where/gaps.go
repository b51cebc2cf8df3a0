// Package where asks where the density helps: the questions of figures/questions.md, each with its experiments, its numbers
// and its picture.
package where

import (
	_ "embed"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
	"densityuncertainty/figures/uci"
)

// Exhibits are the answers as tables and pictures.
func Exhibits() tables.Exhibits {
	var all tables.Exhibits
	for _, g := range gapTables {
		all = append(all, tables.Exhibit{Name: g.name, Doc: g.doc, Table: g.of})
	}
	all[0].Picture, all[0].Parts = gapPicture, tables.Exhibits{{Name: "where-gap-list", Table: gapListTable}}
	return append(all,
		tables.Exhibit{Name: "where-splits", Doc: "which gap splits of UCI data are holes? the measures of all, and of the holes of question 11", Table: splitsTable},
		tables.Exhibit{Name: "where-posterior", Doc: "the exact posteriors, which have to be drawn before the runs of where-exact", Needs: posteriors(exactProblems)},
		tables.Exhibit{Name: "where-exact", Doc: "how far is each method from the exact posterior, at the data and in the gap?", Table: exactTable, Picture: exactFigure},
		tables.Exhibit{Name: "where-posterior-gaps", Doc: "the same before the runs of where-exact-gaps", Needs: posteriors(everyGap)},
		tables.Exhibit{Name: "where-exact-gaps", Doc: "on every gap, is it the place of the noise, or would more of it do?", Table: exactGapsTable},
		tables.Exhibit{Name: "where-holes", Doc: "where data are missing, or where one Gaussian says so? holes of seven sets of inputs (question 11)", Table: holesTable, Picture: holesPicture},
		tables.Exhibit{Name: "where-holes-methods", Doc: "last-layer Laplace and SWAG in these holes", Table: holeMethodsTable},
		tables.Exhibit{Name: "where-holes-places", Doc: "does a density with more than one place help there? (question 13)", Table: placesTable, Needs: placesRuns},
		tables.Exhibit{Name: "where-exact-places", Doc: "is it closer to the exact posterior of every gap? (question 13)", Table: exactPlacesTable},
		tables.Exhibit{Name: "where-images", Doc: "does the place of the noise matter on images that a network has memorised?", Table: imageTable, Picture: tables.Picture(prose, report.Forest{ByColumn: true, Numbers: true}, comparedImageTable)},
		tables.Exhibit{Name: "where-images-all", Doc: "does it with all images of CIFAR-10 at half the size, and noise that is alive?", Table: allImageTable, Needs: func() experiment.Experiments { return allStudy().trainings() }},
		tables.Exhibit{Name: "where-functions", Doc: "are joint predictions better if a draw is one function?", Table: functionTable, Picture: tables.Picture(prose, report.Forest{Axis: "joint NLL of functions minus independent draws (nats)"}, functionFigure)},
		tables.Exhibit{Name: "where-decisions", Doc: "does density uncertainty lead to better decisions?", Table: decisionTable},
		tables.Exhibit{Name: "where-bandit", Doc: "is it the place of the noise, or does some exploration do?", Table: banditTable, Picture: tables.Picture(prose, report.Forest{Axis: "regret, less that of density layers", Least: -50, Within: 300}, banditPicture)})
}

// gapSeeds is the number of seeds of each gap.
const gapSeeds = 20

// gapGrids are the settings of question 1. The data sets of question 8 have fewer seeds, and two settings.
var gapGrids = []experiment.Grid{
	{Title: "paper's text", Preset: uci.Paper, Seeds: gapSeeds}, {Title: "authors' code", Preset: uci.Released, Seeds: gapSeeds}, {Title: "Adam", Preset: uci.Adam, Seeds: gapSeeds},
}

// manySettings are question 9's.
var manySettings = []experiment.Grid{
	{Title: "authors' code", Preset: uci.Released, Seeds: manySeeds, Change: drawing(manyDraws)}, {Title: "Adam", Preset: uci.Adam, Seeds: manySeeds, Change: drawing(manyDraws)},
}

// drawing changes the number of draws of a method that draws.
func drawing(n int) func(e *experiment.Experiment) {
	return func(e *experiment.Experiment) {
		if e.Recipe.Samples > 1 {
			e.Recipe.Samples = n
		}
	}
}

// controls are the methods that density layers are tested against.
var controls = []experiment.Method{methods.DensityMean, methods.DensityConstant}

// compared are the six methods of all questions. Those of methods.AfterTraining stand beside them, and are not tested.
var compared = slices.Concat([]experiment.Method{methods.Density}, controls, []experiment.Method{methods.MCDropout, methods.Rank1, methods.Ensemble})

// isLater says whether a method is of methods.AfterTraining.
func isLater(m experiment.Method) bool {
	return slices.ContainsFunc(methods.AfterTraining(0), m.Equal)
}

// otherDatasets are the data sets of question 8, and otherSeeds the number of seeds of each of their gaps. manyDraws and
// manySeeds are those of question 9.
var otherDatasets = []string{"kin8nm", "naval", "protein"}

const otherSeeds, manyDraws, manySeeds = 3, 1000, 5

// runs are the experiments of a method on the gaps or holes of a data set.
func runs(s experiment.Grid, d uci.Data, m experiment.Method) experiment.Experiments {
	switch {
	case d.Kind == uci.Hole:
		s.Seeds = holeSeeds(d.Name)
	case slices.Contains(otherDatasets, d.Name):
		s.Seeds = otherSeeds
	}
	return s.Of(d, m)
}

// A comparison is of two methods on splits with a gap or a hole, by the test NLL.
type comparison struct {
	experiment.Grid
	kind          uci.Splits
	ours, control experiment.Method
	widths        bool // by the logarithm of the function's standard deviation
}

// inGaps compares density layers in gaps.
func inGaps(s experiment.Grid, control experiment.Method) comparison {
	return comparison{s, uci.Gap, methods.Density, control, false}
}

// units are the means over seeds for each split.
func (c comparison) units(x *tables.Index, dataset string, m experiment.Method) map[int]float64 {
	n := tables.Number{Name: experiment.MetricNLL}
	if c.widths {
		n.Name = experiment.MetricModelStd
	}
	found := x.Units(n.Over(runs(c.Grid, uci.Data{Name: dataset, Kind: c.kind}, m)))
	for split, v := range found {
		if c.widths {
			found[split] = math.Log(v)
		}
	}
	return found
}

// differences are ours less the control on each distinct split of data sets with the same inputs, as the two loads of Energy have, by
// the number of the split. Splits that share more than 80% of their test rows are one, the first, with their mean. A split on which a
// run of the two is missing or diverged is left out.
func (c comparison) differences(x *tables.Index, datasets ...string) map[int]float64 {
	all := map[int][]float64{}
	for _, dataset := range datasets {
		own := map[int][]float64{}
		ours, theirs := c.units(x, dataset, c.ours), c.units(x, dataset, c.control)
		for split, m := range (uci.Data{Name: dataset, Kind: c.kind}).Measured() {
			if v, has := ours[split]; has {
				if w, has := theirs[split]; has {
					own[m.Same] = append(own[m.Same], v-w)
				}
			}
		}
		for split, list := range own {
			all[split] = append(all[split], stat.Mean(list, nil))
		}
	}
	means := map[int]float64{}
	for split, list := range all {
		if len(list) == len(datasets) {
			means[split] = stat.Mean(list, nil)
		}
	}
	return means
}

// A measuredSplit is a distinct split with its difference.
type measuredSplit struct {
	uci.Measured
	difference float64
}

// ofInputs are the differences of data sets in the order of the splits. Heating and cooling together are one set.
func (c comparison) ofInputs(x *tables.Index, datasets ...string) (sets [][]measuredSplit) {
	both := slices.Contains(datasets, heating) && slices.Contains(datasets, cooling)
	for _, dataset := range datasets {
		of, list := []string{dataset}, []measuredSplit(nil)
		switch {
		case both && dataset == cooling:
			continue
		case both && dataset == heating:
			of = append(of, cooling)
		}
		differences := c.differences(x, of...)
		for split, m := range (uci.Data{Name: dataset, Kind: c.kind}).Measured() {
			if d, has := differences[split]; has {
				list = append(list, measuredSplit{m, d})
			}
		}
		sets = append(sets, list)
	}
	return sets
}

// valuesOf are numbers of splits.
func valuesOf(splits []measuredSplit, of func(m measuredSplit) float64) (list []float64) {
	for _, m := range splits {
		list = append(list, of(m))
	}
	return list
}

func difference(m measuredSplit) float64 { return m.difference }

// heating and cooling are the loads of Energy, which have the same inputs.
const heating, cooling = "energy", "energy-cooling"

// bootstrapDraws and bootstrapSeed make the intervals of medians.
const bootstrapDraws, bootstrapSeed = 2000, 1

//go:embed prose.md
var proseText string

// prose has the words of the tables and figures.
var prose = report.ParseProse(proseText)

// A gapTable is a table of density against others on gaps. For each setting and data set, those of question 1 and further ones,
// and for all of them, it has the median difference over gaps with its bootstrap interval and the verdict of the signed-rank
// test, and on how many gaps density has the lower mean NLL. All verdicts against one other hold together at 5% (Holm).
type gapTable struct {
	name, doc string
	settings  []experiment.Grid
	further   []string // whose medians count for all, not gaps
	others    []experiment.Method
	all       string // the name of the last row
	pooled    bool   // it alone is tested
}

// gapTables are those of question 1, against the controls and against the other methods, and of questions 9 and 8.
var gapTables = []gapTable{
	{name: "where-gaps", doc: "does the density help in gaps? density layers against two controls, gap by gap", settings: gapGrids, others: controls, all: "All five sets of inputs"},
	{name: "where-gap-methods", doc: "density layers against the other methods in gaps", settings: gapGrids, others: slices.Concat(compared[1+len(controls):], methods.AfterTraining(0)), all: "All five sets of inputs"},
	{name: "where-gaps-draws", doc: "does it change with 1000 draws in the place of ten?", settings: manySettings, others: controls[:1], all: "All five sets of inputs", pooled: true},
	{name: "where-gaps-others", doc: "do density layers help in the gaps of nine data sets?", settings: gapGrids[1:], further: otherDatasets, others: slices.Concat(compared[1:], methods.AfterTraining(0)), all: "All eight sets of inputs", pooled: true},
}

// of makes the table.
func (g gapTable) of(x *tables.Index) (report.Table, error) {
	s := tables.Sheet{Table: prose.Table(g.name, map[string]any{"Seeds": g.settings[0].Seeds, "Draws": manyDraws, "Fewer": otherSeeds})}
	s.Columns = []string{"Data set"}
	s.Legend = "▲ better, ▽ worse than the method of the column, significant at 5% for all rows of a column together. No mark: not significant."
	if g.pooled {
		s.Legend = "▲ better, ▽ worse than the method of the column, significant at 5% for both settings together. No mark: not significant, or not tested."
	}
	for _, other := range g.others {
		s.Columns = append(s.Columns, "Against "+other.Name, "Gaps won: "+other.Name)
	}
	datasets := slices.Concat(uci.SmallDatasets(), g.further)
	for _, of := range g.settings {
		rows := make([][]tables.Cell, len(datasets)+1)
		for _, other := range g.others {
			complete := true
			add := func(row int, list, tested []float64, untested bool) {
				if len(list) == 0 {
					rows[row] = append(rows[row], tables.Done{NotRun: true}, tables.Done{NotRun: true})
					return
				}
				cell := tables.Difference{Difference: median(tested), Family: other.Name, NoVerdict: untested || isLater(other)}
				rows[row] = append(rows[row], cell, tables.Words("%d of %d", lower(list), len(list)))
			}
			for row, dataset := range datasets {
				list := valuesOf(inGaps(of, other).ofInputs(x, dataset)[0], difference)
				complete = complete && len(list) > 0
				add(row, list, list, g.pooled)
			}
			var list, tested []float64
			if complete {
				sets := inGaps(of, other).ofInputs(x, datasets...)
				list = valuesOf(slices.Concat(sets...), difference)
				if tested = list; g.further != nil {
					tested = nil
					for _, set := range sets {
						tested = append(tested, median(valuesOf(set, difference)).Mean)
					}
				}
			}
			add(len(datasets), list, tested, false)
		}
		for row, dataset := range append(datasets[:len(datasets):len(datasets)], g.all) {
			s.Add(of.Title, uci.DatasetTitle(dataset), rows[row]...)
		}
	}
	return s.Make(x)
}

// lower is how many differences are below 0.
func lower(list []float64) int {
	return floats.Count(func(v float64) bool { return v < 0 }, list)
}

// gapListTable lists the differences that gapTable sums up, with their intervals over seeds, and tests their signs.
func gapListTable(x *tables.Index) (report.Table, error) {
	s := tables.Sheet{Table: prose.Table("where-gap-list", map[string]int{"Seeds": gapSeeds}), Down: true}
	s.Columns = []string{"Gap"}
	s.Legend = "▲ better, ▽ worse than the control, significant at 5% for all gaps of a column together. No mark: not significant."
	measures := map[string]uci.Measured{}
	for _, dataset := range uci.SmallDatasets() {
		for gap, m := range (uci.Data{Name: dataset, Kind: uci.Gap}).Measured() {
			name := fmt.Sprintf("%s, gap %d", uci.DatasetTitle(dataset), gap+1)
			if m.Same != gap {
				name += fmt.Sprintf(" (as %d)", m.Same+1)
			}
			measures[name] = m
			s.Add("", name)
		}
	}
	s.Add("", "Sign test, p")
	for _, of := range gapGrids {
		for _, control := range controls {
			s.Columns = append(s.Columns, of.Title+", "+control.Name)
			var column []tables.Cell
			for _, dataset := range uci.SmallDatasets() {
				d := uci.Data{Name: dataset, Kind: uci.Gap}
				ours, theirs := runs(of, d, methods.Density), runs(of, d, control)
				for gap := range d.Splits() {
					cell := bySeed(experiment.MetricNLL, ours.OnSplits(gap)).Against(theirs.OnSplits(gap))
					cell.Shown, cell.Family = true, of.Title+control.Name
					column = append(column, cell)
				}
			}
			signs := valuesOf(slices.Concat(inGaps(of, control).ofInputs(x, uci.SmallDatasets()...)...), difference)
			var test tables.Cell = tables.Done{NotRun: true}
			if n := len(signs); n > 0 {
				test = tables.Words("%.2g", min(1, 2*distuv.Binomial{N: float64(n), P: 0.5}.CDF(float64(min(lower(signs), n-lower(signs))))))
			}
			for i, cell := range append(column, test) {
				s.Rows[i].Cells = append(s.Rows[i].Cells, cell)
			}
		}
	}
	t, err := s.Make(x)
	t.Columns = slices.Insert(t.Columns, 1, "Distance", "Energy")
	for i, row := range t.Rows {
		cells := report.TextCells("", "")
		if m, is := measures[row.Name]; is {
			cells = report.TextCells(fmt.Sprintf("%.2f", m.Distance), fmt.Sprintf("%.2f", m.Energy))
		}
		t.Rows[i].Cells = slices.Concat(cells, row.Cells)
	}
	return t, err
}

// median is the median of differences with its bootstrap interval and the p-value of the signed-rank test.
func median(list []float64) (d metrics.Difference) {
	d.Mean, d.Low, d.High = metrics.MedianInterval(list, tables.Confidence, bootstrapDraws, bootstrapSeed)
	d.P = metrics.SignedRank(list)
	return d
}
