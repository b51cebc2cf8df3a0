package report

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"io"
	"slices"
	"strings"

	"golang.org/x/text/encoding/charmap"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"

	"densityuncertainty/environment/notebook"
)

// The formats of figures.
const (
	SVG = "svg"
	PNG = "png"
	PDF = "pdf"
)

// FigureFormats lists the formats that a Figure can be made in.
func FigureFormats() []string { return []string{SVG, PNG, PDF} }

// Figure is a grid of plots whose data areas are aligned.
type Figure struct {
	Name          string         // for file names, for example "figure1"
	Caption       string         // what it shows and how it was made
	Panels        [][]*plot.Plot // rows of columns; nil leaves a place empty
	Width, Height vg.Length
	Legend        *plot.Legend // a legend for all panels, drawn below them; nil for none
	// LikeWidths gives the first column as much room for its data as the others have, whatever its labels take.
	LikeWidths bool
}

// Single is a figure of one plot.
func Single(name string, p *plot.Plot, width, height vg.Length) Figure {
	return Figure{Name: name, Panels: [][]*plot.Plot{{p}}, Width: width, Height: height}
}

// pngDPI is the resolution of PNG pictures: sharp on a screen of high density.
const pngDPI = 192

// Bytes returns the picture in one of FigureFormats. SVG and PNG are the same bytes for the same figure. It panics if rows are
// of different length.
func (f Figure) Bytes(format string) ([]byte, error) {
	if len(f.Panels) == 0 || len(f.Panels[0]) == 0 {
		return nil, fmt.Errorf("report: figure %s has no panels", f.Name)
	}
	if err := f.drawable(); err != nil {
		return nil, err
	}
	var canvas interface {
		vg.CanvasSizer
		io.WriterTo
	}
	switch format {
	case SVG:
		canvas = vgsvg.New(f.Width, f.Height)
	case PNG:
		canvas = vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(f.Width, f.Height), vgimg.UseDPI(pngDPI))}
	case PDF:
		canvas = &pdfCanvas{Canvas: vgpdf.New(f.Width, f.Height)}
	default:
		return nil, fmt.Errorf("report: unknown format %q, want one of %s", format, strings.Join(FigureFormats(), ", "))
	}
	f.draw(draw.New(canvas))
	if err := f.drawable(); err != nil { // a logarithmic axis has seen what is on it by now
		return nil, err
	}
	if c, is := canvas.(*pdfCanvas); is && c.lacking != 0 {
		return nil, fmt.Errorf("report: figure %s: the fonts of a PDF have no character %q (%U), only those of Windows-1252; write it out, or make the figure as %s", f.Name, c.lacking, c.lacking, SVG)
	}
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("report: making %s as %s: %w", f.Name, format, err)
	}
	if format == SVG {
		return stretchedImages(fallbackFonts(b.Bytes())), nil
	}
	return b.Bytes(), nil
}

// drawable returns an error if no picture can have one of the axes.
func (f Figure) drawable() error {
	for _, p := range slices.Concat(f.Panels...) {
		if p == nil {
			continue
		}
		for i, axis := range []plot.Axis{p.X, p.Y} {
			if err := drawable(axis); err != nil {
				return fmt.Errorf("report: figure %s: the %c axis %w", f.Name, "xy"[i], err)
			}
		}
	}
	return nil
}

// pdfCanvas writes text in Windows-1252, the encoding of the fonts that gonum embeds in a PDF. By itself gonum writes UTF-8, of
// which a reader shows two or three other characters for each beyond ASCII.
type pdfCanvas struct {
	*vgpdf.Canvas
	lacking rune // a character that the encoding has no place for; 0 for none
}

// FillString implements vg.Canvas. A minus sign becomes an en dash, which looks like it.
func (c *pdfCanvas) FillString(face font.Face, at vg.Point, text string) {
	var encoded []byte
	for _, r := range strings.ReplaceAll(text, "−", "–") {
		b, has := charmap.Windows1252.EncodeRune(r)
		if !has {
			c.lacking = r
		}
		encoded = append(encoded, b)
	}
	c.Canvas.FillString(face, at, string(encoded))
}

