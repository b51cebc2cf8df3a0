package checkpoint_test

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/checkpoint"
	"densityuncertainty/environment/must"
	"densityuncertainty/environment/reexec"
)

// childEntries is the size of the child's variable: 2 MB, which takes longer to
// write than all the rest.
const childEntries = 1 << 18

// saveForEver continues the run in the folder: every step is a checkpoint whose
// values are the step, announced on standard output before and after.
func saveForEver(path string) error {
	f, err := checkpoint.Open(path, 2)
	if err != nil {
		return err
	}
	found, err := f.Restore(checkpoint.State{Store: model.NewStore()})
	if err != nil {
		return err
	}
	for step := found.Step + 1; ; step++ {
		fmt.Println("saving", step)
		if err := f.Save(step, checkpoint.State{Store: filled(childEntries, float64(step))}); err != nil {
			return err
		}
		fmt.Println("saved", step)
	}
}

// A writer is a running saveForEver.
type writer struct {
	*exec.Cmd
	lines        *bufio.Scanner
	began, saved int // the last steps that it has announced
}

// startWriter starts saveForEver and waits for its first save to begin.
func startWriter(t *testing.T, path string) *writer {
	t.Helper()
	w := &writer{Cmd: reexec.Command(t, path)}
	out := must.Get(w.StdoutPipe())(t)
	w.lines = bufio.NewScanner(out)
	must.Do(t, w.Start())
	if !w.listen(t) {
		t.Error("the writer says nothing")
	}
	return w
}

// listen takes one announcement; false where there are no more.
func (w *writer) listen(t *testing.T) bool {
	t.Helper()
	if !w.lines.Scan() {
		return false
	}
	word, number, _ := strings.Cut(w.lines.Text(), " ")
	step, err := strconv.Atoi(number)
	if err != nil {
		t.Fatalf("the writer says %q", w.lines.Text())
	}
	if w.began = step; word == "saved" {
		w.saved = step
	}
	return true
}

// kill ends the writer as the system does, without a chance to clean up.
func (w *writer) kill(t *testing.T) {
	t.Helper()
	must.Do(t, w.Process.Kill())
	for w.listen(t) {
	}
	var exit *exec.ExitError
	if err := errors.Join(w.lines.Err(), w.Wait()); !errors.As(err, &exit) {
		t.Fatalf("the writer ended with %v", err)
	}
}

// After a kill at any moment the newest checkpoint is whole and is the last one
// that was saved, or the one after it.
func TestKilledWriters(t *testing.T) {
	// On a busy disk a kill takes long; a lane then ends before it has done all.
	const lanes, mostKills, budget = 3, 16, 5 * time.Second
	for lane := range lanes {
		t.Run(strconv.Itoa(lane), func(t *testing.T) {
			t.Parallel()
			if path, is := reexec.Argument(t); is {
				t.Fatal(saveForEver(path))
			}
			path := t.TempDir()
			random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), uint64(lane)))
			kills, reached, interrupted := 0, 0, 0
			duration := time.Duration(0) // of one save
			for start := time.Now(); kills < mostKills && time.Since(start) < budget; kills++ {
				w := startWriter(t, path)
				// Sometimes let it save a step first, then kill it within the time
				// that a save takes here, or a little later.
				if random.IntN(2) == 0 || duration == 0 {
					start := time.Now()
					for w.saved == 0 && w.listen(t) {
					}
					duration = time.Since(start)
				}
				time.Sleep(time.Duration(1.2 * random.Float64() * float64(duration)))
				w.kill(t)
				if w.saved < w.began {
					interrupted++
				}
				saved := max(w.saved, reached)

				leftovers := must.Get(filepath.Glob(filepath.Join(path, ".step*")))(t)
				f := must.Get(checkpoint.Open(path, 2))(t)
				if now, err := filepath.Glob(filepath.Join(path, ".step*")); err != nil || len(now) > 0 {
					t.Errorf("of what the killed writer left unfinished, %v, there is still %v (%v)", leftovers, now, err)
				}
				store := model.NewStore()
				found := must.Get(f.Restore(checkpoint.State{Store: store}))(t)
				if found.Step < saved || found.Step > saved+1 || len(found.Damaged) > 0 {
					t.Fatalf("the writer had saved step %d; the newest checkpoint is of step %d, damaged ones: %v", saved, found.Step, found.Damaged)
				}
				if found.Found {
					if value, err := consistent(store); err != nil || value != float64(found.Step) {
						t.Fatalf("step %d restored the values of step %g: %v", found.Step, value, err)
					}
				}
				reached = found.Step
				must.Do(t, f.Close())
			}
			t.Logf("%d kills, %d of them in the middle of a save; %d steps saved", kills, interrupted, reached)
		})
	}
}

// Two processes cannot save into one folder; a killed one's lock goes with it.
func TestSecondProcessIsRefused(t *testing.T) {
	if path, is := reexec.Argument(t); is {
		t.Fatal(saveForEver(path))
	}
	path := t.TempDir()
	w := startWriter(t, path)
	_, err := checkpoint.Open(path, 1)
	if err == nil || !strings.Contains(err.Error(), path+" is in use by another run") {
		t.Errorf("the error is %v", err)
	}
	w.kill(t)
	open(t, path, 1)
}
