// Package report draws tables as Markdown, LaTeX or CSV, and figures in one style as SVG, PNG or PDF, with the Okabe-Ito
// palette. New, Line, Band and Points are also for notebooks that draw something of their own.
package report

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// The colours.
var (
	Blue   = color.RGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff}
	Orange = color.RGBA{R: 0xe6, G: 0x9f, B: 0x00, A: 0xff}
	Green  = color.RGBA{R: 0x00, G: 0x9e, B: 0x73, A: 0xff}
	Red    = color.RGBA{R: 0xc8, G: 0x20, B: 0x20, A: 0xff}
	purple = color.RGBA{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff}
	Grey   = color.RGBA{R: 0x66, G: 0x66, B: 0x66, A: 0xff}
	sky    = color.RGBA{R: 0x56, G: 0xb4, B: 0xe9, A: 0xff}
	brown  = color.RGBA{R: 0x8c, G: 0x51, B: 0x0a, A: 0xff}

	// Navy, MidBlue and PaleBlue are the mean line, the inner and the outer band of Figure 1.
	Navy     = color.RGBA{R: 0x0b, G: 0x2f, B: 0x63, A: 0xff}
	MidBlue  = color.RGBA{R: 0x8f, G: 0xbd, B: 0xe0, A: 0xff}
	PaleBlue = color.RGBA{R: 0xd3, G: 0xe6, B: 0xf5, A: 0xff}
)

// Palette is the order in which several lines of one plot take their colours.
func Palette() []color.Color { return []color.Color{Blue, Orange, Green, purple, Red, Grey} }

// The sizes, in points.
const (
	titleSize  = 10
	LabelSize  = 9
	tickSize   = 8
	lineWidth  = 1.4
	frameWidth = 0.7
)

// DotRadius is the size of a data point.
const DotRadius = vg.Length(1.3)

// New returns an empty plot in the common style.
func New(title, xLabel, yLabel string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, xLabel, yLabel
	setFont(&p.Title.TextStyle.Font, titleSize)
	p.Title.Padding = vg.Points(4)
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		setFont(&axis.Label.TextStyle.Font, LabelSize)
		setFont(&axis.Tick.Label.Font, tickSize)
		axis.LineStyle.Width = vg.Points(frameWidth)
		axis.Tick.LineStyle.Width = vg.Points(frameWidth)
		axis.Tick.Length = vg.Points(3)
		axis.Padding = vg.Points(2)
		axis.Tick.Marker = roundTicks{}
	}
	setFont(&p.Legend.TextStyle.Font, tickSize)
	p.Legend.ThumbnailWidth = vg.Points(14)
	p.Legend.Padding = vg.Points(1.5)
	return p
}

// setFont chooses the sans-serif face that gonum/plot brings along, so that a picture does not depend on
// the fonts of the machine.
func setFont(f *font.Font, size float64) {
	f.Typeface, f.Variant, f.Size = "Liberation", "Sans", vg.Points(size)
}
