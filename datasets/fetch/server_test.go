package fetch

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
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

// testServer serves contents and keeps the requests' Range headers.
type testServer struct {
	*httptest.Server
	mu     sync.Mutex
	ranges []string
}

// serve starts a server whose answer to request number i (from 0) is given by
// handle; a nil handle serves contents with an entity tag and ranges.
func serve(t *testing.T, handle func(i int, w http.ResponseWriter, r *http.Request)) *testServer {
	t.Helper()
	s := &testServer{}
	if handle == nil {
		handle = func(_ int, w http.ResponseWriter, r *http.Request) { serveWhole(w, r) }
	}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		i := len(s.ranges)
		s.ranges = append(s.ranges, r.Header.Get("Range"))
		s.mu.Unlock()
		handle(i, w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *testServer) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ranges)
}

func serveWhole(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("ETag", `"v1"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(contents))
}

// breakOff promises all of contents, sends the first n bytes, and cuts the
// connection.
func breakOff(w http.ResponseWriter, n int) {
	w.Header().Set("ETag", `"v1"`)
	w.Header().Set("Content-Length", "1000003")
	if _, err := w.Write(contents[:n]); err != nil {
		panic(err)
	}
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

// newFetcher returns an impatient fetcher with a cache of its own, and the path
// at which it keeps the file "set.bin".
func newFetcher(t *testing.T) (*Fetcher, string) {
	t.Helper()
	t.Setenv(EnvData, "")
	dir := t.TempDir()
	return &Fetcher{Cache: dir, policy: policy{pause: time.Millisecond, every: time.Nanosecond}}, filepath.Join(dir, "set.bin")
}

func requireContents(t *testing.T, path string) {
	t.Helper()
	got := must.Get(os.ReadFile(path))(t)
	if !bytes.Equal(got, contents) {
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
