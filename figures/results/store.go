package results

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/gofrs/flock"

	"densityuncertainty/environment/atomicfile"
)

// Store appends result lines to a folder. Several processes may append to one folder at a time.
type Store struct{ dir string }

// OpenStore returns the store in the folder dir, which is made if it does not exist. It is an error if nothing can be
// written there, which one wants to know before hours of training.
func OpenStore(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		if target, link := os.Readlink(dir); link == nil {
			return nil, fmt.Errorf("results: making the store %s, a link to %s, where there is no folder; remove the link or restore the folder: %w", dir, target, err)
		}
		return nil, fmt.Errorf("results: making the store %s: %w", dir, err)
	}
	probe, err := os.CreateTemp(dir, ".writable-*")
	if err != nil {
		return nil, fmt.Errorf("results: the store %s cannot be written to: %w", dir, err)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return nil, fmt.Errorf("results: the store %s cannot be written to: %w", dir, err)
	}
	return &Store{dir: dir}, nil
}

// Dir returns the store's folder.
func (s *Store) Dir() string { return s.dir }

// FileName is the name of the file that holds an experiment's line: study, data set and fidelity,
// with the scale after another "-" unless it is Full, so that quick runs and their like can be told apart and
// thrown away.
func FileName(e Experiment) string {
	name := e.Study + "-" + e.Dataset + "-" + e.Fidelity
	if e.Scale != Full {
		name += "-" + e.Scale
	}
	return name + extension
}

// Append adds the result's line and makes it durable before it returns. It adds nothing and returns
// false when the store holds a line of that experiment already. A last line that a killed process
// left unfinished is removed first, and note says so; the note is empty otherwise.
//
// A result whose ID is not its experiment's, or which holds a NaN or infinite number without being
// marked as diverged, is refused.
func (s *Store) Append(r Result) (added bool, note string, err error) {
	line, err := r.encode()
	if err != nil {
		return false, "", err
	}
	path := filepath.Join(s.dir, FileName(r.Experiment))
	_, statErr := os.Lstat(path)
	if statErr == nil {
		if err := checkRegular(path); err != nil {
			return false, "", err
		}
	}

	// The lock is on the data file itself: lines are only added, so the file is never replaced.
	lock := flock.New(path, flock.SetPermissions(0o644))
	if err := lock.Lock(); err != nil {
		return false, "", fmt.Errorf("results: locking %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()

	content, err := os.ReadFile(path)
	if err != nil {
		return false, "", fmt.Errorf("results: reading %s: %w", path, err)
	}
	before, err := parse(path, content)
	if err != nil {
		return false, "", err
	}
	if before.torn {
		if err := os.Truncate(path, int64(before.length)); err != nil {
			return false, "", fmt.Errorf("results: removing the unfinished last line of %s: %w", path, err)
		}
		note = fmt.Sprintf("%s: removed line %d, which a killed run left unfinished", path, len(before.results)+1)
	}
	if slices.ContainsFunc(before.results, func(old Result) bool { return old.ID == r.ID }) {
		return false, note, nil
	}
	if before.open {
		line = append([]byte("\n"), line...)
	}
	if err := appendDurably(path, line); err != nil {
		return false, note, err
	}
	if errors.Is(statErr, os.ErrNotExist) {
		if err := atomicfile.SyncFolder(s.dir); err != nil {
			return false, note, fmt.Errorf("results: keeping the new file %s: %w", path, err)
		}
	}
	return true, note, nil
}

// appendDurably writes with one call, so that a kill leaves at most the beginning of one line.
func appendDurably(path string, line []byte) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("results: opening %s to append: %w", path, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(line); err != nil {
		return fmt.Errorf("results: appending to %s: %w", path, err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("results: flushing %s to disk: %w", path, err)
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
		if err == nil && len(content) >= len(moduleLine) && string(content[:len(moduleLine)]) == moduleLine {
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
