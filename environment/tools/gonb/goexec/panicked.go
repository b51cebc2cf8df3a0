package goexec

import (
	_ "embed"
	"os"
	"path/filepath"
)

//go:embed cell.go.txt
var panicked []byte

// addPanicked adds to the folder that cells are compiled in the function that ends
// a cell that panics.
func addPanicked(folder string) error {
	return os.WriteFile(filepath.Join(folder, "panicked.go"), panicked, 0o600)
}
