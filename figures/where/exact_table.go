package where

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
	"densityuncertainty/figures/toy"
)

// ordered are the values of splits or seeds, in their order.
func ordered(by map[int]float64) []float64 {
	var values []float64
	for _, k := range slices.Sorted(maps.Keys(by)) {
		values = append(values, by[k])
	}
	return values
}

// bySeed is a metric of a method for each seed, the mean over the splits. A seed on which a run is missing or diverged has
// none.
func (p exactProblem) bySeed(x *tables.Index, m experiment.Method, metric string) map[int]float64 {
	found := map[int]float64{}
	for seed, list := range p.runs(m) {
		if values := ordered(x.BySplit(list, metric)); len(values) == exactSplits {
			found[seed] = stat.Mean(values, nil)
		}
	}
	return found
}

// own is a metric of the posteriors of a problem, the mean over the splits.
func (p exactProblem) own(x *tables.Index, metric string) float64 {
	return stat.Mean(ordered(x.BySplit(p.posterior(), metric)), nil)
}

// posteriorLine says how the chains of a problem's posteriors went, over all splits; "" if one is missing.
func (p exactProblem) posteriorLine(x *tables.Index) string {
	rHat, size, divergences := 0.0, math.Inf(1), 0.0
	for _, e := range p.posterior() {
		r, done := x.Find(e)
		if !done {
			return ""
		}
		rHat, size = max(rHat, r.Metrics[results.MetricRHat]), min(size, r.Metrics[results.MetricEffectiveSize])
		divergences += r.Metrics[results.MetricDivergences]
	}
	return fmt.Sprintf("%s: R-hat at most %.3f, effective size at least %.0f, %s", p.title, rHat, size, results.Counted(int(divergences), "divergence", "divergences"))
}

// exactRegions are the regions in the words of the table.
func exactRegions() []struct{ name, title string } {
	return []struct{ name, title string }{{dataRegion, "at the data"}, {gapRegion, "in the gap"}}
}

// ExactTable answers question 2: for each problem and region, and each method, how far its predictions are from the
// posterior's: the Wasserstein distance of the function, the total variation of the target's distributions, and how wide
// the function's distribution is. Density's Wasserstein distance is tested against that of each other method, over seeds;
// all verdicts of a problem hold together at 5 % (Holm).
func ExactTable(x *tables.Index) (report.Table, error) {
	t := report.Table{
		Name: "where-exact", Columns: []string{"Problem, inputs", "two chains and two others"},
		Caption: "How far are predictions from the exact posterior, drawn by HMC? The mean Wasserstein distance of the function (standardised targets), the total variation of the target, and the function's standard deviation over the posterior's. The first column is HMC's own error.",
		Notes:   []string{fmt.Sprintf("Means over %d splits and %d seeds. Better: density is closer (Wasserstein, paired over seeds, Holm at 5 %% for all of a problem); the verdicts stand with the other methods.", exactSplits, exactSeeds)},
	}
	for _, m := range exactMethods() {
		t.Columns = append(t.Columns, m.Name)
	}
	for _, p := range exactProblems() {
		line := p.posteriorLine(x)
		if line == "" {
			continue
		}
		t.Notes = append(t.Notes, line+".")
		type tested struct{ region, method string }
		var family tables.Family[tested]
		for _, r := range exactRegions() {
			density := p.bySeed(x, exactMethods()[0], r.name+"_w1")
			for _, m := range exactMethods()[1:] {
				if err := family.Add(tested{r.name, m.Name}, density, p.bySeed(x, m, r.name+"_w1"), 0); err != nil {
					return t, err
				}
			}
		}
		tests, err := family.ByName()
		if err != nil {
			return t, err
		}
		for _, r := range exactRegions() {
			row := report.Row{Name: p.title + ", " + r.title}
			row.Cells = append(row.Cells, report.TextCell(fmt.Sprintf("%.3f", p.own(x, r.name+"_w1")), fmt.Sprintf("tv %.3f", p.own(x, r.name+"_tv"))))
			for _, m := range exactMethods() {
				values := func(metric string) []float64 { return ordered(p.bySeed(x, m, r.name+"_"+metric)) }
				w1, std := stat.MeanStdDev(values("w1"), nil)
				if math.IsNaN(w1) {
					row.Cells = append(row.Cells, report.TextCell("–"))
					continue
				}
				cell := report.TextCell(report.MeanStd(w1, std, 3), fmt.Sprintf("tv %.3f, sd ratio %.2f", stat.Mean(values("tv"), nil), stat.Mean(values("std_ratio"), nil)))
				if test, has := tests[tested{r.name, m.Name}]; has {
					cell = append(cell, test.Line())
				}
				row.Cells = append(row.Cells, cell)
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t, nil
}

// ExactFigure shows the cubic's posterior beside what each method says, for the first split and seed, and below, the
// distances of all methods on all problems: a mark for each seed.
func ExactFigure(x *tables.Index) (report.Figure, error) {
	cubic := exactProblems()[0]
	drawn := cubic.posterior()[:1]
	for _, m := range exactMethods() {
		drawn = append(drawn, cubic.runs(m)[0][0])
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
	for i, r := range list {
		row := f.Panels[i/len(f.Panels[0])]
		row[i%len(row)].Title.Text = r.Method
	}
	var below []*plot.Plot
	for _, problem := range exactProblems() {
		if problem.posteriorLine(x) == "" {
			continue
		}
		p, err := problem.distances(x, len(below) == 0)
		if err != nil {
			return f, err
		}
		below = append(below, p)
	}
	f.Panels = append(f.Panels, report.InRows(slices.Concat(below, make([]*plot.Plot, len(f.Panels[0])-len(below))), len(f.Panels[0]), nil)...)
	f.Name, f.Width, f.Height = "where-exact", vg.Points(700), vg.Points(760)
	f.Caption = "Predictions of the cubic: mean and central 95 % and 99 % of the function's draws, by HMC (exact) and by each method. Below: Wasserstein distance from HMC's function, a mark for each seed (mean of three splits); dashed: HMC's own error."
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
			for _, v := range ordered(p.bySeed(x, m, r.name+"_w1")) {
				at, rows = append(at, v), append(rows, y+0.2-0.4*float64(k))
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
		if v := p.own(x, r.name+"_w1"); v > 0 {
			if err := report.Dashes(panel, "", []float64{v, v}, []float64{-0.5, float64(len(list)) - 0.5}, report.Palette()[k]); err != nil {
				return nil, err
			}
			all = append(all, v)
		}
	}
	if len(all) > 0 {
		report.LogAxis(&panel.X, all)
	}
	panel.Y.Tick.Marker, panel.Y.Min, panel.Y.Max = plot.ConstantTicks(ticks), -0.6, float64(len(list))+0.9 // room for the legend
	panel.Legend.Top = true
	return panel, nil
}
