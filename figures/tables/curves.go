package tables

import (
	"fmt"
	"image/color"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"densityuncertainty/dul/train"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/report"
)

// drawnEpochs is about how many epochs of a training LearningCurves draws.
const drawnEpochs = 300

// LearningCurves draws the parts of the objective over the epochs, from the folder Engine.Curves: a line for each
// experiment and member of an ensemble, in the colour of its method. Parts that no network has, and losses that are not
// finite, are left out. If nothing was trained yet, the error wraps report.ErrNotRun.
func LearningCurves(folder string, list ...experiment.Experiment) (report.Figure, error) {
	f := report.Figure{Name: "curves", Height: vg.Points(200), Panels: [][]*plot.Plot{nil},
		Caption: "The parts of the training objective: means over the steps of an epoch, pretraining included."}
	curves, colours, marks := make([][]train.Epoch, len(list)), make([]color.Color, len(list)), []report.Mark(nil)
	for i, e := range list {
		var err error
		if curves[i], err = e.Curve(folder); err != nil {
			return f, err
		}
		at := slices.IndexFunc(marks, func(m report.Mark) bool { return m.Name == e.Method.Name })
		if at < 0 {
			at, marks = len(marks), append(marks, report.MarkOf(e.Method.Name, len(marks)))
		}
		colours[i] = marks[at].Colour
	}
	for _, part := range []struct {
		title string
		value func(p train.Epoch) float64
	}{
		{"NLL of training examples", func(p train.Epoch) float64 { return p.NLL }},
		{"NLL of held-out examples", func(p train.Epoch) float64 { return p.HeldOut }},
		{"KL(q || p), nats", func(p train.Epoch) float64 { return p.KL }},
		{"log-likelihood of the layers' inputs", func(p train.Epoch) float64 { return p.LogLikelihood }},
	} {
		panel, drawn := report.New(part.title, "epoch", ""), false
		for i := range list {
			lines := map[int][2][]float64{}
			for _, p := range curves[i] {
				v := part.value(p)
				if (p.Epoch-1)%(1+len(curves[i])/drawnEpochs) == 0 && v != 0 && !math.IsNaN(v) && !math.IsInf(v, 0) {
					lines[p.Model] = [2][]float64{append(lines[p.Model][0], float64(p.Epoch)), append(lines[p.Model][1], v)}
				}
			}
			for _, model := range slices.Sorted(maps.Keys(lines)) {
				if err := report.Line(panel, "", lines[model][0], lines[model][1], colours[i]); err != nil {
					return f, err
				}
				drawn = true
			}
		}
		if drawn {
			f.Panels[0] = append(f.Panels[0], panel)
		}
	}
	if f.Width, f.Legend = vg.Points(240*float64(len(f.Panels[0]))), report.Legend(marks...); f.Width == 0 {
		return f, fmt.Errorf("tables: %s has no learning curve of these experiments: %w", folder, report.ErrNotRun)
	}
	return f, nil
}
