package uci

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

// farAway is the end of the axis of ReproductionFigure, in standard deviations. Numbers beyond are drawn there.
const farAway = 2

// ReproductionFigure shows how far our results with the settings of the authors' code are from the numbers that the paper prints: a
// panel for each metric, in it a row for each data set and a mark for each method, at (ours - paper) in units of our standard
// deviation over 20 splits (tables.Mean.Away).
func ReproductionFigure(x *tables.Index) (report.Figure, error) {
	f := report.Figure{Name: "uci-reproduction", Width: vg.Points(760), Height: vg.Points(330)}
	list := paperMethods()
	var colours []report.Mark
	for k, m := range list {
		colours = append(colours, report.MarkOf(m.Name, k))
	}
	f.Key = report.Key(colours...)
	rows := without(withoutYear(), "energy") // the paper's
	released := releasedSetting(rows...)
	var panels []*plot.Plot
	near, all := 0, 0
	for k, metric := range tableMetrics {
		p := report.New(metric.title, "ours minus the paper's, in standard deviations", "")
		var ticks []plot.Tick
		for i, dataset := range rows {
			middle := float64(len(rows) - 1 - i)
			label := " "
			if k == 0 {
				label = DatasetTitle(dataset)
			}
			ticks = append(ticks, plot.Tick{Value: middle, Label: label})
			for m, method := range list {
				mean := metric.of(dataset, method, released.runs(dataset, method))
				ours, err := x.Summarize(mean)
				if err != nil {
					return f, err
				}
				away, verdict := mean.Away(ours)
				if math.IsNaN(away) {
					continue
				}
				all++
				if verdict == report.Agrees {
					near++
				}
				at := []float64{max(-farAway, min(farAway, away))}
				y := []float64{middle + 0.16*(1.5-float64(m))}
				if err := report.ErrorBars(p, "", at, y, []float64{0}, colours[m].Colour, colours[m].Shape); err != nil {
					return f, err
				}
			}
		}
		height := []float64{-0.6, float64(len(rows)) - 0.4}
		for _, at := range []float64{-1, 0, 1} {
			if err := report.Dashes(p, "", []float64{at, at}, height, report.Grey); err != nil {
				return f, err
			}
		}
		p.Y.Tick.Marker = plot.ConstantTicks(ticks)
		p.Y.Min, p.Y.Max = height[0], height[1]
		p.X.Min, p.X.Max = -farAway-0.4, farAway+0.4
		panels = append(panels, p)
	}
	f.Caption = prose.Caption("uci-reproduction", map[string]int{"Near": near, "All": all, "End": farAway})
	f.Panels = report.InRows(panels, 2, nil)
	return f, nil
}
