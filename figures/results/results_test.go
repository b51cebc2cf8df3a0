//go:build unix

package results_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/results"
)

// words is a file with a word in brackets on each line.
func words(path string) *results.LineFile[string] {
	return &results.LineFile[string]{Path: path, Decode: func(line []byte) (string, error) {
		word, begins := strings.CutPrefix(string(line), "[")
		word, ends := strings.CutSuffix(word, "]")
		switch {
		case word == "newer":
			return "", results.ErrNewer
		case !begins || !ends:
			return "", errors.New("no word in brackets")
		}
		return word, nil
	}}
}

// add adds a word.
func add(path, word string) error {
	return words(path).Add(func(results.Lines[string]) ([]byte, error) { return fmt.Appendf(nil, "[%s]\n", word), nil })
}

// A killed process leaves the last line torn, or without its newline. What is whole counts, and the next line follows it.
// Any other line that is none is an error that says where, and what to do.
func TestLines(t *testing.T) {
	for _, c := range []struct {
		name, content string
		read          []string
		torn          bool
		after, err    string // the content once a word was added, or the error
	}{
		{"empty", "", nil, false, "[new]\n", ""},
		{"whole", "[a]\n[b]\n", []string{"a", "b"}, false, "[a]\n[b]\n[new]\n", ""},
		{"without a newline", "[a]\n[b]", []string{"a", "b"}, false, "[a]\n[b]\n[new]\n", ""},
		{"torn", "[a]\n[b", []string{"a"}, true, "[a]\n[new]\n", ""},
		{"damaged", "[a\n[b]\n", nil, false, "", ":1: no word in brackets; restore the file or remove the line"},
		{"blank", "[a]\n\n[b]\n", nil, false, "", ":2: the line is blank; remove it"},
		{"newer", "[a]\n[newer]\n", nil, false, "", ":2: the format is a later one; keep the line, and use that version"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "words")
			must.Do(t, os.WriteFile(path, []byte(c.content), 0o600))
			lines, err := words(path).Read()
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), path+c.err) {
					t.Errorf("reading: %v, want %q", err, c.err)
				}
				if err := add(path, "new"); err == nil || !strings.Contains(err.Error(), path+c.err) {
					t.Errorf("adding: %v, want %q", err, c.err)
				}
				return
			}
			if err != nil || !slices.Equal(lines.Values, c.read) || lines.Torn != c.torn {
				t.Errorf("read %v, torn %t: %v", lines.Values, lines.Torn, err)
			}
			must.Do(t, add(path, "new"))
			if got := string(must.Get(os.ReadFile(path))(t)); got != c.after {
				t.Errorf("afterwards the file is %q, want %q", got, c.after)
			}
		})
	}
}

// A file is read on from where it was read before, whatever happened to it since.
func TestLinesAreDecodedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "words")
	file, decoded := words(path), 0
	decode := file.Decode
	file.Decode = func(line []byte) (string, error) {
		decoded++
		return decode(line)
	}
	for _, c := range []struct {
		name, content string
		replaced      bool
		want          []string
		decoded       int
	}{
		{"new", "[a]\n[b]\n", false, []string{"a", "b"}, 2},
		{"as before", "[a]\n[b]\n", false, []string{"a", "b"}, 0},
		{"longer", "[a]\n[b]\n[c]\n", false, []string{"a", "b", "c"}, 1},
		{"without a newline", "[a]\n[b]\n[c]\n[d]", false, []string{"a", "b", "c", "d"}, 1},
		{"finished", "[a]\n[b]\n[c]\n[d]\n[e]\n", false, []string{"a", "b", "c", "d", "e"}, 2},
		{"torn", "[a]\n[b]\n[c]\n[d]\n[e]\n[f", false, []string{"a", "b", "c", "d", "e"}, 1},
		{"cut short", "[a]\n[z]\n", false, []string{"a", "z"}, 2},
		{"replaced", "[x]\n[y]\n[z]\n", true, []string{"x", "y", "z"}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.replaced {
				other := path + ".other"
				must.Do(t, os.WriteFile(other, []byte(c.content), 0o600))
				must.Do(t, os.Rename(other, path))
			} else {
				must.Do(t, os.WriteFile(path, []byte(c.content), 0o600))
			}
			decoded = 0
			lines := must.Get(file.Read())(t)
			if !slices.Equal(lines.Values, c.want) || decoded != c.decoded {
				t.Errorf("read %v with %d lines decoded, want %v with %d", lines.Values, decoded, c.want, c.decoded)
			}
		})
	}
}