// fallbackFonts adds what a browser should use where Liberation Sans, which has Arial's widths, is not
// installed; without, it would take a serif face.
func fallbackFonts(svg []byte) []byte {
	return bytes.ReplaceAll(svg, []byte("font-family:Liberation Sans;"), []byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif;"))
}

// stretchedImages lets bitmaps inside of a drawing, such as those of heat maps, fill the rectangle that they
// are drawn into; a browser would keep the ratio of their sides and leave the rest empty. gonum writes them as PNG
// and says JPEG, which browsers see through and other programs do not.
func stretchedImages(svg []byte) []byte {
	svg = bytes.ReplaceAll(svg, []byte("data:image/jpg;base64"), []byte("data:image/png;base64"))
	return bytes.ReplaceAll(svg, []byte("<image "), []byte(`<image preserveAspectRatio="none" `))
}

// The space around and between panels.
const (
	margin  = 4
	between = 8
)

func (f Figure) draw(dc draw.Canvas) {
	dc.SetColor(color.White)
	dc.Fill(dc.Rectangle.Path())
	grid := dc
	if f.Legend != nil {
		grid = draw.Crop(dc, 0, 0, f.Legend.Rectangle(dc).Size().Y+vg.Points(margin), 0)
	}
	tiles := draw.Tiles{Rows: len(f.Panels), Cols: len(f.Panels[0]),
		PadTop: vg.Points(margin), PadBottom: vg.Points(margin), PadLeft: vg.Points(margin), PadRight: vg.Points(margin),
		PadX: vg.Points(between), PadY: vg.Points(between)}
	canvases := plot.Align(f.Panels, tiles, grid)
	if f.LikeWidths {
		widenFirst(f.Panels[0], canvases)
	}
	left, right := dc.Max.X, dc.Min.X // of the data
	for j, row := range f.Panels {
		for i, p := range row {
			if p != nil {
				drawPanel(p, canvases[j][i])
				data := p.DataCanvas(canvases[j][i])
				left, right = min(left, data.Min.X), max(right, data.Max.X)
			}
		}
	}
	if f.Legend != nil {
		width := f.Legend.Rectangle(dc).Size().X
		f.Legend.Draw(draw.Crop(dc, max(0, min((left+right-width)/2, dc.Max.X-width)-dc.Min.X), 0, vg.Points(margin), 0))
	}
}

// drawPanel draws a plot. A legend that would hide most of the data is drawn beside it.
func drawPanel(p *plot.Plot, c draw.Canvas) {
	if size := p.Legend.Rectangle(c).Size(); size.Y > 0.6*p.DataCanvas(c).Size().Y && size.X < c.Size().X/2 {
		beside, legend := *p, p.Legend
		beside.Legend = plot.NewLegend()
		beside.Draw(draw.Crop(c, 0, -size.X-vg.Points(between), 0, 0))
		legend.Top, legend.Left, legend.XOffs, legend.YOffs = true, true, 0, 0
		legend.Draw(draw.Crop(c, c.Size().X-size.X, 0, 0, 0))
		return
	}
	p.Draw(c)
}

// widenFirst takes from every column what the first lacks in width of its data.
func widenFirst(row []*plot.Plot, canvases [][]draw.Canvas) {
	n := len(row)
	lacks := row[n-1].DataCanvas(canvases[0][n-1]).Size().X - row[0].DataCanvas(canvases[0][0]).Size().X
	for _, canvas := range canvases {
		for i := range canvas {
			if i > 0 {
				canvas[i].Min.X += lacks * vg.Length(n-i) / vg.Length(n)
			}
			canvas[i].Max.X += lacks * vg.Length(n-i-1) / vg.Length(n)
		}
	}
}

// ShowFigure shows a figure and its caption in a notebook. If err is not nil, it stops the cell, so that it can stand
// around the call that makes the figure.
func ShowFigure(f Figure, err error) {
	notebook.Check(err)
	notebook.SVG(notebook.Must(f.Bytes(SVG)), f.Caption)
	notebook.Markdown("*" + escapeMarkdown(f.Caption) + "*")
}

// ShowSlide shows the last row of a figure, under the titles of the first row. It is on slides only, in the place of the
// cell's other pictures. Labels can be read there if the figure has 540 by 180 points, or 340 by 245 beside text.
func ShowSlide(f Figure, width, height vg.Length) {
	last := slices.Clone(f.Panels[len(f.Panels)-1])
	for i, p := range last {
		if p != nil && f.Panels[0][i] != nil {
			titled := *p
			titled.Title, last[i] = f.Panels[0][i].Title, &titled
		}
	}
	f.Panels, f.Width, f.Height = [][]*plot.Plot{last}, width, height
	notebook.Slide(notebook.Must(f.Bytes(SVG)), f.Caption)
}

// ShowTable is ShowFigure for a table.
func ShowTable(t Table, err error) {
	notebook.Check(err)
	notebook.Markdown(notebook.Must(t.Render(Markdown)))
}

// Live shows a progress bar, such as for Engine.Progress, and below it a picture that is drawn again during the work. As
// long as there is nothing to draw, draw must return an error that wraps ErrNotRun.
func Live(label string, draw func() (Figure, error)) *notebook.Progress {
	bar := notebook.NewProgress(label, 100)
	bar.Picture = func() ([]byte, string) {
		f, err := draw()
		if errors.Is(err, ErrNotRun) {
			return nil, ""
		}
		notebook.Check(err)
		return notebook.Must(f.Bytes(SVG)), f.Caption
	}
	return bar
}

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
