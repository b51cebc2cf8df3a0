package notebook

import (
	"fmt"
	"html"
	"io"
	"os"
	"sync"
	"time"

	"github.com/janpfeifer/gonb/gonbui"
	"github.com/janpfeifer/gonb/gonbui/protocol"
)

// Progress is a progress bar for work of known size. In a notebook the bar moves in place; elsewhere it is a line on
// standard error from time to time. Its methods may be called from several goroutines.
type Progress struct {
	mu       sync.Mutex
	label    string
	total    int
	done     int
	note     string
	start    time.Time
	again    time.Time // when the steps were last counted anew, at first start
	shown    time.Time
	finished bool

	// Picture, if not nil, returns a vector drawing and its description, which are shown below the bar. It is called at
	// most once a second. Nothing is shown for an empty drawing.
	Picture func() (drawing []byte, description string)
	image   string    // of Picture
	drawn   time.Time // when it was made

	draw  func(p *Progress, elapsed time.Duration) // shows the present state
	now   func() time.Time
	every time.Duration // least time between two drawings
}

// NewProgress starts and shows a progress bar for total steps of work. It panics unless total > 0. Call
// [Progress.Finish] at the end.
func NewProgress(label string, total int) *Progress {
	if inNotebook() {
		// Ten pictures a second look continuous and cost nothing noticeable.
		return newProgress(label, total, drawBar("progress-"+gonbui.UniqueId()), 100*time.Millisecond, time.Now)
	}
	return newProgress(label, total, drawLine(os.Stderr), 2*time.Second, time.Now)
}

// newProgress is NewProgress with a way to draw, a pace and a clock.
func newProgress(label string, total int, draw func(*Progress, time.Duration), every time.Duration, now func() time.Time) *Progress {
	if total <= 0 {
		panic(fmt.Errorf("notebook.NewProgress: %q has %d steps, want at least 1", label, total))
	}
	p := &Progress{label: label, total: total, draw: draw, every: every, now: now, start: now()}
	p.again = p.start
	p.show()
	return p
}

// Set sets the number of finished steps, and a note on the present state, such as a loss. Numbers outside 0 to total
// are clipped. A smaller number than before starts another piece of work, such as a prediction after a training, whose
// remaining time is then shown.
func (p *Progress) Set(done int, note string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	done = min(max(done, 0), p.total)
	if done < p.done {
		p.again = p.now()
	}
	p.done, p.note = done, note
	if !p.finished && p.now().Sub(p.shown) >= p.every {
		p.show()
	}
}

// SetPart is [Progress.Set] with the finished fraction of the work, from 0 to 1; rounding errors do not matter.
func (p *Progress) SetPart(done float64, note string) { p.Set(int(done*float64(p.total)+1e-6), note) }

// Finish shows the final state and the time taken. Further calls do nothing.
func (p *Progress) Finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.finished {
		p.finished = true
		p.show()
	}
}

// show draws the present state. The caller holds the lock.
func (p *Progress) show() {
	p.shown = p.now()
	p.draw(p, p.shown.Sub(p.start))
}

// text describes the present state: "label: 30 of 100, 2s, 5s left, note".
func (p *Progress) text(elapsed time.Duration) string {
	if p.finished && p.done == p.total {
		return fmt.Sprintf("%s: %s", p.label, tidy(elapsed))
	}
	text := fmt.Sprintf("%s: %d of %d, %s", p.label, p.done, p.total, tidy(elapsed))
	if p.done > 0 && p.done < p.total {
		left := time.Duration(float64(p.shown.Sub(p.again)) / float64(p.done) * float64(p.total-p.done))
		text += fmt.Sprintf(", %s left", tidy(left))
	}
	if p.note != "" {
		text += ", " + p.note
	}
	return text
}

// tidy rounds a duration to what a reader wants to see.
func tidy(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}

// drawBar returns a function that draws into the notebook block with the id.
func drawBar(id string) func(*Progress, time.Duration) {
	return func(p *Progress, elapsed time.Duration) {
		if p.Picture != nil && (p.finished || p.shown.Sub(p.drawn) >= time.Second) {
			p.drawn = p.shown
			if drawing, description := p.Picture(); drawing != nil {
				p.image = asImage(drawing, description, "")
			}
		}
		bar := fmt.Sprintf(`<div><progress value="%d" max="%d" style="width:40%%"></progress> <span>%s</span></div>`, p.done, p.total, html.EscapeString(p.text(elapsed)))
		if p.finished && p.image != "" { // of which pages leave out the bar, and all that is shown with it
			bar = ""
		}
		send(protocol.MIMETextHTML, bar+p.image, id)
	}
}

// drawLine returns a function that writes lines to w.
func drawLine(w io.Writer) func(*Progress, time.Duration) {
	return func(p *Progress, elapsed time.Duration) {
		// Progress is not worth stopping work for when nobody can read it.
		_, _ = fmt.Fprintln(w, p.text(elapsed))
	}
}
