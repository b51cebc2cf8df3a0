package notebook

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"image"
	"image/png"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/janpfeifer/gonb/gonbui"
	"github.com/janpfeifer/gonb/gonbui/protocol"

	"densityuncertainty/datasets"
)

// Markdown shows Markdown text, with formulas between dollar signs.
func Markdown(text string) {
	if !inNotebook() {
		say(text)
		return
	}
	send(protocol.MIMETextMarkdown, text, "")
}

// SVG shows a vector drawing, an XML document with the root element svg. description says what it shows, for readers
// who cannot see it. It stops the cell if either is missing.
func SVG(drawing []byte, description string) { show(drawing, description, "") }

// Slide is SVG on slides alone, in the place of the cell's other pictures. A notebook and its page do not show it.
func Slide(drawing []byte, description string) { show(drawing, description, " hidden") }

func show(drawing []byte, description, attribute string) {
	element := asImage(drawing, description, attribute)
	if strings.TrimSpace(description) == "" {
		panic(errors.New("notebook.SVG: the drawing needs a description"))
	}
	if !inNotebook() {
		say("[picture: " + description + "]")
		return
	}
	send(protocol.MIMETextHTML, element, "")
}

// asImage is an element with a drawing. As an image of its own it cannot disturb another one's styles and
// ids, and it survives the export to HTML, which drops image/svg+xml.
func asImage(drawing []byte, description, attribute string) string {
	return fmt.Sprintf(`<img%s style="max-width:100%%;background:white" alt="%s" src="%s">`,
		attribute, html.EscapeString(description), source("image/svg+xml", svgElement("notebook.SVG", drawing)))
}

// svgElement is the root element of a vector drawing. One without stops the cell.
func svgElement(who string, drawing []byte) []byte {
	start := bytes.Index(drawing, []byte("<svg"))
	if start < 0 {
		panic(fmt.Errorf("%s: %d bytes without an <svg> element", who, len(drawing)))
	}
	return drawing[start:]
}

// source is data as the source of an image element.
func source(media string, data []byte) string {
	return "data:" + media + ";base64," + base64.StdEncoding.EncodeToString(data)
}

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

// inNotebook reports whether the program runs as a notebook cell.
func inNotebook() bool { return gonbui.IsNotebook }

// send shows content of one media type, or replaces what was shown before
// under the same id, and waits until the notebook has it.
func send(media protocol.MIMEType, content any, id string) {
	// A broken connection never recovers, and waiting on it would never end.
	stopIfBroken()
	gonbui.SendData(&protocol.DisplayData{
		Data:      map[protocol.MIMEType]any{media: content},
		DisplayID: id,
	})
	stopIfBroken()
	gonbui.Sync()
}

// stopIfBroken stops the cell when the notebook can no longer be reached.
func stopIfBroken() {
	if err := gonbui.Error(); err != nil {
		panic(fmt.Errorf("showing a result in the notebook: %w; restart the kernel and run the cell again", err))
	}
}

// say prints a line to standard output, for programs outside a notebook.
func say(text string) {
	if _, err := fmt.Fprintln(os.Stdout, text); err != nil {
		panic(fmt.Errorf("showing a result: %w", err))
	}
}

// fullVariable is the environment variable that asks for full runs, "DENSITYUNCERTAINTY_FULL". Its value is a Go
// boolean such as 1 or 0.
const fullVariable = "DENSITYUNCERTAINTY_FULL"

// Quick reports whether the notebook runs in quick mode, the default: the same code with smaller numbers.
// DENSITYUNCERTAINTY_FULL=1 asks for full runs. A value that is no boolean stops the cell, so that quick numbers do not
// pass for full ones.
func Quick() bool {
	value := os.Getenv(fullVariable)
	if value == "" {
		return true
	}
	full, err := strconv.ParseBool(value)
	if err != nil {
		panic(fmt.Errorf("%s=%q: want 1 for full runs, 0 or nothing for quick ones", fullVariable, value))
	}
	return !full
}

// Must returns value, or stops the cell if err is not nil. Use it around a call that returns both: samples :=
// notebook.Must(load(path)).
func Must[T any](value T, err error) T {
	Check(err)
	return value
}

// Check stops the cell if err is not nil.
func Check(err error) {
	if err != nil {
		panic(err)
	}
}
