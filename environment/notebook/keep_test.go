package notebook

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/environment/backendtest"
	"densityuncertainty/environment/must"
)

// network is an untrained model, and what predicts its output at 1.
func network(t *testing.T, seed uint64, width int) (*nets.Model, func(*nets.Model) float64) {
	t.Helper()
	m := must.Get(nets.New(backendtest.Open(t), nets.MLP{Layers: baselines.Deterministic{}, Widths: []int{width}}, likelihood.Gaussian{}, seed))(t)
	return m, func(m *nets.Model) float64 {
		p := must.Get(predict.Sample(context.Background(), m, nets.Rows([]float64{1}, 1), predict.Options{Samples: 1}))(t)
		mean, _ := p.Moments()
		return mean[0]
	}
}

// session makes the process look like a cell of a notebook in JupyterLab, after a start of its kernel.
func session(t *testing.T, checkout string, cells ...map[string]any) {
	t.Helper()
	path := filepath.Join(checkout, "mine.ipynb")
	must.Do(t, os.WriteFile(path, must.Get(json.Marshal(map[string]any{"cells": cells}))(t), 0o600))
	t.Setenv("GONB_TMP_DIR", t.TempDir())
	t.Setenv("DENSITYUNCERTAINTY_CHECKOUT", checkout)
	t.Setenv(sessionVariable, path)
}

func TestKeepModel(t *testing.T) {
	for _, where := range []string{"in JupyterLab", "elsewhere"} {
		t.Run(where, func(t *testing.T) {
			checkout := t.TempDir()
			if where == "in JupyterLab" {
				session(t, checkout)
			}
			trained, output := network(t, 1, 3)
			want := output(trained)
			Keep("net", trained)
			if where == "in JupyterLab" {
				session(t, checkout) // the kernel is restarted
			}
			other, _ := network(t, 2, 3)
			if got := output(KeptModel("net", other)); got != want {
				t.Errorf("given back: %g, want %g", got, want)
			}
			wider, _ := network(t, 1, 4)
			output(wider)
			if got := panicOf(func() { KeptModel("net", wider) }); !strings.Contains(got, `"net"`) || !strings.Contains(got, "make the model as the one that was kept") {
				t.Errorf("of another width: panic %q", got)
			}
			Forget("net")
			if _, err := readKept("net"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("after Forget: %v", err)
			}
		})
	}
}

type hidden struct{ name string }

type recursive struct {
	Name string
	Next *recursive
}

func TestWhatCannotBeKept(t *testing.T) {
	for _, c := range []struct {
		name string
		call func()
		want string
	}{
		{"a function", func() { Keep("x", func() {}) }, "type func() cannot be kept"},
		{"in a field", func() { Keep("x", struct{ F []func() }{}) }, "field F"},
		{"a store", func() { Keep("x", model.NewStore()) }, "keep the nets.Model"},
		{"a tensor", func() { Keep("x", map[string]*tensors.Tensor{}) }, "keep its values"},
		{"models", func() { Keep("x", []*nets.Model{}) }, "not inside of another value"},
		{"no exported field", func() { Keep("x", hidden{"a"}) }, "no exported fields"},
		{"an empty model", func() { Keep("x", &nets.Model{}) }, "make it with nets.New"},
		{"nil", func() { Keep("x", nil) }, "nil cannot be kept"},
		{"a model by Kept", func() { Kept[*nets.Model]("x") }, "KeptModel"},
		{"behind an interface", func() { Keep("x", []io.Reader{strings.NewReader("")}) }, `"x"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := panicOf(c.call); !strings.Contains(got, c.want) {
				t.Errorf("panic %q, want %q", got, c.want)
			}
		})
	}
	Keep("fine", recursive{"a", &recursive{Name: "b"}})
	if got := Kept[recursive]("fine"); got.Next == nil || got.Next.Name != "b" {
		t.Errorf("kept %+v", got)
	}
}

func TestWhichCellKeeps(t *testing.T) {
	markdown := func(text string) map[string]any { return map[string]any{"cell_type": "markdown", "source": text} }
	code := func(source any) map[string]any { return map[string]any{"cell_type": "code", "source": source} }
	session(t, t.TempDir(), markdown("# T\n\n## 1. Training\n\nText."),
		code([]string{"%%\n", "lengths := 3\n", `notebook.Keep("inside", lengths)`}), markdown("## 2. Later"),
		code(`notebook.Kept[int]("inside")`), code(`notebook.Keep("other", 1)`))
	for name, want := range map[string]string{
		"inside": "Run the cell below “1. Training” that begins with `lengths := 3`.",
		"other":  "Run the cell below “2. Later” that begins with `notebook.Keep(\"other\", 1)`.",
		"none":   "Run the cells above first.",
	} {
		if got := keeper(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	t.Setenv(sessionVariable, "none.ipynb")
	if got := keeper("inside"); got != "Run the cells above first." {
		t.Errorf("without a notebook: %q", got)
	}
}
