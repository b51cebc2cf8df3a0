package results

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
	for _, c := range []struct {
		times int
		want  string
	}{{1, "; the first line counts"}, {3, ", and so with 2 more of its lines; the first ones count"}} {
		copied := filepath.Join(t.TempDir(), "copy"+extension)
		must.Do(t, os.WriteFile(copied, bytes.Repeat(line, c.times), 0o644))
		must.Do(t, os.WriteFile(file, line, 0o644))
		lines, notes, err := Read(runs, copied)
		if want := fmt.Sprintf("%s:1: %v is already in %s:1%s", copied, r.Experiment, file, c.want); err != nil || len(lines) != 1 || !slices.Equal(notes, []string{want}) {
			t.Errorf("%d lines, %q, want %q, error %v", len(lines), notes, want, err)
		}
	}
}
