package results

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// Identified has an identity, and a text that says what it is.
type Identified interface {
	ID() string
	fmt.Stringer
}

// Reserve sets experiments apart for the caller until it calls release, by a locked file for each in a folder, which is
// made if need be. Of those of the list, free are the ones that nobody else has reserved, in this process or another.
// What a process has reserved is free again when it ends, however it does.
func Reserve[T Identified](folder string, list []T) (free []T, release func() error, err error) {
	var locks []*flock.Flock
	release = func() (err error) {
		for _, lock := range locks {
			// Removed while it is locked, so that it is nobody else's.
			err = errors.Join(err, os.Remove(lock.Path()), lock.Close())
		}
		if err != nil {
			return fmt.Errorf("results: releasing what this process has reserved: %w", err)
		}
		return nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, nil, fmt.Errorf("results: making the folder for what is running: %w", err)
	}
	for _, e := range list {
		lock, err := lockFile(filepath.Join(folder, e.ID()+".lock"))
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("results: reserving %v: %w", e, err), release())
		}
		if lock != nil {
			locks, free = append(locks, lock), append(free, e)
		}
	}
	return free, release, nil
}

// lockFile makes and locks a file; nil if another has locked it.
func lockFile(path string) (*flock.Flock, error) {
	for {
		lock := flock.New(path, flock.SetPermissions(0o644))
		locked, err := lock.TryLock()
		if err != nil || !locked {
			return nil, errors.Join(err, lock.Close())
		}
		// Between opening and locking it the one who had it may have removed it, and a third made another.
		mine, err := lock.Stat()
		named, nameErr := os.Stat(path)
		if nameErr == nil && err == nil && os.SameFile(mine, named) {
			return lock, nil
		}
		if errors.Is(nameErr, fs.ErrNotExist) {
			nameErr = nil
		}
		if err := errors.Join(err, nameErr, lock.Close()); err != nil {
			return nil, err
		}
	}
}
