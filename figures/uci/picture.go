package uci

import (
	"errors"
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// Figures are the pictures of the study. Further methods, such as one's own, get rows in them.
func Figures(further ...methods.Method) []report.NamedFigure {
	of := func(x metric) func([]results.Result, uint64) (report.Figure, error) {
		return func(lines []results.Result, _ uint64) (report.Figure, error) { return x.picture(lines, further) }
	}
	return []report.NamedFigure{
		{Name: "uci-nll", Doc: "UCI negative log likelihood, ours beside the paper's", Make: of(nll)},
		{Name: "uci-rmse", Doc: "UCI root mean squared error, ours beside the paper's", Make: of(rmse)},
		{Name: "uci-energy", Doc: "what each energy model does to density layers on UCI, in the place of constant energy", Make: energyPicture},
		{Name: "uci-epochs", Doc: "what longer training does to density layers and others on UCI", Make: epochsPicture},
		{Name: "uci-options", Doc: "what each single option between the text and the released code does to density layers on UCI", Make: optionsPicture},
	}
}

// Picture shows the table NLL or, for results.MetricRMSE, RMSE as a picture: a panel for each data set and in it,
// for each method, our mean and the paper's with bars of one standard deviation over the splits. Where only part of
// the splits was run our glyph is hollow; quick runs are not drawn. Further methods have rows of their own.
func Picture(lines []results.Result, metricName string, further ...methods.Method) (report.Figure, error) {
	for _, x := range theMetrics {
		if x.name == metricName {
			return x.picture(lines, further)
		}
	}
	return report.Figure{}, fmt.Errorf("uci: unknown metric %q, want %s or %s", metricName, nll.name, rmse.name)
}

func (x metric) picture(lines []results.Result, further []methods.Method) (report.Figure, error) {
	const columns = 5
	f := report.Figure{Name: "uci-" + x.name, Width: vg.Points(760), Height: vg.Points(375), Key: keyOf(
		mark{"ours, mean ± 1 sd over all splits", report.Blue, oursShape},
		mark{"ours, mean ± 1 sd over part of the splits", report.Blue, partShape},
		mark{"paper, mean ± 1 sd over all splits", report.Orange, theirsShape},
	)}
	f.Caption, _ = prose.Text("picture", map[string]string{"What": x.what})
	index := results.ByID(lines)
	var panels []*plot.Plot
	for n, dataset := range tableDatasets() {
		all, err := x.compared(index, dataset, append(tableMethods(), further...))
		if err != nil {
			return report.Figure{}, err
		}
		p, err := comparisonPlot(DatasetTitle(dataset), all, n%columns == 0)
		if err != nil {
			return report.Figure{}, err
		}
		panels = append(panels, p)
	}
	f.Panels = report.InRows(panels, columns, nil)
	return f, nil
}

// The shapes of the numbers, and how far from a method's line they are drawn.
var (
	oursShape   = draw.CircleGlyph{}
	partShape   = draw.RingGlyph{} // ours over part of the splits
	theirsShape = draw.PyramidGlyph{}
)

const apart = 0.17

func comparisonPlot(title string, all []comparison, labelled bool) (*plot.Plot, error) {
	p := report.New(title, "", "")
	p.Title.TextStyle.Font.Size = vg.Points(report.LabelSize)
	var ticks []plot.Tick
	ours, part, theirs := bars{colour: report.Blue, shape: oursShape}, bars{colour: report.Blue, shape: partShape}, bars{colour: report.Orange, shape: theirsShape}
	for i, c := range all {
		y := float64(len(all) - 1 - i)
		label := " "
		if labelled {
			label = c.method.Title
		}
		ticks = append(ticks, plot.Tick{Value: y, Label: label})
		switch {
		case c.ours.Complete():
			ours.add(c.ours.Mean, y+apart, c.ours.Std)
		case c.ours.Scale == results.Full && c.ours.N > 0:
			part.add(c.ours.Mean, y+apart, c.ours.Std)
		}
		if !math.IsNaN(c.paper.Mean) {
			theirs.add(c.paper.Mean, y-apart, c.paper.Std)
		}
	}
	drawn := 0
	for _, b := range []bars{theirs, part, ours} {
		if len(b.x) > 0 {
			drawn++
			if err := report.ErrorBars(p, "", b.x, b.y, b.std, b.colour, b.shape); err != nil {
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
	p.Y.Min, p.Y.Max = -0.6, float64(len(all))-0.4
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

// A mark is what stands for some of the numbers in a picture.
type mark struct {
	name   string
	colour color.Color
	shape  draw.GlyphDrawer
}

// keyOf explains marks.
func keyOf(marks ...mark) *plot.Legend {
	key := report.New("", "", "").Legend
	key.Left = true
	for _, m := range marks {
		key.Add(m.name, glyph{draw.GlyphStyle{Color: m.colour, Radius: vg.Points(2.4), Shape: m.shape}})
	}
	return &key
}

// glyph is a legend entry of one glyph.
type glyph struct{ draw.GlyphStyle }

// Thumbnail implements plot.Thumbnailer.
func (g glyph) Thumbnail(c *draw.Canvas) { c.DrawGlyph(g.GlyphStyle, c.Center()) }

// drawnColours are those of drawnMethods. A method or an energy has the same colour in all pictures that lie beside each
// other in a notebook, and no other has it there.
var drawnColours = []color.Color{report.Blue, report.Orange, report.Sky, report.Purple, report.Red}

// epochsPicture shows, for each of the small data sets, the negative log likelihood of the methods that were trained
// longest after 100, 400 and 4000 epochs: means over the splits that all three have. A panel ends at the highest of those after
// 100 epochs; a line that leaves it ends in an arrowhead.
func epochsPicture(lines []results.Result, _ uint64) (report.Figure, error) {
	const columns = 3
	f := report.Figure{Name: "uci-epochs", Width: vg.Points(640), Height: vg.Points(400)}
	f.Caption, _ = prose.Text("epochs picture", nil)
	var marks []mark
	for i, m := range drawnMethods {
		marks = append(marks, mark{m.Title, drawnColours[i], draw.CircleGlyph{}})
	}
	f.Key = keyOf(append(marks, mark{"off the scale", report.Grey, leavesShape})...)
	index := results.ByID(lines)
	var panels []*plot.Plot
	for n, dataset := range smallDatasets() {
		p := report.New(DatasetTitle(dataset), "", "")
		p.Title.TextStyle.Font.Size = vg.Points(report.LabelSize)
		var ticks []plot.Tick
		low, top := math.Inf(1), math.Inf(-1)
		curves := make([]bars, len(drawnMethods))
		for i, m := range drawnMethods {
			curves[i].colour = drawnColours[i]
			for _, protocol := range []Protocol{Paper(), longTraining(), longestTraining()} {
				protocol.Only = longestTraining().Only
				s, err := index.Summarize(protocol.On(dataset).Experiments(m), results.MetricNLL)
				if err != nil {
					return report.Figure{}, err
				}
				at := math.Log10(float64(protocol.Epochs))
				if i == 0 {
					ticks = append(ticks, plot.Tick{Value: at, Label: fmt.Sprint(protocol.Epochs)})
				}
				if !s.Complete() {
					continue
				}
				if protocol.Epochs == Paper().Epochs {
					top = max(top, s.Mean)
				}
				low = min(low, s.Mean)
				curves[i].add(at, s.Mean, 0)
			}
		}
		end := math.Inf(1)
		if !math.IsInf(top, -1) {
			end = top + 0.055*(top-low)
			p.Y.Max = top + 0.1*(top-low) // above the arrowheads
		}
		for _, curve := range curves {
			if err := curve.drawBelow(p, end); err != nil {
				return report.Figure{}, err
			}
		}
		p.X.Tick.Marker, p.X.Min, p.X.Max = plot.ConstantTicks(ticks), ticks[0].Value-0.1, ticks[len(ticks)-1].Value+0.1
		if n >= columns {
			p.X.Label.Text = "epochs"
		}
		if n%columns == 0 {
			p.Y.Label.Text = "NLL (nats)"
		}
		panels = append(panels, p)
	}
	f.Panels = report.InRows(panels, columns, nil)
	return f, nil
}

// leavesShape is drawn where a line leaves a panel upwards.
var leavesShape = draw.PyramidGlyph{}

// drawBelow draws a line through numbers, with a dot at each, as far as it is below a height. An arrowhead is where it
// leaves upwards.
func (b bars) drawBelow(p *plot.Plot, height float64) error {
	var errs []error
	for i, y := range b.y {
		if y > height {
			continue
		}
		errs = append(errs, report.Points(p, "", b.x[i:i+1], b.y[i:i+1], b.colour, vg.Points(2)))
		for _, k := range []int{i - 1, i + 1} {
			if k < 0 || k == len(b.y) || k < i && b.y[k] <= height { // the line from a dot before is there already
				continue
			}
			toX, toY := b.x[k], b.y[k]
			if toY > height {
				toX, toY = b.x[i]+(toX-b.x[i])*(height-y)/(toY-y), height
				if k > i {
					errs = append(errs, report.ErrorBars(p, "", []float64{toX}, []float64{toY}, []float64{0}, b.colour, leavesShape))
				}
			}
			errs = append(errs, report.Line(p, "", []float64{b.x[i], toX}, []float64{y, toY}, b.colour))
		}
	}
	return errors.Join(errs...)
}
