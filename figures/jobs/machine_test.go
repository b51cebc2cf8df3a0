package jobs

import (
	"math"
	"strings"
	"testing"
	"time"

	"densityuncertainty/environment"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/results"
)

func TestMachine(t *testing.T) {
	t.Setenv(environment.ConfigVariable, environment.GoSequential)
	machine := must.Get(OpenMachine(environment.SmallNetworks))(t)
	e := exp("density", "yacht", 3)
	line := machine.Line(e, 4)
	if line.ID != e.ID() || line.Experiment.Split != 3 || line.Batched != 4 || line.Backend != environment.GoSequential || line.Device == "" || line.Version == "" || machine.Choice == "" {
		t.Errorf("line %+v of the machine %+v", line, machine)
	}
	t.Setenv(environment.ConfigVariable, "none")
	if _, err := OpenMachine(environment.SmallNetworks); err == nil {
		t.Error("a backend that there is not was opened")
	}
}

// Each line of a shared run has its share of the time; the stopwatch measures both kinds of time.
func TestStopwatch(t *testing.T) {
	before := time.Now().Add(-time.Second)
	watch := StartStopwatch()
	sum := 0.0
	for time.Since(watch.wall) < 50*time.Millisecond { // busy, so that processor time passes too
		sum += math.Sqrt(sum + 1)
	}
	var alone results.Result
	watch.Stop(&alone)
	shared := make([]results.Result, 2)
	watch.StopShared(shared, 4)
	if alone.WallSeconds < 0.05 || alone.WallSeconds > 5 || alone.CPUSeconds <= 0 || alone.CPUSeconds > 50 {
		t.Errorf("alone it took %v s, %v s of processors (sum %v)", alone.WallSeconds, alone.CPUSeconds, sum)
	}
	for _, line := range append(shared, alone) {
		if line.Finished.Before(before) || line.Finished.After(time.Now()) || line.Finished.Location() != time.UTC || line.Finished.Nanosecond() != 0 {
			t.Errorf("finished at %v, want now, in UTC, in whole seconds", line.Finished)
		}
	}
	for _, line := range shared {
		if line.WallSeconds < alone.WallSeconds/4 || line.WallSeconds > alone.WallSeconds/4+1 || line.CPUSeconds < alone.CPUSeconds/4 {
			t.Errorf("a fourth of the run took %v s and %v s, the whole %v s and %v s", line.WallSeconds, line.CPUSeconds, alone.WallSeconds, alone.CPUSeconds)
		}
	}
}

// What a graph complains of is one line; a mistake of this code says where it is.
func TestRecover(t *testing.T) {
	var empty []int
	for _, c := range []struct {
		name      string
		panicking func()
		wants     []string
		lines     int // of the error; 0 for any number
	}{
		{"none", func() {}, nil, 0},
		{"a graph's", func() { panic("shapes differ") }, []string{"uci density on yacht", ": shapes differ"}, 1},
		{"the runtime's", func() { _ = empty[len(empty)] }, []string{"uci density on yacht", "out of range", "machine_test.go"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := func() (err error) {
				defer Recover(&err, exp("density", "yacht", 0))
				c.panicking()
				return nil
			}()
			if (err == nil) != (c.wants == nil) {
				t.Fatalf("got %v", err)
			}
			for _, want := range c.wants {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q in it", err, want)
				}
			}
			if c.lines > 0 && strings.Count(err.Error(), "\n") != c.lines-1 {
				t.Errorf("got %d lines: %v", 1+strings.Count(err.Error(), "\n"), err)
			}
		})
	}
}
