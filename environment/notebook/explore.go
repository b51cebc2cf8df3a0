package notebook

import (
	_ "embed"
	"fmt"
	"html"
	"html/template"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/janpfeifer/gonb/gonbui"
	"github.com/janpfeifer/gonb/gonbui/comms"
	"github.com/janpfeifer/gonb/gonbui/protocol"
)

// Explore shows a drawing, an SVG document, that follows sliders: draw gets where they are, in their order, and is
// called for every move. It should take well under a second, so that what takes longer is computed before. The
// description says what the drawing shows, for those who cannot see it.
//
// The sliders can be moved as long as the cell runs, which ends when another cell waits to run, the kernel is
// interrupted, or half a minute after the page was closed. Then, and where the cell's program ended otherwise, they
// say so. Call Explore last in a cell, and [Keep] for it what took long, so that the cell can be run again at once.
//
// Where nothing can be moved, because nobody sees the notebook run or the front end cannot talk to the program,
// there are drawings of a few positions instead: a row for each slider, in which it moves and the others are at
// their start. Errors of draw, and sliders without a range, stop the cell.
func Explore(description string, draw func(at []float64) ([]byte, error), controls ...Slider) {
	all := sliders(controls)
	if err := all.check(); err != nil {
		panic(fmt.Errorf("notebook.Explore: %q: %w", description, err))
	}
	e := explorer{description, all, func(at []float64) string {
		drawing, err := draw(at)
		if err != nil {
			panic(fmt.Errorf("notebook.Explore: %q at %s: %w", description, all.text(at), err))
		}
		return source("image/svg+xml", svgElement("notebook.Explore", drawing))
	}}
	switch {
	case !In():
		for _, row := range all.rows() {
			for _, at := range row {
				e.draw(at)
				say("[picture: " + e.words(at) + "]")
			}
		}
	case os.Getenv(protocol.GONB_JUPYTER_KERNEL_ID_ENV) == "": // run without a browser
		send(protocol.MIMETextHTML, e.few(), "")
	default:
		e.live(patience)
	}
}

// explorer is a drawing with its sliders.
type explorer struct {
	description string
	sliders     sliders
	draw        func(at []float64) string // the source of an image element
}

// words describe the drawing at a position.
func (e explorer) words(at []float64) string { return e.description + "; " + e.sliders.text(at) }

// few is the HTML with a few fixed positions.
func (e explorer) few() string {
	var b strings.Builder
	b.WriteString(`<div><small>` + html.EscapeString(e.invitation()) + `</small>`)
	for _, row := range e.sliders.rows() {
		b.WriteString(`<div style="display:grid;grid-template-columns:repeat(auto-fit,minmax(min(300px,100%),1fr));gap:6px">`)
		for _, at := range row {
			fmt.Fprintf(&b, `<div style="text-align:center"><small>%s</small><br><img style="width:100%%;background:white" alt="%s" src="%s"></div>`,
				html.EscapeString(e.sliders.text(at)), html.EscapeString(e.words(at)), e.draw(at))
		}
		b.WriteString(`</div>`)
	}
	return b.String() + `</div>`
}

// invitation says which sliders there are where the cell runs.
func (e explorer) invitation() string {
	var names []string
	for _, s := range e.sliders {
		names = append(names, fmt.Sprintf("%s (%s to %s)", s.Name, s.text(s.Min), s.text(s.Max)))
	}
	return "A few positions. Run this cell by itself, in JupyterLab, to move " + strings.Join(names, ", ") + "."
}

// ended is what sliders say that can no longer be moved.
const ended = "This cell has ended: run it again to move its sliders."

