package report

import (
	"fmt"
	"image"
	"image/color"
	"math"

	pixels "golang.org/x/image/draw"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"densityuncertainty/datasets"
)

// Picture is an image of the CIFAR or SVHN kind and what a classifier said about it.
type Picture struct {
	Pixels      []uint8 // planar, [3, 32, 32]: red, green, blue
	Label       string  // the true class; "" where the classifier has no such class
	Prediction  string  // the predicted class
	Probability float64 // of the predicted class
	Entropy     float64 // of the prediction, in nats
	Energy      float64 // of the last convolution's input; NaN where there is none
}

// Strip is a row of pictures.
type Strip struct {
	Title    string
	Pictures []Picture
}

// The sizes: of an image in pixels, of one drawn, of the space between and the caption's lines in
// points. An image is enlarged by copying pixels, so that no viewer blurs them; a PNG has just as many.
const (
	imageSide    = 32
	enlargement  = 9
	pictureSide  = 112
	pictureSpace = 14
	captionLine  = 14
	stripTitle   = 20
	captionSize  = 12 // of the font
)

// ImageStrips is a figure of rows of images. Below each image stand its true class, where it has one,
// the predicted class with its probability (red if it is not the true one), the entropy of the
// prediction and the energy.
func ImageStrips(name string, strips []Strip) (Figure, error) {
	f := Figure{Name: name, Caption: words.Caption("images", nil)}
	columns, lines := 0, 0
	for _, strip := range strips {
		for i, picture := range strip.Pictures {
			if len(picture.Pixels) != 3*imageSide*imageSide {
				return Figure{}, fmt.Errorf("report: %s: image %d of %q has %d values, want 3 planes of %d by %d", name, i, strip.Title, len(picture.Pixels), imageSide, imageSide)
			}
			lines = max(lines, len(picture.caption()))
		}
		columns = max(columns, len(strip.Pictures))
	}
	if columns == 0 {
		return Figure{}, fmt.Errorf("report: %s: no images", name)
	}
	for _, strip := range strips {
		p := New(strip.Title, "", "")
		p.HideAxes()
		p.X.Padding, p.Y.Padding = 0, 0
		p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 1, 0, 1
		p.Add(strip)
		f.Panels = append(f.Panels, []*plot.Plot{p})
	}
	f.Width = vg.Points(float64(columns)*(pictureSide+pictureSpace) + 2*margin)
	rows := float64(len(strips))
	f.Height = vg.Points(rows*(stripTitle+pictureSide+captionLine*float64(lines)+4) + 2*margin + (rows-1)*between)
	return f, nil
}

// line is one of a caption.
type line struct {
	text string
	c    color.Color
}

func (p Picture) caption() []line {
	var lines []line
	verdict := color.Color(color.Black)
	if p.Label != "" {
		lines = append(lines, line{p.Label, color.Black})
		if p.Label != p.Prediction {
			verdict = Red
		}
	}
	lines = append(lines, line{fmt.Sprintf("%s %.2f", p.Prediction, p.Probability), verdict}, line{fmt.Sprintf("entropy %.2f", p.Entropy), Grey})
	if !math.IsNaN(p.Energy) {
		lines = append(lines, line{fmt.Sprintf("energy %.4g", p.Energy), Grey})
	}
	return lines
}

// Plot implements plot.Plotter: the pictures stand side by side from the upper left corner.
func (s Strip) Plot(c draw.Canvas, p *plot.Plot) {
	style := p.Legend.TextStyle
	style.XAlign, style.YAlign = draw.XCenter, draw.YTop
	style.Font.Size = vg.Points(captionSize)
	for i, picture := range s.Pictures {
		left, top := c.Min.X+vg.Points(float64(i)*(pictureSide+pictureSpace)+pictureSpace/2), c.Max.Y
		c.DrawImage(vg.Rectangle{Min: vg.Point{X: left, Y: top - vg.Points(pictureSide)}, Max: vg.Point{X: left + vg.Points(pictureSide), Y: top}}, picture.enlarged())
		for k, l := range picture.caption() {
			style.Color = l.c
			c.FillText(style, vg.Point{X: left + vg.Points(pictureSide/2), Y: top - vg.Points(pictureSide+2+captionLine*float64(k))}, l.text)
		}
	}
}

// enlarged is the image with every pixel copied enlargement times in both directions.
func (p Picture) enlarged() image.Image {
	small := datasets.Picture(p.Pixels, imageSide)
	m := image.NewRGBA(image.Rect(0, 0, enlargement*imageSide, enlargement*imageSide))
	pixels.NearestNeighbor.Scale(m, m.Bounds(), small, small.Bounds(), pixels.Src, nil)
	return m
}
