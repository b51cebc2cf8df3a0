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
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
	"densityuncertainty/figures/uci"
)

// Sets are the experiments of the questions.
func Sets() []tables.Set {
	return slices.Concat(GapSets(), []tables.Set{FunctionSet(), ImageSet()}, ExactSets(), DecisionSets())
}

// Tables are the answers as tables.
func Tables() []tables.Named {
	return []tables.Named{
		{Name: "where-gaps", Doc: "does the density help in gaps? density layers against two controls, gap by gap", Make: GapTable},
		{Name: "where-gap-list", Doc: "the difference on each gap, and the sign tests", Make: GapListTable},
		{Name: "where-gap-methods", Doc: "density layers against the other methods in gaps", Make: GapMethodTable},
		{Name: "where-exact", Doc: "how far is each method from the exact posterior, at the data and in the gap?", Make: ExactTable},
		{Name: "where-functions", Doc: "are joint predictions better if a draw is one function?", Make: FunctionTable},
		{Name: "where-decisions", Doc: "are decisions better that follow a density network's uncertainty?", Make: DecisionTable},
		{Name: "where-bandit", Doc: "is it the place of the noise, or does some exploration do?", Make: BanditTable},
	}
}

// Figures are the answers as pictures.
func Figures() []tables.NamedFigure {
	return []tables.NamedFigure{
		{Name: "where-gaps", Doc: "does the density help in gaps? the difference to two controls on each gap", Make: tables.AnySeed(GapFigure)},
		{Name: "where-exact", Doc: "the exact posterior of the cubic beside each method, and the methods' distances from it", Make: tables.AnySeed(ExactFigure)},
		{Name: "where-functions", Doc: "what a draw that is one function changes in joint predictions of density layers", Make: tables.AnySeed(FunctionFigure)},
		{Name: "where-decisions", Doc: "learning curves of active learning, and the regret of a bandit", Make: tables.AnySeed(DecisionFigure)},
	}
}

// gapSeeds is the number of seeds of each gap.
const gapSeeds = 20

// gapSetting is a way to train on gap splits.
type gapSetting struct {
	title  string
	preset experiment.Preset
}

func gapSettings() []gapSetting {
	return []gapSetting{{"paper's text", uci.Paper}, {"authors' code", uci.Released}, {"Adam", uci.Adam}}
}

// controls are the methods that density layers are tested against.
func controls() []experiment.Method {
	return []experiment.Method{methods.DensityMean, methods.DensityConstant}
}

// compared are the six methods of all questions.
func compared() []experiment.Method {
	return slices.Concat([]experiment.Method{methods.Density}, controls(), []experiment.Method{methods.MCDropout, methods.Rank1, methods.Ensemble})
}

// otherDatasets are the data sets of question 8, and otherSeeds the number of seeds of each of their gaps. manyDraws and
// manySeeds are those of question 9.
var otherDatasets = []string{"kin8nm", "naval", "protein"}

const otherSeeds, manyDraws, manySeeds = 3, 1000, 5

// GapSets are the experiments of question 1: every gap split of six data sets, in three settings, by six methods, 20 seeds;
// and those of questions 8 and 9.
func GapSets() []tables.Set {
	of := func(settings []gapSetting, datasets []string, methods []experiment.Method, seeds uint64) (all experiment.Experiments) {
		for _, s := range settings {
			for _, m := range methods {
				for _, dataset := range datasets {
					all = append(all, slices.Concat(s.gaps(dataset, m, seeds)...)...)
				}
			}
		}
		return all
	}
	many := of(gapSettings()[1:], uci.SmallDatasets(), compared()[:2], manySeeds).Change(func(e *experiment.Experiment) { e.Recipe.Samples = manyDraws })
	return []tables.Set{
		{Name: "where-gaps", Doc: "question 1: do density layers help on inputs in a gap of the training data? (figures/questions.md)", Experiments: of(gapSettings(), uci.SmallDatasets(), compared(), gapSeeds)},
		{Name: "where-gaps-others", Doc: "question 8: do they on other data sets? (figures/questions.md)", Experiments: of(gapSettings()[1:], otherDatasets, compared(), otherSeeds)},
		{Name: "where-gaps-draws", Doc: "question 9: does it change with 1000 draws in the place of ten? (figures/questions.md)", Experiments: many},
	}
}

