package fetch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"densityuncertainty/environment/must"
)

// contents is what the test servers serve: longer than one read, and not
// periodic, so that a piece in the wrong place shows.
var contents = func() []byte {
	b := make([]byte, 1_000_003)
	x := uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}()

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// answer is what a server does with one request.
type answer func(w http.ResponseWriter, r *http.Request)

func whole(w http.ResponseWriter, r *http.Request) {
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(contents))
}

// breakAt promises all of contents, sends the first n bytes, and cuts the connection.
func breakAt(n int) answer {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000003")
		if _, err := w.Write(contents[:n]); err != nil {
			panic(err)
		}
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

// serve starts a server with the given answers, the last one for all further
// requests. asked returns the requests' Range headers.
func serve(t *testing.T, answers ...answer) (file File, asked func() []string) {
	t.Helper()
	var mu sync.Mutex
	var ranges []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		i := len(ranges)
		ranges = append(ranges, r.Header.Get("Range"))
		mu.Unlock()
		answers[min(i, len(answers)-1)](w, r)
	}))
	t.Cleanup(s.Close)
	return File{Name: "set.bin", URL: s.URL, SHA256: sum(contents), Size: int64(len(contents))}, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(ranges)
	}
}

// newFetcher returns a fetcher with a cache of its own, and the path at which it
// keeps the file "set.bin".
func newFetcher(t *testing.T) (*Fetcher, string) {
	t.Helper()
	t.Setenv(EnvData, "")
	dir := t.TempDir()
	return &Fetcher{Cache: dir}, filepath.Join(dir, "set.bin")
}

func requireContents(t *testing.T, path string) {
	t.Helper()
	if got := must.Get(os.ReadFile(path))(t); !bytes.Equal(got, contents) {
		t.Fatalf("%s: %d bytes with SHA-256 %s, want %d with %s", path, len(got), sum(got), len(contents), sum(contents))
	}
}

func requireAbsent(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s is there (%v)", path, err)
		}
	}
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	must.Do(t, os.WriteFile(path, b, 0o644))
}

// What servers do, and what an earlier run left behind, one case each. Where no
// error is wanted the file must be whole.
func TestServers(t *testing.T) {
	status := func(code int) answer { return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) } }
	other := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "another file") }
	endless := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(contents); err != nil {
				return
			}
		}
	}
	noRanges := func(w http.ResponseWriter, _ *http.Request) {
		if _, err := w.Write(contents); err != nil {
			panic(err)
		}
	}
	for _, c := range []struct {
		name    string
		answers []answer
		part    []byte   // what an earlier run left
		ranges  []string // asked for in all
		says    string   // of the error; empty for none
	}{
		{name: "whole at once", answers: []answer{whole}, ranges: []string{""}},
		{name: "resumes a broken connection", answers: []answer{breakAt(600_000), whole}, ranges: []string{"", "bytes=600000-"}},
		{name: "resumes an earlier run", answers: []answer{whole}, part: contents[:300_000], ranges: []string{"bytes=300000-"}},
		{name: "starts anew if the server knows no ranges", answers: []answer{breakAt(600_000), noRanges}, ranges: []string{"", "bytes=600000-"}},
		{name: "starts anew if a part proves bad at the checksum", answers: []answer{whole}, part: make([]byte, 1234), ranges: []string{"bytes=1234-", ""}},
		{name: "accepts a complete part", answers: []answer{whole}, part: contents, ranges: []string{"bytes=1000003-"}},
		{name: "tries three times", answers: []answer{status(503), status(503), whole}, ranges: make([]string, 3)},
		{name: "gives up", answers: []answer{status(404)}, ranges: make([]string, 3), says: "the server answered 404"},
		{name: "refuses another file", answers: []answer{other}, ranges: make([]string, 3), says: sum([]byte("another file")) + ", expected " + sum(contents)},
		{name: "ends a file that is longer than published", answers: []answer{endless}, ranges: make([]string, 3), says: "expected " + sum(contents)},
	} {
		t.Run(c.name, func(t *testing.T) {
			file, asked := serve(t, c.answers...)
			f, path := newFetcher(t)
			if c.part != nil {
				write(t, path+".part", c.part)
			}
			got, err := f.Get(t.Context(), file)
			if c.says == "" {
				if err != nil || got != path {
					t.Fatal(got, err)
				}
				requireContents(t, path)
				must.Get(f.Get(t.Context(), file))(t) // from the cache
			} else {
				must.Err(t, err, "could not be downloaded", c.says, file.Name, file.URL, EnvData, f.Cache)
				requireAbsent(t, path)
			}
			if got := asked(); !slices.Equal(got, c.ranges) {
				t.Errorf("ranges asked for: %q, want %q", got, c.ranges)
			}
		})
	}
}

