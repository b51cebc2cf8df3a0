// Package where asks where the density helps: the questions of figures/questions.md, each with its experiments, its numbers
// and its picture.
package where

import (
	"fmt"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
	"densityuncertainty/figures/uci"
)

// Sets are the experiments of the questions.
func Sets() []tables.Set { return []tables.Set{GapSet(), FunctionSet(), ImageSet()} }

// Tables are the answers as tables.
func Tables() []tables.Named {
	return []tables.Named{
		{Name: "where-gaps", Doc: "does the density help in gaps? density layers against two controls, gap by gap", Make: GapTable},
		{Name: "where-functions", Doc: "are joint predictions better if a draw is one function?", Make: FunctionTable},
	}
}

// Figures are the answers as pictures.
func Figures() []tables.NamedFigure {
	return []tables.NamedFigure{{Name: "where-gaps", Doc: "does the density help in gaps? the difference to two controls on each gap", Make: GapFigure}}
}

// gapSeeds is the number of seeds of each gap.
const gapSeeds = 20

// gapSetting is a way to train on gap splits.
type gapSetting struct {
	name   string
	preset experiment.Preset
}

func gapSettings() []gapSetting {
	return []gapSetting{{"paper", uci.Paper}, {"released", uci.Released}, {"Adam", uci.Adam}}
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

// gaps are the experiments of a method on a data set: for each gap, one for each seed. That a preset refuses a method of
// this list is a mistake in this package: it panics.
func (s gapSetting) gaps(dataset string, m experiment.Method) []experiment.Experiments {
	list, err := experiment.Cross(s.preset, []experiment.Source{uci.Data{Name: dataset, Kind: uci.Gap}}, m)
	if err != nil {
		panic(err)
	}
	all := make([]experiment.Experiments, len(list))
	for gap, e := range list {
		for seed := range gapSeeds {
			e.Seed = uint64(seed)
			all[gap] = append(all[gap], e)
		}
	}
	return all
}

// A gapDifference is the mean difference of the test NLL on one gap, density minus control, over the seeds on which both
// finished.
type gapDifference struct {
	mean, reach float64 // reach is half the 95 % interval
	pairs, lost int     // lost are the seeds on which density diverged, or the control
}

// differences are those of all gaps of a data set that were run with all seeds.
func (s gapSetting) differences(x *tables.Index, dataset string, control experiment.Method) ([]gapDifference, error) {
	var all []gapDifference
	others := s.gaps(dataset, control)
	for gap, runs := range s.gaps(dataset, methods.Density) {
		if len(x.Missing(runs))+len(x.Missing(others[gap])) > 0 {
			continue
		}
		var a, b []float64
		found := gapDifference{}
		for i, e := range runs {
			density, _ := x.Find(e)
			other, _ := x.Find(others[gap][i])
			if density.Diverged || other.Diverged {
				found.lost++
				continue
			}
			a, b = append(a, density.Metrics[results.MetricNLL]), append(b, other.Metrics[results.MetricNLL])
		}
		if found.pairs = len(a); found.pairs < gapSeeds/2 {
			continue
		}
		d, err := metrics.PairedDifference(a, b, 0, tables.Confidence)
		if err != nil {
			return nil, fmt.Errorf("where: gap %d of %s: %w", gap, dataset, err)
		}
		found.mean, found.reach = d.Mean, d.High-d.Mean
		all = append(all, found)
	}
	return all, nil
}

// means are the mean differences.
func means(list []gapDifference) []float64 {
	var all []float64
	for _, d := range list {
		all = append(all, d.mean)
	}
	return all
}

// bootstrapDraws and bootstrapSeed make the intervals of medians.
const bootstrapDraws, bootstrapSeed = 2000, 1

// GapTable answers question 1: for each data set and setting, and each control, on how many gaps density has the lower mean
// NLL, the median difference over gaps with its bootstrap interval, and the verdict of the signed-rank test. All verdicts
// against one control hold together at 5 % (Holm).
func GapTable(x *tables.Index) (report.Table, error) {
	t := report.Table{
		Name: "where-gaps", Columns: []string{"Data set, settings"},
		Caption: "Does the density help in gaps? Density against two controls on test inputs in a gap: on how many gaps its mean NLL over 20 seeds is lower, and the median difference over gaps (nats, negative: density is better).",
		Notes:   []string{"Intervals: 95 % bootstrap over gaps. Better and worse hold for all rows of a column together (signed ranks over gaps, Holm, 5 %). Gaps on which one of the two diverged on more than half of the seeds are left out."},
	}
	for _, control := range controls() {
		t.Columns = append(t.Columns, "against "+control.Name)
	}
	type place struct{ row, column int }
	var places []place
	pValues, medians := make([][]float64, len(controls())), map[place]float64{}
	for _, s := range gapSettings() {
		for _, dataset := range uciDatasets() {
			row := report.Row{Name: uci.DatasetTitle(dataset) + ", " + s.name}
			ran := false
			for k, control := range controls() {
				list, err := s.differences(x, dataset, control)
				if err != nil {
					return t, err
				}
				if len(list) == 0 {
					row.Cells = append(row.Cells, report.TextCell("–"))
					continue
				}
				ran = true
				d := means(list)
				lower := 0
				for _, v := range d {
					if v < 0 {
						lower++
					}
				}
				median, low, high, err := metrics.MedianInterval(d, tables.Confidence, bootstrapDraws, bootstrapSeed)
				if err != nil {
					return t, err
				}
				p, err := metrics.SignedRank(d)
				if err != nil {
					return t, err
				}
				at := place{len(t.Rows), k}
				places, pValues[k], medians[at] = append(places, at), append(pValues[k], p), median
				row.Cells = append(row.Cells, report.TextCell(fmt.Sprintf("%d of %d gaps, %+.3f [%+.3f, %+.3f]", lower, len(d), median, low, high)))
			}
			if ran {
				t.Rows = append(t.Rows, row)
			}
		}
	}
	for k := range controls() {
		if len(pValues[k]) == 0 {
			continue
		}
		adjusted, err := metrics.Holm(pValues[k])
		if err != nil {
			return t, err
		}
		i := 0
		for _, at := range places {
			if at.column != k {
				continue
			}
			verdict := report.Undecided
			if adjusted[i] < 1-tables.Confidence {
				verdict = report.Better
				if medians[at] > 0 {
					verdict = report.Worse
				}
			}
			cell := &t.Rows[at.row].Cells[at.column]
			(*cell)[0].Text += ", " + verdict
			(*cell)[0].Bold = verdict == report.Better
			i++
		}
	}
	return t, nil
}

// mostShown is the largest difference that GapFigure's axis shows; differences beyond are drawn at its end.
const mostShown = 1.5

// GapFigure shows each gap: a panel for each data set, in it a row for each setting and control, and a mark for each gap at
// its mean difference over seeds.
func GapFigure(x *tables.Index, _ uint64) (report.Figure, error) {
	const columns = 3
	f := report.Figure{
		Name: "where-gaps", Width: vg.Points(760), Height: vg.Points(420),
		Caption: fmt.Sprintf("Density's test NLL in gaps minus the control's, a mark for each gap (mean over 20 seeds; left of 0: density is better; bar: median over gaps). Differences beyond %g nats stand at the end of the axis.", mostShown),
	}
	colours := []struct {
		method experiment.Method
		shape  draw.GlyphDrawer
	}{{controls()[0], draw.RingGlyph{}}, {controls()[1], draw.CrossGlyph{}}}
	var panels []*plot.Plot
	for n, dataset := range uciDatasets() {
		p := report.New(uci.DatasetTitle(dataset), "", "")
		if n >= columns {
			p.X.Label.Text = "difference of NLL (nats)"
		}
		var ticks []plot.Tick
		y := 0.0
		for _, s := range slices.Backward(gapSettings()) {
			for k, c := range slices.Backward(colours) {
				list, err := s.differences(x, dataset, c.method)
				if err != nil {
					return f, err
				}
				label := " "
				if n%columns == 0 {
					label = fmt.Sprintf("%s, %s", s.name, []string{"mean energy", "constant"}[k])
				}
				ticks = append(ticks, plot.Tick{Value: y, Label: label})
				if d := means(list); len(d) > 0 {
					var at, rows []float64
					for _, v := range d {
						at, rows = append(at, max(-mostShown, min(mostShown, v))), append(rows, y)
					}
					if err := report.ErrorBars(p, "", at, rows, make([]float64, len(at)), report.Palette()[k], c.shape); err != nil {
						return f, err
					}
					slices.Sort(at)
					median := stat.Quantile(0.5, stat.LinInterp, at, nil)
					if err := report.Line(p, "", []float64{median, median}, []float64{y - 0.3, y + 0.3}, report.Red); err != nil {
						return f, err
					}
				}
				y++
			}
		}
		if err := report.Dashes(p, "", []float64{0, 0}, []float64{-0.6, y - 0.4}, report.Grey); err != nil {
			return f, err
		}
		p.Y.Tick.Marker, p.Y.Min, p.Y.Max = plot.ConstantTicks(ticks), -0.6, y-0.4
		p.X.Min, p.X.Max = -mostShown-0.1, mostShown+0.1
		panels = append(panels, p)
	}
	f.Panels = report.InRows(panels, columns, nil)
	return f, nil
}
