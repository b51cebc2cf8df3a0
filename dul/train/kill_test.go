package train_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/gomlx/compute/dtypes"

	"densityuncertainty/dul"
	"densityuncertainty/dul/train"
)

// killFolder is the environment variable that makes TestKilledRunGoesOn the
// process that is killed; it names the folder of its checkpoints.
const killFolder = "TRAIN_TEST_KILL_FOLDER"

// saveSteps is how often that process saves.
const saveSteps = 3

// killRun is the run that is killed again and again: 1204 steps, more than all
// killed processes together reach on a fast machine.
func killRun() train.Classification {
	run := tinyRun()
	run.Epochs = 300
	return run
}

// A run that is killed by the system at any moment, many times, and started
// again each time, ends with the same bits as one that was never killed, and
// repeats no more steps than one save has.
func TestKilledRunGoesOn(t *testing.T) {
	if testing.Short() {
		t.Skip("a compiler takes a minute for all the processes")
	}
	f := tinyClassifier(t, dul.Density{}, dtypes.Float32)
	run := killRun()
	if folder := os.Getenv(killFolder); folder != "" {
		run.Checkpoints = train.Checkpoints{Folder: folder, EverySteps: saveSteps}
		run.Notes = func(note string) { fmt.Println("note:", note) }
		run.Progress = func(p train.ClassificationProgress) { fmt.Println("step", p.Step) }
		if err := run.Fit(context.Background(), f, colours(tinyImages)); err != nil {
			t.Fatal(err)
		}
		return
	}

	want := tinyClassifier(t, dul.Density{}, dtypes.Float32)
	if err := run.Fit(context.Background(), want, colours(tinyImages)); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	const kills = 24
	reached, lost := 0, 0
	for range kills {
		// Some processes are killed before their first step, the others within or
		// after a save, at any moment of the step or the save that follows.
		first, last := trainUntilKilled(t, folder, rng.IntN(2*saveSteps), rng)
		if first > reached+1 || (first > 0 && first <= reached-saveSteps-1) {
			t.Fatalf("killed after step %d, the next process went on with step %d", reached, first)
		}
		if first > 0 {
			lost += reached + 1 - first
			reached = last
		}
	}
	t.Logf("%d kills; %d steps were done again; after the last kill step %d was done", kills, lost, reached)

	run.Checkpoints = train.Checkpoints{Folder: folder, EverySteps: saveSteps}
	run.Notes = func(note string) { t.Error(note) }
	if err := run.Fit(context.Background(), f, colours(tinyImages)); err != nil {
		t.Fatal(err)
	}
	sameState(t, f, want)
}

// trainUntilKilled starts a process that trains, and kills it soon after it has
// done the given number of steps. It returns the first and the last step that
// the process announced, 0 if none.
func trainUntilKilled(t *testing.T, folder string, steps int, rng *rand.Rand) (first, last int) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, "-test.run=^TestKilledRunGoesOn$")
	c.Env = append(os.Environ(), killFolder+"="+folder)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
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
