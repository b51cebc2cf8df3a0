package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"densityuncertainty/environment/must"
)

func TestDownloadThenCache(t *testing.T) {
	s := serve(t, nil)
	f, want := newFetcher(t)
	var seen []Progress
	f.Progress = func(p Progress) { seen = append(seen, p) }
	file := File{Name: "set.bin", URL: s.URL, SHA256: strings.ToUpper(sum(contents)), Size: int64(len(contents))}
	for range 2 {
		got := must.Get(f.Get(context.Background(), file))(t)
		if got != want {
			t.Fatalf("path %s, want %s", got, want)
		}
		requireContents(t, got)
	}
	if n := len(s.requests()); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
	requireAbsent(t, want+".part", want+".part.json", want+".sha256")
	if len(seen) < 3 || seen[0].Done != 0 {
		t.Fatalf("progress %v", seen)
	}
	for i, p := range seen {
		if p.Total != int64(len(contents)) || p.Name != "set.bin" || p.URL != s.URL || (i > 0 && p.Done < seen[i-1].Done) {
			t.Fatalf("progress %d: %+v", i, p)
		}
	}
	if last := seen[len(seen)-1]; last.Done != last.Total {
		t.Errorf("last progress %+v", last)
	}
}

// What servers do, and what an earlier run left behind, one case each. Where no
// error is wanted the file must be whole.
func TestServers(t *testing.T) {
	whole := func(w http.ResponseWriter, r *http.Request) { serveWhole(w, r) }
	breakAt := func(n int) answer { return func(w http.ResponseWriter, _ *http.Request) { breakOff(w, n) } }
	status := func(code int) answer { return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) } }
	silent := func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	drip := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			time.Sleep(5 * time.Millisecond)
			if _, err := w.Write([]byte{0}); err != nil {
				return
			}
			w.(http.Flusher).Flush()
		}
	}
	endless := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(contents); err != nil {
				return
			}
		}
	}
	checked := File{SHA256: sum(contents)}
	for _, c := range []struct {
		name    string
		answers []answer // in order; the last one for all further requests
		file    File     // without name and address
		part    []byte   // what an earlier run left, with its record
		from    origin   // the record; the address "URL" stands for the server's
		policy  policy
		runs    int      // calls of Get before the one whose outcome counts
		ranges  []string // asked for in all; nil where it does not matter
		cause   error    // wanted; nil for none
		says    string   // of the error
	}{
		// The entity tag alone must make the resumption safe where there is no checksum.
		{name: "resumes a broken connection", answers: []answer{breakAt(600_000), whole}, ranges: []string{"", "bytes=600000-"}},
		{name: "resumes in a later run", file: checked, answers: []answer{breakAt(300_000), whole}, runs: 1, policy: policy{attempts: 1}, ranges: []string{"", "bytes=300000-"}},
		{name: "starts anew if the server's file changed", answers: []answer{func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", `"v0"`)
			w.Header().Set("Content-Length", "1000003")
			if _, err := w.Write(make([]byte, 5000)); err != nil {
				panic(err)
			}
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, whole}},
		{name: "starts anew if the server knows no ranges", file: checked, answers: []answer{breakAt(600_000), func(w http.ResponseWriter, _ *http.Request) {
			if _, err := w.Write(contents); err != nil {
				panic(err)
			}
		}}},
		{name: "starts anew if the server answers another range", file: checked, answers: []answer{breakAt(600_000), func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", "bytes 5-1000002/1000003")
			w.WriteHeader(http.StatusPartialContent)
		}, whole}, ranges: []string{"", "bytes=600000-", ""}},
		{name: "starts anew if a part proves bad at the checksum", file: checked, answers: []answer{whole},
			part: make([]byte, 1234), from: origin{URL: "URL", Validator: `"v1"`}, ranges: []string{"bytes=1234-", ""}},
		{name: "does not build on a part without record", answers: []answer{whole}, part: make([]byte, 1234), ranges: []string{""}},
		{name: "does not build on a part from elsewhere", answers: []answer{whole},
			part: make([]byte, 1234), from: origin{URL: "http://elsewhere.invalid/", Validator: `"v1"`}, ranges: []string{""}},
		{name: "does not build on a part that nothing can vouch for", answers: []answer{whole}, part: make([]byte, 1234), from: origin{URL: "URL"}, ranges: []string{""}},
		// The process was stopped after the last byte, before the check.
		{name: "accepts a complete part", answers: []answer{whole}, part: contents, from: origin{URL: "URL", Validator: `"v1"`}, ranges: []string{"bytes=1000003-"}},
		// The same file again cannot be better.
		{name: "refuses a wrong checksum", answers: []answer{whole}, file: File{SHA256: sum([]byte("other"))}, ranges: []string{""}, cause: ErrDamaged, says: sum(contents) + ", expected " + sum([]byte("other"))},
		{name: "refuses a wrong size", answers: []answer{whole}, file: File{Size: 17}, cause: ErrDamaged, says: "has 1000003 bytes, expected 17"},
		{name: "ends a file that is longer than published", answers: []answer{endless}, file: File{Size: 17}, ranges: []string{""}, cause: errLimit, says: "17 bytes"},
		{name: "does not begin a file of unknown size above 1 GiB", answers: []answer{func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1073741825")
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}}, ranges: []string{""}, cause: errLimit, says: "1073741824 bytes"},
		{name: "does not ask again after 404", answers: []answer{status(404)}, ranges: []string{""}, says: "the server answered 404"},
		{name: "does not ask again after 403", answers: []answer{status(403)}, ranges: []string{""}, says: "the server answered 403"},
		{name: "asks again after 500", answers: []answer{status(500)}, ranges: make([]string, 4), says: "the server answered 500"},
		{name: "asks again after 503", answers: []answer{status(503)}, ranges: make([]string, 4), says: "the server answered 503"},
		{name: "asks again after 429", answers: []answer{status(429)}, ranges: make([]string, 4), says: "the server answered 429"},
		{name: "waits for a server to recover", answers: []answer{status(503), status(503), whole}, ranges: make([]string, 3)},
		{name: "gives up a silent connection", answers: []answer{silent, whole}, policy: policy{stall: 500 * time.Millisecond}},
		{name: "gives up a dripping connection", answers: []answer{drip, whole}, policy: policy{stall: 500 * time.Millisecond, least: 1000}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, func(i int, w http.ResponseWriter, r *http.Request) { c.answers[min(i, len(c.answers)-1)](w, r) })
			f, path := newFetcher(t)
			c.policy.pause = time.Millisecond
			f.policy, c.file.Name, c.file.URL, c.file.Check = c.policy, "set.bin", s.URL, func(string) error { return nil }
			if c.part != nil {
				write(t, path+".part", c.part)
				if c.from.URL == "URL" {
					c.from.URL = s.URL
				}
				must.Do(t, writeOrigin(path+".part", c.from))
			}
			for range c.runs {
				if _, err := f.Get(context.Background(), c.file); err == nil {
					t.Fatal("an earlier run did not fail")
				}
				requireAbsent(t, path)
			}
			_, err := f.Get(context.Background(), c.file)
			if c.says == "" {
				if err != nil {
					t.Fatal(err)
				}
				requireContents(t, path)
			} else {
				var place *Error
				if (c.cause != nil && !errors.Is(err, c.cause)) || !errors.As(err, &place) || !strings.Contains(err.Error(), c.says) || place.URL != s.URL || place.Name != "set.bin" || !strings.Contains(err.Error(), EnvData) {
					t.Fatalf("got %v, want one that says %q, names the place and what to do", err, c.says)
				}
				requireAbsent(t, path, path+".part", path+".part.json")
			}
			if got := s.requests(); c.ranges != nil && !slices.Equal(got, c.ranges) {
				t.Errorf("ranges asked for: %q, want %q", got, c.ranges)
			}
		})
	}
}