// Lines that many add at a time are all there, none torn, and each sees those before it.
func TestManyAdd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "words")
	var wg sync.WaitGroup
	for writer := range 8 {
		wg.Go(func() {
			for i := range 20 {
				err := words(path).Add(func(before results.Lines[string]) ([]byte, error) {
					return fmt.Appendf(nil, "[%d of %d after %d]\n", i, writer, len(before.Values)), nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	lines := must.Get(words(path).Read())(t)
	if len(lines.Values) != 160 || lines.Torn {
		t.Fatalf("%d lines, torn %t", len(lines.Values), lines.Torn)
	}
	for n, word := range lines.Values {
		if !strings.HasSuffix(word, fmt.Sprintf(" after %d", n)) {
			t.Errorf("line %d is %q", n+1, word)
		}
	}
}

// A pipe, a folder or a dangling link in the place of a file of lines is an error that says so. Opening a pipe would wait for
// its other end.
func TestIrregularFiles(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(path string) error
		want string
	}{
		{"pipe", func(path string) error { return syscall.Mkfifo(path, 0o600) }, "is no regular file (p---------), and cannot hold result lines; remove it"},
		{"folder", func(path string) error { return os.Mkdir(path, 0o755) }, "is no regular file (d---------)"},
		{"dangling link", func(path string) error { return os.Symlink(path+".none", path) }, "is a link to a file that is not there; remove it or restore the file"},
		{"link to a pipe", func(path string) error {
			return errors.Join(syscall.Mkfifo(path+".pipe", 0o600), os.Symlink(path+".pipe", path))
		}, "is no regular file (p---------)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "words")
			must.Do(t, c.make(path))
			done := make(chan error, 2)
			go func() {
				_, err := words(path).Read()
				done <- err
				done <- add(path, "new")
			}()
			for range 2 {
				select {
				case err := <-done:
					if err == nil || !strings.Contains(err.Error(), path+" "+c.want) {
						t.Errorf("%v, want %q", err, c.want)
					}
				case <-time.After(time.Minute):
					t.Fatal("it still waits after a minute")
				}
			}
			if _, err := os.Lstat(path + ".none"); !os.IsNotExist(err) {
				t.Errorf("what the link names was made: %v", err)
			}
		})
	}
}

// A folder that cannot be written to is an error before the first training. A folder that can stays empty.
func TestMakeFolder(t *testing.T) {
	dir := t.TempDir()
	file, locked, link := filepath.Join(dir, "file"), filepath.Join(dir, "locked"), filepath.Join(dir, "link")
	must.Do(t, errors.Join(os.WriteFile(file, nil, 0o600), os.Mkdir(locked, 0o500), os.Symlink(filepath.Join(dir, "none"), link)))
	if os.Geteuid() == 0 {
		locked = "/proc" // where nobody can make files
	}
	for _, c := range []struct{ name, dir, want string }{
		{"below a file", filepath.Join(file, "runs"), "making the store "},
		{"a file in its place", file, "making the store "},
		{"a dangling link", link, "where there is no folder; remove the link or restore the folder"},
		{"no permission", locked, "cannot be written to: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			if info, err := os.Stat(c.dir); c.dir == "/proc" && (err != nil || !info.IsDir()) {
				t.Skip("this user can write everywhere")
			}
			if err := results.MakeFolder(c.dir); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.dir) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	good := filepath.Join(dir, "good")
	must.Do(t, results.MakeFolder(good))
	if left := must.Get(os.ReadDir(good))(t); len(left) != 0 {
		t.Errorf("the new folder has %v", left)
	}
}

// name is something to reserve.
type name string

func (n name) ID() string     { return string(n) }
func (n name) String() string { return "the one called " + string(n) }

// What one has reserved another does not get, until it is released, and then nothing is left of it.
func TestReserve(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "running")
	reserve := func(list []name, want ...name) (release func()) {
		t.Helper()
		free, done, err := results.Reserve(dir, list)
		if err != nil || !slices.Equal(free, want) {
			t.Fatalf("got %v, %v; want %v", free, err, want)
		}
		return func() { t.Helper(); must.Do(t, done()) }
	}
	all := []name{"a", "b", "c"}
	first := reserve(all[1:2], "b")
	second := reserve(all, "a", "c")
	reserve(all)()
	first()
	reserve(all, "b")()
	second()
	reserve(all, all...)()
	if left := must.Get(os.ReadDir(dir))(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// Of many at once one has the reservation at any time, though files are made and removed all the while.
func TestReserveAmongMany(t *testing.T) {
	dir := t.TempDir()
	var having, had atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 300 {
				free, release, err := results.Reserve(dir, []name{"a"})
				if err != nil {
					t.Error(err)
					return
				}
				if len(free) > 0 {
					had.Add(1)
					if n := having.Add(1); n != 1 {
						t.Errorf("%d have it", n)
					}
					having.Add(-1)
				}
				if err := release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if had.Load() < 300 {
		t.Errorf("reserved %d times", had.Load())
	}
}

func TestReserveErrors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must.Do(t, os.WriteFile(file, nil, 0o600))
	if _, _, err := results.Reserve[name](file, nil); err == nil || !strings.Contains(err.Error(), "making the folder for what is running: ") {
		t.Errorf("a file in the place of the folder: %v", err)
	}
	must.Do(t, os.MkdirAll(filepath.Join(dir, "a.lock"), 0o700))
	if _, _, err := results.Reserve(dir, []name{"a"}); err == nil || !strings.Contains(err.Error(), "reserving the one called a") {
		t.Errorf("a folder in the place of a lock: %v", err)
	}
	running := filepath.Join(dir, "running")
	_, release, err := results.Reserve(running, []name{"b"})
	must.Do(t, err)
	must.Do(t, os.RemoveAll(running))
	if err := release(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a lock that somebody has removed: %v", err)
	}
}
