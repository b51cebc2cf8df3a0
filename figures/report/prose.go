package report

import (
	_ "embed"
	"fmt"
	"strings"
	"text/template"
)

// Prose is the words of tables and figures, by name, so that they are written where one writes text:
//
//	# uci-nll
//	How well do the methods predict?
//
//	What one sees, on as many lines as one likes, with {{.Settings}} from the data.
//
//	- How it was measured.
//	- More of that, which may go on
//	  on the next line.
//
// A section of one paragraph is the caption of a figure. Each text is a text/template. A name beginning with an
// underscore is a part that others take in by {{template "_name" .}}.
type Prose struct{ sections *template.Template }

// ParseProse parses a text that is embedded in the program. It panics if the text has a mistake, which any test of the
// embedding package shows.
func ParseProse(text string) Prose {
	p := Prose{template.New("").Option("missingkey=error")}
	for _, section := range strings.Split("\n"+text, "\n# ")[1:] {
		name, body, _ := strings.Cut(section, "\n")
		said, notes, _ := strings.Cut("\n"+strings.TrimSpace(body)+"\n", "\n- ")
		if title, caption, two := strings.Cut(strings.TrimSpace(said), "\n\n"); two {
			p.define(name+" title", title)
			said = caption
		}
		p.define(name, said)
		for i, note := range strings.Split(notes, "\n- ") {
			if strings.TrimSpace(note) != "" {
				p.define(fmt.Sprintf("%s note %d", name, i), note)
			}
		}
	}
	return p
}

// define adds a template of text on one line.
func (p Prose) define(name, text string) {
	template.Must(p.sections.New(strings.TrimSpace(name)).Parse(strings.Join(strings.Fields(text), " ")))
}

//go:embed prose.md
var wordsText string

// words has the captions of this package's figures.
var words = ParseProse(wordsText)

// Table returns a table without rows: the title, caption and notes on measurement of the section with this name, filled
// with data. It panics if there is no such section, or if data lack what it asks for.
func (p Prose) Table(name string, data any) Table {
	t := Table{Name: name, Title: p.fill(name+" title", data), Caption: p.fill(name, data)}
	for i := 0; p.sections.Lookup(fmt.Sprintf("%s note %d", name, i)) != nil; i++ {
		// A note that is empty with the data is left out.
		if note := p.fill(fmt.Sprintf("%s note %d", name, i), data); note != "" {
			t.Measured = append(t.Measured, note)
		}
	}
	return t
}

// Caption returns the section with this name, filled with data, as a figure's caption. It panics as Table does.
func (p Prose) Caption(name string, data any) string { return p.fill(name, data) }

func (p Prose) fill(name string, data any) string {
	var b strings.Builder
	if err := p.sections.ExecuteTemplate(&b, name, data); err != nil {
		panic(fmt.Errorf("report: the prose of %s: %w", name, err))
	}
	return strings.TrimSpace(b.String())
}

// Counted returns n with the word for one or for many, such as "1 run" or "3 runs".
func Counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
