package datasets

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
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
	must.Get(io.Copy(w, text))(t)
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
	must.GetErr(Year(t.Context(), nil))(t, official)
	must.GetErr(os.Stat(filepath.Join(cache, yearArchive.Name+".part")))(t, os.ErrNotExist)
}
