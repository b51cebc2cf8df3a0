package report

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
)

// Variances is one panel of StandardDeviations: variances of functions along the common inputs.
type Variances struct {
	Title  string
	Curves []Sample // the others are compared with the first
}

// StandardDeviations draws standard deviations along x, in panels with common axes. The first variance of a panel is a
// broad band from zero to its root, the others are lines. data are marked on the axis.
func StandardDeviations(name string, x, data []float64, panels ...Variances) (Figure, error) {
	f := Figure{Name: name, Panels: [][]*plot.Plot{nil}, Width: vg.Points(float64(300*len(panels)) + 20), Height: 210,
		Caption: words.Caption("deviations", nil)}
	highest := 0.0
	for i, panel := range panels {
		p := New(panel.Title, "x", "standard deviation of f")
		for k, curve := range panel.Curves {
			std, most := make([]float64, len(curve.Values)), 0.0
			for _, v := range curve.Values {
				if v > most {
					most = v
				}
			}
			for j, v := range curve.Values {
				if !(v >= -1e-6*most) { // beyond rounding
					return Figure{}, fmt.Errorf("report: %s: %s has the variance %g at place %d; it must not be negative", name, curve.Name, v, j)
				}
				std[j] = math.Sqrt(max(v, 0))
				highest = max(highest, std[j])
			}
			var err error
			if k == 0 {
				err = Band(p, curve.Name, x, make([]float64, len(x)), std, PaleBlue)
			} else {
				err = Line(p, curve.Name, x, std, Palette()[k-1])
			}
			if err != nil {
				return Figure{}, fmt.Errorf("report: %s: %w", name, err)
			}
		}
		if err := Points(p, "", data, slices.Repeat([]float64{0}, len(data)), Red, DotRadius); err != nil {
			return Figure{}, fmt.Errorf("report: %s: %w", name, err)
		}
		p.X.Min, p.X.Max = x[0], x[len(x)-1]
		p.Legend.Top = true
		ShareAxes(p, true, i == 0)
		f.Panels[0] = append(f.Panels[0], p)
	}
	for _, p := range f.Panels[0] {
		p.Y.Min, p.Y.Max = 0, 1.45*highest // with room for the legend
	}
	return f, nil
}
