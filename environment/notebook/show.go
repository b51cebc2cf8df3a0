package notebook

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"strings"

	"github.com/janpfeifer/gonb/gonbui/protocol"
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