// answer is what a server does with one request.
type answer func(w http.ResponseWriter, r *http.Request)

func TestCheckDecidesWithoutChecksum(t *testing.T) {
	s := serve(t, nil)
	f, path := newFetcher(t)
	bad := errors.New("not an archive")
	file := File{Name: "set.bin", URL: s.URL, Check: func(string) error { return bad }}
	if _, err := f.Get(context.Background(), file); !errors.Is(err, bad) {
		t.Fatalf("got %v", err)
	}
	requireAbsent(t, path, path+".part")
	file.Check = func(string) error { return nil }
	must.Get(f.Get(context.Background(), file))(t)
	requireContents(t, path)
}

func TestDamagedCacheIsReplaced(t *testing.T) {
	s := serve(t, nil)
	f, path := newFetcher(t)
	file := File{Name: "set.bin", URL: s.URL, SHA256: sum(contents)}
	if _, err := f.Get(context.Background(), file); err != nil {
		t.Fatal(err)
	}
	damaged := slices.Clone(contents)
	damaged[77] ^= 1
	write(t, path, damaged)
	if _, err := f.Get(context.Background(), file); err != nil {
		t.Fatal(err)
	}
	requireContents(t, path)

	// Where it cannot be replaced, the error speaks of both faults.
	write(t, path, damaged)
	s.Close()
	var network *net.OpError
	if _, err := f.Get(context.Background(), file); !errors.Is(err, ErrDamaged) || !errors.As(err, &network) {
		t.Errorf("damaged and no network: got %v", err)
	}
}

