package atomicfile_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"densityuncertainty/environment/atomicfile"
	"densityuncertainty/environment/must"
)

// names lists a folder.
func names(t *testing.T, folder string) string {
	t.Helper()
	entries := must.Get(os.ReadDir(folder))(t)
	var all []string
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return strings.Join(all, " ")
}

func require(t *testing.T, path, content string) {
	t.Helper()
	got := must.Get(os.ReadFile(path))(t)
	if string(got) != content {
		t.Errorf("%s holds %q, want %q", path, got, content)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	must.Do(t, atomicfile.WriteBytes(path, []byte(content)))
}

func TestWriteReplaces(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "a.txt")
	for _, content := range []string{"old, and longer", "new", ""} {
		write(t, path, content)
		require(t, path, content)
	}
	if got := names(t, folder); got != "a.txt" {
		t.Errorf("the folder holds %s", got)
	}
}

// A new file has a mode by the umask. One that is there keeps its own, from the first byte, and its owner.
func TestMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	mode := func(path string) fs.FileMode { return must.Get(os.Stat(path))(t).Mode() }
	for _, umask := range []int{0o077, 0o002} {
		before := syscall.Umask(umask)
		write(t, path, "new")
		syscall.Umask(before)
		if want := fs.FileMode(0o666 &^ umask); mode(path) != want {
			t.Errorf("a new file under umask %o: %v, want %v", umask, mode(path), want)
		}
		for _, want := range []fs.FileMode{0o600, 0o646} {
			must.Do(t, os.Chmod(path, want))
			must.Do(t, atomicfile.Write(path, func(w io.Writer) error {
				if got := mode(w.(*os.File).Name()); got != want {
					t.Errorf("what replaces a file of mode %v has %v while it is written", want, got)
				}
				return nil
			}))
			if mode(path) != want {
				t.Errorf("a file of mode %v has %v", want, mode(path))
			}
		}
		must.Do(t, os.Remove(path))
	}
	write(t, path, "another user's")
	if os.Chown(path, 1234, 5678) != nil {
		return // this user may not give files away
	}
	write(t, path, "new")
	if stat := must.Get(os.Stat(path))(t).Sys().(*syscall.Stat_t); stat.Uid != 1234 || stat.Gid != 5678 {
		t.Errorf("a file of user 1234 and group 5678 has %d and %d", stat.Uid, stat.Gid)
	}
}

// Links lead to the file that is written, and every other name of a file has its new content.
func TestLinks(t *testing.T) {
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	must.Do(t, errors.Join(os.Mkdir(at("inner"), 0o777), os.Symlink(filepath.Join("inner", "a"), at("b")), os.Symlink(at("b"), at("c"))))
	for _, content := range []string{"where none was", "second"} {
		write(t, at("c"), content)
		require(t, at("inner/a"), content)
	}
	must.Do(t, os.Link(at("inner/a"), at("d")))
	write(t, at("c"), "3")
	require(t, at("d"), "3")
	// What is above a folder that is a link is above where it leads.
	must.Do(t, errors.Join(os.MkdirAll(at("inner/most"), 0o777), os.Symlink("inner/most", at("f")), os.Symlink("../a", at("inner/most/g"))))
	for _, path := range []string{"/f/g", "/f/../a"} {
		write(t, folder+path, path)
		require(t, at("inner/a"), path)
	}
	if got := names(t, folder) + ", " + names(t, at("inner")); got != "b c d f inner, a most" || must.Get(os.Lstat(at("c")))(t).Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the folders hold %s", got)
	}
	must.Do(t, os.Symlink(at("e"), at("e")))
	must.Err(t, atomicfile.WriteBytes(at("e"), nil), syscall.ELOOP)
}

