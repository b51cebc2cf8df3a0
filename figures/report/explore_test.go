package report

import (
	"errors"
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"densityuncertainty/environment/must"
	"densityuncertainty/environment/notebook"
)

// The axes of every position are those of all.
func TestAxesStandStill(t *testing.T) {
	draw := func(at []float64) (Figure, error) {
		if at[0] < 0 {
			return Figure{}, errors.New("no data")
		}
		p, q := New("", "x", "y"), New("", "x", "y")
		p.Add(must.Get(plotter.NewLine(plotter.XYs{{X: 0, Y: 0}, {X: 1, Y: at[0]}}))(t))
		q.Add(must.Get(plotter.NewLine(plotter.XYs{{X: 0, Y: -at[0]}, {X: 2, Y: 0}}))(t))
		return Figure{Panels: [][]*plot.Plot{{p, nil, q}}}, nil
	}
	var still axes
	must.Do(t, still.hold(draw, notebook.Positions(notebook.Slider{Name: "height", Positions: []float64{2, 1, 9}})))
	for _, c := range []struct{ at, want float64 }{{1, 9}, {5, 9}} {
		f := must.Get(draw([]float64{c.at}))(t)
		still.apply(f)
		p, q := f.Panels[0][0], f.Panels[0][2]
		if p.Y.Min != 0 || p.Y.Max != c.want || q.Y.Min != -c.want || q.Y.Max != 0 || p.X.Max != 1 || q.X.Max != 2 {
			t.Errorf("at %g: y of the panels %g to %g and %g to %g, want 0 to %g and %[6]g below", c.at, p.Y.Min, p.Y.Max, q.Y.Min, q.Y.Max, c.want)
		}
	}
	must.Err(t, still.hold(draw, [][]float64{{-1}})) // no error of draw
}
