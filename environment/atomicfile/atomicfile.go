// Package atomicfile writes files whole or not at all: under a temporary name in the same folder, flushed to disk, then
// renamed. If a call is killed, RemoveLeftovers clears its temporary file.
package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Temporary files are called .NAME.RANDOM.part.
const (
	temporaryPrefix = "."
	temporarySuffix = ".part"
)

func temporaryPattern(path string) string {
	return temporaryPrefix + filepath.Base(path) + ".*" + temporarySuffix
}

// Write replaces the file at path by what fill writes. An error of fill, or of
// the disk, is returned wrapped with the path, and the old file stays.
func Write(path string, fill func(w io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), temporaryPattern(path))
	if err != nil {
		return explain(path, err)
	}
	renamed := false
	defer func() {
		if !renamed {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	err = fill(f)
	if err == nil {
		err = errors.Join(f.Chmod(0o644), f.Sync())
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return explain(path, err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return explain(path, err)
	}
	renamed = true
	return nil
}

// WriteBytes replaces the file at path by one with the given content.
func WriteBytes(path string, content []byte) error {
	return Write(path, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// RemoveLeftovers removes the temporary files that killed calls left in a
// folder. The caller must know that no call is under way there.
func RemoveLeftovers(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("looking for unfinished files: %w", err)
	}
	for _, entry := range entries {
		if name := entry.Name(); strings.HasPrefix(name, temporaryPrefix) && strings.HasSuffix(name, temporarySuffix) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(folder, name)))
		}
	}
	if err != nil {
		return fmt.Errorf("removing unfinished files: %w", err)
	}
	return nil
}

// explain says what was being written and, where the system's error is one
// that a person can mend, how.
func explain(path string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("writing %s: the disk or your share of it is full; free some space or choose another folder: %w", path, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("writing %s: not allowed to write in %s; change its permissions or choose another folder: %w", path, filepath.Dir(path), err)
	}
	return fmt.Errorf("writing %s: %w", path, err)
}
