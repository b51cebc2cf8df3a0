package uci

import (
	"errors"
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

// Figures are the pictures of the study.
func Figures() []tables.NamedFigure {
	of := func(picture func(*tables.Index) (report.Figure, error)) func(*tables.Index, uint64) (report.Figure, error) {
		return func(x *tables.Index, _ uint64) (report.Figure, error) { return picture(x) }
	}
	return []tables.NamedFigure{
		{Name: "uci-reproduction", Doc: "UCI with the authors' settings: how far our numbers are from the paper's", Make: of(ReproductionPicture)},
		{Name: "uci-nll", Doc: "UCI negative log likelihood, ours beside the paper's", Make: of(nll.picture)},
		{Name: "uci-rmse", Doc: "UCI root mean squared error, ours beside the paper's", Make: of(rmse.picture)},
		{Name: "uci-energy", Doc: "what each energy model does to density layers on UCI, in the place of constant energy", Make: of(EnergyPicture)},
		{Name: "uci-epochs", Doc: "what longer training does to density layers and others on UCI", Make: of(EpochsPicture)},
		{Name: "uci-options", Doc: "what each single option between the text and the released code does to density layers on UCI", Make: of(OptionsPicture)},
	}
}

// Picture shows the table NLL or, for results.MetricRMSE, RMSE as a picture: a panel for each data set and in it, for each
// method, our mean and the paper's with bars of one standard deviation over the splits. If only part of the splits was
// run, our glyph is hollow. Quick runs are not drawn.
func Picture(x *tables.Index, metricName string) (report.Figure, error) {
	metric, err := metricNamed(metricName)
	if err != nil {
		return report.Figure{}, err
	}
	return metric.picture(x)
}

func (x metric) picture(index *tables.Index) (report.Figure, error) {
	const columns = 5
	f := report.Figure{Name: "uci-" + x.name, Width: vg.Points(760), Height: vg.Points(375), Key: keyOf(
		mark{"ours, mean ± 1 sd over all splits", report.Blue, oursShape},
		mark{"ours, mean ± 1 sd over part of the splits", report.Blue, partShape},
		mark{"paper, mean ± 1 sd over all splits", report.Orange, theirsShape},
	)}
	f.Caption, _ = prose.Text("picture", map[string]string{"What": x.what})
	var panels []*plot.Plot
	for n, dataset := range tableDatasets() {
		all, err := x.compared(index, dataset, Methods())
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
			label = c.method.Name
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

// drawnColours are those of drawnMethods. In all pictures of one notebook a colour stands for the same method or energy.
var drawnColours = []color.Color{report.Blue, report.Orange, report.Sky, report.Purple, report.Red}

// EpochsPicture shows, for each of the small data sets, the negative log likelihood of the methods that were trained
// longest after 100, 400 and 4000 epochs: means over the splits that all three have. A panel ends at the highest mean
// after 100 epochs; a line that leaves it ends in an arrowhead.
func EpochsPicture(x *tables.Index) (report.Figure, error) {
	const columns = 3
	f := report.Figure{Name: "uci-epochs", Width: vg.Points(640), Height: vg.Points(400)}
	f.Caption, _ = prose.Text("epochs picture", nil)
	drawn, lengths := drawnMethods(), trainings()[:3]
	var marks []mark
	for i, m := range drawn {
		marks = append(marks, mark{m.Name, drawnColours[i], draw.CircleGlyph{}})
	}
	f.Key = keyOf(append(marks, mark{"off the scale", report.Grey, leavesShape})...)
	var ticks []plot.Tick
	for _, t := range lengths {
		ticks = append(ticks, plot.Tick{Value: math.Log10(float64(t.epochs)), Label: fmt.Sprint(t.epochs)})
	}
	var panels []*plot.Plot
	for n, dataset := range smallDatasets() {
		p := report.New(DatasetTitle(dataset), "", "")
		p.Title.TextStyle.Font.Size = vg.Points(report.LabelSize)
		low, top := math.Inf(1), math.Inf(-1)
		curves := make([]bars, len(drawn))
		for i, m := range drawn {
			curves[i].colour = drawnColours[i]
			for k, t := range lengths {
				s, err := x.Summarize(tables.Cell{Full: firstFive(t.runs(dataset, m))}, results.MetricNLL)
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
				curves[i].add(ticks[k].Value, s.Mean, 0)
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
