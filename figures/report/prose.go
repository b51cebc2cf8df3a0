package report

import (
	"fmt"
	"strings"
	"text/template"
)

// Prose is the captions and notes of tables and figures, by name, so that they are written where one writes text:
//
//	# uci-nll
//	The caption, on as many lines as one likes, with {{.Settings}} from the data.
//
//	- A note.
//	- Another note, which may go on
//	  on the next line.
//
// Each is a text/template. A name beginning with an underscore is a part that others take in by {{template "_name" .}}.
type Prose struct{ sections *template.Template }

// ParseProse reads the text of a file, which comes with the program, so that a mistake in it is one in the program:
// it panics, and a test of the package that embeds the file would show it.
func ParseProse(text string) Prose {
	p := Prose{template.New("").Option("missingkey=error")}
	for _, section := range strings.Split("\n"+text, "\n# ")[1:] {
		name, body, _ := strings.Cut(section, "\n")
		caption, notes, _ := strings.Cut("\n"+strings.TrimSpace(body)+"\n", "\n- ")
		p.define(name, caption)
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

// Text is the caption of a name with the data, and its notes in order. It panics for a name that is not there and
// for data that lack what the text asks for, as ParseProse does.
func (p Prose) Text(name string, data any) (caption string, notes []string) {
	caption = p.fill(name, data)
	for i := 0; p.sections.Lookup(fmt.Sprintf("%s note %d", name, i)) != nil; i++ {
		// A note that is empty with the data is left out.
		if note := p.fill(fmt.Sprintf("%s note %d", name, i), data); note != "" {
			notes = append(notes, note)
		}
	}
	return caption, notes
}

func (p Prose) fill(name string, data any) string {
	var b strings.Builder
	if err := p.sections.ExecuteTemplate(&b, name, data); err != nil {
		panic(fmt.Errorf("report: the prose of %s: %w", name, err))
	}
	return strings.TrimSpace(b.String())
}