func TestNoNetwork(t *testing.T) {
	s := serve(t, nil)
	url := s.URL
	s.Close() // nothing listens there now
	f, _ := newFetcher(t)
	_, err := f.Get(context.Background(), File{Name: "set.bin", URL: url, SHA256: sum(contents)})
	var network *net.OpError
	if !errors.As(err, &network) || !strings.Contains(err.Error(), EnvData) {
		t.Errorf("got %v", err)
	}
}

func TestUnknownHostIsNotTriedAgain(t *testing.T) {
	f, _ := newFetcher(t)
	tries := 0
	f.Client = &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		tries++
		return nil, &net.DNSError{Err: "no such host", Name: r.URL.Host, IsNotFound: true}
	})}
	_, err := f.Get(context.Background(), File{Name: "set.bin", URL: "https://data.invalid/set.bin", SHA256: sum(contents)})
	var unknown *net.DNSError
	if !errors.As(err, &unknown) || tries != 1 {
		t.Errorf("after %d tries: %v", tries, err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestCancel(t *testing.T) {
	s := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		w.Header().Set("Content-Length", "1000003")
		if _, err := w.Write(contents[:400_000]); err != nil {
			panic(err)
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	f, path := newFetcher(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	f.Progress = func(p Progress) {
		if p.Done >= 400_000 {
			cancel()
		}
	}
	if _, err := f.Get(ctx, File{Name: "set.bin", URL: s.URL, SHA256: sum(contents)}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	requireAbsent(t, path)
	if info, err := os.Stat(path + ".part"); err != nil || info.Size() != 400_000 {
		t.Errorf("part file: %v, %v; want 400000 bytes", info, err)
	}
}

// fullDisk takes a number of bytes and then fails as a full disk does, or fails when it is closed, as a network's may.
type fullDisk struct {
	*os.File
	room    int
	atClose error
}

func (d *fullDisk) Close() error { return cmp.Or(d.File.Close(), d.atClose) }

func (d *fullDisk) Write(b []byte) (int, error) {
	if len(b) <= d.room {
		d.room -= len(b)
		return d.File.Write(b)
	}
	n, err := d.File.Write(b[:d.room])
	d.room = 0
	if err != nil {
		return n, err
	}
	return n, &fs.PathError{Op: "write", Path: d.Name(), Err: syscall.ENOSPC}
}

func TestFullDisk(t *testing.T) {
	for need, disk := range map[int64]fullDisk{300_002: {room: 700_001}, 0: {room: len(contents), atClose: syscall.ENOSPC}} {
		s := serve(t, nil)
		f, path := newFetcher(t)
		f.policy.open = func(path string, flag int, perm fs.FileMode) (partFile, error) {
			file, err := os.OpenFile(path, flag, perm)
			disk.File = file
			return &disk, err
		}
		file := File{Name: "set.bin", URL: s.URL, SHA256: sum(contents)}
		_, err := f.Get(context.Background(), file)
		var space *noSpaceError
		if !errors.As(err, &space) || !errors.Is(err, syscall.ENOSPC) || space.need != need {
			t.Fatalf("got %v, want that %d bytes are needed", err, need)
		}
		if text := err.Error(); !strings.Contains(text, fmt.Sprint(need, " more bytes")) || !strings.Contains(text, EnvCache) || !strings.Contains(text, "was removed") {
			t.Errorf("%q does not say how much room is missing, what to do, or what was removed", err)
		}
		requireAbsent(t, path, path+".part", path+".part.json") // others need the room

		f.policy.open = nil // room was made
		if _, err := f.Get(context.Background(), file); err != nil {
			t.Fatal(err)
		}
		requireContents(t, path)
		if got := s.requests(); !slices.Equal(got, []string{"", ""}) {
			t.Errorf("ranges asked for: %q", got)
		}
	}
}

func TestLocalFolder(t *testing.T) {
	s := serve(t, nil)
	folder := t.TempDir()
	local := filepath.Join(folder, "set.bin")
	write(t, local, contents)
	for _, place := range []string{folder, "file://" + filepath.ToSlash(folder), "file://localhost" + filepath.ToSlash(folder)} {
		f, _ := newFetcher(t)
		t.Setenv(EnvData, place)
		got, err := f.Get(context.Background(), File{Name: "set.bin", URL: s.URL, SHA256: sum(contents)})
		if err != nil || got != local {
			t.Errorf("%s: got %s, %v; want %s", place, got, err, local)
		}
	}
	f, _ := newFetcher(t)
	f.Mirror = folder
	if _, err := f.Get(context.Background(), File{Name: "set.bin", URL: s.URL, SHA256: sum(nil)}); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), local) {
		t.Errorf("a wrong local file: got %v", err)
	}
	if n := len(s.requests()); n != 0 {
		t.Errorf("%d requests, want none", n)
	}
	// What the folder lacks is had from elsewhere.
	if _, err := f.Get(context.Background(), File{Name: "more/set2.bin", URL: s.URL, SHA256: sum(contents)}); err != nil {
		t.Error(err)
	}
}

// A name of the folder that is misspelt, or is a file's, is said with the variable that has it.
func TestNoLocalFolder(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must.Do(t, os.WriteFile(file, nil, 0o600))
	for _, c := range []struct{ name, place, want string }{
		{"misspelt", filepath.Join(dir, "typo"), filepath.Join(dir, "typo") + ", which does not exist"},
		{"misspelt address", "file://" + filepath.Join(dir, "typo"), filepath.Join(dir, "typo") + ", which does not exist"},
		{"a file", file, file + ", which is not a folder"},
		{"below a file", filepath.Join(file, "below"), filepath.Join(file, "below") + ": stat "},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, by := range []struct {
				named string
				f     *Fetcher
			}{{"the Fetcher's Mirror is ", &Fetcher{Mirror: c.place, Cache: t.TempDir()}}, {"DENSITYUNCERTAINTY_DATA names ", &Fetcher{Cache: t.TempDir()}}} {
				t.Setenv(EnvData, c.place)
				if _, _, err := by.f.Local("a.txt"); err == nil || !strings.Contains(err.Error(), by.named+c.want) {
					t.Errorf("Local: %v, want %q", err, by.named+c.want)
				}
				if _, err := by.f.Get(t.Context(), File{Name: "a.txt", SHA256: sum(contents)}); err == nil || !strings.Contains(err.Error(), by.named+c.want) {
					t.Errorf("Get: %v, want %q", err, by.named+c.want)
				}
			}
		})
	}
}

func TestMirrorThenOfficialAddress(t *testing.T) {
	var paths []string
	mirror := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		paths = append(paths, r.URL.Path)
		if r.URL.Path == "/sets/a.bin" {
			serveWhole(w, r)
			return
		}
		http.NotFound(w, r)
	})
	official := serve(t, nil)
	f, _ := newFetcher(t)
	f.Mirror = mirror.URL + "/sets"
	for _, name := range []string{"a.bin", "b.bin"} {
		path := must.Get(f.Get(context.Background(), File{Name: name, URL: official.URL, SHA256: sum(contents)}))(t)
		requireContents(t, path)
	}
	if !slices.Equal(paths, []string{"/sets/a.bin", "/sets/b.bin"}) || len(official.requests()) != 1 {
		t.Errorf("the mirror was asked for %q, the official server %d times", paths, len(official.requests()))
	}
}