func TestDamagedCacheIsReplaced(t *testing.T) {
	file, _ := serve(t, whole)
	f, path := newFetcher(t)
	damaged := slices.Clone(contents)
	damaged[77] ^= 1
	write(t, path, damaged)
	must.Get(f.Get(t.Context(), file))(t)
	requireContents(t, path)
}

// A download that is cancelled is resumed by the next call.
func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	file, asked := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if _, err := w.Write(contents[:400_000]); err != nil {
			panic(err)
		}
		w.(http.Flusher).Flush()
		cancel()
		<-r.Context().Done()
	}, whole)
	f, path := newFetcher(t)
	must.GetErr(f.Get(ctx, file))(t, context.Canceled)
	requireAbsent(t, path)
	must.Get(f.Get(t.Context(), file))(t)
	requireContents(t, path)
	if n := len(asked()); n != 2 {
		t.Errorf("%d requests", n)
	}
}

func TestLocalFolder(t *testing.T) {
	file, asked := serve(t, whole)
	folder := t.TempDir()
	local := filepath.Join(folder, "set.bin")
	write(t, local, contents)
	f, _ := newFetcher(t)
	t.Setenv(EnvData, folder)
	if got, err := f.Get(t.Context(), file); err != nil || got != local {
		t.Errorf("got %s, %v; want %s", got, err, local)
	}
	write(t, local, []byte("damaged"))
	must.GetErr(f.Get(t.Context(), file))(t, local+" has SHA-256")
	if n := len(asked()); n != 0 {
		t.Errorf("%d requests, want none", n)
	}
	// A file that the folder lacks is downloaded.
	file.Name = "more/set2.bin"
	must.Get(f.Get(t.Context(), file))(t)

	for _, place := range []string{filepath.Join(folder, "typo"), filepath.Join(local, "below"), "https://example.invalid/data"} {
		f.Folder = place
		must.GetErr(f.Get(t.Context(), file))(t, place, EnvData)
	}
}

// A cache that cannot be written still gives the files that are in it.
func TestReadOnlyCache(t *testing.T) {
	file, _ := serve(t, whole)
	f, path := newFetcher(t)
	write(t, path, contents)
	must.Do(t, os.Mkdir(path+".lock", 0o700)) // a folder cannot be opened as a lock, whoever asks
	if got, err := f.Get(t.Context(), file); err != nil || got != path {
		t.Errorf("a file in the cache: %s, %v", got, err)
	}
	write(t, path, []byte("damaged"))
	for _, name := range []string{"set.bin", "set.bin/more.bin"} {
		file.Name = name
		must.GetErr(f.Get(t.Context(), file))(t, "set "+EnvCache+" to use another")
	}
}

func TestCacheEnvironment(t *testing.T) {
	file, _ := serve(t, whole)
	t.Setenv(EnvData, "")
	t.Setenv(EnvCache, filepath.Join(t.TempDir(), "new", "folder"))
	file.Name = "a/b.bin"
	var f *Fetcher // nil is ready to use
	path := must.Get(f.Get(t.Context(), file))(t)
	if want := filepath.Join(os.Getenv(EnvCache), "a", "b.bin"); path != want {
		t.Errorf("path %s, want %s", path, want)
	}
}

// Two processes ask for the same file while none has it.
func TestTwoProcesses(t *testing.T) {
	if url := os.Getenv("FETCH_TEST_URL"); url != "" {
		// This is one of the two: the test binary started by itself below.
		var f Fetcher
		path := must.Get(f.Get(t.Context(), File{Name: "set.bin", URL: url, SHA256: sum(contents)}))(t)
		requireContents(t, path)
		return
	}
	file, asked := serve(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(100 * time.Millisecond) // so that the other one arrives meanwhile
		whole(w, r)
	})
	f, path := newFetcher(t)
	t.Setenv(EnvCache, f.Cache)
	t.Setenv("FETCH_TEST_URL", file.URL)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			out, err := exec.Command(os.Args[0], "-test.run=^TestTwoProcesses$").CombinedOutput()
			if err != nil {
				t.Errorf("process: %v: %s", err, out)
			}
		})
	}
	wg.Wait()
	requireContents(t, path)
	if n := len(asked()); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
	// A fetcher that waits for another's lock can be cancelled.
	must.Do(t, os.Remove(path))
	done := make(chan error)
	go func() {
		_, err := f.Get(context.Background(), file)
		done <- err
	}()
	for len(asked()) < 2 {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	must.GetErr(f.Get(ctx, file))(t, context.DeadlineExceeded)
	must.Do(t, <-done)
}
