package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"densityuncertainty/figures/results"
)

// Reporter writes progress and the time left for a person to read. On a terminal it rewrites one
// line; elsewhere it writes a line when a batch begins and ends, and now and then in between.
type Reporter struct {
	w        io.Writer
	terminal bool
	now      func() time.Time

	total, done float64 // cost of all batches, and of the experiments that have results
	lost        float64 // of those whose batch ended without
	runs        int     // experiments in all batches
	runsDone    int
	started     time.Time
	written     time.Time // of the last progress line
	first       mark      // from which on the speed is measured

	runner Runner
	batch  []results.Experiment
	open   bool // a rewritable line is on the terminal
}

// A mark says when how much was done, in units of cost.
type mark struct {
	at   time.Time
	done float64
}

// NewReporter reports to w on batches that runner carries out. now is time.Now outside tests.
func NewReporter(w io.Writer, terminal bool, now func() time.Time, runner Runner, batches [][]results.Experiment) *Reporter {
	r := &Reporter{w: w, terminal: terminal, now: now, started: now(), runner: runner}
	for _, batch := range batches {
		r.total += cost(runner, batch)
		r.runs += len(batch)
	}
	return r
}

// Note writes a line of its own.
func (r *Reporter) Note(text string) {
	if r.open {
		r.print("\n")
		r.open = false
	}
	r.print(text + "\n")
}

// How often progress inside a batch is written.
const (
	terminalEvery = 200 * time.Millisecond
	logEvery      = 30 * time.Second
)

func (r *Reporter) begin(batch []results.Experiment) {
	r.batch = batch
	r.written = time.Time{}
	r.update(0, "starting")
}

// update is the progress function that a Runner calls.
func (r *Reporter) update(done float64, note string) {
	every := logEvery
	if r.terminal {
		every = terminalEvery
	}
	now := r.now()
	done = min(max(done, 0), 1)
	overall := r.done + done*cost(r.runner, r.batch)
	if r.first.at.IsZero() && done > 0 {
		// A run that goes on where an earlier process stopped begins with what that one did.
		r.first = mark{now, overall}
	}
	if now.Sub(r.written) < every {
		return
	}
	r.written = now
	line := fmt.Sprintf("%s %s: %.0f%% %s", r.heading(overall), describe(r.batch), 100*done, note)
	if r.terminal {
		r.print("\r\x1b[K" + line)
		r.open = true
		return
	}
	r.print(line + "\n")
}

// end reports the end of the current batch, of which these experiments have no results, with the error that ended it if
// any.
func (r *Reporter) end(missing []results.Experiment, err error) {
	r.done += cost(r.runner, r.batch)
	r.runsDone += len(r.batch)
	if len(missing) > 0 {
		r.move(missing, -1)
	}
	outcome := "done"
	switch {
	case errors.Is(err, context.Canceled):
		outcome = "stopped"
	case err != nil:
		outcome = "FAILED: " + strings.TrimPrefix(err.Error(), describe(r.batch)+": ")
	}
	if r.open {
		r.print("\r\x1b[K")
		r.open = false
	}
	r.print(fmt.Sprintf("%s %s: %s\n", r.heading(r.done), describe(r.batch), outcome))
}

// later reports that the experiments which a batch that failed had no results of have some after all.
func (r *Reporter) later(batch, missing []results.Experiment) {
	r.move(missing, 1)
	r.Note(fmt.Sprintf("%s %s: another run has finished it", r.heading(r.done), describe(batch)))
}

// move counts experiments as done, with a sign of 1, or as lost, with -1, which were the other before.
func (r *Reporter) move(list []results.Experiment, sign int) {
	part := float64(sign) * cost(r.runner, list)
	r.done, r.lost, r.runsDone = r.done+part, r.lost-part, r.runsDone+sign*len(list)
}

// heading says how far all batches are: "[12/30 runs, 40%, 1m0s, about 1m30s left]".
func (r *Reporter) heading(done float64) string {
	now := r.now()
	head := fmt.Sprintf("[%d/%d runs, %.0f%%, %v", r.runsDone, r.runs, 100*done/r.total, now.Sub(r.started).Round(time.Second))
	first := r.first
	if first.at.IsZero() {
		first.at = r.started
	}
	if left := r.total - r.lost - done; done > first.done && left > 1e-6*r.total {
		takes := time.Duration(float64(now.Sub(first.at)) * left / (done - first.done))
		head += fmt.Sprintf(", about %v left", takes.Round(time.Second))
	}
	return head + "]"
}

// print writes progress. A failure to write it is no reason to lose hours of training, and there is
// nowhere else to report it.
func (r *Reporter) print(text string) {
	_, _ = io.WriteString(r.w, text)
}

// describe names a batch: what its experiments share, then its splits or seeds.
func describe(batch []results.Experiment) string {
	first := batch[0]
	if len(batch) == 1 {
		return first.String()
	}
	word, number := "splits", func(e results.Experiment) uint64 { return uint64(e.Split) }
	if first.Study == results.Toy {
		word, number = "seeds", func(e results.Experiment) uint64 { return e.Seed }
	}
	var list []string
	for i := 0; i < len(batch); {
		j := i
		for j+1 < len(batch) && number(batch[j+1]) == number(batch[j])+1 {
			j++
		}
		if j == i {
			list = append(list, fmt.Sprint(number(batch[i])))
		} else {
			list = append(list, fmt.Sprintf("%d-%d", number(batch[i]), number(batch[j])))
		}
		i = j + 1
	}
	return fmt.Sprintf("%s %s on %s %s %s (%s, %s)", first.Study, first.Variant(), first.Dataset, word, strings.Join(list, ","), first.Fidelity, first.Scale)
}