func TestEveryFailedAddressIsNamed(t *testing.T) {
	refuse := func(_ int, w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }
	mirror, official := serve(t, refuse), serve(t, refuse)
	f, _ := newFetcher(t)
	f.Mirror = mirror.URL
	_, err := f.Get(context.Background(), File{Name: "set.bin", URL: official.URL, SHA256: sum(contents)})
	if err == nil || !strings.Contains(err.Error(), mirror.URL+"/set.bin") || !strings.Contains(err.Error(), official.URL) {
		t.Errorf("got %v", err)
	}
}

func TestUnusablePlaces(t *testing.T) {
	for _, place := range []string{"ftp://host/sets", "file://otherhost/sets", "file://%zz"} {
		f, _ := newFetcher(t)
		f.Mirror = place
		if _, err := f.Get(context.Background(), File{Name: "set.bin", SHA256: sum(contents)}); err == nil || !strings.Contains(err.Error(), EnvData) {
			t.Errorf("%s: got %v", place, err)
		}
	}
}

// What is there is found, and nothing is downloaded.
func TestHave(t *testing.T) {
	s := serve(t, nil)
	f, path := newFetcher(t)
	file := File{Name: "set.bin", URL: s.URL, SHA256: sum(contents), Size: int64(len(contents))}
	has := func(when, want string) {
		t.Helper()
		if got, found, err := f.Have(file); err != nil || got != want || found != (want != "") {
			t.Errorf("%s: %q, %v, %v", when, got, found, err)
		}
	}
	has("with nothing", "")
	must.Get(f.Get(t.Context(), file))(t)
	has("in the cache", path)
	must.Do(t, os.WriteFile(path, []byte("damaged"), 0o600))
	has("damaged in the cache", "")
	f.Mirror = t.TempDir()
	local := filepath.Join(f.Mirror, "set.bin")
	must.Do(t, os.WriteFile(local, []byte(contents), 0o600))
	has("in the local folder", local)
	must.Do(t, os.WriteFile(local, []byte("damaged"), 0o600))
	if _, _, err := f.Have(file); !errors.Is(err, ErrDamaged) {
		t.Errorf("damaged in the local folder: %v", err)
	}
	if n := len(s.requests()); n != 1 {
		t.Errorf("%d requests, want that of Get alone", n)
	}
}

