package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"

	"densityuncertainty/figures/jobs"
	"densityuncertainty/figures/results"
)

// deviceVariable is what tells a process which GPUs it sees.
const deviceVariable = "CUDA_VISIBLE_DEVICES"

// deviceName is how it names a GPU: its number, or its UUID.
var deviceName = regexp.MustCompile(`^([0-9]+|(GPU|MIG)-[0-9A-Za-z/-]+)$`)

// A place is where one process at a time computes.
type place struct {
	name     string // "device 3" or "process 0"
	variable string // of the process's environment, as NAME=value, that confines it to the place
	gpu      bool
}

// gpuPlaces are those of GPUs, each of which can be named several times.
func gpuPlaces(devices []string) ([]place, error) {
	var places []place
	for _, device := range devices {
		if !deviceName.MatchString(device) {
			return nil, usagef("--devices: %q is not the number of a GPU, such as 0, or its UUID", device)
		}
		places = append(places, place{"device " + device, deviceVariable + "=" + device, true})
	}
	return places, nil
}

// processorPlaces are so many parts of the cores that this process may use.
func processorPlaces(many int) []place {
	places := make([]place, many)
	for i := range places {
		places[i] = place{name: fmt.Sprintf("process %d", i), variable: fmt.Sprintf("GOMAXPROCS=%d", max(1, runtime.GOMAXPROCS(0)/many))}
	}
	return places
}

// inProcesses carries out batches in processes of their own, at any time one at each of the places. They
// write to one store, which is made for that.
func (c command) inProcesses(ctx context.Context, r request, batches [][]results.Experiment) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	if err := os.MkdirAll(r.folders.work, 0o755); err != nil {
		return fmt.Errorf("making the folder for work: %w", err)
	}
	folder, err := os.MkdirTemp(r.folders.work, "tasks-")
	if err != nil {
		return fmt.Errorf("making the folder of tasks: %w", err)
	}
	if err := jobs.WriteTasks(folder, batches); err != nil {
		return err
	}
	tasks := make(chan int, len(batches))
	for i := range batches {
		tasks <- i
	}
	close(tasks)

	out := &lines{w: c.stderr}
	failures := make([]error, len(batches))
	var wg sync.WaitGroup
	var senseless atomic.Bool // a process found its command line wrong, as all others would
	for n, at := range r.places {
		wg.Go(func() {
			for i := range tasks {
				if ctx.Err() != nil || senseless.Load() {
					return
				}
				failures[i] = r.child(ctx, program, folder, i, at, out.beginning(fmt.Sprintf("%d, %s: ", n, at.name)))
				var exit *exec.ExitError
				if errors.As(failures[i], &exit) && exit.ExitCode() == exitUsage {
					senseless.Store(true)
				}
			}
		})
	}
	wg.Wait()
	if err := os.RemoveAll(folder); err != nil {
		failures = append(failures, fmt.Errorf("removing the folder of tasks: %w", err))
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return errors.Join(failures...)
}

// child runs one task at a place and waits for its end. A stop is passed on, so that it saves.
func (r request) child(ctx context.Context, program, folder string, index int, at place, out io.Writer) error {
	args := []string{"task", folder, strconv.Itoa(index), "--store", r.folders.store, "--work", r.folders.work, "--predictions", r.folders.predictions,
		"--" + gpuFlag + "=" + strconv.FormatBool(at.gpu), "--keep=" + strconv.FormatBool(r.folders.keep), "--" + withoutSVHNFlag + "=" + strconv.FormatBool(r.folders.withoutSVHN)}
	if r.folders.networks != "" {
		args = append(args, "--networks", r.folders.networks)
	}
	child := exec.CommandContext(ctx, program, args...)
	child.Env = append(os.Environ(), at.variable)
	child.Stdout, child.Stderr = out, out
	child.Cancel = func() error { return child.Process.Signal(syscall.SIGTERM) }
	if err := child.Run(); err != nil {
		return fmt.Errorf("task %d (%s): %w; its messages are above", index, at.name, err)
	}
	return nil
}

// lines writes whole lines of several writers.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

// beginning returns a writer whose lines begin with a text.
func (l *lines) beginning(text string) io.Writer { return &prefixed{to: l, prefix: text} }

// prefixed is a writer of lines that keeps the beginning of one until its end comes.
type prefixed struct {
	to     *lines
	prefix string
	rest   []byte
}

// Write writes the whole lines.
func (p *prefixed) Write(b []byte) (int, error) {
	p.to.mu.Lock()
	defer p.to.mu.Unlock()
	p.rest = append(p.rest, b...)
	for {
		line, rest, found := bytes.Cut(p.rest, []byte("\n"))
		if !found {
			return len(b), nil
		}
		p.rest = rest
		if _, err := fmt.Fprintf(p.to.w, "%s%s\n", p.prefix, line); err != nil {
			return 0, err
		}
	}
}
