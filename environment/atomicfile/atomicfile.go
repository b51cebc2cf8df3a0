// Package atomicfile writes files and folders as a whole or not at all: what
// stands under a name is the old content or the new one, never a part, also
// after a kill or a power cut in the middle of writing.
//
// Everything is written under a temporary name in the folder of the final one,
// flushed to disk, renamed, and the rename flushed too. A failed call leaves
// nothing behind; a killed one leaves a temporary, which RemoveLeftovers clears.
package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// Temporary files and folders are called .NAME.RANDOM.part.
const (
	temporaryPrefix = "."
	temporarySuffix = ".part"
)

func temporaryPattern(path string) string {
	return temporaryPrefix + filepath.Base(path) + ".*" + temporarySuffix
}

// Write replaces the file at path by what fill writes. An error of fill, or of
// the disk, is returned wrapped with the path, and the old file stays.
func Write(path string, fill func(w io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), temporaryPattern(path))
	if err != nil {
		return explain(path, err)
	}
	return replace(f.Name(), path, func() error {
		err := fill(f)
		if err == nil {
			err = errors.Join(f.Chmod(0o644), f.Sync())
		}
		return errors.Join(err, f.Close())
	})
}

// replace gives what is at temporary its name once finish has finished it, or else
// removes it.
func replace(temporary, path string, finish func() error) (err error) {
	renamed := false
	defer func() {
		if !renamed {
			err = errors.Join(err, os.RemoveAll(temporary))
		}
	}()
	if err := finish(); err != nil {
		return explain(path, err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return explain(path, err)
	}
	renamed = true
	return SyncFolder(filepath.Dir(path))
}

// WriteBytes replaces the file at path by one with the given content.
func WriteBytes(path string, content []byte) error {
	return Write(path, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// WriteFolder makes the folder at path, which must not exist, with the files
// that fill writes into the folder it is given. Files need not be flushed by
// fill.
func WriteFolder(path string, fill func(folder string) error) error {
	temporary, err := os.MkdirTemp(filepath.Dir(path), temporaryPattern(path))
	if err != nil {
		return explain(path, err)
	}
	return replace(temporary, path, func() error {
		if err := fill(temporary); err != nil {
			return err
		}
		return errors.Join(os.Chmod(temporary, 0o755), syncTree(temporary))
	})
}

// RemoveFolder removes a folder and all in it: a kill leaves the whole folder
// under its name, or none.
func RemoveFolder(path string) error {
	temporary, err := os.MkdirTemp(filepath.Dir(path), temporaryPattern(path))
	if err != nil {
		return fmt.Errorf("removing %s: %w", path, err)
	}
	// The rename goes into the temporary, as a folder's name cannot be taken over.
	err = os.Rename(path, filepath.Join(temporary, filepath.Base(path)))
	if err := errors.Join(err, os.RemoveAll(temporary)); err != nil {
		return fmt.Errorf("removing %s: %w", path, err)
	}
	return nil
}

// RemoveLeftovers removes the temporary files and folders that killed calls
// left in a folder. The caller must know that no call is under way there.
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

// Rename renames a file that is complete and flushed, and makes that last
// through a crash.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return SyncFolder(filepath.Dir(to))
}

// SyncFolder makes new names and renames in a folder last through a crash. It
// does nothing where the system has no need of it or no way to do it: on
// Windows, and on file systems that refuse to flush a folder.
func SyncFolder(folder string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	err := syncPath(folder, os.O_RDONLY)
	if err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("flushing folder %s to disk: %w", folder, err)
	}
	return nil
}

// syncTree flushes all files below a folder and the folders themselves.
func syncTree(root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return SyncFolder(path)
		default:
			return syncPath(path, os.O_RDWR) // Windows flushes only what it may write.
		}
	})
}

func syncPath(path string, flag int) error {
	f, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
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
