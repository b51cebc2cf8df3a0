// Package atomicfile writes files whole or not at all: under a temporary name in the same folder, flushed to disk, then
// renamed. If a call is killed, RemoveLeftovers clears its temporary file.
package atomicfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
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

// Write replaces the file at path by what fill writes. An error of fill, or of
// the disk, is returned wrapped with the path, and the old file stays.
//
// A file keeps its mode, and its owner if this user may give files away; a new one has mode 0666 less the umask. Links are
// followed. What another program or another name would lose by the renaming is written in place, once fill is done: pipes,
// devices, open files of a process such as /dev/stdout, and files with a second hard link.
func Write(path string, fill func(w io.Writer) error) error {
	target, old, err := follow(path)
	if err == nil && old != nil && !old.IsDir() && (!old.Mode().IsRegular() || hasLinks(old)) {
		err = writeInPlace(target, old, fill)
	} else if err == nil {
		err = replace(target, old, fill)
	}
	if err != nil {
		return explain(path, err)
	}
	return nil
}

// follow returns the path to which symbolic links lead, and what is there, nil for nothing. A link by which a process knows an
// open file is not followed.
func follow(path string) (string, fs.FileInfo, error) {
	for range 40 { // as many as Linux follows
		info, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return path, nil, nil
		case err != nil || info.Mode()&fs.ModeSymlink == 0 || strings.HasPrefix(path, "/proc/") || strings.HasPrefix(path, "/dev/fd/"):
			return path, info, err
		}
		to, err := os.Readlink(path)
		if err != nil {
			return path, nil, err
		}
		if !filepath.IsAbs(to) {
			folder, _ := filepath.Split(path)
			to = folder + to // not Join, to which "link/.." is "."
		}
		path = to
	}
	return path, nil, syscall.ELOOP
}

// hasLinks says whether a file has a second name.
func hasLinks(info fs.FileInfo) bool {
	stat, is := info.Sys().(*syscall.Stat_t)
	return is && stat.Nlink > 1
}

func writeInPlace(path string, old fs.FileInfo, fill func(w io.Writer) error) error {
	var content bytes.Buffer
	if err := fill(&content); err != nil {
		return err
	}
	how := os.O_WRONLY | os.O_APPEND // after what a process has written to its own file
	if old.Mode().IsRegular() {
		how = os.O_WRONLY | os.O_TRUNC
	}
	f, err := os.OpenFile(path, how, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(content.Bytes())
	return errors.Join(err, f.Close())
}

func replace(path string, old fs.FileInfo, fill func(w io.Writer) error) (err error) {
	folder, base := filepath.Split(path)
	name := fmt.Sprintf("%s%s%s.%x%s", folder, temporaryPrefix, base, rand.Uint64(), temporarySuffix)
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	renamed := false
	defer func() {
		if !renamed {
			err = errors.Join(err, os.Remove(name))
		}
	}()
	if old != nil {
		if stat, is := old.Sys().(*syscall.Stat_t); is {
			_ = f.Chown(int(stat.Uid), int(stat.Gid)) // most users may not
		}
		err = f.Chmod(old.Mode().Perm())
	}
	if err == nil {
		err = fill(f)
	}
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	err = os.Rename(name, path)
	renamed = err == nil
	return err
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
