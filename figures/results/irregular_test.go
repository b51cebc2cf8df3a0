//go:build unix

package results_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/results"
)

// stored is a result that a store accepts.
func stored() results.Result {
	e := results.Experiment{Study: results.UCI, Method: "density", Dataset: "yacht", Splits: "gal", Epochs: 100, Samples: 10, Fidelity: results.Paper, Scale: results.Full}
	return results.Result{ID: e.ID(), Experiment: e, Batched: 1, Finished: time.Now()}
}

// inTime fails the test if do takes long: to open a pipe is to wait for its other end.
func inTime(t *testing.T, do func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-time.After(10 * time.Second):
		t.Fatal("it still waits after 10 s")
		return nil
	}
}

// What stands where a file of lines should be, and is none, is an error that says what it is.
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
			store := must.Get(results.OpenStore(t.TempDir()))(t)
			path := filepath.Join(store.Dir(), results.FileName(stored().Experiment))
			must.Do(t, c.make(path))
			for _, do := range []struct {
				name string
				do   func() error
			}{
				{"Read", func() error { _, _, err := results.Read(store.Dir()); return err }},
				{"Append", func() error { _, _, err := store.Append(stored()); return err }},
			} {
				if err := inTime(t, do.do); err == nil || !strings.Contains(err.Error(), path+" "+c.want) {
					t.Errorf("%s: %v, want %q", do.name, err, c.want)
				}
			}
			if _, err := os.Lstat(path + ".none"); !os.IsNotExist(err) {
				t.Errorf("what the link names was made: %v", err)
			}
		})
	}
	t.Run("link to a file", func(t *testing.T) {
		store := must.Get(results.OpenStore(t.TempDir()))(t)
		path := filepath.Join(store.Dir(), results.FileName(stored().Experiment))
		must.Do(t, errors.Join(os.WriteFile(path+".elsewhere", nil, 0o600), os.Symlink(path+".elsewhere", path)))
		if added, _, err := store.Append(stored()); err != nil || !added {
			t.Fatal(added, err)
		}
		if lines, _, err := results.Read(store.Dir()); err != nil || len(lines) != 1 {
			t.Errorf("%d lines, %v", len(lines), err)
		}
	})
}

// A store that cannot be written to is an error when it is opened, not after the first training.
func TestOpenStoreThatCannotBeWritten(t *testing.T) {
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
			if _, err := results.OpenStore(c.dir); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.dir) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	t.Run("nothing stays", func(t *testing.T) {
		dir := t.TempDir()
		if _, err := results.OpenStore(dir); err != nil {
			t.Fatal(err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("the new store has %v, %v", left, err)
		}
	})
}
