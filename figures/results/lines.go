package results

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"

	"densityuncertainty/environment/atomicfile"
)

// Compressed ends the names of files of lines that gzip has compressed.
const Compressed = ".gz"

// WholeLines returns the lines of a file that processes add to, without a last one that is unfinished.
func WholeLines(path string) ([]byte, error) {
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
	before, err := WholeLines(path)
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

// moduleLine begins this project's go.mod.
var moduleLine = []byte("module densityuncertainty\n")

// DefaultDir is the folder of the committed results, figures/runs of the checkout that holds the
// working directory.
func DefaultDir() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("results: finding the working directory: %w", err)
	}
	for dir := start; ; {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(content, moduleLine) {
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
	return err == nil && readErr == nil && strings.HasSuffix(filepath.ToSlash(path), "/figures/runs") && bytes.HasPrefix(content, moduleLine)
}
