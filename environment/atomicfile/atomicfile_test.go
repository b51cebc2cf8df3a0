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

// A new file has a mode by the umask, and one that is there keeps its own.
func TestMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	mode := func() fs.FileMode { return must.Get(os.Stat(path))(t).Mode() }
	for _, umask := range []int{0o077, 0o002} {
		before := syscall.Umask(umask)
		write(t, path, "new")
		syscall.Umask(before)
		if want := fs.FileMode(0o666 &^ umask); mode() != want {
			t.Errorf("a new file under umask %o: %v, want %v", umask, mode(), want)
		}
		must.Do(t, os.Chmod(path, 0o640))
		write(t, path, "newer")
		if mode() != 0o640 {
			t.Errorf("a file of mode 640 has %v", mode())
		}
		must.Do(t, os.Remove(path))
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
	if got := names(t, folder) + ", " + names(t, at("inner")); got != "b c d inner, a" || must.Get(os.Lstat(at("c")))(t).Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the folders hold %s", got)
	}
	must.Do(t, os.Symlink(at("e"), at("e")))
	if err := atomicfile.WriteBytes(at("e"), nil); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a link to itself: %v", err)
	}
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

// failures are what may go wrong while contents are written, and what the error
// must say.
var failures = map[string]struct {
	err  error
	says string
}{
	"disk full":     {&fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, "free some space"},
	"quota":         {syscall.EDQUOT, "free some space"},
	"no permission": {&fs.PathError{Op: "write", Path: "x", Err: syscall.EACCES}, "not allowed to write"},
	"other":         {io.ErrUnexpectedEOF, "unexpected EOF"},
}

func TestFailedWriteLeavesTheOldFile(t *testing.T) {
	for name, failure := range failures {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			path := filepath.Join(folder, "a.txt")
			write(t, path, "old")
			err := atomicfile.Write(path, func(w io.Writer) error {
				if _, err := io.WriteString(w, "half of the n"); err != nil {
					return err
				}
				return failure.err
			})
			if !errors.Is(err, failure.err) {
				t.Fatalf("the error is %v, want one that wraps %v", err, failure.err)
			}
			if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), failure.says) {
				t.Errorf("the error %q does not name the file or say %q", err, failure.says)
			}
			require(t, path, "old")
			if got := names(t, folder); got != "a.txt" {
				t.Errorf("the folder holds %s", got)
			}
		})
	}
}

func TestPanicLeavesTheOldFile(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "a.txt")
	write(t, path, "old")
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic of fill was swallowed")
			}
		}()
		_ = atomicfile.Write(path, func(io.Writer) error { panic("no more") })
	}()
	require(t, path, "old")
	if got := names(t, folder); got != "a.txt" {
		t.Errorf("the folder holds %s", got)
	}
}

// The last step, the rename, fails where a folder has the name.
func TestFailedRenameLeavesNothing(t *testing.T) {
	folder := t.TempDir()
	taken := filepath.Join(folder, "taken")
	must.Do(t, os.MkdirAll(filepath.Join(taken, "inner"), 0o755))
	if err := atomicfile.WriteBytes(taken, nil); err == nil {
		t.Error("a file was written over a folder")
	}
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
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), missing) {
			t.Errorf("%s: %v, want an error that names the missing folder", name, err)
		}
	}
}

func TestFolderThatMayNotBeWritten(t *testing.T) {
	folder := t.TempDir()
	must.Do(t, os.Chmod(folder, 0o555))
	if err := os.WriteFile(filepath.Join(folder, "probe"), nil, 0o600); err == nil {
		t.Skip("this user may write everywhere")
	}
	err := atomicfile.WriteBytes(filepath.Join(folder, "a"), nil)
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "not allowed to write in "+folder) {
		t.Errorf("the error is %v", err)
	}
}

// A killed writer's temporaries go, and nothing else does.
func TestRemoveLeftovers(t *testing.T) {
	folder := t.TempDir()
	keep := []string{".hidden", "a.part", "b"}
	for _, name := range append(keep, ".c.txt.123.part") {
		must.Do(t, os.WriteFile(filepath.Join(folder, name), nil, 0o600))
	}
	must.Do(t, atomicfile.RemoveLeftovers(folder))
	if got := names(t, folder); got != strings.Join(keep, " ") {
		t.Errorf("the folder holds %s, want %v", got, keep)
	}
}

// What a writer that was killed leaves is what RemoveLeftovers knows.
func TestTemporariesAreLeftovers(t *testing.T) {
	folder := t.TempDir()
	moved := filepath.Join(folder, "moved")
	must.Do(t, os.Mkdir(moved, 0o755))
	check := func() error {
		before := names(t, folder)
		must.Do(t, atomicfile.RemoveLeftovers(folder))
		if got := names(t, folder); got != "moved" || before == "moved" {
			t.Errorf("of %s the removal leaves %s", before, got)
		}
		return errors.New("stop")
	}
	if err := atomicfile.Write(filepath.Join(folder, "a"), func(io.Writer) error { return check() }); err == nil {
		t.Error("no error")
	}
}
