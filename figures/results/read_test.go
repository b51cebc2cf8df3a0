package results

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"densityuncertainty/environment/must"
)

func TestCommitted(t *testing.T) {
	checkout := t.TempDir()
	notebooks, runs := filepath.Join(checkout, "notebooks"), filepath.Join(checkout, "figures", "runs")
	must.Do(t, os.Mkdir(notebooks, 0o755))
	must.Do(t, os.WriteFile(filepath.Join(checkout, "go.mod"), []byte(moduleLine), 0o644))
	t.Chdir(notebooks)
	if lines, err := Committed(); err != nil || len(lines) != 0 {
		t.Fatalf("without a folder: %d lines, %v", len(lines), err)
	}
	store := must.Get(OpenStore(runs))(t)
	r := sample(0)
	if _, _, err := store.Append(r); err != nil {
		t.Fatal(err)
	}
	if lines, err := Committed(); err != nil || len(lines) != 1 || lines[0].ID != r.ID {
		t.Fatalf("with one line: %v, %v", lines, err)
	}
	file := filepath.Join(runs, FileName(r.Experiment))
	line := must.Get(os.ReadFile(file))(t)
	must.Do(t, os.WriteFile(file, append(line, line...), 0o644))
	if _, err := Committed(); err == nil || !strings.Contains(err.Error(), "already in") {
		t.Errorf("a repeated line: %v", err)
	}
}