// experiments are those of a method by a preset, on all splits of the data. That a preset refuses a method of the questions is a
// mistake in this package: it panics.
func experiments(preset experiment.Preset, data experiment.Source, m experiment.Method) experiment.Experiments {
	list, err := experiment.Cross(preset, []experiment.Source{data}, m)
	if err != nil {
		panic(err)
	}
	return list
}

// seeds are an experiment with each of so many seeds.
func seeds(e experiment.Experiment, count uint64) (all experiment.Experiments) {
	for e.Seed = range count {
		all = append(all, e)
	}
	return all
}

// gaps are the experiments of a method on a data set: for each gap, one for each of so many seeds.
func (s gapSetting) gaps(dataset string, m experiment.Method, count uint64) (all []experiment.Experiments) {
	for _, e := range experiments(s.preset, uci.Data{Name: dataset, Kind: uci.Gap}, m) {
		all = append(all, seeds(e, count))
	}
	return all
}

// differences are the mean differences of the test NLL, density minus control, of all gaps of a data set that were run with
// all seeds. Seeds on which one of the two diverged are left out. A gap on which only one of them diverged on more than half
// of the seeds has a difference against that one, beyond all others.
func (s gapSetting) differences(x *tables.Index, dataset string, control experiment.Method) []float64 {
	var all []float64 // infinite if one of the two diverged
	largest, others := 0.0, s.gaps(dataset, control, gapSeeds)
	for gap, runs := range s.gaps(dataset, methods.Density, gapSeeds) {
		if len(x.Missing(runs))+len(x.Missing(others[gap])) > 0 {
			continue
		}
		differences := paired(x, runs, others[gap])
		ours, _ := x.Diverged(runs)
		theirs, _ := x.Diverged(others[gap])
		switch {
		case 2*ours > gapSeeds && 2*theirs <= gapSeeds:
			all = append(all, math.Inf(1))
		case 2*theirs > gapSeeds && 2*ours <= gapSeeds:
			all = append(all, math.Inf(-1))
		case 2*len(differences) >= gapSeeds:
			d := stat.Mean(differences, nil)
			all, largest = append(all, d), max(largest, math.Abs(d))
		}
	}
	for i, d := range all {
		if math.IsInf(d, 0) {
			all[i] = math.Copysign(1+largest, d)
		}
	}
	return all
}

// paired are the differences of the test NLL of two methods on a gap, seed by seed; without those on which one diverged.
func paired(x *tables.Index, ours, theirs experiment.Experiments) (differences []float64) {
	for i, e := range ours {
		a, _ := x.Find(e)
		b, _ := x.Find(theirs[i])
		if !a.Diverged && !b.Diverged {
			differences = append(differences, a.Metrics[results.MetricNLL]-b.Metrics[results.MetricNLL])
		}
	}
	return differences
}

// bootstrapDraws and bootstrapSeed make the intervals of medians.
const bootstrapDraws, bootstrapSeed = 2000, 1

//go:embed prose.md
var proseText string

// prose has the words of the tables and figures.
var prose = report.ParseProse(proseText)

// GapTable answers question 1: for each setting and data set, and each control, the median difference over gaps with its
// bootstrap interval and the verdict of the signed-rank test, and on how many gaps density has the lower mean NLL. All
// verdicts against one control hold together at 5% (Holm).
func GapTable(x *tables.Index) (report.Table, error) {
	return gapTable(x, "where-gaps", controls(), "All six sets", true)
}

// GapMethodTable is GapTable against the other methods of the questions, pooled over the data sets that were run.
func GapMethodTable(x *tables.Index) (report.Table, error) {
	return gapTable(x, "where-gap-methods", compared()[1+len(controls()):], "All of these", false)
}

