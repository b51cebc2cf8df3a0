package datasets

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
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

// yearZip packs text as the published archive does.
func yearZip(t *testing.T, text io.Reader) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w := must.Get(z.Create("YearPredictionMSD.txt"))(t)
	if _, err := io.Copy(w, text); err != nil {
		t.Fatal(err)
	}
	must.Do(t, z.Close())
	return b.Bytes()
}

// servedYear serves the archive in the place of the official address, to an empty cache.
func servedYear(t *testing.T, archive []byte) (cache string, requests *int) {
	t.Helper()
	before, sum := yearArchive, sha256.Sum256(archive)
	t.Cleanup(func() { yearArchive = before })
	yearArchive.SHA256 = hex.EncodeToString(sum[:])
	requests = new(int)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*requests++
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(archive))
	}))
	t.Cleanup(s.Close)
	cache = t.TempDir()
	yearArchive.URL = s.URL
	t.Setenv(fetch.EnvData, "")
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
	_, requests := servedYear(t, yearZip(t, wholeYearText()))
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
}

// An archive that is not the published one is refused.
func TestYearIsHeldToItsChecksum(t *testing.T) {
	sample := must.Get(os.ReadFile("testdata/year_sample.txt"))(t)
	official := yearArchive.SHA256
	cache, _ := servedYear(t, yearZip(t, bytes.NewReader(sample)))
	if r := must.Get(Year(t.Context(), nil))(t); r.N != 4 {
		t.Errorf("%d rows", r.N)
	}
	yearArchive.SHA256 = official
	if _, err := Year(t.Context(), nil); !errors.Is(err, fetch.ErrDamaged) || !strings.Contains(err.Error(), official) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(cache, yearArchive.Name+".part")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the download was left in the cache (%v)", err)
	}
}
