package train_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/gomlx/compute/dtypes"

	"densityuncertainty/dul/train"
	"densityuncertainty/environment/must"
	"densityuncertainty/environment/reexec"
)

// everyStep lets Checkpoints save every step.
const everyStep = time.Nanosecond

// A run that is killed by the system at any moment, many times, and started
// again each time, ends with the same bits as one that was never killed, and
// repeats no more steps than one.
func TestKilledRunGoesOn(t *testing.T) {
	if testing.Short() {
		t.Skip("a compiler takes a minute for all the processes")
	}
	for _, c := range []struct {
		trial
		epochs, kills int
	}{{trials()[0], 100, 24}, {trials()[4], 300, 12}} { // more steps than all killed processes together reach
		t.Run(c.name, func(t *testing.T) {
			c.Epochs = c.epochs
			m, run := c.model(t, dtypes.Float32), c.Trainer
			if folder, is := reexec.Argument(t); is {
				run.Checkpoints = train.Checkpoints{Folder: folder, Every: everyStep}
				run.Notes = func(note string) { fmt.Println("note:", note) }
				run.Progress = func(p train.Progress) { fmt.Println("step", p.Step) }
				fit(t, run, m, c.data...)
				return
			}
			want := c.model(t, dtypes.Float32)
			c.fit(t, want)
			folder := t.TempDir()
			rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
			reached, lost := 0, 0
			for range c.kills {
				// Some processes are killed before their first step, the others within or
				// after a save, at any moment of the step or the save that follows.
				first, last := trainUntilKilled(t, folder, rng.IntN(6), rng)
				if first > reached+1 || (first > 0 && first < reached) {
					t.Fatalf("killed after step %d, the next process went on with step %d", reached, first)
				}
				if first > 0 {
					lost += reached + 1 - first
					reached = last
				}
			}
			t.Logf("%d kills; %d steps were done again; after the last kill step %d was done", c.kills, lost, reached)

			run.Checkpoints = train.Checkpoints{Folder: folder}
			run.Notes = func(note string) { t.Error(note) }
			fit(t, run, m, c.data...)
			sameState(t, m, want)
		})
	}
}

// trainUntilKilled starts a process that trains, and kills it soon after it has
// done the given number of steps. It returns the first and the last step that
// the process announced, 0 if none.
func trainUntilKilled(t *testing.T, folder string, steps int, rng *rand.Rand) (first, last int) {
	t.Helper()
	c := reexec.Command(t, folder)
	out := must.Get(c.StdoutPipe())(t)
	must.Do(t, c.Start())
	lines := bufio.NewScanner(out)
	listen := func() bool {
		if !lines.Scan() {
			return false
		}
		if _, err := fmt.Sscanf(lines.Text(), "step %d", &last); err != nil {
			t.Fatalf("the process says %q", lines.Text())
		}
		if first == 0 {
			first = last
		}
		return true
	}
	for i := 0; i < steps && listen(); i++ {
	}
	pause := 10 * time.Millisecond // about a step and a save
	if steps == 0 {
		pause = 200 * time.Millisecond // about the start of the process
	}
	time.Sleep(time.Duration(rng.Float64() * float64(pause)))
	if err := c.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	for listen() {
	}
	if _, err := io.Copy(io.Discard, out); err != nil && !errors.Is(err, os.ErrClosed) {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := errors.Join(lines.Err(), c.Wait()); !errors.As(err, &exit) {
		t.Fatalf("the process was to be killed, but ended: %v", err)
	}
	return first, last
}
