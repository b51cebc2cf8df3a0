package report

import (
	"errors"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// finite returns an error that names the first value that cannot be drawn: a NaN or an infinity.
func finite(what, list string, values []float64) error {
	for i, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("report: %s: the %s at place %d of %d is %v, which cannot be drawn; draw the part that is finite", what, list, i, len(values), v)
		}
	}
	return nil
}

// points pairs two lists.
func points(what string, x, y []float64) (plotter.XYs, error) {
	what = strings.TrimSpace(what) // the name is empty where it is not in the legend
	if len(x) != len(y) {
		return nil, fmt.Errorf("report: %s: %d x values but %d y values", what, len(x), len(y))
	}
	if len(x) == 0 {
		return nil, fmt.Errorf("report: %s: no points", what)
	}
	if err := errors.Join(finite(what, "x value", x), finite(what, "y value", y)); err != nil {
		return nil, err
	}
	xys := make(plotter.XYs, len(x))
	for i := range x {
		xys[i] = plotter.XY{X: x[i], Y: y[i]}
	}
	return xys, nil
}

// legend adds an entry unless name is empty.
func legend(p *plot.Plot, name string, thumbs ...plot.Thumbnailer) {
	if name != "" {
		p.Legend.Add(name, thumbs...)
	}
}

// Line draws y over x. An empty name keeps it out of the legend. Here as in the other shapes it is an error, which names
// the series and the value, if lists are empty or differ in length, or if a value is NaN or infinite.
func Line(p *plot.Plot, name string, x, y []float64, c color.Color) error {
	return styledLine(p, name, x, y, draw.LineStyle{Color: c, Width: vg.Points(lineWidth)})
}

// Dashes draws y over x as a thin dashed line, for a reference.
func Dashes(p *plot.Plot, name string, x, y []float64, c color.Color) error {
	return styledLine(p, name, x, y, draw.LineStyle{Color: c, Width: vg.Points(1), Dashes: []vg.Length{vg.Points(3), vg.Points(2)}})
}

func styledLine(p *plot.Plot, name string, x, y []float64, style draw.LineStyle) error {
	xys, err := points("line "+name, x, y)
	if err != nil {
		return err
	}
	line := &plotter.Line{XYs: xys, LineStyle: style}
	p.Add(line)
	legend(p, name, line)
	return nil
}

// Band fills the area between low and high over x, which must ascend.
func Band(p *plot.Plot, name string, x, low, high []float64, c color.Color) error {
	lower, err := points("band "+name, x, low)
	if err != nil {
		return err
	}
	outline, err := points("band "+name, x, high)
	if err != nil {
		return err
	}
	for i := len(lower) - 1; i >= 0; i-- {
		outline = append(outline, lower[i])
	}
	area := &plotter.Polygon{XYs: []plotter.XYs{outline}, Color: c}
	p.Add(area)
	legend(p, name, area)
	return nil
}

// Points draws a dot for each pair.
func Points(p *plot.Plot, name string, x, y []float64, c color.Color, radius vg.Length) error {
	return scatter(p, "points "+name, name, x, y, draw.GlyphStyle{Color: c, Radius: radius, Shape: draw.CircleGlyph{}})
}

func scatter(p *plot.Plot, what, name string, x, y []float64, style draw.GlyphStyle) error {
	xys, err := points(what, x, y)
	if err != nil {
		return err
	}
	dots := &plotter.Scatter{XYs: xys, GlyphStyle: style}
	p.Add(dots)
	legend(p, name, dots)
	return nil
}

// Draw draws the mark at each pair.
func (m Mark) Draw(p *plot.Plot, x, y []float64) error {
	return scatter(p, "marks "+m.Name, "", x, y, draw.GlyphStyle{Color: m.Colour, Radius: vg.Points(2.2), Shape: m.Shape})
}

// Classes draws the points of class 0 in orange and of class 1 in red, which are visible on Shades. It is an error if lists
// differ in length or if a class has no points.
func Classes[T int | float64](p *plot.Plot, x, y []float64, class []T, radius vg.Length) error {
	if len(class) != len(x) || len(class) != len(y) {
		return fmt.Errorf("report: points of classes: %d x values, %d y values and %d classes", len(x), len(y), len(class))
	}
	for k, c := range []color.Color{Orange, Red} {
		var ofX, ofY []float64
		for i := range class {
			if class[i] == T(k) {
				ofX, ofY = append(ofX, x[i]), append(ofY, y[i])
			}
		}
		if err := Points(p, "", ofX, ofY, c, radius); err != nil {
			return err
		}
	}
	return nil
}

// Histogram draws the distribution of values in bins of equal width, scaled to an area of one so that
// lists of different length can be compared.
func Histogram(p *plot.Plot, name string, values []float64, bins int, c color.Color) error {
	if len(values) == 0 || bins < 1 {
		return fmt.Errorf("report: histogram %s: %d values in %d bins", name, len(values), bins)
	}
	if err := finite("histogram "+name, "value", values); err != nil {
		return err
	}
	low, high := slices.Min(values), slices.Max(values)
	if low == high {
		low, high = low-0.5, high+0.5
	}
	return outline(p, name, values, low, high, bins, c)
}