// A pipe, a device and an open file of this process are written to, and stay what they are.
func TestNoRegularFile(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	must.Do(t, syscall.Mkfifo(pipe, 0o600))
	read := make(chan string)
	go func() {
		content, err := os.ReadFile(pipe)
		read <- fmt.Sprint(string(content), err)
	}()
	write(t, pipe, "through")
	if got := <-read; got != "through<nil>" {
		t.Errorf("the pipe's reader got %s", got)
	}
	open := must.Get(os.CreateTemp(t.TempDir(), ""))(t)
	defer open.Close()
	must.Get(open.WriteString("before, "))(t)
	descriptor := fmt.Sprintf("/proc/self/fd/%d", open.Fd())
	if _, err := os.Stat(descriptor); err == nil {
		write(t, descriptor, "after")
		content := must.Get(os.ReadFile(open.Name()))(t)
		if !strings.HasSuffix(string(content), "after") || len(content) < 5 {
			t.Errorf("the open file holds %q", content)
		}
	}
	write(t, os.DevNull, "nothing")
	for path, want := range map[string]fs.FileMode{pipe: fs.ModeNamedPipe, os.DevNull: fs.ModeDevice} {
		if mode := must.Get(os.Stat(path))(t).Mode(); mode&want == 0 {
			t.Errorf("%s is now %v", path, mode)
		}
	}
}

// A failure leaves the old file and nothing else, and its error names the file and says what to do.
func TestFailedWriteLeavesTheOldFile(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "a.txt")
	write(t, path, "old")
	for says, failure := range map[string]error{
		"free some space":                         &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC},
		"your share of it":                        syscall.EDQUOT,
		"not allowed to write in " + folder + ";": &fs.PathError{Op: "write", Path: "x", Err: syscall.EACCES},
		"unexpected EOF":                          io.ErrUnexpectedEOF,
		"a panic":                                 nil,
	} {
		func() {
			defer func() {
				if reason := recover(); (reason != nil) != (failure == nil) {
					t.Errorf("%s: %v", says, reason)
				}
			}()
			err := atomicfile.Write(path, func(w io.Writer) error {
				must.Get(io.WriteString(w, "half of the n"))(t)
				if failure == nil {
					panic(says)
				}
				return failure
			})
			must.Err(t, err, failure, path, says)
		}()
		require(t, path, "old")
		if got := names(t, folder); got != "a.txt" {
			t.Errorf("%s: the folder holds %s", says, got)
		}
	}
}

// The last step, the rename, fails where a folder has the name.
func TestFailedRenameLeavesNothing(t *testing.T) {
	folder := t.TempDir()
	taken := filepath.Join(folder, "taken")
	must.Do(t, os.MkdirAll(filepath.Join(taken, "inner"), 0o755))
	must.Err(t, atomicfile.WriteBytes(taken, nil)) // a file was written over a folder
	if got := names(t, folder) + ", " + names(t, taken); got != "taken, inner" {
		t.Errorf("the folders hold %s", got)
	}
}

func TestMissingFolder(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	path := filepath.Join(missing, "a")
	for name, err := range map[string]error{
		"file":      atomicfile.WriteBytes(path, nil),
		"leftovers": atomicfile.RemoveLeftovers(missing),
	} {
		t.Run(name, func(t *testing.T) { must.Err(t, err, fs.ErrNotExist, missing) })
	}
}

// A killed writer's temporary files go, and nothing else does.
func TestRemoveLeftovers(t *testing.T) {
	folder := t.TempDir()
	const keep = ".hidden a.part b"
	for name := range strings.FieldsSeq(keep) {
		write(t, filepath.Join(folder, name), "")
	}
	err := atomicfile.Write(filepath.Join(folder, "c.txt"), func(io.Writer) error {
		if got := names(t, folder); len(got) <= len(keep) {
			t.Errorf("while a file is written the folder holds %s", got)
		}
		must.Do(t, atomicfile.RemoveLeftovers(folder))
		return nil
	})
	if got := names(t, folder); got != keep || err == nil {
		t.Errorf("the folder holds %s, want %s and an error: %v", got, keep, err)
	}
}
