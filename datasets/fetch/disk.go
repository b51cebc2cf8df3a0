package fetch

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"densityuncertainty/environment/atomicfile"
)

// verify checks the file at path by size and by checksum, or where no checksum is
// known by file.Check.
func verify(file File, path string) error {
	if file.Size > 0 {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if info.Size() != file.Size {
			return sizeError(path, info.Size(), file.Size)
		}
	}
	if file.SHA256 == "" && file.Check != nil {
		if err := file.Check(path); err != nil {
			return fmt.Errorf("%s is damaged or not the right file: %w", path, err)
		}
	}
	if file.SHA256 == "" {
		return nil
	}
	got, err := checksum(path)
	if err != nil {
		return err
	}
	if !strings.EqualFold(got, file.SHA256) {
		return fmt.Errorf("%s has SHA-256 %s, expected %s: %w", path, got, file.SHA256, ErrDamaged)
	}
	return nil
}

// checksum returns the SHA-256 of a file in hexadecimal.
func checksum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	_, err = io.Copy(h, f)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// publish gives a complete part file its final name.
func publish(part, path string) error {
	if err := atomicfile.Rename(part, path); err != nil {
		return fmt.Errorf("fetch: giving the download its name: %w", err)
	}
	return removeIfThere(originPath(part))
}

// origin says where a part file comes from.
type origin struct {
	URL       string `json:"url"`
	Validator string `json:"validator"` // the server's strong ETag or Last-Modified
}

func originPath(part string) string { return part + ".json" }

func writeOrigin(part string, o origin) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return writeAtomically(originPath(part), text)
}

// readOrigin returns the zero origin, on which nothing is built, if there is no
// readable record.
func readOrigin(part string) (origin, error) {
	text, err := os.ReadFile(originPath(part))
	if errors.Is(err, fs.ErrNotExist) {
		return origin{}, nil
	}
	if err != nil {
		return origin{}, fmt.Errorf("reading the record of an earlier download: %w", err)
	}
	var o origin
	if json.Unmarshal(text, &o) != nil {
		return origin{}, nil
	}
	return o, nil
}

// writeAtomically replaces the file at path by one with the given text, so that
// a reader or a crash sees the old one or the new one, never a mixture.
func writeAtomically(path string, text []byte) error {
	err := atomicfile.WriteBytes(path, text)
	if errors.Is(err, syscall.ENOSPC) {
		return &noSpaceError{path, int64(len(text)), err}
	}
	return err
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
