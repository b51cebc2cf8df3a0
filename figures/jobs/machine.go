package jobs

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/gomlx/compute"

	"densityuncertainty/environment"
	"densityuncertainty/figures/results"
)

// Machine is where experiments are computed.
type Machine struct {
	Backend compute.Backend
	Info    environment.Info
	// Choice is the line in which the environment says which backend it chose.
	Choice string
}

// OpenMachine returns a machine with the backend that the environment chooses for the work.
func OpenMachine(work environment.Work) (Machine, error) {
	backend, choice, err := environment.OpenFor(work)
	if err != nil {
		return Machine{}, err
	}
	return Machine{Backend: backend, Info: environment.Describe(backend), Choice: choice}, nil
}

// Line begins the result of an experiment that was computed on the machine together with others, batched in all.
func (m Machine) Line(e results.Experiment, batched int) results.Result {
	return results.Result{ID: e.ID(), Experiment: e, Backend: m.Info.Backend, Device: m.Info.Device, Version: m.Info.Version, Batched: batched}
}

// Stopwatch measures the time that a run takes.
type Stopwatch struct {
	wall time.Time
	cpu  time.Duration
}

// StartStopwatch starts now.
func StartStopwatch() Stopwatch { return Stopwatch{time.Now(), CPUTime()} }

// Stop writes into a line the time since the start, and now as its end.
func (s Stopwatch) Stop(line *results.Result) { s.stop(line, 1) }

// StopShared is Stop for the lines of a run of so many experiments together, each with its share of the time.
func (s Stopwatch) StopShared(lines []results.Result, experiments int) {
	for i := range lines {
		s.stop(&lines[i], float64(experiments))
	}
}

func (s Stopwatch) stop(line *results.Result, share float64) {
	line.WallSeconds, line.CPUSeconds = time.Since(s.wall).Seconds()/share, (CPUTime()-s.cpu).Seconds()/share
	line.Finished = time.Now().UTC().Truncate(time.Second)
}

// CPUTime is the processor time that this process has used.
func CPUTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0 // Linux fails only for a bad argument
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// Recover, deferred, turns a panic into an error: GoMLX reports what is wrong
// with a graph by panicking. A panic of the Go runtime is a mistake in this
// code, so its error says where.
func Recover(err *error, e results.Experiment) {
	problem := recover()
	if problem == nil {
		return
	}
	*err = fmt.Errorf("%v: %v", e, problem)
	if _, mistake := problem.(runtime.Error); mistake {
		*err = fmt.Errorf("%w\n%s", *err, debug.Stack())
	}
}
