package uci

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

// perRow is the number of panels beside each other in a picture with a panel for each data set.
const perRow = 3

// perDataset is a picture of a table without its rows in RMSE, with a panel for each data set: many methods are seen better
// one below the other, and data sets have their own scales. Within is that of the forest.
func perDataset(within float64, table func(*tables.Index) (report.Table, error)) func(*tables.Index) (report.Figure, error) {
	return tables.Picture(prose, report.Forest{Axis: nllAxis, Columns: perRow, Within: within, Shades: true}, func(x *tables.Index) (report.Table, error) {
		t, err := table(x)
		t.Rows = slices.DeleteFunc(t.Rows, func(r report.Row) bool { return strings.HasPrefix(r.Group, rmse.Title) })
		return t.Turned(), err
	})
}

const nllAxis = "difference of NLL (nats)"

// convergedFigure shows, for each of the small data sets, the negative log likelihood of the methods that were trained
// longest after 100, 400 and 4000 epochs: means over the splits that all three have. A panel ends a little
// above the highest mean after 100 epochs, where lines to higher means leave it.
func convergedFigure(x *tables.Index) (report.Figure, error) {
	f := report.Figure{Name: "uci-converged", Width: vg.Points(640), Height: vg.Points(400)}
	f.Caption = prose.Caption("uci-converged picture", nil)
	drawn, lengths := slices.Concat(drawnMethods, laterMethods), trainings()[:3]
	var marks []report.Mark
	for i, m := range drawn {
		mark := report.MarkOf(m.Name, i)
		mark.Shape = draw.CircleGlyph{}
		marks = append(marks, mark)
	}
	f.Legend = report.Legend(marks...)
	var ticks []plot.Tick
	for k, t := range lengths {
		lengths[k].Splits = fewSplits
		epochs := t.Of(t.Data[0], detached)[0].Recipe.Epochs
		ticks = append(ticks, plot.Tick{Value: math.Log10(float64(epochs)), Label: fmt.Sprint(epochs)})
	}
	var panels []*plot.Plot
	for n, dataset := range SmallDatasets() {
		p := report.New(DatasetTitle(dataset), "", "")
		p.Title.TextStyle.Font.Size = vg.Points(report.LabelSize)
		low, top := math.Inf(1), math.Inf(-1)
		for i, m := range drawn {
			var at, means []float64
			for k, t := range lengths {
				s, err := x.Summarize(nll.Over(t.Of(Data{Name: dataset}, m)))
				if err != nil {
					return report.Figure{}, err
				}
				if !s.Complete() {
					continue
				}
				if k == 0 {
					top = max(top, s.Mean)
				}
				low = min(low, s.Mean)
				at, means = append(at, ticks[k].Value), append(means, min(s.Mean, 1e100)) // gonum cannot clip a line to larger numbers
			}
			if len(at) == 0 {
				continue
			}
			if err := errors.Join(report.Line(p, "", at, means, marks[i].Colour), report.Points(p, "", at, means, marks[i].Colour, vg.Points(2))); err != nil {
				return report.Figure{}, err
			}
		}
		if !math.IsInf(top, -1) {
			p.Y.Max = top + 0.1*(top-low)
		}
		p.X.Tick.Marker, p.X.Min, p.X.Max = plot.ConstantTicks(ticks), ticks[0].Value-0.1, ticks[len(ticks)-1].Value+0.1
		if n >= perRow {
			p.X.Label.Text = "epochs"
		}
		if n%perRow == 0 {
			p.Y.Label.Text = "NLL (nats)"
		}
		panels = append(panels, p)
	}
	f.Panels = report.InRows(panels, perRow, nil)
	return f, nil
}

// farAway is the end of the axis of reproductionFigure, in standard deviations. Numbers beyond are drawn there.
const farAway = 2

// reproductionFigure shows how far our results with the settings of the authors' code are from the paper's numbers. There is a panel
// for each metric, with a row for each data set and a mark for each method. A mark is at (ours - paper) in units of our standard
// deviation over 20 splits (tables.Printed.Away), and hollow within one.
func reproductionFigure(x *tables.Index) (report.Figure, error) {
	t, near, all := report.Table{Name: "uci-reproduction", Columns: []string{"Data set"}}, 0, 0
	for _, m := range paperMethods {
		t.Columns = append(t.Columns, m.Name)
	}
	rows := without(withoutYear(), "energy") // the paper's
	released := releasedGrid()
	for _, n := range tableNumbers {
		for _, dataset := range rows {
			row := report.Row{Group: n.Title, Name: DatasetTitle(dataset)}
			for _, m := range paperMethods {
				mean, cell := printed(n, dataset, m, released), report.Cell{}
				ours, err := x.Summarize(mean.Mean)
				if err != nil {
					return report.Figure{}, err
				}
				if away, verdict := mean.Away(ours); !math.IsNaN(away) {
					cell = report.Cell{Verdict: verdict, Difference: &metrics.Difference{Mean: away, Low: away, High: away}}
					if all++; verdict == report.Agrees {
						near++
					}
				}
				row.Cells = append(row.Cells, cell)
			}
			t.Rows = append(t.Rows, row)
		}
	}
	f, err := report.Forest{Axis: "ours minus the paper's, in standard deviations", Within: farAway}.Of(t)
	f.Caption = prose.Caption("uci-reproduction", map[string]int{"Near": near, "All": all, "End": farAway})
	return f, err
}
