package datasets

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"densityuncertainty/datasets/fetch"
	"densityuncertainty/environment/must"
)

// yearZip packs text as the member of that name.
func yearZip(t *testing.T, name string, text io.Reader) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w := must.Get(z.Create(name))(t)
	if _, err := io.Copy(w, text); err != nil {
		t.Fatal(err)
	}
	must.Do(t, z.Close())
	return b.Bytes()
}

// yearMirror serves the archive and points the environment at it and at an empty
// cache.
func yearMirror(t *testing.T, archive []byte) (cache string, requests *int) {
	t.Helper()
	requests = new(int)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*requests++
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(archive))
	}))
	t.Cleanup(s.Close)
	cache = t.TempDir()
	t.Setenv(fetch.EnvData, s.URL)
	t.Setenv(fetch.EnvCache, cache)
	return cache, requests
}

// wholeYearText is a table of the full size, whose years and first features tell
// the rows apart.
func wholeYearText() io.Reader {
	var b bytes.Buffer
	tail := strings.Repeat(",1.5", yearD-1) + "\n"
	for i := range yearRows {
		b.WriteString([]string{"1922,", "1999,", "2011,"}[i%3])
		b.WriteByte(byte('0' + i%7))
		b.WriteString(tail)
	}
	return &b
}

func TestYear(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and reads a table of half a million rows")
	}
	cache, requests := yearMirror(t, yearZip(t, yearText, wholeYearText()))
	for range 2 { // the second time from the cache
		r := must.Get(UCI("year"))(t)
		if r.Name != "year" || r.N != 515345 || r.D != 90 || len(r.X) != r.N*r.D || len(r.Y) != r.N {
			t.Fatalf("%q: N = %d, D = %d, %d inputs, %d targets", r.Name, r.N, r.D, len(r.X), len(r.Y))
		}
		last := r.N - 1
		if r.Y[last] != []float64{1922, 1999, 2011}[last%3] || r.Row(last)[0] != float64(last%7) || r.Row(last)[89] != 1.5 {
			t.Errorf("last row: year %v, features %v", r.Y[last], r.Row(last))
		}
	}
	if *requests != 1 {
		t.Errorf("%d requests, want 1", *requests)
	}
	if _, err := os.Stat(filepath.Join(cache, "yearpredictionmsd.zip.sha256")); err != nil {
		t.Errorf("no recorded checksum: %v", err)
	}
}

func TestYearRefusesWrongArchives(t *testing.T) {
	sample := must.Get(os.ReadFile("testdata/year_sample.txt"))(t)
	good := yearZip(t, yearText, bytes.NewReader(sample))
	var huge bytes.Buffer // says that it has 2 GB
	z := zip.NewWriter(&huge)
	must.Get(z.CreateRaw(&zip.FileHeader{Name: yearText, UncompressedSize64: 2 << 30}))(t)
	must.Do(t, z.Close())
	damaged := bytes.Clone(good)
	damaged[len(damaged)/2] ^= 0xff
	for _, c := range []struct {
		name    string
		archive []byte
		cause   error
		says    string
	}{
		{"truncated", good[:len(good)/2], zip.ErrFormat, "cut-off"},
		{"no archive", []byte("<html>log in</html>"), zip.ErrFormat, "damaged"},
		{"damaged", damaged, nil, "damaged"},
		{"too few rows", good, errRowCount, "4, expected 515345"},
		{"too large", huge.Bytes(), errLimit, "has 2147483648 bytes unpacked"},
		{"other member", yearZip(t, "readme.txt", bytes.NewReader(sample)), nil, "holds no YearPredictionMSD.txt"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cache, _ := yearMirror(t, c.archive)
			_, err := Year(context.Background(), &fetch.Fetcher{Client: mirrorOnly, Mirror: os.Getenv(fetch.EnvData)})
			if err == nil || !strings.Contains(err.Error(), c.says) || (c.cause != nil && !errors.Is(err, c.cause)) {
				t.Errorf("got %v; want %q and cause %v", err, c.says, c.cause)
			}
			for _, name := range []string{yearArchive, yearArchive + ".part", yearArchive + ".sha256"} {
				if _, err := os.Stat(filepath.Join(cache, name)); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("%s was left in the cache (%v)", name, err)
				}
			}
		})
	}
}

// The unpacked file in a local folder is used without archive or network.
func TestYearFromLocalText(t *testing.T) {
	sample, err := os.ReadFile("testdata/year_sample.txt")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, yearText), sample, 0o644))
	t.Setenv(fetch.EnvData, dir)
	_, err = UCI("year")
	requireParseError(t, "excerpt", err, filepath.Join(dir, yearText), 0, 0, errRowCount)
}
