package results

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

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
