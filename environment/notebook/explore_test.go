package notebook

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/janpfeifer/gonb/gonbui/protocol"
)

// drawn is a drawing that tells what it was drawn for.
func drawn(at []float64) ([]byte, error) { return fmt.Appendf(nil, "<svg>%g</svg>", at), nil }

var exploreSliders = []Slider{{Name: "γ < 1", Max: 1, Step: 0.25, Start: 0.5}, Choice("energy", 0, "none", "full")}

func ExampleExplore() {
	band := func(at []float64) ([]byte, error) {
		variance := at[0]*0.5 + at[1]
		return fmt.Appendf(nil, `<svg height="%g"/>`, variance), nil
	}
	Explore("the variance of a unit", band,
		Slider{Name: "γ", Max: 2, Step: 0.1, Start: 1},
		Slider{Name: "β", Max: 9, Step: 1})
	// Output:
	// [picture: the variance of a unit; γ 0, β 0]
	// [picture: the variance of a unit; γ 1, β 0]
	// [picture: the variance of a unit; γ 2, β 0]
	// [picture: the variance of a unit; γ 1, β 0]
	// [picture: the variance of a unit; γ 1, β 9]
}

func TestExploreMisuseStopsTheCell(t *testing.T) {
	for _, c := range []struct {
		name    string
		draw    func([]float64) ([]byte, error)
		sliders []Slider
		want    string
	}{
		{"no sliders", drawn, nil, `"band": there is no slider`},
		{"no range", drawn, []Slider{{Name: "γ", Step: 1}}, `"band": slider "γ": from 0 to 0 is no range`},
		{"no drawing", func([]float64) ([]byte, error) { return []byte("PNG"), nil }, exploreSliders, "3 bytes without an <svg> element"},
		{"an error", func([]float64) ([]byte, error) { return nil, errors.New("no data") }, exploreSliders, `"band" at γ < 1 0, energy none: no data`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := panicOf(func() { Explore("band", c.draw, c.sliders...) }); !strings.Contains(got, c.want) {
				t.Errorf("panic %q, want %q", got, c.want)
			}
		})
	}
}

// made is the explorer of the tests.
func made() explorer {
	return explorer{"a \"band\"", exploreSliders, func(at []float64) string {
		drawing, _ := drawn(at)
		return source("image/svg+xml", drawing)
	}}
}

// A page without a program has sliders that can be reached by the keyboard, and says that the cell has ended.
func TestExplorePage(t *testing.T) {
	found := made().html("id", []float64{0.25, 1}, true)
	for _, want := range []string{
		`<label for="id-0">γ &lt; 1</label><input id="id-0" type="range" min="0" max="1" step="0.25" value="0.25" aria-valuetext="0.25" data-labels="" disabled><output for="id-0">0.25</output>`,
		`<label for="id-1">energy</label><input id="id-1" type="range" min="0" max="1" step="1" value="1" aria-valuetext="full" data-labels="none` + "\n" + `full" disabled><output for="id-1">full</output>`,
		`<small role="status">This cell has ended: run it again to move its sliders.</small>`,
		`<img style="width:100%;max-height:75vh;object-fit:contain;background:white" alt="a &#34;band&#34;; γ &lt; 1 0.25, energy full" src="data:image/svg&#43;xml;base64,`,
		`("id", "This cell has ended: run it again to move its sliders.")</script>`,
	} {
		if !strings.Contains(found, want) {
			t.Errorf("no %s in\n%s", want, found)
		}
	}
	ended := made().html("id", []float64{0.25, 1}, false)
	if strings.Contains(ended, "<script") || !strings.Contains(ended, `role="status">This cell has ended`) || !strings.Contains(ended, "disabled") {
		t.Errorf("after the end:\n%s", ended)
	}
}

