package report

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"

	"densityuncertainty/dul/metrics"
)

// Judged has the name of a method and the outcomes of its predictions on a test set.
type Judged struct {
	Name     string
	Outcomes metrics.Outcomes
}

// The share of a reliability diagram below its zero line, where the confidences are counted, in units
// of accuracy: the room, and between which heights the bars stand.
const (
	countRoom   = -0.36
	countBase   = -0.33
	countHeight = 0.22
)

// ReliabilityDiagrams draws a panel for each method, up to four in a row. For each of so many bins of confidence (see
// metrics.Outcomes) a line has the accuracy of its examples. The shaded area is the gap between accuracy and mean
// confidence, which the expected calibration error averages. It is above the line where the method is too confident. On
// the dashed line the two are equal. Bars below have each bin's share of the test set.
func ReliabilityDiagrams(name string, methods []Judged, bins int) (Figure, error) {
	if len(methods) == 0 {
		return Figure{}, fmt.Errorf("report: %s: no methods", name)
	}
	var panels []*plot.Plot
	for i, m := range methods {
		p, err := reliabilityPlot(m, bins, i == 0)
		if err != nil {
			return Figure{}, fmt.Errorf("report: %s: %s: %w", name, m.Name, err)
		}
		panels = append(panels, p)
	}
	f := inRows(name, panels, 165, 205, ShareAxes)
	f.Caption = words.Caption("reliability", bins)
	return f, nil
}

// inRows is a figure of panels in rows of equal length, at most four. The sizes are those of a panel, in points.
func inRows(name string, panels []*plot.Plot, width, height float64, adapt func(p *plot.Plot, lowest, first bool)) Figure {
	const most = 4
	rows := (len(panels) + most - 1) / most
	f := Figure{Name: name, Panels: InRows(panels, (len(panels)+rows-1)/rows, adapt)}
	f.Width, f.Height = vg.Points(width*float64(len(f.Panels[0]))+20), vg.Points(height*float64(len(f.Panels))+10)
	return f
}

func reliabilityPlot(m Judged, bins int, withLegend bool) (*plot.Plot, error) {
	diagram, ece := m.Outcomes.Reliability(bins), m.Outcomes.ECE(bins)
	if math.IsNaN(ece) {
		return nil, errors.New("there are no predictions, or some are NaN")
	}
	total, largest, right, most := 0, 0, 0.0, 0.0 // most is where the largest bar stands
	for _, b := range diagram {
		total += b.Count
		largest = max(largest, b.Count)
		right += b.Accuracy * float64(b.Count)
	}
	p := New(fmt.Sprintf("%s\nECE %.3f, accuracy %.1f%%", m.Name, ece, 100*right/float64(total)), "confidence", "accuracy")
	names := map[bool][3]string{true: {"accuracy", "gap to confidence", "accuracy = confidence"}}[withLegend]
	for _, b := range diagram {
		if b.Count == 0 {
			continue
		}
		// A little space keeps neighbours apart.
		inset := 0.06 * (b.High - b.Low)
		x := []float64{b.Low + inset, b.High - inset}
		level := func(y float64) []float64 { return []float64{y, y} }
		height := countHeight * float64(b.Count) / float64(largest)
		for _, err := range []error{
			Band(p, "", x, level(0), level(min(b.Accuracy, b.Confidence)), MidBlue),
			Band(p, names[1], x, level(min(b.Accuracy, b.Confidence)), level(max(b.Accuracy, b.Confidence)), translucent(Red)),
			Line(p, names[0], x, level(b.Accuracy), Blue),
			Band(p, "", x, level(countBase), level(countBase+height), Grey),
		} {
			if err != nil {
				return nil, err
			}
		}
		names[0], names[1] = "", "" // one legend entry for all bins
		if b.Count == largest {
			most = (b.Low + b.High) / 2
			words := fmt.Sprintf("%.0f%%", 100*float64(largest)/float64(total))
			if err := annotate(p, words, most, countBase+height+0.01, text.XCenter, text.YBottom, Grey); err != nil {
				return nil, err
			}
		}
	}
	free, side := 0.0, text.XLeft // where the largest bar is not
	if most < 0.5 {
		free, side = 1, text.XRight
	}
	for _, err := range []error{
		Dashes(p, names[2], []float64{0, 1}, []float64{0, 1}, Grey),
		annotate(p, "share of examples", free, countBase+countHeight, side, text.YCenter, Grey),
	} {
		if err != nil {
			return nil, err
		}
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 1, countRoom, 1
	p.X.Tick.Marker = plot.ConstantTicks(ticksAt(0.5, 0, 1))
	p.Y.Tick.Marker = plot.ConstantTicks(ticksAt(0.5, 0, 1))
	p.Legend.Top, p.Legend.Left = true, true
	return p, nil
}
