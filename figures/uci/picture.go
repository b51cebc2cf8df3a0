package render

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

// UCIComparison shows a UCI table as a picture: a panel for each data set and in it, for each method, our
// mean and the paper's with bars of one standard deviation over the splits. Where only part of
// the splits was run our glyph is hollow; quick runs are not drawn. metric is tables.MetricNLL or tables.MetricRMSE.
func UCIComparison(lines []results.Result, metric string) (Figure, error) {
	title := map[string]string{tables.MetricNLL: "negative log likelihood", tables.MetricRMSE: "root mean squared error"}[metric]
	if title == "" {
		return Figure{}, fmt.Errorf("render: unknown metric %q, want %s or %s", metric, tables.MetricNLL, tables.MetricRMSE)
	}
	panels, err := tables.UCIPanels(lines, metric)
	if err != nil {
		return Figure{}, err
	}
	const columns = 5
	f := Figure{Name: "uci-" + metric, Width: vg.Points(760), Height: vg.Points(375), Key: comparisonKey(),
		Caption: "Test " + title + " on UCI regression, lower (left) is better: ours and the paper's means with one standard deviation over the splits (not the standard error) to each side."}
	for n, panel := range panels {
		if n%columns == 0 {
			f.Panels = append(f.Panels, make([]*plot.Plot, columns))
		}
		p, err := comparisonPlot(panel, n%columns == 0)
		if err != nil {
			return Figure{}, err
		}
		f.Panels[n/columns][n%columns] = p
	}
	return f, nil
}

// The shapes of the numbers, and how far from a method's line they are drawn.
var (
	oursShape   = draw.CircleGlyph{}
	partShape   = draw.RingGlyph{} // ours over part of the splits
	theirsShape = draw.PyramidGlyph{}
)

const apart = 0.17

func comparisonPlot(panel tables.UCIPanel, labelled bool) (*plot.Plot, error) {
	p := New(panel.Title, "", "")
	p.Title.TextStyle.Font.Size = vg.Points(labelSize)
	var ticks []plot.Tick
	ours, part, theirs := bars{colour: Blue, shape: oursShape}, bars{colour: Blue, shape: partShape}, bars{colour: Orange, shape: theirsShape}
	for i, entry := range panel.Entries {
		y := float64(len(panel.Entries) - 1 - i)
		label := " "
		if labelled {
			label = entry.Method
		}
		ticks = append(ticks, plot.Tick{Value: y, Label: label})
		switch {
		case entry.Ours.Complete():
			ours.add(entry.Ours.Mean, y+apart, entry.Ours.Std)
		case entry.Ours.Scale == experiment.Full && entry.Ours.N > 0:
			part.add(entry.Ours.Mean, y+apart, entry.Ours.Std)
		}
		if !math.IsNaN(entry.Paper.Mean) {
			theirs.add(entry.Paper.Mean, y-apart, entry.Paper.Std)
		}
	}
	drawn := 0
	for _, b := range []bars{theirs, part, ours} {
		if len(b.x) > 0 {
			drawn++
			if err := ErrorBars(p, "", b.x, b.y, b.std, b.colour, b.shape); err != nil {
				return nil, err
			}
		}
	}
	if drawn == 0 {
		p.X.Min, p.X.Max = 0, 1
		p.X.Tick.Marker = plot.ConstantTicks(nil)
		p.X.Label.Text = "not run"
	}
	room := 0.06 * (p.X.Max - p.X.Min)
	p.X.Min, p.X.Max = p.X.Min-room, p.X.Max+room
	p.Y.Tick.Marker = plot.ConstantTicks(ticks)
	p.Y.Min, p.Y.Max = -0.6, float64(len(panel.Entries))-0.4
	return p, nil
}

// bars are the numbers that are drawn alike.
type bars struct {
	x, y, std []float64
	colour    color.Color
	shape     draw.GlyphDrawer
}

// add appends a number; an unknown standard deviation has no bar.
func (b *bars) add(x, y, std float64) {
	if math.IsNaN(std) {
		std = 0
	}
	b.x, b.y, b.std = append(b.x, x), append(b.y, y), append(b.std, std)
}

// comparisonKey explains the glyphs.
func comparisonKey() *plot.Legend {
	p := New("", "", "")
	key := p.Legend
	key.Left = true
	for _, entry := range []struct {
		name   string
		colour color.Color
		shape  draw.GlyphDrawer
	}{
		{"ours, mean ± 1 sd over all splits", Blue, oursShape},
		{"ours, mean ± 1 sd over part of the splits", Blue, partShape},
		{"paper, mean ± 1 sd over all splits", Orange, theirsShape},
	} {
		key.Add(entry.name, glyph{draw.GlyphStyle{Color: entry.colour, Radius: vg.Points(2.4), Shape: entry.shape}})
	}
	return &key
}

// glyph is a legend entry of one glyph.
type glyph struct{ draw.GlyphStyle }

// Thumbnail implements plot.Thumbnailer.
func (g glyph) Thumbnail(c *draw.Canvas) { c.DrawGlyph(g.GlyphStyle, c.Center()) }
