package notebook

import (
	"errors"
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"

	"github.com/janpfeifer/gonb/gonbui/protocol"
)

// A Slider lets the reader of a notebook choose one of several positions, with the mouse or the arrow keys.
type Slider struct {
	Name      string // for example "γ"
	Positions []float64
	Start     int // index of the initial position
}

// text is a position in words, without the digits lost in adding up steps such as 0.1.
func (s Slider) text(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// Positions returns all positions that [Explore] draws: each position of each slider, with the other sliders at their
// start. It stops the cell if a slider has no name or its start is out of range.
func Positions(controls ...Slider) [][]float64 {
	if len(controls) == 0 {
		panic(errors.New("notebook.Explore: there is no slider"))
	}
	var start []float64
	for _, s := range controls {
		if strings.TrimSpace(s.Name) == "" || s.Start < 0 || s.Start >= len(s.Positions) {
			panic(fmt.Errorf("notebook.Explore: slider %q starts at number %d of %d positions; it needs a name and a start", s.Name, s.Start, len(s.Positions)))
		}
		start = append(start, s.Positions[s.Start])
	}
	var all [][]float64
	for i, s := range controls {
		for _, v := range s.Positions {
			at := slices.Clone(start)
			at[i] = v
			all = append(all, at)
		}
	}
	return all
}

// page has a picture for each position and shows that of the last slider that was moved. It needs no kernel, and no script
// beside its handlers. JupyterLab would take the keys of a slider for its own.
var page = template.Must(template.New("explore").Parse(`<div onkeydown="if (/^(Arrow|Home|End|Page)/.test(event.key)) event.stopPropagation()" oninput="
let picture = Number(event.target.value);
for (const slider of this.querySelectorAll('input')) {
  if (slider === event.target) break;
  picture += Number(slider.max) + 1;
}
for (const slider of this.querySelectorAll('input')) {
  if (slider !== event.target) slider.value = slider.defaultValue;
  slider.nextElementSibling.textContent = slider.dataset.texts.split(' ')[slider.value];
  slider.setAttribute('aria-valuetext', slider.nextElementSibling.textContent);
}
this.querySelectorAll('img').forEach((image, i) => (image.style.display = i === picture ? '' : 'none'));">
<div style="display:grid;grid-template-columns:max-content minmax(8em,24em) max-content;gap:4px 12px;align-items:center;margin-bottom:4px">
{{- range .Sliders}}
<span>{{.Name}}</span><input type="range" aria-label="{{.Name}}" min="0" max="{{.Last}}" value="{{.Start}}" aria-valuetext="{{.Text}}" data-texts="{{.Texts}}"><output>{{.Text}}</output>
{{- end}}
</div>
{{- if .Several}}<small>Each slider moves by itself: the others go back to their start.</small>{{end}}
{{- range .Pictures}}
<img style="width:100%;max-height:75vh;object-fit:contain;background:white{{if .Hidden}};display:none{{end}}" alt="{{.Words}}" src="{{.Source}}">
{{- end}}
</div>`))

// Explore shows a drawing, an SVG document, with sliders below it. draw gets the sliders' positions, in their order.
// Explore calls it for all [Positions] first, so that the sliders also work in saved notebooks, pages and slides.
// description says what the drawing shows, for readers who cannot see it. An error of draw stops the cell.
func Explore(description string, draw func(at []float64) ([]byte, error), controls ...Slider) {
	type slider struct {
		Name, Text, Texts string
		Start, Last       int
	}
	type picture struct {
		Words  string
		Source template.URL
		Hidden bool
	}
	all := Positions(controls...)
	var sliders []slider
	var pictures []picture
	for _, s := range controls {
		var texts []string
		for k := range s.Positions {
			at := all[len(pictures)]
			drawing, err := draw(at)
			if err != nil {
				panic(fmt.Errorf("notebook.Explore: %q at %g: %w", description, at, err))
			}
			words := description
			for i, other := range controls {
				words += fmt.Sprintf("; %s %s", other.Name, other.text(at[i]))
			}
			texts = append(texts, s.text(s.Positions[k]))
			source := source("image/svg+xml", svgElement("notebook.Explore", drawing))
			pictures = append(pictures, picture{words, template.URL(source), len(sliders) > 0 || k != s.Start})
		}
		sliders = append(sliders, slider{s.Name, texts[s.Start], strings.Join(texts, " "), s.Start, len(texts) - 1})
	}
	if !inNotebook() {
		for _, p := range pictures {
			say("[picture: " + p.Words + "]")
		}
		return
	}
	var b strings.Builder
	Check(page.Execute(&b, map[string]any{"Sliders": sliders, "Pictures": pictures, "Several": len(sliders) > 1}))
	send(protocol.MIMETextHTML, b.String(), "")
}
