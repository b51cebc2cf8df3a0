//go:build unix

package checkpoint_test

import (
	"errors"
	"fmt"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"densityuncertainty/dul/checkpoint"
	"densityuncertainty/environment/must"
	"densityuncertainty/environment/reexec"
)

// A disk that stops taking data anywhere in a file leaves the earlier
// checkpoints as they were. The limit is the system's on the size of a file, so
// the saving is left to another process, of which nothing else writes files.
func TestFullDiskLeavesThePreviousCheckpoint(t *testing.T) {
	if path, is := reexec.Argument(t); is {
		must.Do(t, fillTheDisk(path))
		return
	}
	path := t.TempDir()
	f := open(t, path, 1)
	save(t, f, 1, filled(3, 1))
	before := list(t, path)
	must.Do(t, f.Close())
	if out, err := reexec.Command(t, path).Output(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := list(t, path); got != before {
		t.Errorf("the folder holds %s", got)
	}
	f = open(t, path, 1)
	requireStep(t, f, 1)
	save(t, f, 2, filled(3, 2))
	requireStep(t, f, 2)
}

// fillTheDisk tries to save step 2 with too little room.
func fillTheDisk(path string) error {
	f, err := checkpoint.Open(path, 1)
	if err != nil {
		return err
	}
	// Without this a write over the limit would end the program.
	signal.Ignore(syscall.SIGXFSZ)
	const entries = 300_000
	large := checkpoint.State{Store: filled(entries, 2)}
	for _, room := range []uint64{0, 1, 8, 100, 1000, 1 << 20, 8 * entries} {
		var limit syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			return err
		}
		limit.Cur = room
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			return err
		}
		if err := f.Save(2, large); !errors.Is(err, syscall.EFBIG) || !strings.Contains(err.Error(), filepath.Join(path, "step-00000002")) {
			return fmt.Errorf("with room for %d bytes the error is %w", room, err)
		}
		names, err := filepath.Glob(filepath.Join(path, "*step*"))
		if err != nil || len(names) != 1 {
			return fmt.Errorf("with room for %d bytes the folder holds %v: %w", room, names, err)
		}
	}
	return f.Close()
}
