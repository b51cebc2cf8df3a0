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

	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

// Figures are the pictures of the study: those that its pages and the notebooks show.
func Figures() []tables.NamedFigure {
	return []tables.NamedFigure{
		{Name: "uci-reproduction", Doc: "UCI with the settings of the authors' code: how far our numbers are from the paper's", Make: ReproductionFigure},
		{Name: "uci-nll", Doc: "UCI negative log likelihood, ours beside the paper's", Make: NLLFigure},
		{Name: "uci-claims", Doc: "UCI: the paper's other methods against density uncertainty in three settings", Make: ClaimsFigure},
		{Name: "uci-energy", Doc: "UCI: density layers with each energy model against constant energy", Make: EnergyFigure},
		{Name: "uci-place", Doc: "UCI: density layers against the same with their mean energy for every input", Make: PlaceFigure},
		{Name: "uci-gap", Doc: "UCI, gap splits: every method against density uncertainty", Make: GapFigure},
		{Name: "uci-tuned", Doc: "UCI with tuned settings: every method against density uncertainty", Make: TunedFigure},
		{Name: "uci-converged", Doc: "what longer training does to density layers and others on UCI", Make: ConvergedFigure},
		{Name: "uci-options", Doc: "what each single option between the text and the authors' code does to density layers on UCI", Make: OptionsFigure},
	}
}

// forest is a picture of a table with differences of the negative log likelihood.
func forest(x *tables.Index, f report.Forest, table func(*tables.Index) (report.Table, error)) (report.Figure, error) {
	t, err := table(x)
	if err != nil {
		return report.Figure{}, err
	}
	f.Axis = "difference of NLL (nats)"
	picture, err := f.Of(t)
	picture.Caption = prose.Caption(t.Name+" picture", nil)
	return picture, err
}

// perRow is the number of panels beside each other in a picture with a panel for each data set.
const perRow = 3

// perDataset is a forest of a table without its rows in RMSE, with a panel for each data set: many methods are seen better
// one below the other, and data sets have their own scales. Within is that of the forest.
func perDataset(x *tables.Index, table func(*tables.Index) (report.Table, error), within float64) (report.Figure, error) {
	return forest(x, report.Forest{Columns: perRow, Within: within}, func(x *tables.Index) (report.Table, error) {
		t, err := table(x)
		t.Rows = slices.DeleteFunc(t.Rows, func(r report.Row) bool { return strings.HasPrefix(r.Group, rmse.title) })
		return t.Turned(), err
	})
}

// ClaimsFigure shows the negative log likelihoods of ClaimsTable.
func ClaimsFigure(x *tables.Index) (report.Figure, error) {
	return perDataset(x, ClaimsTable, 0)
}

// GapFigure shows GapTable.
func GapFigure(x *tables.Index) (report.Figure, error) {
	return perDataset(x, GapTable, 2)
}

// TunedFigure shows the negative log likelihoods of TunedTable.
func TunedFigure(x *tables.Index) (report.Figure, error) {
	return perDataset(x, TunedTable, 0)
}

// EnergyFigure shows EnergyTable.
func EnergyFigure(x *tables.Index) (report.Figure, error) {
	return forest(x, report.Forest{}, EnergyTable)
}

// PlaceFigure shows PlaceTable.
func PlaceFigure(x *tables.Index) (report.Figure, error) {
	return forest(x, report.Forest{}, PlaceTable)
}

// effectMarks are those of the directions.
var effectMarks = []report.Mark{{Colour: report.Green, Shape: draw.CircleGlyph{}}, {Colour: report.Purple, Shape: draw.PyramidGlyph{}}}

// OptionsFigure shows OptionsTable.
func OptionsFigure(x *tables.Index) (report.Figure, error) {
	return forest(x, report.Forest{Marks: effectMarks, Columns: perRow}, OptionsTable)
}

// NLLFigure shows the table NLL: a panel for each data set and in it, for each method, our mean and the paper's with bars of
// one standard deviation over the splits. If only part of the splits was run, our glyph is hollow.
func NLLFigure(x *tables.Index) (report.Figure, error) {
	const columns = 5
	f := report.Figure{Name: "uci-nll", Width: vg.Points(760), Height: vg.Points(375), Key: report.Key(nllMarks...)}
	f.Caption = prose.Caption("uci-nll picture", nil)
	var panels []*plot.Plot
	for n, dataset := range tableDatasets() {
		p, err := comparisonPlot(x, dataset, n%columns == 0)
		if err != nil {
			return report.Figure{}, err
		}
		panels = append(panels, p)
	}
	f.Panels = report.InRows(panels, columns, nil)
	return f, nil
}

