package notebook

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/nets"
)

// session makes the process look like a cell of a notebook in JupyterLab, after a start of its kernel.
func session(t *testing.T, checkout string) {
	t.Helper()
	t.Setenv("GONB_TMP_DIR", t.TempDir())
	t.Setenv("DENSITYUNCERTAINTY_CHECKOUT", checkout)
	t.Setenv(sessionVariable, filepath.Join(checkout, "mine.ipynb"))
}

func TestKeepAcrossARestart(t *testing.T) {
	checkout := t.TempDir()
	session(t, checkout)
	Keep("numbers", []int{1, 2})
	session(t, checkout) // the kernel is restarted
	if got := Kept[[]int]("numbers"); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("kept %v", got)
	}
	Forget("numbers")
	if _, err := readKept("numbers"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Forget: %v", err)
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
		{"a store", func() { Keep("x", model.NewStore()) }, "checkpoint.Export"},
		{"a tensor", func() { Keep("x", map[string]*tensors.Tensor{}) }, "keep its values"},
		{"models", func() { Keep("x", []*nets.Model{}) }, "field Store"},
		{"no exported field", func() { Keep("x", hidden{"a"}) }, "no exported fields"},
		{"nil", func() { Keep("x", nil) }, "nil cannot be kept"},
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
