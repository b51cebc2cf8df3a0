//go:build unix

package results_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/results"
)

// add adds a line.
func add(path, line string) error {
	return results.AddLines(path, func([]byte) ([]byte, error) { return []byte(line + "\n"), nil })
}

// A killed process leaves the last line torn. The whole lines before it count, and the next one follows them.
func TestLines(t *testing.T) {
	for _, c := range []struct{ name, content, read string }{{"empty", "", ""}, {"whole", "a\nb\n", "a\nb\n"}, {"torn", "a\nb", "a\n"}, {"all torn", "a", ""}} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "lines")
			must.Do(t, os.WriteFile(path, []byte(c.content), 0o600))
			if got := string(must.Get(results.WholeLines(path))(t)); got != c.read {
				t.Errorf("read %q, want %q", got, c.read)
			}
			must.Do(t, add(path, "new"))
			if got := string(must.Get(os.ReadFile(path))(t)); got != c.read+"new\n" {
				t.Errorf("afterwards the file is %q", got)
			}
		})
	}
}

// Compressed lines are read, and an incomplete compressed file is an error.
func TestCompressedLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines.gz")
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	must.Get(z.Write([]byte("a\nb\n")))(t)
	must.Do(t, z.Close())
	must.Do(t, os.WriteFile(path, b.Bytes(), 0o600))
	if got := string(must.Get(results.WholeLines(path))(t)); got != "a\nb\n" {
		t.Errorf("read %q", got)
	}
	must.Do(t, os.WriteFile(path, b.Bytes()[:b.Len()-1], 0o600))
	if _, err := results.WholeLines(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("the error is %v", err)
	}
}

// Lines that many add at a time are all there, none torn, and each sees those before it.
func TestManyAdd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "words")
	var wg sync.WaitGroup
	for writer := range 8 {
		wg.Go(func() {
			for i := range 20 {
				if err := results.AddLines(path, func(before []byte) ([]byte, error) {
					return fmt.Appendf(nil, "%d of %d after %d\n", i, writer, bytes.Count(before, []byte("\n"))), nil
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	n := 0
	for line := range strings.Lines(string(must.Get(results.WholeLines(path))(t))) {
		if !strings.HasSuffix(line, fmt.Sprintf(" after %d\n", n)) {
			t.Errorf("line %d is %q", n+1, line)
		}
		n++
	}
	if n != 160 {
		t.Errorf("%d lines", n)
	}
}

// A folder that cannot be written to is an error before the first training. A folder that can stays empty.
func TestMakeFolder(t *testing.T) {
	dir := t.TempDir()
	file, locked := filepath.Join(dir, "file"), filepath.Join(dir, "locked")
	must.Do(t, errors.Join(os.WriteFile(file, nil, 0o600), os.Mkdir(locked, 0o500)))
	if os.Geteuid() == 0 {
		locked = "/proc" // where nobody can make files
	}
	for _, c := range []struct{ name, dir, want string }{
		{"below a file", filepath.Join(file, "runs"), "making the store "},
		{"a file in its place", file, "making the store "},
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