// gapTable is a table of density against others. A row with the name all pools the data sets, of which each must have been
// run, or else those that were.
func gapTable(x *tables.Index, name string, others []experiment.Method, all string, each bool) (report.Table, error) {
	s := tables.Sheet{Table: prose.Table(name, map[string]int{"Seeds": gapSeeds})}
	s.Columns = []string{"Data set"}
	s.Legend = "▲ better, ▽ worse than the method of the column, significant at 5% for all rows of a column together. No mark: not significant."
	for _, control := range others {
		s.Columns = append(s.Columns, "Against "+control.Name, "Gaps won: "+control.Name)
	}
	for _, of := range gapSettings() {
		sets := map[string][][]float64{} // the differences to each control
		for _, dataset := range append(uci.SmallDatasets(), all) {
			var cells []tables.Mean
			for _, control := range others {
				list := pooled(sets[control.Name], each)
				if dataset != all {
					list = of.differences(x, dataset, control)
					sets[control.Name] = append(sets[control.Name], list)
				}
				if len(list) == 0 {
					cells = append(cells, tables.Waits, tables.Waits)
					continue
				}
				d := median(list)
				lower := floats.Count(func(v float64) bool { return v < 0 }, list)
				cells = append(cells, tables.Mean{Words: report.Cell{Difference: &d}, Family: control.Name}, tables.Words("%d of %d", lower, len(list)))
			}
			s.Add(of.title, uci.DatasetTitle(dataset), cells...)
		}
	}
	return s.Make(x)
}

// GapListTable lists the differences that GapTable sums up, with their intervals over seeds, and tests their signs.
func GapListTable(x *tables.Index) (report.Table, error) {
	s := tables.Sheet{Table: prose.Table("where-gap-list", map[string]int{"Seeds": gapSeeds}), Down: true}
	s.Columns = []string{"Gap"}
	s.Legend = "▲ better, ▽ worse than the control, significant at 5% for all gaps of a column together. No mark: not significant."
	lines, all := map[string][]tables.Mean{}, []tables.Mean(nil) // by data set and gap
	for _, of := range gapSettings() {
		for _, control := range controls() {
			s.Columns = append(s.Columns, of.title+", "+control.Name)
			var signs []float64
			for _, dataset := range uci.SmallDatasets() {
				signs = append(signs, of.differences(x, dataset, control)...)
				others := of.gaps(dataset, control, gapSeeds)
				for gap, runs := range of.gaps(dataset, methods.Density, gapSeeds) {
					cell, name := tables.Waits, fmt.Sprintf("%s, gap %d", uci.DatasetTitle(dataset), gap+1)
					if list := paired(x, runs, others[gap]); len(x.Missing(runs))+len(x.Missing(others[gap])) == 0 && 2*len(list) >= gapSeeds {
						d := metrics.PairedDifference(list, make([]float64, len(list)), 0, tables.Confidence)
						cell = tables.Mean{Words: report.Cell{Difference: &d}, Family: of.title + control.Name}
					}
					lines[name] = append(lines[name], cell)
				}
			}
			lower := floats.Count(func(v float64) bool { return v < 0 }, signs)
			cell := tables.Waits
			if n := len(signs); n > 0 {
				p := min(1, 2*distuv.Binomial{N: float64(n), P: 0.5}.CDF(float64(min(lower, n-lower))))
				cell = tables.Words("%.2g", p)
			}
			all = append(all, cell)
		}
	}
	for _, dataset := range uci.SmallDatasets() {
		for gap := 1; ; gap++ {
			name := fmt.Sprintf("%s, gap %d", uci.DatasetTitle(dataset), gap)
			if lines[name] == nil {
				break
			}
			s.Add("", name, lines[name]...)
		}
	}
	s.Add("", "Sign test, p", all...)
	return s.Make(x)
}

// pooled are the differences of all data sets; none if each is needed and there are none of one.
func pooled(sets [][]float64, each bool) []float64 {
	if each && slices.ContainsFunc(sets, func(set []float64) bool { return len(set) == 0 }) {
		return nil
	}
	return slices.Concat(sets...)
}

// median is the median of differences with its bootstrap interval and the p-value of the signed-rank test.
func median(list []float64) (d metrics.Difference) {
	d.Mean, d.Low, d.High = metrics.MedianInterval(list, tables.Confidence, bootstrapDraws, bootstrapSeed)
	d.P = metrics.SignedRank(list)
	return d
}

// GapFigure shows the differences of GapTable.
func GapFigure(x *tables.Index) (report.Figure, error) {
	t, err := GapTable(x)
	if err != nil {
		return report.Figure{}, err
	}
	f, err := report.Forest{Axis: "difference of NLL (nats)", Within: 0.4}.Of(t)
	f.Caption = prose.Caption("where-gaps picture", nil)
	return f, err
}