// From a cache that cannot be written, as one that somebody else fills, comes what is in it, and of the rest the error says
// that it is the cache.
func TestReadOnlyCache(t *testing.T) {
	s := serve(t, nil)
	f, path := newFetcher(t)
	file := File{Name: "set.bin", URL: s.URL, SHA256: sum(contents), Size: int64(len(contents))}
	must.Get(f.Get(t.Context(), file))(t)
	// What nobody may do, whatever his rights: open a folder as a lock, and make a folder in a file.
	must.Do(t, os.Remove(path+".lock"))
	must.Do(t, os.Mkdir(path+".lock", 0o700))
	if got, err := f.Get(t.Context(), file); err != nil || got != path {
		t.Errorf("a file in the cache: %s, %v", got, err)
	}
	must.Do(t, os.WriteFile(path, []byte("damaged"), 0o600))
	for _, name := range []string{"set.bin", "set.bin/more.bin"} {
		file.Name = name
		got, err := f.Get(t.Context(), file)
		if !errors.Is(err, ErrCache) || got != "" || !strings.Contains(err.Error(), "set "+EnvCache+" to use another") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestUnusableNames(t *testing.T) {
	f, _ := newFetcher(t)
	for _, name := range []string{"", ".", "../set.bin", "/etc/set.bin", "folder/"} {
		if _, err := f.Get(context.Background(), File{Name: name, SHA256: sum(contents)}); err == nil || !strings.Contains(err.Error(), "file name") {
			t.Errorf("%q: got %v", name, err)
		}
	}
}

func TestNoAddress(t *testing.T) {
	f, path := newFetcher(t)
	if _, err := f.Get(context.Background(), File{Name: "set.bin", SHA256: sum(contents)}); err == nil || !strings.Contains(err.Error(), EnvData) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
}

// An error says where on this machine the file was looked for.
func TestPlacesAreNamed(t *testing.T) {
	s := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) })
	f, cached := newFetcher(t)
	f.Mirror = t.TempDir()
	for _, url := range []string{s.URL, ""} {
		_, err := f.Get(context.Background(), File{Name: "set.bin", URL: url, SHA256: sum(contents)})
		if want := filepath.Join(f.Mirror, "set.bin") + " or " + cached; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to name %s", err, want)
		}
	}
}

