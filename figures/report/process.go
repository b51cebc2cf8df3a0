package report

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
)

// A Variance is the variance of a function along the common inputs of a figure.
type Variance struct {
	Name   string
	Values []float64
}

// Variances is one panel of StandardDeviations.
type Variances struct {
	Title  string
	Curves []Variance // the first is what the others are compared with
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

// Pairs are the distances of pairs of inputs of two classes, and those of their features.
type Pairs struct {
	Title            string
	Inputs, Features []float64
	Across           []bool // the pair is of both classes
}

// Distances returns a figure with a panel for each network. It shows, for each pair, the distance of the
// features over the distance of the inputs, and lines of the smallest and the largest ratio, also in the title.
func Distances(name string, panels ...Pairs) (Figure, error) {
	f := Figure{Name: name, Panels: [][]*plot.Plot{nil}, Width: vg.Points(float64(205*len(panels)) + 20), Height: 220,
		Caption: words.Caption("distances", nil)}
	for i, pairs := range panels {
		if len(pairs.Inputs) == 0 || len(pairs.Features) != len(pairs.Inputs) || len(pairs.Across) != len(pairs.Inputs) {
			return Figure{}, fmt.Errorf("report: %s: %s has %d, %d and %d entries of pairs, want as many of each, and some", name, pairs.Title, len(pairs.Inputs), len(pairs.Features), len(pairs.Across))
		}
		least, most := math.Inf(1), 0.0
		var x, y [2][]float64 // within a class, across
		for j, d := range pairs.Inputs {
			if !(d > 0) {
				return Figure{}, fmt.Errorf("report: %s: %s: the inputs of pair %d have the distance %g; it must be positive", name, pairs.Title, j, d)
			}
			k := 0
			if pairs.Across[j] {
				k = 1
			}
			x[k], y[k] = append(x[k], d), append(y[k], pairs.Features[j])
			least, most = min(least, pairs.Features[j]/d), max(most, pairs.Features[j]/d)
		}
		farthest, highest := slices.Max(pairs.Inputs), slices.Max(pairs.Features)
		p := New(fmt.Sprintf("%s\nstretched %.2g to %.2g times", pairs.Title, least, most), "distance of inputs", "distance of features")
		names := map[bool][2]string{true: {"same class", "different classes"}}[i == 0]
		for k, c := range Palette()[:2] {
			if len(x[k]) > 0 {
				if err := Points(p, names[k], x[k], y[k], c, 0.8*DotRadius); err != nil {
					return Figure{}, fmt.Errorf("report: %s: %w", name, err)
				}
			}
		}
		for _, slope := range []float64{least, most} {
			end := min(farthest, 1.1*highest/slope)
			if err := Dashes(p, "", []float64{0, end}, []float64{0, slope * end}, Grey); err != nil {
				return Figure{}, fmt.Errorf("report: %s: %w", name, err)
			}
		}
		p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, farthest, 0, 1.1*highest
		f.Panels[0] = append(f.Panels[0], p)
	}
	return f, nil
}
