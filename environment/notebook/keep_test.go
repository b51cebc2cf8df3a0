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
	for want, value := range map[string]any{
		"type func() cannot be kept": func() {}, "field F": struct{ F []func() }{}, "checkpoint.Export": model.NewStore(), "keep its values": map[string]*tensors.Tensor{},
		"field Store": []*nets.Model{}, "no exported fields": hidden{"a"}, "nil cannot be kept": nil, `"x"`: []io.Reader{strings.NewReader("")}, // behind an interface
	} {
		t.Run(want, func(t *testing.T) { must.Panic(t, func() { Keep("x", value) }, want) })
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
			before := func() { Kept[keptValue]("a/b c") }
			if test.folder == "" {
				must.Panic(t, before, `nothing was kept under "a/b c"`)
			} else if status, ended := left(t, before); !ended || status != 0 {
				t.Errorf("before: ended %v with status %d", ended, status)
			}
			Keep("a/b c", keptValue{Names: []string{"old"}})
			Keep("a/b c", keptValue{[]string{"x"}, map[string][]float64{"test": {1, 2}}})
			if got := fmt.Sprint(Kept[keptValue]("a/b c")); got != "{[x] map[test:[1 2]]}" {
				t.Errorf("kept %s", got)
			}
			must.Panic(t, func() { Kept[int]("a/b c") }, `"a/b c" as int`)
		})
	}
	t.Setenv("GONB_TMP_DIR", filepath.Join(t.TempDir(), "none"))
	must.Panic(t, func() { Keep("x", 1) }, "kept-x.gob") // no such folder
	must.GetErr(readKept("x"))(t, fs.ErrNotExist)
}
