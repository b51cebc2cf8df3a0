package report

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot"

	"densityuncertainty/environment/notebook"
)

// Explore is [notebook.Explore] for figures: draw makes the figure at the sliders' positions, and description says what
// it shows. The axes of a panel are the same at all positions, and wide enough for all.
func Explore(description string, draw func(at []float64) (Figure, error), sliders ...notebook.Slider) {
	still := axes{}
	notebook.Check(still.hold(draw, notebook.Positions(sliders...)))
	notebook.Explore(description, func(at []float64) ([]byte, error) {
		f, err := draw(at)
		if err != nil {
			return nil, err
		}
		still.apply(f)
		return f.Bytes(SVG)
	}, sliders...)
}

// axes are the axes of a figure's panels, by their place in it: x, y, x of the next panel, and so on.
type axes []plot.Axis

// hold takes in the axes at all positions.
func (a *axes) hold(draw func(at []float64) (Figure, error), positions [][]float64) error {
	for _, at := range positions {
		f, err := draw(at)
		if err != nil {
			return fmt.Errorf("at %v: %w", at, err)
		}
		a.apply(f)
	}
	return nil
}

// apply takes in the axes of a figure, and gives it the ranges of all that were taken in.
func (a *axes) apply(f Figure) {
	n := 0
	for _, p := range slices.Concat(f.Panels...) {
		if p == nil {
			continue
		}
		for _, axis := range []*plot.Axis{&p.X, &p.Y} {
			if n == len(*a) {
				*a = append(*a, *axis)
			}
			held := &(*a)[n]
			held.Min, held.Max = min(held.Min, axis.Min), max(held.Max, axis.Max)
			axis.Min, axis.Max = held.Min, held.Max
			n++
		}
	}
}
