package notebook

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"densityuncertainty/datasets/fetch"
	"densityuncertainty/environment/must"
)

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

var someFile = fetch.File{Name: "data.bin", URL: "https://example.invalid/data.bin", SHA256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"} // of "abc"

func TestFilesOnThisMachineOnly(t *testing.T) {
	folder := t.TempDir()
	t.Setenv(FullVariable, "")
	t.Setenv(fetch.EnvCache, t.TempDir())
	t.Setenv(fetch.EnvData, folder)
	began := time.Now()
	ctx, files := Files()
	_, err := files.Get(ctx, someFile)
	if !errors.Is(err, fetch.ErrDownload) || !errors.Is(err, errNoDownload) || !strings.Contains(err.Error(), "set "+fetch.EnvData+" to that folder") {
		t.Errorf("a file that is not here: %v", err)
	}
	if waited := time.Since(began); waited > time.Second { // a second try would come after a second
		t.Errorf("the refusal took %v", waited)
	}

	must.Do(t, os.WriteFile(filepath.Join(folder, someFile.Name), []byte("abc"), 0o600))
	ctx, files = Files()
	if path, err := files.Get(ctx, someFile); err != nil || filepath.Dir(path) != folder {
		t.Errorf("a file that is here: %q, %v", path, err)
	}
}

func TestFilesMayBeDownloaded(t *testing.T) {
	t.Setenv(FullVariable, "1")
	if ctx, files := Files(); files != nil || ctx.Done() != nil {
		t.Error("downloads are refused")
	}
}

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
	if got := panicOf(func() { Keep("x", func() {}) }); !strings.Contains(got, `"x"`) {
		t.Errorf("a function: panic %q", got)
	}
	if _, err := readKept("x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after failures: %v", err)
	}
}
