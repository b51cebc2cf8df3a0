package atomicfile

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/gofrs/flock"
)

// compressed ends the names of files that gzip has compressed.
const compressed = ".gz"

// Unzipped is what gzip has compressed.
func Unzipped(content []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// Lines returns the lines of a file that processes append to, without a last one that is unfinished. A file whose name ends with ".gz" is
// unzipped.
func Lines(path string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if err == nil && strings.HasSuffix(path, compressed) {
		content, err = Unzipped(content)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return content[:bytes.LastIndexByte(content, '\n')+1], nil
}

// Update replaces the Lines of a file, which it makes if need be, by what change returns for them, while it holds the file's lock. If
// change only appends, so does Update.
func Update(path string, change func(before []byte) ([]byte, error)) error {
	for {
		lock := flock.New(path, flock.SetPermissions(0o666))
		if err := lock.Lock(); err != nil {
			return fmt.Errorf("locking %s: %w", path, err)
		}
		var err error
		valid := inPlace(lock)
		if valid {
			err = updateLocked(path, change)
		}
		if err := errors.Join(err, lock.Close()); valid || err != nil {
			return err
		}
	}
}

// updateLocked is Update of a file that is locked.
func updateLocked(path string, change func(before []byte) ([]byte, error)) error {
	before, err := Lines(path)
	if err != nil {
		return err
	}
	after, err := change(before)
	if err != nil || bytes.Equal(after, before) {
		return err
	}
	zip := strings.HasSuffix(path, compressed)
	if added, is := bytes.CutPrefix(after, before); is && !zip {
		if err := os.Truncate(path, int64(len(before))); err != nil {
			return fmt.Errorf("removing the unfinished last line of %s: %w", path, err)
		}
		return Append(path, added)
	}
	return Write(path, func(w io.Writer) (err error) {
		if zip {
			z, _ := gzip.NewWriterLevel(w, gzip.BestCompression)
			defer func() { err = errors.Join(err, z.Close()) }()
			w = z
		}
		_, err = w.Write(after)
		return err
	})
}

// Append appends to a file, which it makes if there is none. If the process is killed, the file has at most a part of the text.
func Append(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err == nil {
		_, err = f.Write(text) // with one call, so that a kill leaves whole lines, and at most the beginning of one
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("appending to %s: %w", path, err)
	}
	return nil
}

// TryLock locks a file, which it makes if need be, and returns a function that removes and unlocks it; nil if another process, or
// another call, holds the lock. A process that ends holds no locks.
func TryLock(path string) (release func() error, err error) {
	lock := flock.New(path, flock.SetPermissions(0o666))
	locked, err := lock.TryLock()
	if locked && inPlace(lock) {
		// Removed while it is locked, so that it is nobody else's.
		return func() error { return errors.Join(os.Remove(path), lock.Close()) }, nil
	}
	return nil, errors.Join(err, lock.Close())
}

// inPlace says whether a locked file is still the one at its path: who had the lock before may have replaced or removed it.
func inPlace(lock *flock.Flock) bool {
	mine, err := lock.Stat()
	there, thereErr := os.Stat(lock.Path())
	return err == nil && thereErr == nil && os.SameFile(mine, there)
}
