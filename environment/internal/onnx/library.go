//go:build onnx && cgo && linux && amd64

package onnx

import (
	"fmt"
	"os"
	"path/filepath"
)

// LibraryVariable names the environment variable with the path of the library.
const LibraryVariable = "ONNXRUNTIME_SHARED_LIBRARY_PATH"

// Version is the version of ONNX Runtime that the backend is made for.
const Version = "1.26"

// Library is the path of ONNX Runtime's shared library: what the variable says,
// or what is installed for the user. Nothing is downloaded.
func Library() (string, error) {
	path := os.Getenv(LibraryVariable)
	if path == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("looking for ONNX Runtime: %w; set %s to the path of its library", err, LibraryVariable)
		}
		path = filepath.Join(home, ".local", "lib", "onnxruntime", "libonnxruntime.so")
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("ONNX Runtime is not installed: %w; run ./environment/setup --onnx, or set %s to the path of libonnxruntime.so of version %s",
			err, LibraryVariable, Version)
	}
	return path, nil
}
