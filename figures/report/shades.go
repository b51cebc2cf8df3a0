package report

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
)

// Shades draws a map: z over the places of x and y, row by row from the lowest y, [len(y)*len(x)], in shades from white
// for low and less to Navy for high and more. x and y ascend in equal steps; the axes end with them.
func Shades(p *plot.Plot, x, y, z []float64, low, high float64) error {
	if len(x) < 2 || len(y) < 2 || len(z) != len(x)*len(y) {
		return fmt.Errorf("report: a map of %d by %d places has %d values", len(x), len(y), len(z))
	}
	if !(low < high) {
		return fmt.Errorf("report: a map in shades from %v to %v; want the first below the second", low, high)
	}
	if err := finite("map", "value", z); err != nil {
		return err
	}
	heat := plotter.NewHeatMap(heights{x, y, z, low, high}, shades{})
	heat.Min, heat.Max = low, high
	heat.Rasterized = true
	p.Add(heat)
	p.X.Min, p.X.Max = x[0], x[len(x)-1]
	p.Y.Min, p.Y.Max = y[0], y[len(y)-1]
	return nil
}

// heights implements plotter.GridXYZ.
type heights struct {
	x, y, z   []float64
	low, high float64
}

func (h heights) Dims() (c, r int)   { return len(h.x), len(h.y) }
func (h heights) Z(c, r int) float64 { return min(max(h.z[r*len(h.x)+c], h.low), h.high) }
func (h heights) X(c int) float64    { return h.x[c] }
func (h heights) Y(r int) float64    { return h.y[r] }

// shades is a palette from white to Navy.
type shades struct{}

// Colors implements palette.Palette.
func (shades) Colors() []color.Color {
	const steps = 64
	colours := make([]color.Color, steps)
	for i := range colours {
		part := float64(i) / (steps - 1)
		mix := func(end uint8) uint8 { return uint8(math.Round(255 - part*(255-float64(end)))) }
		colours[i] = color.RGBA{R: mix(Navy.R), G: mix(Navy.G), B: mix(Navy.B), A: 0xff}
	}
	return colours
}
