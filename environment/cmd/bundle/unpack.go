package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"densityuncertainty/environment/atomicfile"
	"densityuncertainty/environment/cmd/bundle/internal/imagepack"
)

// The layout of an unpacked bundle, with slashes.
const (
	dataFolder   = "data"   // in the layout of the folder DENSITYUNCERTAINTY_DATA
	packedFolder = "packed" // the same files as they travel
	manifestFile = packedFolder + "/manifest.json"
)

// A packedFile is an entry of the manifest: a file that is to be restored.
type packedFile struct {
	Name   string `json:"name"` // below either folder, with slashes
	Size   int64  `json:"size"` // in bytes, as restored; so is SHA256
	SHA256 string `json:"sha256"`
	Images bool   `json:"images"` // packed as images; otherwise it travels as it is
}

// pack describes a file, and returns what is to travel.
func pack(file dataFile, contents []byte) (packedFile, []byte, error) {
	entry := packedFile{Name: file.name, Size: int64(len(contents)), SHA256: checksum(contents), Images: file.labels > 0}
	if !entry.Images {
		return entry, contents, nil
	}
	packed, err := imagepack.Pack(contents, file.labels)
	return entry, packed, err
}

func checksum(contents []byte) string {
	sum := sha256.Sum256(contents)
	return hex.EncodeToString(sum[:])
}

// unpack restores the data of a bundle. What is there already, and
// right, is left as it is, so that it goes on where it was stopped.
func unpack(ctx context.Context, bundle string, stdout io.Writer) error {
	text, err := os.ReadFile(filepath.Join(bundle, filepath.FromSlash(manifestFile)))
	if err != nil {
		return fmt.Errorf("restoring the data: %w", err)
	}
	var files []packedFile
	if err := json.Unmarshal(text, &files); err != nil {
		return fmt.Errorf("restoring the data: %s: %w", manifestFile, err)
	}
	for _, file := range files {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(stdout, "  %s\n", file.Name); err != nil {
			return fmt.Errorf("reporting: %w", err)
		}
		if err := file.restore(bundle); err != nil {
			return fmt.Errorf("restoring %s: %w", file.Name, err)
		}
	}
	return nil
}

func (p packedFile) restore(bundle string) error {
	name := filepath.FromSlash(p.Name)
	if !filepath.IsLocal(name) {
		return fmt.Errorf("%s is damaged: that name leads out of the folder", manifestFile)
	}
	path := filepath.Join(bundle, dataFolder, name)
	there, err := os.ReadFile(path)
	if err == nil && checksum(there) == p.SHA256 {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	contents, err := os.ReadFile(filepath.Join(bundle, packedFolder, name))
	if err == nil && p.Images {
		contents, err = imagepack.Unpack(contents, p.Size)
	}
	if err != nil {
		return err
	}
	if got := checksum(contents); got != p.SHA256 {
		return fmt.Errorf("the file in the folder %s is damaged: its contents have the SHA-256 %s, not %s", packedFolder, got, p.SHA256)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return atomicfile.WriteBytes(path, contents)
}