func TestCacheEnvironment(t *testing.T) {
	s := serve(t, nil)
	t.Setenv(EnvData, "")
	t.Setenv(EnvCache, filepath.Join(t.TempDir(), "new", "folder"))
	var f *Fetcher // nil is ready to use
	path := must.Get(f.Get(context.Background(), File{Name: "a/b.bin", URL: s.URL, SHA256: sum(contents)}))(t)
	if want := filepath.Join(os.Getenv(EnvCache), "a", "b.bin"); path != want {
		t.Errorf("path %s, want %s", path, want)
	}
}

// Fetchers share nothing but the folder, as processes do; the lock is one of the
// operating system on separate open files.
func TestManyAtOnce(t *testing.T) {
	s := serve(t, func(i int, w http.ResponseWriter, r *http.Request) {
		if i == 0 {
			breakOff(w, 123_456)
		}
		serveWhole(w, r)
	})
	first, path := newFetcher(t)
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() {
			f := &Fetcher{Cache: first.Cache, policy: first.policy}
			got, err := f.Get(context.Background(), File{Name: "set.bin", URL: s.URL, SHA256: sum(contents)})
			if err == nil && got != path {
				err = fmt.Errorf("path %s", got)
			}
			errs[i] = err
		})
	}
	wg.Wait()
	must.Do(t, errors.Join(errs...))
	requireContents(t, path)
	if n := len(s.requests()); n != 2 {
		t.Errorf("%d requests, want 2: one broken, one resumed", n)
	}
}

// A fetcher that waits for another's lock can be cancelled.
func TestCancelWhileWaiting(t *testing.T) {
	f, _ := newFetcher(t)
	started, finish := make(chan struct{}), make(chan struct{})
	s := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		close(started)
		<-finish
		serveWhole(w, r)
	})
	file := File{Name: "set.bin", URL: s.URL, SHA256: sum(contents)}
	done := make(chan error)
	go func() {
		_, err := f.Get(context.Background(), file)
		done <- err
	}()
	<-started
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := f.Get(ctx, file); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	close(finish)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Two processes ask for the same file while none has it.
func TestTwoProcesses(t *testing.T) {
	if url := os.Getenv("FETCH_TEST_URL"); url != "" {
		// This is one of the two: the test binary started by itself below.
		var f Fetcher
		path := must.Get(f.Get(context.Background(), File{Name: "set.bin", URL: url, SHA256: sum(contents)}))(t)
		requireContents(t, path)
		return
	}
	s := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		time.Sleep(100 * time.Millisecond) // so that the other one arrives meanwhile
		serveWhole(w, r)
	})
	f, path := newFetcher(t)
	t.Setenv(EnvCache, f.Cache)
	t.Setenv("FETCH_TEST_URL", s.URL)
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
	if n := len(s.requests()); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}