// Nothing but pictures and words, one for each position, where nobody can move anything.
func TestExploreFew(t *testing.T) {
	found := made().few()
	if strings.Contains(found, "<input") || strings.Contains(found, "<script") {
		t.Errorf("something to move in\n%s", found)
	}
	if n := strings.Count(found, "<img "); n != 3+2 {
		t.Errorf("%d pictures, want 3 of the first slider and 2 of the second", n)
	}
	for _, want := range []string{
		"to move γ &lt; 1 (0 to 1), energy (none to full).",
		`<small>γ &lt; 1 0.5, energy full</small><br><img style="width:100%;background:white" alt="a &#34;band&#34;; γ &lt; 1 0.5, energy full" src="` + made().draw([]float64{0.5, 1}) + `">`,
	} {
		if !strings.Contains(found, want) {
			t.Errorf("no %s in\n%s", want, found)
		}
	}
}

// exploreInNotebook plays the page for Explore, over the pipes of TestInNotebook.
func exploreInNotebook(t *testing.T, k *kernel) {
	t.Setenv(protocol.GONB_JUPYTER_KERNEL_ID_ENV, "")
	before := len(k.shown())
	Explore("no browser", drawn, exploreSliders...)
	if shown := k.shown()[before:]; len(shown) != 1 || !strings.Contains(shown[0], "A few positions.") {
		t.Errorf("without a browser: %q", shown)
	}

	run := func(patience waits) (page string, over chan bool) {
		before, over := len(k.shown()), make(chan bool)
		go func() {
			made().live(patience)
			close(over)
		}()
		for deadline := time.Now().Add(time.Minute); len(k.shown()) == before; {
			if time.Now().After(deadline) {
				t.Fatal("nothing is shown")
			}
			time.Sleep(time.Millisecond)
		}
		_, page, _ = strings.Cut(k.shown()[before], `<div id="`)
		page, _, _ = strings.Cut(page, `"`)
		return page, over
	}
	last := func() string {
		shown := k.shown()
		return shown[len(shown)-1]
	}
	long := waits{time.Minute, time.Minute, time.Minute}

	page, over := run(long)
	source := func(at ...float64) string { return made().draw(at) }
	for _, step := range []struct{ say, want string }{
		{"0 0.5 0", "0"},
		{"1 0.25 0", "1 " + source(0.25, 0)},
		{"1 0.75 0", "1"}, // said again
		{"3 1 1", "3 " + source(1, 1)},
		{"2 0 1", "3"}, // an older one that was overtaken
		{"hidden", "3"},
	} {
		if got := k.ask(t, page, step.say); got != step.want {
			t.Errorf("%q: the program says %q, want %q", step.say, got, step.want)
		}
	}
	if got := k.ask(t, page, "end"); got != "end" {
		t.Errorf("at the end the program says %q", got)
	}
	<-over
	if got := last(); !strings.Contains(got, ended) || !strings.Contains(got, "energy full") || strings.Contains(got, "<script") {
		t.Errorf("left in the notebook: %s", got)
	}

	// Where nothing was moved.
	page, over = run(long)
	k.ask(t, page, "end")
	<-over
	if got := last(); !strings.Contains(got, "A few positions.") {
		t.Errorf("left untouched: %s", got)
	}

	// Where no page answers, or no longer.
	_, over = run(waits{connect: time.Minute, next: time.Millisecond, hidden: time.Minute})
	<-over
	if got := last(); !strings.Contains(got, "A few positions.") {
		t.Errorf("left without a page: %s", got)
	}
	page, over = run(waits{connect: time.Minute, next: time.Minute, hidden: time.Millisecond})
	k.ask(t, page, "1 0 0")
	k.ask(t, page, "hidden")
	<-over
	if got := last(); !strings.Contains(got, ended) {
		t.Errorf("left by its page: %s", got)
	}

	// Where no page is connected, the program asks for it again and again.
	<-k.said // the end of the one before
	page, over = run(waits{connect: time.Millisecond, next: time.Minute, hidden: time.Minute})
	for range 2 {
		if asked := <-k.said; asked.Address != protocol.GonbuiStartAddress {
			t.Errorf("the program says %q at %s, want a connection", asked.Value, asked.Address)
		}
	}
	k.send(t, page+"/moves", "end")
	for done := false; !done; {
		select {
		case <-k.said:
		case <-over:
			done = true
		}
	}
}