// outline draws a histogram of equal bins from low to high.
func outline(p *plot.Plot, name string, values []float64, low, high float64, bins int, c color.Color) error {
	width, counts := (high-low)/float64(bins), make([]float64, bins)
	if !(width > 0) || math.IsInf(width, 1) {
		return fmt.Errorf("report: histogram %s: there is no room for %d bins from %v to %v", name, bins, low, high)
	}
	for _, v := range values {
		if v >= low && v <= high {
			counts[min(int((v-low)/width), bins-1)]++
		}
	}
	var x, density []float64
	for b, n := range counts {
		d := n / (float64(len(values)) * width)
		x, density = append(x, low+float64(b)*width, low+float64(b+1)*width), append(density, d, d)
	}
	return errors.Join(Band(p, name, x, make([]float64, len(x)), density, translucent(c)), Line(p, "", x, density, c))
}

// translucent lets overlapping areas both be seen.
func translucent(c color.Color) color.Color {
	n := color.NRGBAModel.Convert(c).(color.NRGBA)
	n.A = 0x70
	return n
}

// errorBar draws a glyph with a horizontal bar, or none that would have no length.
func errorBar(p *plot.Plot, at plotter.XYs, reach plotter.XErrors, c color.Color, shape draw.GlyphDrawer) {
	bar := &plotter.XErrorBars{XYs: at, XErrors: reach, LineStyle: draw.LineStyle{Color: c, Width: vg.Points(1)}, CapWidth: vg.Points(3)}
	if reach[0].Low+reach[0].High == 0 {
		bar.CapWidth = 0
	}
	p.Add(bar, &plotter.Scatter{XYs: at, GlyphStyle: draw.GlyphStyle{Color: c, Radius: vg.Points(2.4), Shape: shape}})
}

// annotate writes a small text with its anchor, given by the alignments, at (x, y).
func annotate(p *plot.Plot, words string, x, y float64, xAlign text.XAlignment, yAlign text.YAlignment, c color.Color) error {
	labels, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{{X: x, Y: y}}, Labels: []string{words}})
	if err != nil {
		return fmt.Errorf("report: text %q: %w", words, err)
	}
	style := &labels.TextStyle[0]
	setFont(&style.Font, smallSize)
	style.Color, style.XAlign, style.YAlign = c, xAlign, yAlign
	p.Add(labels)
	return nil
}

// smallSize is the size of what is written inside of plots, in points.
const smallSize = 7

// Shades draws z, [len(y)*len(x)] row by row from the lowest y, as a map: white for low and less, Navy for high and more.
// x and y ascend in equal steps, and the axes end with them.
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

// ShadesWithBar is Shades with a bar of the shades and their values to the right. If it is logarithmic, equal ratios are
// equal steps in shade, and low must be above 0.
func ShadesWithBar(p *plot.Plot, x, y, z []float64, low, high float64, logarithmic bool) error {
	scale := p.Y.Tick.Marker
	if logarithmic {
		if !(low > 0) {
			return fmt.Errorf("report: a map in shades of a logarithmic scale from %v; want more than 0", low)
		}
		z, scale = slices.Clone(z), powerTicks{}
		for i, v := range z {
			z[i] = math.Log10(max(v, low)) // which has the shade of what is less
		}
		low, high = math.Log10(low), math.Log10(high)
	}
	if err := Shades(p, x, y, z, low, high); err != nil {
		return err
	}
	bar := shadesBar{low: low, high: high, ticks: scale.Ticks(low, high), label: p.Y.Tick.Label}
	bar.label.XAlign, bar.label.YAlign = draw.XLeft, draw.YCenter
	p.Add(bar)
	return nil
}

// shadesBar is the bar of ShadesWithBar.
type shadesBar struct {
	low, high float64
	ticks     []plot.Tick
	label     text.Style
}

// How far from the map the bar is, how wide, and how far the labels are from the bar, in points.
const barSpace, barWidth, barLabels = 6, 7, 3

// Plot implements plot.Plotter.
func (b shadesBar) Plot(c draw.Canvas, _ *plot.Plot) {
	colours := shades{}.Colors()
	left, height := c.Max.X+vg.Points(barSpace), c.Max.Y-c.Min.Y
	for i, shade := range colours {
		// Each reaches to the top, so that no light comes through between two.
		low := c.Min.Y + height*vg.Length(i)/vg.Length(len(colours))
		c.SetColor(shade)
		c.Fill(vg.Rectangle{Min: vg.Point{X: left, Y: low}, Max: vg.Point{X: left + vg.Points(barWidth), Y: c.Max.Y}}.Path())
	}
	for _, t := range b.ticks {
		at := c.Min.Y + height*vg.Length((t.Value-b.low)/(b.high-b.low))
		c.FillText(b.label, vg.Point{X: left + vg.Points(barWidth+barLabels), Y: at}, t.Label)
	}
}

// GlyphBoxes implements plot.GlyphBoxer: it keeps the place of the bar and its labels.
func (b shadesBar) GlyphBoxes(*plot.Plot) []plot.GlyphBox {
	widest := vg.Length(0)
	for _, t := range b.ticks {
		widest = max(widest, b.label.Width(t.Label))
	}
	end := vg.Points(barSpace+barWidth+barLabels) + widest
	return []plot.GlyphBox{{X: 1, Rectangle: vg.Rectangle{Max: vg.Point{X: end, Y: 1}}}}
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
