package notebook

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/nets"
	"densityuncertainty/environment/must"
)

// session makes the process look like a cell of a notebook in JupyterLab, after a start of its kernel.
func session(t *testing.T, checkout, notebook string) {
	t.Helper()
	t.Setenv("GONB_TMP_DIR", t.TempDir())
	t.Setenv("DENSITYUNCERTAINTY_CHECKOUT", checkout)
	t.Setenv(sessionVariable, filepath.Join(checkout, notebook))
}

func TestKeepAcrossARestart(t *testing.T) {
	checkout := t.TempDir()
	for _, notebook := range []string{"mine", "100% a/b", strings.Repeat("среднее ", 15), strings.Repeat("名", 80)} {
		name := notebook
		session(t, checkout, notebook+".ipynb")
		Keep(name, []int{1, 2})
		Keep(name+"x", 3)
		session(t, checkout, notebook+".ipynb") // the kernel is restarted
		if got := Kept[[]int](name); !slices.Equal(got, []int{1, 2}) {
			t.Errorf("%s: kept %v", name, got)
		}
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

// left runs f and returns whether it ended the cell, and as what.
func left(t *testing.T, f func()) (status int, ended bool) {
	t.Helper()
	before := exit
	defer func() {
		exit = before
		if reason := recover(); reason != nil && reason != errLeft {
			panic(reason)
		}
	}()
	exit = func(code int) {
		status, ended = code, true
		panic(errLeft)
	}
	f()
	return status, ended
}

var errLeft = errors.New("the cell ended")

type keptValue struct {
	Names  []string
	Energy map[string][]float64
}

func TestKeep(t *testing.T) {
	for _, test := range []struct {
		name   string
		folder string
	}{
		{"in a notebook", t.TempDir()},
		{"elsewhere", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("GONB_TMP_DIR", test.folder)
			var problem string
			status, ended := left(t, func() { problem = panicOf(func() { Kept[keptValue]("a/b c") }) })
			if inside := test.folder != ""; ended != inside || status != 0 || !inside && !strings.Contains(problem, `nothing was kept under "a/b c"`) {
				t.Errorf("before: ended %v with status %d, panic %q", ended, status, problem)
			}
			Keep("a/b c", keptValue{Names: []string{"old"}})
			Keep("a/b c", keptValue{[]string{"x"}, map[string][]float64{"test": {1, 2}}})
			if got := fmt.Sprint(Kept[keptValue]("a/b c")); got != "{[x] map[test:[1 2]]}" {
				t.Errorf("kept %s", got)
			}
			if got := panicOf(func() { Kept[int]("a/b c") }); !strings.Contains(got, `"a/b c" as int`) {
				t.Errorf("of another type: panic %q", got)
			}
		})
	}
	t.Setenv("GONB_TMP_DIR", filepath.Join(t.TempDir(), "none"))
	if got := panicOf(func() { Keep("x", 1) }); !strings.Contains(got, "kept-x.gob") {
		t.Errorf("no such folder: panic %q", got)
	}
	must.GetErr(readKept("x"))(t, fs.ErrNotExist)
}
