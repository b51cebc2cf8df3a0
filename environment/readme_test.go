package environment_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/environment/must"
)

// tenLines runs the layer of the README in a training objective.
const tenLines = `package mine

import (
	"testing"

	"github.com/gomlx/compute"
	_ "github.com/gomlx/compute/gobackend"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
)

func TestLoss(t *testing.T) {
	backend, err := compute.NewWithConfig("go")
	if err != nil {
		t.Fatal(err)
	}
	exec, err := model.NewExec(backend, model.NewStore(), func(s *model.Scope, x, y *graph.Node) *graph.Node {
		s.Store().SetTraining(x.Graph(), true)
		return loss(s, x, y, 2)
	})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Call1([][]float32{{1, 2}, {3, 4}}, [][]float32{{1}, {2}}); err != nil || !(out.Value().(float32) > 0) {
		t.Errorf("the loss is %v: %v", out, err)
	}
}
`

// Each piece of Go in the README is a file of another module, as it stands there, and the README's lines for the shell run it.
func TestReadme(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	checkout := must.Get(filepath.Abs(".."))(t)
	readme := string(must.Get(os.ReadFile(filepath.Join(checkout, "README.md")))(t))
	pieces := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(readme, -1)
	if len(pieces) != 2 {
		t.Fatalf("the README has %d pieces of Go, and this test runs 2", len(pieces))
	}
	_, lines, _ := strings.Cut(readme, "From another module:\n\n```sh\n")
	lines, _, _ = strings.Cut(lines, "```")
	lines = strings.ReplaceAll(lines, "/path/to/this/checkout", checkout)
	for i, want := range []string{"ok ", "with 95% probability from "} {
		folder := t.TempDir()
		must.Do(t, os.WriteFile(filepath.Join(folder, "piece.go"), []byte(pieces[i][1]), 0o600))
		if i == 0 { // a layer, without main
			must.Do(t, os.WriteFile(filepath.Join(folder, "piece_test.go"), []byte(tenLines), 0o600))
			lines = strings.Replace(lines, "go run", "go test", 1)
		}
		// Nothing is asked of the network for sums that are known.
		must.Do(t, os.WriteFile(filepath.Join(folder, "go.sum"), must.Get(os.ReadFile(filepath.Join(checkout, "go.sum")))(t), 0o600))
		command := exec.Command("sh", "-ec", lines)
		command.Dir = folder
		command.Env = append(os.Environ(), "GOWORK=", "GOMLX_BACKEND=go:ops_sequential")
		if out, err := command.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("piece %d: want %q in what\n%s\nprints: %v\n%s", i+1, want, lines, err, out)
		}
		lines = strings.Replace(lines, "go test", "go run", 1)
	}
}

// The notebooks run with the Go kernel, are kept without outputs, and show at most 100 lines of code. In one with slides each
// cell is marked, since nbconvert shows a cell that is not.
func TestNotebooks(t *testing.T) {
	paths := must.Get(filepath.Glob("../notebooks/*.ipynb"))(t)
	if len(paths) == 0 {
		t.Fatal("there is no notebook")
	}
	for _, path := range paths {
		var notebook struct {
			Metadata struct{ Kernelspec struct{ Name string } }
			Cells    []struct {
				Type     string `json:"cell_type"`
				Source   []string
				Outputs  []any
				Count    *int `json:"execution_count"`
				Metadata struct {
					Tags      []string
					Jupyter   struct{ Source_hidden bool }
					Slideshow *struct{}
				}
			}
		}
		must.Do(t, json.Unmarshal(must.Get(os.ReadFile(path))(t), &notebook))
		if kernel := notebook.Metadata.Kernelspec.Name; kernel != "gonb" {
			t.Errorf("%s: the kernel is %q", path, kernel)
		}
		lines, marked := 0, 0
		for i, cell := range notebook.Cells {
			if len(cell.Outputs) > 0 || cell.Count != nil {
				t.Errorf("%s: cell %d has outputs; clear them before you commit", path, i+1)
			}
			if cell.Metadata.Slideshow != nil {
				marked++
			}
			if cell.Type != "code" || cell.Metadata.Jupyter.Source_hidden || slices.Contains(cell.Metadata.Tags, "hide-input") {
				continue
			}
			for _, line := range cell.Source {
				if strings.TrimSpace(line) != "" {
					lines++
				}
			}
		}
		if lines == 0 || lines > 100 {
			t.Errorf("%s shows %d lines of code, want 1 to 100; move code into a package", path, lines)
		}
		if marked != 0 && marked != len(notebook.Cells) {
			t.Errorf("%s: %d of %d cells are marked for slides", path, marked, len(notebook.Cells))
		}
	}
}