// nllMarks are those of NLLFigure.
var nllMarks = []report.Mark{
	{Name: "ours, mean ± 1 sd over all splits", Colour: report.Blue, Shape: draw.CircleGlyph{}},
	{Name: "ours, mean ± 1 sd over part of the splits", Colour: report.Blue, Shape: draw.RingGlyph{}},
	{Name: "paper, mean ± 1 sd over all splits", Colour: report.Orange, Shape: draw.PyramidGlyph{}},
}

// apart is how far from a method's line its numbers are drawn.
const apart = 0.17

func comparisonPlot(x *tables.Index, dataset string, labelled bool) (*plot.Plot, error) {
	p := report.New(DatasetTitle(dataset), "", "")
	p.Title.TextStyle.Font.Size = vg.Points(report.LabelSize)
	var ticks []plot.Tick
	ours, part, theirs := bars{Mark: nllMarks[0]}, bars{Mark: nllMarks[1]}, bars{Mark: nllMarks[2]}
	list := Methods()
	for i, m := range list {
		mean := nll.everywhere(dataset, m)
		s, err := x.Summarize(mean)
		if err != nil {
			return nil, err
		}
		y := float64(len(list) - 1 - i)
		label := " "
		if labelled {
			label = m.Name
		}
		ticks = append(ticks, plot.Tick{Value: y, Label: label})
		switch {
		case s.Complete():
			ours.add(s.Mean, y+apart, s.Std)
		case s.N > 0:
			part.add(s.Mean, y+apart, s.Std)
		}
		if mean.Printed != nil {
			theirs.add(mean.Printed.Mean, y-apart, mean.Printed.Std)
		}
	}
	drawn := 0
	for _, b := range []bars{theirs, part, ours} {
		if len(b.x) > 0 {
			drawn++
			if err := report.ErrorBars(p, "", b.x, b.y, b.std, b.Colour, b.Shape); err != nil {
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
	p.Y.Min, p.Y.Max = -0.6, float64(len(list))-0.4
	return p, nil
}

// bars are the numbers that are drawn alike.
type bars struct {
	x, y, std []float64
	report.Mark
}

// add appends a number; an unknown standard deviation has no bar.
func (b *bars) add(x, y, std float64) {
	if math.IsNaN(std) {
		std = 0
	}
	b.x, b.y, b.std = append(b.x, x), append(b.y, y), append(b.std, std)
}

// ConvergedFigure shows, for each of the small data sets, the negative log likelihood of the methods that were trained
// longest after 100, 400 and 4000 epochs: means over the splits that all three have. A panel ends at the highest mean
// after 100 epochs; a line that leaves it ends in an arrowhead.
func ConvergedFigure(x *tables.Index) (report.Figure, error) {
	const columns = 3
	f := report.Figure{Name: "uci-converged", Width: vg.Points(640), Height: vg.Points(400)}
	f.Caption = prose.Caption("uci-converged picture", nil)
	drawn, lengths := drawnMethods(), trainings()[:3]
	var marks []report.Mark
	for i, m := range drawn {
		mark := report.MarkOf(m.Name, i)
		mark.Shape = draw.CircleGlyph{}
		marks = append(marks, mark)
	}
	f.Key = report.Key(append(marks, report.Mark{Name: "off the scale", Colour: report.Grey, Shape: leavesShape})...)
	var ticks []plot.Tick
	for _, t := range lengths {
		epochs := t.runs(SmallDatasets()[0], detached)[0].Recipe.Epochs
		ticks = append(ticks, plot.Tick{Value: math.Log10(float64(epochs)), Label: fmt.Sprint(epochs)})
	}
	var panels []*plot.Plot
	for n, dataset := range SmallDatasets() {
		p := report.New(DatasetTitle(dataset), "", "")
		p.Title.TextStyle.Font.Size = vg.Points(report.LabelSize)
		low, top := math.Inf(1), math.Inf(-1)
		curves := make([]bars, len(drawn))
		for i, m := range drawn {
			curves[i].Mark = marks[i]
			for k, t := range lengths {
				s, err := x.Summarize(nll.Over(firstFive(t.runs(dataset, m))))
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
		errs = append(errs, report.Points(p, "", b.x[i:i+1], b.y[i:i+1], b.Colour, vg.Points(2)))
		for _, k := range []int{i - 1, i + 1} {
			if k < 0 || k == len(b.y) || k < i && b.y[k] <= height { // the line from a dot before is there already
				continue
			}
			toX, toY := b.x[k], b.y[k]
			if toY > height {
				toX, toY = b.x[i]+(toX-b.x[i])*(height-y)/(toY-y), height
				if k > i {
					errs = append(errs, report.ErrorBars(p, "", []float64{toX}, []float64{toY}, []float64{0}, b.Colour, leavesShape))
				}
			}
			errs = append(errs, report.Line(p, "", []float64{b.x[i], toX}, []float64{y, toY}, b.Colour))
		}
	}
	return errors.Join(errs...)
}
