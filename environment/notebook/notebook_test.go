package notebook

import (
	"bytes"
	"encoding/base64"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"densityuncertainty/environment/must"
)

func TestQuick(t *testing.T) {
	for value, want := range map[string]bool{"": true, "0": true, "false": true, "1": false, "true": false} {
		t.Setenv(fullVariable, value)
		if got := Quick(); got != want {
			t.Errorf("%s=%q: quick = %v, want %v", fullVariable, value, got, want)
		}
	}
	t.Setenv(fullVariable, "yes please")
	must.Panic(t, func() { Quick() }, `"yes please"`)
}

func TestMust(t *testing.T) {
	if got := Must(3, nil); got != 3 {
		t.Errorf("Must = %d", got)
	}
	err := errors.New("no such file")
	defer func() {
		if reason := recover(); reason != err {
			t.Errorf("the panic is %v, want the error itself", reason)
		}
	}()
	Must(3, err)
}

func TestMisuseStopsTheCell(t *testing.T) {
	must.Panic(t, func() { SVG([]byte("<html>"), "x") }, "without an <svg>")
	must.Panic(t, func() { SVG([]byte("<svg/>"), " ") }, "needs a description")
	must.Panic(t, func() { NewProgress("work", 0) }, "has 0 steps")
}

func TestProgress(t *testing.T) {
	clock := time.Unix(0, 0)
	var out bytes.Buffer
	p := newProgress("training", 4, drawLine(&out), 2*time.Second, func() time.Time { return clock })
	p.SetPart(0.25, "loss 3") // too early to be drawn
	clock = clock.Add(2 * time.Second)
	p.Set(2, "loss 3")
	clock = clock.Add(time.Second)
	p.Set(3, "loss 2")
	p.Set(9, "loss 1")
	p.SetPart(math.Nextafter(1, 0), "loss 1") // a sum of parts
	p.Finish()
	p.Finish()
	p.Set(2, "after the end")
	const want = "training: 0 of 4, 0s\n" +
		"training: 2 of 4, 2s, 2s left, loss 3\n" +
		"training: 3s\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// A second piece of work, which counts from 0 again, has its own time left.
func TestProgressAgain(t *testing.T) {
	clock := time.Unix(0, 0)
	var out bytes.Buffer
	p := newProgress("network", 4, drawLine(&out), 2*time.Second, func() time.Time { return clock })
	clock = clock.Add(100 * time.Second)
	p.Set(4, "training")
	p.Set(0, "predicting")
	clock = clock.Add(2 * time.Second)
	p.Set(1, "predicting")
	const want = "network: 0 of 4, 0s\n" +
		"network: 4 of 4, 1m40s, training\n" +
		"network: 1 of 4, 1m42s, 6s left, predicting\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestInNotebook sends through real pipes to a stand-in for the kernel.
func TestInNotebook(t *testing.T) {
	kernel := startKernel(t)
	Markdown("*hello* $x^2$")
	SVG([]byte(`<?xml version="1.0"?><svg width="1"/>`), `a "quoted" dot`)
	Bitmaps(90, Grey("a < b\nsecond", []float64{0, 1}, 2, 1), Colour("c", []byte{1, 2, 3}, 1))
	p := NewProgress("<work>", 2)
	drawings := []byte(nil)
	p.Picture = func() ([]byte, string) { drawings = append(drawings, '<', 's', 'v', 'g'); return drawings, "a curve" }
	p.Set(2, "")
	p.Finish()

	shown := kernel.shown()
	for i, want := range []string{
		"text/markdown *hello* $x^2$",
		`text/html <img style="max-width:100%;background:white" alt="a &#34;quoted&#34; dot" src="data:image/svg+xml;base64,` +
			base64.StdEncoding.EncodeToString([]byte(`<svg width="1"/>`)) + `">`,
		`text/html <div style="display:flex;flex-wrap:wrap;gap:10px"><div style="width:90px;text-align:center">` +
			`<img style="width:100%;border:1px solid #888;image-rendering:pixelated" alt="a &lt; b` + "\n" + `second" src="data:image/png;base64,`,
		`text/html <div><progress value="0" max="2" style="width:40%"></progress> <span>&lt;work&gt;: 0 of 2`,
	} {
		if i >= len(shown) || !strings.HasPrefix(shown[i], want) {
			t.Fatalf("message %d of %d: want %s\ngot %q", i, len(shown), want, shown)
		}
	}
	if last := shown[len(shown)-1]; strings.Contains(last, "<progress") || !strings.Contains(last, `alt="a curve"`) {
		t.Errorf("last message %q", last)
	}
	// Everything above was acknowledged before the call returned.
	if kernel.syncs() != len(shown) {
		t.Errorf("%d messages, %d acknowledged", len(shown), kernel.syncs())
	}
	t.Run("Explore", func(t *testing.T) { exploreInNotebook(t, kernel) })
}
