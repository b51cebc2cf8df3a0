package results

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/gofrs/flock"

	"densityuncertainty/environment/atomicfile"
)

// ErrNewer is wrapped by a Decode's error for a whole line of a format that it does not know.
var ErrNewer = errors.New("the format is a later one")

// A LineFile is a file with a value on each line. Processes only ever add lines to it, several at a time. It decodes each
// line once.
type LineFile[T any] struct {
	Path string
	// Decode reads a line, without its newline. It returns an error for a line that was cut short.
	Decode func(line []byte) (T, error)

	mu    sync.Mutex  // of what follows
	known Lines[T]    // those with a newline that were read before
	file  fs.FileInfo // the file that they were read from
}

// Lines are the content of a LineFile. The value of line i+1 is Values[i].
type Lines[T any] struct {
	Values []T
	// Torn says that a killed process left the last line unfinished. It is no part of Values.
	Torn bool

	length int  // bytes of the whole lines; a torn line follows them
	open   bool // whether the last line is whole, but for its newline
}

// Read returns the lines of the file while no process is in the middle of adding some. A line that cannot be decoded is
// an error that names file and line, unless it is the last one and was cut short.
func (f *LineFile[T]) Read() (lines Lines[T], err error) {
	if err := checkRegular(f.Path); err != nil {
		return lines, err
	}
	lock := flock.New(f.Path)
	if err := lock.RLock(); err != nil {
		return lines, fmt.Errorf("results: locking %s: %w", f.Path, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	return f.read()
}

// read is Read for a file that is locked.
func (f *LineFile[T]) read() (lines Lines[T], err error) {
	file, err := os.Open(f.Path)
	if err != nil {
		return lines, fmt.Errorf("results: reading %s: %w", f.Path, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return lines, fmt.Errorf("results: reading %s: %w", f.Path, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil || !os.SameFile(info, f.file) || info.Size() < int64(f.known.length) {
		f.known, f.file = Lines[T]{}, info
	}
	added := make([]byte, info.Size()-int64(f.known.length))
	if _, err := file.ReadAt(added, int64(f.known.length)); err != nil {
		return lines, fmt.Errorf("results: reading %s: %w", f.Path, err)
	}
	return f.parse(added)
}

// parse reads the lines that follow the known ones. A last line without its newline is kept when it is whole.
func (f *LineFile[T]) parse(content []byte) (Lines[T], error) {
	for len(content) > 0 {
		line, rest, closed := bytes.Cut(content, []byte("\n"))
		value, err := f.Decode(line)
		switch {
		case err == nil && closed:
			f.known.Values = append(f.known.Values, value)
			f.known.length += len(line) + 1
			content = rest
		case err == nil:
			return Lines[T]{Values: append(slices.Clip(f.known.Values), value), length: f.known.length + len(line), open: true}, nil
		case !closed:
			return Lines[T]{Values: slices.Clip(f.known.Values), Torn: true, length: f.known.length}, nil
		default:
			advice := "restore the file or remove the line"
			if errors.Is(err, ErrNewer) {
				advice = "keep the line, and use that version"
			} else if len(bytes.TrimSpace(line)) == 0 {
				err, advice = errors.New("the line is blank"), "remove it"
			}
			return Lines[T]{}, fmt.Errorf("results: %s:%d: %w; %s", f.Path, len(f.known.Values)+1, err, advice)
		}
	}
	return Lines[T]{Values: slices.Clip(f.known.Values), length: f.known.length}, nil
}

// Add adds to the file what choose makes of the lines that are there, whole lines with their newlines, while no other
// process adds some. It makes the file if need be, removes a torn line first, and returns when the new lines are safe
// on the disk.
func (f *LineFile[T]) Add(choose func(Lines[T]) ([]byte, error)) (err error) {
	_, statErr := os.Lstat(f.Path)
	if statErr == nil {
		if err := checkRegular(f.Path); err != nil {
			return err
		}
	}
	// The lock is on the data file itself: lines are only added, so the file is never replaced.
	lock := flock.New(f.Path, flock.SetPermissions(0o644))
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("results: locking %s: %w", f.Path, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	before, err := f.read()
	if err != nil {
		return err
	}
	if before.Torn {
		if err := os.Truncate(f.Path, int64(before.length)); err != nil {
			return fmt.Errorf("results: removing the unfinished last line of %s: %w", f.Path, err)
		}
	}
	added, err := choose(before)
	if err != nil || len(added) == 0 {
		return err
	}
	if before.open {
		added = append([]byte("\n"), added...)
	}
	if err := appendDurably(f.Path, added); err != nil {
		return err
	}
	if errors.Is(statErr, fs.ErrNotExist) {
		if err := atomicfile.SyncFolder(filepath.Dir(f.Path)); err != nil {
			return fmt.Errorf("results: keeping the new file %s: %w", f.Path, err)
		}
	}
	return nil
}

// appendDurably writes with one call, so that a kill leaves whole lines, and at most the beginning of one.
func appendDurably(path string, lines []byte) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("results: opening %s to append: %w", path, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(lines); err != nil {
		return fmt.Errorf("results: appending to %s: %w", path, err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("results: flushing %s to disk: %w", path, err)
	}
	return nil
}

// checkRegular returns an error unless path is a file, or a link to one: opening a pipe would wait for ever.
func checkRegular(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, link := os.Lstat(path); link == nil {
			return fmt.Errorf("results: %s is a link to a file that is not there; remove it or restore the file", path)
		}
	}
	if err != nil {
		return fmt.Errorf("results: reading the store: %w", err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("results: %s is no regular file (%s), and cannot hold result lines; remove it", path, info.Mode().Type())
	}
	return nil
}

// MakeFolder makes a folder for results, unless it is there. It is an error if nothing can be written there, which one
// wants to know before hours of training.
func MakeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		if target, link := os.Readlink(dir); link == nil {
			return fmt.Errorf("results: making the store %s, a link to %s, where there is no folder; remove the link or restore the folder: %w", dir, target, err)
		}
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