// page is an explorer in the notebook. Its sliders are those of a cell that has ended until the script hears from the
// program, so that they say so too where a saved notebook is opened.
var page = template.Must(template.New("explore").Parse(`<div id="{{.ID}}">
<div style="display:grid;grid-template-columns:max-content minmax(8em,24em) max-content;gap:4px 12px;align-items:center;margin-bottom:4px">
{{- range .Inputs}}
<label for="{{.ID}}">{{.Name}}</label><input id="{{.ID}}" type="range" min="{{.Min}}" max="{{.Max}}" step="{{.Step}}" value="{{.Value}}" aria-valuetext="{{.Text}}" data-labels="{{.Labels}}" disabled><output for="{{.ID}}">{{.Text}}</output>
{{- end}}
</div>
<small role="status">{{.Ended}}</small><br>
<img style="width:100%;max-height:75vh;object-fit:contain;background:white" alt="{{.Description}}" src="{{.Picture}}">
</div>
{{- if .Script}}
<script>({{.Script}})({{.ID}}, {{.Ended}})</script>
{{- end}}`))

//go:embed explore.js
var script string

// html is the explorer as a page shows it at one position, with or without the program that lets it be moved.
func (e explorer) html(id string, at []float64, alive bool) string {
	type input struct {
		Slider
		ID, Text, Labels string
		Value            float64
	}
	var inputs []input
	for i, s := range e.sliders {
		inputs = append(inputs, input{s, fmt.Sprintf("%s-%d", id, i), s.text(at[i]), strings.Join(s.labels, "\n"), at[i]})
	}
	values := map[string]any{"ID": id, "Inputs": inputs, "Ended": ended, "Description": e.words(at), "Picture": template.URL(e.draw(at))}
	if alive {
		values["Script"] = template.JS(script)
	}
	var b strings.Builder
	Check(page.Execute(&b, values))
	return b.String()
}

// waits are how long the program waits for a word of its page.
type waits struct {
	connect time.Duration // until it asks the notebook again to connect the page
	next    time.Duration // until it takes the page for gone
	hidden  time.Duration // the same for a page in the background
}

// A page says something twice a second, in the background once a minute. GoNB tries once, for half a second, to connect
// a page, which is too short on a busy machine, and does not notice when a connection is lost. Asking for one that is
// there changes nothing.
var patience = waits{connect: 4 * time.Second, next: 30 * time.Second, hidden: 3 * time.Minute}

// live shows the sliders and redraws the picture until there is a reason to end.
func (e explorer) live(patience waits) {
	id := "explore-" + gonbui.UniqueId()
	at, last := e.sliders.start(), 0
	heard := make(chan string)
	over := make(chan struct{})
	comms.Subscribe(id+"/moves", func(_, text string) {
		select {
		case heard <- text:
		case <-over:
		}
	})
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	defer signal.Stop(interrupted)
	send(protocol.MIMETextHTML, e.html(id, at, true), id)
	answer := func(text string) {
		stopIfBroken()
		comms.Send(id+"/drawn", text)
	}
	reconnect, end := time.NewTicker(patience.connect), time.NewTimer(patience.next)
	defer reconnect.Stop()
	defer end.Stop()
	silent, present := true, false
	for done := false; !done; {
		select {
		case text := <-heard:
			silent, present = false, true
			end.Reset(patience.next)
			switch text {
			case "end":
				done = true
				continue
			case "hidden":
				end.Reset(patience.hidden)
				answer(fmt.Sprint(last))
				continue
			}
			m := Must(e.sliders.parseMove(text))
			if m.number <= last { // it asks whether somebody is here
				answer(fmt.Sprint(last))
				continue
			}
			at, last = m.at, m.number
			answer(fmt.Sprintf("%d %s", last, e.draw(at)))
		case <-interrupted:
			done = true
		case <-reconnect.C:
			if silent {
				comms.Start()
			}
			silent = true
		case <-end.C:
			done = true
		}
	}
	close(over)
	if present {
		answer("end")
	}
	// What stays in the notebook: the last position, or some where nobody has moved anything.
	if last > 0 {
		send(protocol.MIMETextHTML, e.html(id, at, false), id)
	} else {
		send(protocol.MIMETextHTML, e.few(), id)
	}
}
