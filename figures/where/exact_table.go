package where

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
	"densityuncertainty/figures/toy"
)

// bySeed is a mean over the splits and then over the seeds.
func bySeed(metric string, list experiment.Experiments) tables.Mean {
	return tables.Mean{Of: list, Metric: metric, Decimals: 3, By: func(e experiment.Experiment) int { return int(e.Seed) }}
}

// diagnostics say how the chains of a problem's posteriors went, over all splits; nil if one is missing.
func (p exactProblem) diagnostics(x *tables.Index) []string {
	rHat, size, divergences := 0.0, math.Inf(1), 0.0
	for _, e := range p.posterior() {
		r, done := x.Find(e)
		if !done {
			return nil
		}
		rHat, size = max(rHat, r.Metrics[results.MetricRHat]), min(size, r.Metrics[results.MetricEffectiveSize])
		divergences += r.Metrics[results.MetricDivergences]
	}
	return []string{fmt.Sprintf("%s: R-hat at most %.3f, effective size at least %.0f, %s.", p.title, rHat, size, results.Counted(int(divergences), "divergence", "divergences"))}
}

// exactRegions are the regions in the words of the table.
func exactRegions() []struct{ name, title string } {
	return []struct{ name, title string }{{dataRegion, "at the data"}, {gapRegion, "in the gap"}}
}

// ExactTable answers question 2: for each problem and region, and each method, how far its predictions are from the
// posterior's: the Wasserstein distance of the function, the total variation of the target's distributions, and how wide
// the function's distribution is. The Wasserstein distance is tested against density's, over seeds; all verdicts of a
// problem hold together at 5% (Holm).
func ExactTable(x *tables.Index) (report.Table, error) {
	s := tables.Sheet{Table: prose.Table("where-exact", map[string]int{"Splits": exactSplits, "Seeds": exactSeeds}), Down: true}
	s.Columns = []string{"Method", "Wasserstein distance", "Total variation", "Width"}
	s.Legend = "▲ closer, ▽ farther than density, significant at 5% for all rows of a problem together. No mark: not significant."
	for _, p := range exactProblems() {
		s.Measured = append(s.Measured, p.diagnostics(x)...)
		density := p.runs(exactMethods()[0])
		for _, r := range exactRegions() {
			add := func(name string, runs, against experiment.Experiments) {
				var cells []tables.Mean
				for _, metric := range exactMetrics {
					cells = append(cells, bySeed(r.name+metric, runs))
				}
				cells[0].Against, cells[0].Family = against, p.name
				s.Add(p.title+", "+r.title, name, cells...)
			}
			add("HMC, two chains from two others", p.posterior(), nil)
			add(exactMethods()[0].Name, density, nil)
			for _, m := range exactMethods()[1:] {
				add(m.Name, p.runs(m), density)
			}
		}
	}
	return s.Make(x)
}

// ExactGapsTable answers question 7: for each data set, the Wasserstein distance in the gap of each method, and for the four
// multiples of the mean energy, density's less it. A gap's is the mean over seeds. Differences are tested over gaps (t), those
// of both sets together (Holm).
func ExactGapsTable(x *tables.Index) (report.Table, error) {
	s := tables.Sheet{Table: prose.Table("where-exact-gaps", map[string]int{"Seeds": exactSeeds}), Down: true}
	s.Columns = []string{"Method", "Wasserstein distance", "Density less it"}
	s.Legend = "▲ density is closer, ▽ farther, significant at 5% for both data sets together. No mark: not significant."
	for _, p := range everyGap() {
		s.Measured = append(s.Measured, p.diagnostics(x)...)
		for _, m := range everyGapMethods() {
			distance := tables.Mean{Of: p.runs(m), Metric: gapRegion + exactMetrics[0], Decimals: 3, By: func(e experiment.Experiment) int { return e.Split }}
			difference := tables.Words("–")
			if strings.HasPrefix(m.Key, methods.DensityMean.Key) {
				difference = distance.Over(p.runs(everyGapMethods()[0]))
				difference.Against, difference.Difference = distance.Of, true
			}
			s.Add(p.title, m.Name, distance, difference)
		}
	}
	return s.Make(x)
}

// exactMetrics are the columns of ExactTable, as what follows a region's name in a metric's.
var exactMetrics = []string{"_w1", "_tv", "_std_ratio"}

// ExactFigure shows the cubic's posterior beside what each method says, for the first split and seed, and below, the
// distances of all methods on all problems: a mark for each seed.
func ExactFigure(x *tables.Index) (report.Figure, error) {
	cubic := exactProblems()[0]
	drawn := cubic.posterior()[:1]
	for _, m := range exactMethods() {
		drawn = append(drawn, cubic.runs(m)[0])
	}
	var list []experiment.Result
	for _, e := range drawn {
		r, done := x.Find(e)
		if !done {
			return report.Figure{}, fmt.Errorf("where: the picture needs %v; run: reproduce run where-posterior, and then where-exact", e)
		}
		list = append(list, r)
	}
	f, err := toy.Pictures(list)
	if err != nil {
		return f, err
	}
	panels := slices.Concat(f.Panels...)
	for i, r := range list {
		panels[i].Title.Text = r.Method
	}
	var below []*plot.Plot
	for n, problem := range exactProblems() {
		p, err := problem.distances(x, n == 0)
		if err != nil {
			return f, err
		}
		below = append(below, p)
	}
	f.Panels = append(f.Panels, below)
	f.Name, f.Width, f.Height = "where-exact", vg.Points(700), vg.Points(760)
	f.Caption = prose.Caption("where-exact picture", nil)
	return f, nil
}

// distances is a panel with a row for each method, and a mark for each seed at its distance from the posterior.
func (p exactProblem) distances(x *tables.Index, labels bool) (*plot.Plot, error) {
	panel := report.New(p.title, "Wasserstein distance", "")
	var ticks []plot.Tick
	var all []float64
	list := exactMethods()
	for n, m := range list {
		y := float64(len(list) - 1 - n)
		tick := plot.Tick{Value: y, Label: " "}
		if labels {
			tick.Label = m.Name
		}
		ticks = append(ticks, tick)
		for k, r := range exactRegions() {
			var at, rows []float64
			values := x.Units(bySeed(r.name+"_w1", p.runs(m)))
			for _, seed := range slices.Sorted(maps.Keys(values)) {
				at, rows = append(at, values[seed]), append(rows, y+0.2-0.4*float64(k))
			}
			if len(at) == 0 {
				continue
			}
			name := ""
			if labels && n == 0 {
				name = r.title
			}
			if err := report.Points(panel, name, at, rows, report.Palette()[k], report.DotRadius); err != nil {
				return nil, err
			}
			all = append(all, at...)
		}
	}
	for k, r := range exactRegions() {
		for _, own := range x.Units(bySeed(r.name+"_w1", p.posterior())) {
			if err := report.Dashes(panel, "", []float64{own, own}, []float64{-0.5, float64(len(list)) - 0.5}, report.Palette()[k]); err != nil {
				return nil, err
			}
			all = append(all, own)
		}
	}
	report.LogAxis(&panel.X, all)
	panel.Y.Tick.Marker, panel.Y.Min, panel.Y.Max = plot.ConstantTicks(ticks), -0.6, float64(len(list))+0.9 // room for the legend
	panel.Legend.Top = true
	return panel, nil
}
