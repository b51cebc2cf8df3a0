package environment_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

// Each piece of Go in the README is a file of another module, as it stands there, which finds the packages as the README says.
func TestReadme(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	checkout := must.Get(filepath.Abs(".."))(t)
	pieces := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(must.Get(os.ReadFile(filepath.Join(checkout, "README.md")))(t)), -1)
	for i, c := range []struct {
		test string   // beside the piece
		run  []string // arguments of the command go
		want string
	}{
		{tenLines, []string{"test", "."}, "ok "},
		{"", []string{"run", "."}, "with 95% probability from "},
	} {
		folder := t.TempDir()
		must.Do(t, os.WriteFile(filepath.Join(folder, "piece.go"), []byte(pieces[i][1]), 0o600))
		if c.test != "" {
			must.Do(t, os.WriteFile(filepath.Join(folder, "piece_test.go"), []byte(c.test), 0o600))
		}
		must.Do(t, os.WriteFile(filepath.Join(folder, "go.sum"), must.Get(os.ReadFile(filepath.Join(checkout, "go.sum")))(t), 0o600))
		for _, arguments := range [][]string{
			{"mod", "init", "example.com/mine"}, {"mod", "edit", "-require=densityuncertainty@v0.0.0", "-replace=densityuncertainty=" + checkout}, {"mod", "tidy"}, c.run,
		} {
			command := exec.Command("go", arguments...)
			command.Dir = folder
			command.Env = append(os.Environ(), "GOWORK=", "GOMLX_BACKEND=go:ops_sequential")
			out, err := command.CombinedOutput()
			if err != nil {
				t.Fatalf("piece %d: go %s: %v\n%s", i+1, strings.Join(arguments, " "), err, out)
			}
			if arguments[0] == c.run[0] && !strings.Contains(string(out), c.want) {
				t.Errorf("piece %d: go %s printed %q, want %q in it", i+1, strings.Join(arguments, " "), out, c.want)
			}
		}
	}
	if len(pieces) != 2 {
		t.Errorf("the README has %d pieces of Go, and this test runs 2", len(pieces))
	}
}
