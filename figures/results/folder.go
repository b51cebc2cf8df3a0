package results

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

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
