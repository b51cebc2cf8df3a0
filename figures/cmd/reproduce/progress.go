package main

import (
	"fmt"
	"time"
)

// logEvery is how often progress is written.
const logEvery = 30 * time.Second

// A reporter writes lines of progress, with the time left, now and then.
type reporter struct {
	tell func(format string, args ...any)

	started, written time.Time
	first            float64   // how much was done when progress was first heard of
	firstAt          time.Time // from which on the speed is measured
}

// progress is experiment.Engine.Progress.
func (r *reporter) progress(done float64, note string) {
	now := time.Now()
	if r.started.IsZero() {
		r.started = now
	}
	if r.firstAt.IsZero() && done > 0 { // a run that goes on begins with what an earlier process did
		r.first, r.firstAt = done, now
	}
	if now.Sub(r.written) < logEvery {
		return
	}
	r.written = now
	head := fmt.Sprintf("%.0f%%, %v", 100*done, now.Sub(r.started).Round(time.Second))
	if done > r.first && done < 1 {
		left := time.Duration(float64(now.Sub(r.firstAt)) * (1 - done) / (done - r.first))
		head += fmt.Sprintf(", about %v left", left.Round(time.Second))
	}
	r.tell("[%s] %s", head, note)
}
