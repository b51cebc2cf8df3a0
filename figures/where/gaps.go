// Package where asks where the density helps: the questions of figures/questions.md, each with its experiments, its numbers
// and its picture.
package where

import (
	_ "embed"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

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
	return slices.Concat([]tables.Set{GapSet(), FunctionSet(), ImageSet()}, ExactSets(), DecisionSets())
}

// Tables are the answers as tables.
func Tables() []tables.Named {
	return []tables.Named{
		{Name: "where-gaps", Doc: "does the density help in gaps? density layers against two controls, gap by gap", Make: GapTable},
		{Name: "where-exact", Doc: "how far is each method from the exact posterior, at the data and in the gap?", Make: ExactTable},
		{Name: "where-functions", Doc: "are joint predictions better if a draw is one function?", Make: FunctionTable},
		{Name: "where-decisions", Doc: "are decisions better that follow a density network's uncertainty?", Make: DecisionTable},
	}
}

// Figures are the answers as pictures.
func Figures() []tables.NamedFigure {
	return []tables.NamedFigure{
		{Name: "where-gaps", Doc: "does the density help in gaps? the difference to two controls on each gap", Make: func(x *tables.Index, _ uint64) (report.Figure, error) { return GapFigure(x) }},
		{Name: "where-exact", Doc: "the exact posterior of the cubic beside each method, and the methods' distances from it", Make: func(x *tables.Index, _ uint64) (report.Figure, error) { return ExactFigure(x) }},
		{Name: "where-functions", Doc: "what a draw that is one function changes in joint predictions of density layers", Make: func(x *tables.Index, _ uint64) (report.Figure, error) { return FunctionFigure(x) }},
		{Name: "where-decisions", Doc: "learning curves of active learning, and the regret of a bandit", Make: func(x *tables.Index, _ uint64) (report.Figure, error) { return DecisionFigure(x) }},
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

// uciDatasets are the data sets that are compared.
func uciDatasets() []string {
	return []string{"boston", "concrete", "energy", "energy-cooling", "wine", "yacht"}
}

// controls are the methods that density layers are tested against.
func controls() []experiment.Method {
	return []experiment.Method{methods.DensityMean, methods.DensityConstant}
}

// compared are the six methods of all questions.
func compared() []experiment.Method {
	return slices.Concat([]experiment.Method{methods.Density}, controls(), []experiment.Method{methods.MCDropout, methods.Rank1, methods.Ensemble})
}

// GapSet is the experiments of question 1: every gap split of six data sets, in three settings, by six methods, 20 seeds.
func GapSet() tables.Set {
	var all experiment.Experiments
	for _, s := range gapSettings() {
		for _, dataset := range uciDatasets() {
			for _, m := range compared() {
				for _, gap := range s.gaps(dataset, m) {
					all = append(all, gap...)
				}
			}
		}
	}
	return tables.Set{
		Name: "where-gaps", Doc: "question 1: do density layers help on inputs in a gap of the training data? (figures/questions.md)",
		Parts: []tables.Part{{Scale: results.Full, Experiments: all}},
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

// gaps are the experiments of a method on a data set: for each gap, one for each seed.
func (s gapSetting) gaps(dataset string, m experiment.Method) []experiment.Experiments {
	list := experiments(s.preset, uci.Data{Name: dataset, Kind: uci.Gap}, m)
	all := make([]experiment.Experiments, len(list))
	for gap, e := range list {
		for seed := range gapSeeds {
			e.Seed = uint64(seed)
			all[gap] = append(all[gap], e)
		}
	}
	return all
}

// differences are the mean differences of the test NLL, density minus control, of all gaps of a data set that were run with
// all seeds. Seeds on which one of the two diverged are left out. A gap on which only one of them diverged on more than half
// of the seeds has a difference against that one, beyond all others.
func (s gapSetting) differences(x *tables.Index, dataset string, control experiment.Method) []float64 {
	var all []float64
	largest, decided := 0.0, map[int]float64{} // by the place in all: 1 if density diverged, -1 if the control did
	others := s.gaps(dataset, control)
	for gap, runs := range s.gaps(dataset, methods.Density) {
		if len(x.Missing(runs))+len(x.Missing(others[gap])) > 0 {
			continue
		}
		var differences []float64
		for i, e := range runs {
			density, _ := x.Find(e)
			other, _ := x.Find(others[gap][i])
			if !density.Diverged && !other.Diverged {
				differences = append(differences, density.Metrics[results.MetricNLL]-other.Metrics[results.MetricNLL])
			}
		}
		ours, _ := x.Diverged(runs)
		theirs, _ := x.Diverged(others[gap])
		switch {
		case 2*ours > gapSeeds && 2*theirs <= gapSeeds:
			decided[len(all)] = 1
			all = append(all, 0)
		case 2*theirs > gapSeeds && 2*ours <= gapSeeds:
			decided[len(all)] = -1
			all = append(all, 0)
		case 2*len(differences) >= gapSeeds:
			d := stat.Mean(differences, nil)
			all, largest = append(all, d), max(largest, math.Abs(d))
		}
	}
	for i, sign := range decided {
		all[i] = sign * (1 + largest)
	}
	return all
}

// bootstrapDraws and bootstrapSeed make the intervals of medians.
const bootstrapDraws, bootstrapSeed = 2000, 1

//go:embed prose.md
var proseText string

// prose has the words of the tables and figures.
var prose = report.ParseProse(proseText)

// GapTable answers question 1: for each setting and data set, and each control, the median difference over gaps with its
// bootstrap interval and the verdict of the signed-rank test, and on how many gaps density has the lower mean NLL. All
// verdicts against one control hold together at 5 % (Holm).
func GapTable(x *tables.Index) (report.Table, error) {
	t := prose.Table("where-gaps", map[string]int{"Seeds": gapSeeds})
	t.Columns = []string{"Data set"}
	t.Legend = "▲ better, ▽ worse than the control, decided at 5 % for all rows of a column together. No mark: undecided."
	for _, control := range controls() {
		t.Columns = append(t.Columns, "Against "+control.Name, "Gaps won: "+control.Name)
	}
	for _, s := range gapSettings() {
		lists := map[string][][]float64{} // of each control, the differences on each data set
		for _, dataset := range uciDatasets() {
			row := report.Row{Group: s.title, Name: uci.DatasetTitle(dataset)}
			for _, control := range controls() {
				lists[control.Name] = append(lists[control.Name], s.differences(x, dataset, control))
			}
			if err := addCells(&row, lists, func(all [][]float64) []float64 { return all[len(all)-1] }); err != nil {
				return t, fmt.Errorf("where: gaps of %s: %w", dataset, err)
			}
			t.Rows = append(t.Rows, row)
		}
		row := report.Row{Group: s.title, Name: "All six sets"}
		if err := addCells(&row, lists, together); err != nil {
			return t, fmt.Errorf("where: gaps of all sets: %w", err)
		}
		t.Rows = append(t.Rows, row)
	}
	for k := range controls() {
		var tested []*report.Cell
		var differences []metrics.Difference
		for _, row := range t.Rows {
			if c := &row.Cells[2*k]; c.Difference != nil {
				tested, differences = append(tested, c), append(differences, *c.Difference)
			}
		}
		verdicts, err := report.Verdicts(differences, tables.Confidence)
		if err != nil {
			return t, err
		}
		for i, c := range tested {
			c.Verdict = verdicts[i]
		}
	}
	return t.WithoutNotRun(), nil
}

// addCells adds the cells of each control, of the differences that are chosen.
func addCells(row *report.Row, lists map[string][][]float64, choose func(all [][]float64) []float64) error {
	for _, control := range controls() {
		cells, err := gapCells(choose(lists[control.Name]))
		if err != nil {
			return fmt.Errorf("against %s: %w", control.Name, err)
		}
		row.Cells = append(row.Cells, cells...)
	}
	return nil
}

// together are the differences on all gaps, if there are some of each data set.
func together(all [][]float64) []float64 {
	if slices.ContainsFunc(all, func(one []float64) bool { return len(one) == 0 }) {
		return nil
	}
	return slices.Concat(all...)
}

// gapCells are the median of the differences of gaps, and the number of gaps won.
func gapCells(list []float64) ([]report.Cell, error) {
	if len(list) == 0 {
		return []report.Cell{{NotRun: true}, {NotRun: true}}, nil
	}
	var d metrics.Difference
	var err error
	if d.Mean, d.Low, d.High, err = metrics.MedianInterval(list, tables.Confidence, bootstrapDraws, bootstrapSeed); err != nil {
		return nil, err
	}
	if d.P, err = metrics.SignedRank(list); err != nil {
		return nil, err
	}
	lower := 0
	for _, v := range list {
		if v < 0 {
			lower++
		}
	}
	return []report.Cell{
		{Text: tables.Test[string]{Difference: d}.Text(), Difference: &d},
		{Text: fmt.Sprintf("%d of %d", lower, len(list))},
	}, nil
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
