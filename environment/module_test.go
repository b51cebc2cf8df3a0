package environment_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"densityuncertainty/environment/must"
)

// mine is a program of another module: a family of layers of its own in an experiment of this one.
const mine = `package main

import (
	"context"
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/uci"
)

type halved struct{}

func (halved) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	return graph.MulScalar(baselines.Deterministic{}.Dense(s, x, units), 0.5)
}

func main() {
	list, err := experiment.Cross(uci.Paper, uci.On("yacht"), experiment.Method{Name: "halved", Layers: halved{}})
	if err != nil {
		panic(err)
	}
	list = list.OnSplits(0).Change(func(e *experiment.Experiment) { e.Recipe.Epochs = 1 })
	results, err := experiment.Run(context.Background(), list...)
	if err != nil {
		panic(err)
	}
	fmt.Println(results[0].Method, results[0].Metrics["rmse"] > 0)
}
`

// The README says how another module imports the packages: by a workspace, without the network.
func TestOtherModule(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	checkout, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(folder, "main.go"), []byte(mine), 0o644))
	var out []byte
	for _, arguments := range [][]string{{"mod", "init", "example.com/mine"}, {"work", "init", ".", checkout}, {"run", "."}} {
		c := exec.Command("go", arguments...)
		c.Dir = folder
		c.Env = append(os.Environ(), "GOWORK=", "GOPROXY=off", "GOMLX_BACKEND=go:ops_sequential")
		var said strings.Builder
		c.Stderr = &said
		if out, err = c.Output(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(arguments, " "), err, said.String())
		}
	}
	if got := strings.TrimSpace(string(out)); got != "halved true" {
		t.Errorf("the program of another module prints %q", got)
	}
}
