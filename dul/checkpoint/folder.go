// Package checkpoint saves trained models, and the state of a training, which after a kill resumes as if it had not
// been stopped. A checkpoint is one safetensors file, written whole or not at all. [ReadTensors] and other programs can
// read it.
package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/gofrs/flock"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/stochastic"
	"densityuncertainty/environment/atomicfile"
)

// A State is what a run needs to resume.
type State struct {
	// Store has the variables of the model and of the optimizer.
	Store *model.Store
	// Noise is the host's source of noise; nil if the graph draws the noise, whose state is in the store.
	Noise *stochastic.HostSampler
	// Progress is the rest of the run's state, such as its epoch: anything that encoding/json can store, or nil.
	// Restore needs a pointer and sets the value.
	Progress any
	// Version is that of the program, for the record: Restore ignores it.
	Version string
}

// A Folder has the checkpoints of one run, and is locked for this process. Do not call its methods concurrently.
type Folder struct {
	path string
	keep int
	lock *flock.Flock
	// damaged are the steps of checkpoints that Restore refused.
	damaged map[int]bool
}

// lockName names the file whose lock says that the folder is in use.
const lockName = ".lock"

// Open creates the folder at path if necessary, locks it, and removes unfinished files of killed runs. Save will keep
// the newest `keep` checkpoints, or all if keep is below 1. It is an error if a process has the folder open.
func Open(path string, keep int) (*Folder, error) {
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, fmt.Errorf("checkpoint: making the folder: %w", err)
	}
	lock := flock.New(filepath.Join(path, lockName), flock.SetPermissions(0o666))
	locked, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("checkpoint: locking %s: %w", path, err)
	}
	if !locked {
		return nil, fmt.Errorf("checkpoint: %s is in use by another run; wait for it, stop it or choose another folder", path)
	}
	if err := atomicfile.RemoveLeftovers(path); err != nil {
		return nil, errors.Join(fmt.Errorf("checkpoint: %w", err), lock.Close())
	}
	return &Folder{path: path, keep: keep, lock: lock, damaged: map[int]bool{}}, nil
}

// Close unlocks the folder.
func (f *Folder) Close() error {
	if err := f.lock.Close(); err != nil {
		return fmt.Errorf("checkpoint: unlocking %s: %w", f.path, err)
	}
	return nil
}

// Save writes a checkpoint of the run after `step` steps, flushes it to disk and then removes old checkpoints. After an
// error the earlier checkpoints are unchanged. Saving the same step again replaces its checkpoint. Saving a step before
// the newest checkpoint is an error, because it would mix two runs, unless Restore found that checkpoint damaged.
func (f *Folder) Save(step int, state State) error {
	existing, err := f.list()
	if err != nil {
		return err
	}
	for _, old := range existing {
		if old > step && !f.damaged[old] {
			return fmt.Errorf("checkpoint: step %d cannot be saved in %s, which has step %d; restore that one or choose another folder", step, f.path, old)
		}
	}
	if err := write(f.file(step), state); err != nil {
		return fmt.Errorf("checkpoint: saving step %d: %w", step, err)
	}
	delete(f.damaged, step)
	if err := f.prune(existing, step); err != nil {
		return fmt.Errorf("checkpoint: step %d is saved, but an old checkpoint could not be removed: %w", step, err)
	}
	return nil
}

// prune removes what stands before the oldest checkpoint that is to be kept.
// Damaged ones do not count, and go with those that are older than the kept.
func (f *Folder) prune(existing []int, saved int) error {
	kept := 1
	for _, old := range slices.Backward(existing) {
		switch {
		case old >= saved: // the saved one, or damaged and overtaken only later
		case kept == f.keep:
			if err := os.Remove(f.file(old)); err != nil {
				return err
			}
		case !f.damaged[old]:
			kept++
		}
	}
	return nil
}

// Restored is the result of Restore.
type Restored struct {
	// Found is false if the folder has no checkpoint. The state is then unchanged, and the other fields are zero.
	Found bool
	// Path is the checkpoint's file.
	Path string
	// Step is the number of steps after which the checkpoint was saved.
	Step int
	// Version is that of the program that saved it.
	Version string
	// Damaged has an error for each newer checkpoint that could not be used, newest first. Their steps have to be run
	// again; show them to the user.
	Damaged []error
}

// Restore sets the state to the newest checkpoint. It sets the store's variables and creates missing ones; graphs that
// exist use the new values. Build graphs after Restore if the host draws the noise, because building draws.
//
// Every byte of a checkpoint is verified. A damaged checkpoint is listed in the result and the one before it is used;
// it is an error if all are damaged. It is also an error if the checkpoint is of another model: a variable has another
// shape or type, or is in the store but not in the checkpoint; only one of the two has host noise; or Progress does not
// match. After an error the store and the noise are unchanged.
func (f *Folder) Restore(state State) (Restored, error) {
	existing, err := f.list()
	if err != nil {
		return Restored{}, err
	}
	var result Restored
	for _, step := range slices.Backward(existing) {
		path := f.file(step)
		saved, err := read(path)
		if errors.Is(err, fs.ErrPermission) {
			return Restored{}, fmt.Errorf("checkpoint: reading %s: %w", path, err)
		}
		if err != nil {
			f.damaged[step] = true
			result.Damaged = append(result.Damaged, fmt.Errorf("checkpoint %s is damaged or of another version: %w", path, err))
			continue
		}
		if err := saved.apply(state); err != nil {
			return Restored{}, fmt.Errorf("checkpoint: %s does not fit this run: %w", path, err)
		}
		result.Found, result.Path, result.Step, result.Version = true, path, step, saved.Version
		return result, nil
	}
	if len(result.Damaged) > 0 {
		return Restored{}, fmt.Errorf("checkpoint: none in %s can be used; put back a copy of one, or remove them to start anew: %w", f.path, errors.Join(result.Damaged...))
	}
	return result, nil
}

// file is the path of the checkpoint of a step.
func (f *Folder) file(step int) string {
	return filepath.Join(f.path, fmt.Sprintf("step-%08d.safetensors", step))
}

// list returns the steps of the checkpoints, oldest first.
func (f *Folder) list() ([]int, error) {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: looking for checkpoints: %w", err)
	}
	var steps []int
	for _, entry := range entries {
		var step int
		_, err := fmt.Sscanf(entry.Name(), "step-%d", &step)
		if err == nil && filepath.Base(f.file(step)) == entry.Name() {
			steps = append(steps, step)
		}
	}
	slices.Sort(steps)
	return steps, nil
}
