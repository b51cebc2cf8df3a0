package main

import (
	"fmt"
	"io"
	"time"
)

// A reporter writes progress and the time left for a person to read. On a terminal it rewrites one line; elsewhere it
// writes a line now and then.
type reporter struct {
	w        io.Writer
	terminal bool
	now      func() time.Time

	started, written time.Time
	first            float64   // how much was done when progress was first heard of
	firstAt          time.Time // from which on the speed is measured
	open             bool      // a line that is rewritten is on the terminal
}

// How often progress is written.
const (
	terminalEvery = 200 * time.Millisecond
	logEvery      = 30 * time.Second
)

// progress is experiment.Engine.Progress.
func (r *reporter) progress(done float64, note string) {
	now := r.now()
	if r.started.IsZero() {
		r.started = now
	}
	if r.firstAt.IsZero() && done > 0 { // a run that goes on begins with what an earlier process did
		r.first, r.firstAt = done, now
	}
	every := logEvery
	if r.terminal {
		every = terminalEvery
	}
	if now.Sub(r.written) < every {
		return
	}
	r.written = now
	head := fmt.Sprintf("%.0f%%, %v", 100*done, now.Sub(r.started).Round(time.Second))
	if done > r.first && done < 1 {
		left := time.Duration(float64(now.Sub(r.firstAt)) * (1 - done) / (done - r.first))
		head += fmt.Sprintf(", about %v left", left.Round(time.Second))
	}
	if line := fmt.Sprintf("[%s] %s", head, note); r.terminal {
		r.print("\r\x1b[K" + line)
		r.open = true
	} else {
		r.print(line + "\n")
	}
}

// note is experiment.Engine.Notes: it writes a line of its own.
func (r *reporter) note(text string) {
	r.end()
	r.print(text + "\n")
}

// end ends the line that is rewritten.
func (r *reporter) end() {
	if r.open {
		r.print("\n")
		r.open = false
	}
}

// print writes progress. A failure to write it is no reason to lose hours of training, and there is nowhere else to
// report it.
func (r *reporter) print(text string) { _, _ = io.WriteString(r.w, text) }
