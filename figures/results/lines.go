package results

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"

	"densityuncertainty/environment/atomicfile"
)

// WholeLines returns the lines of a file that processes add to, without a last one that a killed process left unfinished.
func WholeLines(path string) (lines []byte, err error) {
	if _, err := os.Stat(path); err != nil { // a lock would make the file
		return nil, fmt.Errorf("results: reading the store: %w", err)
	}
	lock := flock.New(path)
	if err := lock.RLock(); err != nil {
		return nil, fmt.Errorf("results: locking %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	return wholeLines(path)
}

// Compressed ends the names of files of lines that gzip has compressed.
const Compressed = ".gz"

func wholeLines(path string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if err == nil && strings.HasSuffix(path, Compressed) {
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(content)); err == nil {
			content, err = io.ReadAll(z)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("results: reading %s: %w", path, err)
	}
	return content[:bytes.LastIndexByte(content, '\n')+1], nil
}

// AddLines adds to a file what choose makes of the whole lines that are there, while no other process adds some. It makes
// the file if need be, removes an unfinished last line, and returns when the new lines are safe on the disk.
func AddLines(path string, choose func(before []byte) ([]byte, error)) (err error) {
	// The lock is on the file itself: lines are only added, so it is never replaced.
	lock := flock.New(path, flock.SetPermissions(0o644))
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("results: locking %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	before, err := wholeLines(path)
	if err != nil {
		return err
	}
	added, err := choose(before)
	if err != nil || len(added) == 0 {
		return err
	}
	if err := os.Truncate(path, int64(len(before))); err != nil {
		return fmt.Errorf("results: removing the unfinished last line of %s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = f.Write(added) // with one call, so that a kill leaves whole lines, and at most the beginning of one
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err == nil && len(before) == 0 {
		err = atomicfile.SyncFolder(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("results: appending to %s: %w", path, err)
	}
	return nil
}

// MakeFolder makes a folder for results, unless it is there. It is an error if nothing can be written there, which one
// wants to know before hours of training.
func MakeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("results: making the store %s: %w", dir, err)
	}
	probe, err := os.CreateTemp(dir, ".writable-*")
	if err != nil {
		return fmt.Errorf("results: the store %s cannot be written to: %w", dir, err)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return fmt.Errorf("results: the store %s cannot be written to: %w", dir, err)
	}
	return nil
}

// moduleLine begins this project's go.mod.
const moduleLine = "module densityuncertainty\n"

// DefaultDir is the folder of the committed results, figures/runs of the checkout that holds the
// working directory.
func DefaultDir() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("results: finding the working directory: %w", err)
	}
	for dir := start; ; {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(content, []byte(moduleLine)) {
			return filepath.Join(dir, "figures", "runs"), nil
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("results: looking for the checkout: %w", err)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("results: %s is not inside a checkout of densityuncertainty; name the store's folder", start)
		}
		dir = parent
	}
}

// IsCommitted says whether a folder is figures/runs of a checkout, whose results are committed.
func IsCommitted(folder string) bool {
	path, err := filepath.Abs(folder)
	content, readErr := os.ReadFile(filepath.Join(path, "..", "..", "go.mod"))
	return err == nil && readErr == nil && strings.HasSuffix(filepath.ToSlash(path), "/figures/runs") && bytes.HasPrefix(content, []byte(moduleLine))
}

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
