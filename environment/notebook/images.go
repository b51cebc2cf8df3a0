package notebook

import (
	"bytes"
	"fmt"
	"html"
	"image"
	"image/png"
	"math"
	"strings"

	"github.com/janpfeifer/gonb/gonbui/protocol"

	"densityuncertainty/datasets"
)

// A Bitmap is a small picture with a caption.
type Bitmap struct {
	image.Image
	Caption string
}

// Colour returns a bitmap of bytes [3, height, width], row-major: the red, green and blue planes. It stops the cell if
// the bytes are not three planes of whole rows.
func Colour(caption string, planes []byte, width int) Bitmap {
	if width < 1 || len(planes) == 0 || len(planes)%(3*width) != 0 {
		panic(fmt.Errorf("notebook.Colour: %q: %d bytes are not three planes of rows of %d", caption, len(planes), width))
	}
	return Bitmap{datasets.Picture(planes, width), caption}
}

// Grey returns a bitmap of numbers [height, width], row-major. 0 and below are black, high and above white. It stops
// the cell if the numbers are not whole rows, or one is NaN.
func Grey(caption string, values []float64, width int, high float64) Bitmap {
	if width < 1 || len(values) == 0 || len(values)%width != 0 || !(high > 0) {
		panic(fmt.Errorf("notebook.Grey: %q: %d values are not rows of %d, or %g is no positive end of the scale", caption, len(values), width, high))
	}
	m := image.NewGray(image.Rect(0, 0, width, len(values)/width))
	for i, value := range values {
		v := value / high
		if math.IsNaN(v) {
			panic(fmt.Errorf("notebook.Grey: %q: value %d is NaN", caption, i))
		}
		m.Pix[i] = uint8(math.Round(255 * min(max(v, 0), 1)))
	}
	return Bitmap{m, caption}
}

// Bitmaps shows bitmaps side by side with their captions, each enlarged to the given width in screen pixels, with sharp
// edges. It stops the cell if there are no bitmaps or no width.
func Bitmaps(width int, bitmaps ...Bitmap) {
	if width < 1 || len(bitmaps) == 0 {
		panic(fmt.Errorf("notebook.Bitmaps: %d bitmaps of width %d; give at least one, and at least 1", len(bitmaps), width))
	}
	if !inNotebook() {
		for _, b := range bitmaps {
			say("[picture: " + b.Caption + "]")
		}
		return
	}
	var row strings.Builder
	row.WriteString(`<div style="display:flex;flex-wrap:wrap;gap:10px">`)
	for _, b := range bitmaps {
		var encoded bytes.Buffer
		Check(png.Encode(&encoded, b.Image))
		caption := html.EscapeString(b.Caption)
		fmt.Fprintf(&row, `<div style="width:%dpx;text-align:center"><img style="width:100%%;border:1px solid #888;image-rendering:pixelated" alt="%s" src="%s"><br><small>%s</small></div>`,
			width, caption, source("image/png", encoded.Bytes()), strings.ReplaceAll(caption, "\n", "<br>"))
	}
	row.WriteString(`</div>`)
	send(protocol.MIMETextHTML, row.String(), "")
}
