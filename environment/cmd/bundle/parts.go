package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
)

// mostParts is the number that two digits can count.
const mostParts = 99

// partWriter writes to files NAME.part01, NAME.part02, ..., none larger than size.
type partWriter struct {
	folder, name string
	size         int64

	sums  []string // of the finished parts, as sha256sum writes them
	total int64

	part *os.File // under way; nil at the start
	left int64    // room in it
	hash hash.Hash
}

// Write writes p, to as many parts as that takes.
func (w *partWriter) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		if w.left == 0 {
			if err := w.next(); err != nil {
				return n, err
			}
		}
		written, err := io.MultiWriter(w.part, w.hash).Write(p[:min(w.left, int64(len(p)))])
		n += written
		w.left -= int64(written)
		w.total += int64(written)
		if err != nil {
			return n, err
		}
		p = p[written:]
	}
	return n, nil
}

// next begins a new part.
func (w *partWriter) next() error {
	if err := w.Close(); err != nil {
		return err
	}
	if len(w.sums) == mostParts {
		return fmt.Errorf("the bundle would have more than %d parts of %d bytes; choose a larger --part-size", mostParts, w.size)
	}
	part, err := os.Create(filepath.Join(w.folder, fmt.Sprintf("%s.part%02d", w.name, len(w.sums)+1)))
	if err != nil {
		return err
	}
	w.part, w.left, w.hash = part, w.size, sha256.New()
	return nil
}

// Close finishes the last part.
func (w *partWriter) Close() error {
	if w.part == nil {
		return nil
	}
	err := errors.Join(w.part.Sync(), w.part.Close())
	w.sums = append(w.sums, hex.EncodeToString(w.hash.Sum(nil))+"  "+filepath.Base(w.part.Name()))
	w.part, w.left = nil, 0
	return err
}
