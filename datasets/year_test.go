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
func servedYear(t *testing.T, archive []byte) (cache string) {
	t.Helper()
	before, sum := yearArchive, sha256.Sum256(archive)
	t.Cleanup(func() { yearArchive = before })
	yearArchive.SHA256 = hex.EncodeToString(sum[:])
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(archive))
	}))
	t.Cleanup(s.Close)
	cache = t.TempDir()
	yearArchive.URL = s.URL
	t.Setenv(fetch.EnvData, "")
	t.Setenv(fetch.EnvCache, cache)
	return cache
}

// An archive that is not the published one is refused.
func TestYearIsHeldToItsChecksum(t *testing.T) {
	sample := must.Get(os.ReadFile("testdata/year_sample.txt"))(t)
	official := yearArchive.SHA256
	cache := servedYear(t, yearZip(t, bytes.NewReader(sample)))
	if r := must.Get(Year(t.Context(), nil))(t); r.N != 4 {
		t.Errorf("%d rows", r.N)
	}
	yearArchive.SHA256 = official
	if _, err := Year(t.Context(), nil); err == nil || !strings.Contains(err.Error(), official) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(cache, yearArchive.Name+".part")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the download was left in the cache (%v)", err)
	}
}
