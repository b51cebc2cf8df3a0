package datasets

import (
	"archive/zip"
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"densityuncertainty/datasets/fetch"
	"densityuncertainty/environment/must"
)

// Facts of each set as published: size, mean and population
// standard deviation of the target to six digits.
var facts = []struct {
	name      string
	n, d      int
	mean, std float64
	constant  []int // constant features
}{
	{"boston", 506, 13, 22.5328, 9.18801, nil},
	{"concrete", 1030, 8, 35.8180, 16.6976, nil},
	{"energy", 768, 8, 22.3072, 10.0836, nil},
	{"energy-cooling", 768, 8, 24.5878, 9.50711, nil},
	{"kin8nm", 8192, 8, 0.714283, 0.263591, nil},
	{"naval", 11934, 16, 0.975000, 0.0147196, []int{8, 11}},
	{"protein", 45730, 9, 7.74853, 6.11824, nil},
	{"wine", 1599, 11, 5.63602, 0.807317, nil},
	{"yacht", 308, 6, 10.4954, 15.1359, nil},
}

func TestUCI(t *testing.T) {
	for _, want := range facts {
		t.Run(want.name, func(t *testing.T) {
			r := must.Get(UCI(want.name))(t)
			if r.Name != want.name || r.N != want.n || r.D != want.d || len(r.X) != want.n*want.d || len(r.Y) != want.n {
				t.Fatalf("got %q with N = %d, D = %d, %d inputs, %d targets", r.Name, r.N, r.D, len(r.X), len(r.Y))
			}
			if len(r.Features) != r.D {
				t.Errorf("%d feature names", len(r.Features))
			}
			s := FitScaler(r.Y, 1, ascending(r.N))
			if !sameDigits(s.Mean[0], want.mean) || !sameDigits(s.Std[0], want.std) {
				t.Errorf("target mean %v, sd %v; want %v, %v", s.Mean[0], s.Std[0], want.mean, want.std)
			}
			if got := constantColumns(r); !slices.Equal(got, want.constant) {
				t.Errorf("constant features %v, want %v", got, want.constant)
			}
		})
	}
}

// sameDigits reports agreement to the six significant digits that are published.
func sameDigits(got, want float64) bool {
	return math.Abs(got-want) <= 5.1e-6*math.Abs(want)
}

func constantColumns(r *Regression) []int {
	var found []int
	for j := range r.D {
		constant := true
		for i := range r.N {
			constant = constant && r.Row(i)[j] == r.X[j]
		}
		if constant {
			found = append(found, j)
		}
	}
	return found
}

// publishedSets are the checksums of the files published with Gal & Ghahramani,
// "Dropout as a Bayesian Approximation", ICML 2016: the MD5 of data.txt, and the
// SHA-256 of the index files one after the other, index_train_0.txt,
// index_test_0.txt, index_train_1.txt, ...
var publishedSets = []struct{ name, md5, splits string }{
	{"boston", "d4accdce7a25600298819f8e28e8d593", "18b10e66698dc86e27dfac2dd2abc98b7d467fafce569974ef39be4b01eb59f5"},
	{"concrete", "3a0d46c88b95e3181e5a29475b3a2e04", "d39ca20cfd3231c27c7f487eed3e87aff3a8595ece021f7f07cc031229e6e2b9"},
	{"energy", "261d4267aec44ab19d18cca07eb7060f", "a1b6240d92199026e82bda456f51b41dcf28db80ba086665d875bf8437ba5606"},
	{"kin8nm", "d98fb393cdd2a57256699f8968d4d632", "c574bba51a5e229d94697698f27e1d5643131b5fd9013ed4dbd97aed652b7fac"},
	{"naval", "4a95e860425c9cf765b56f0134ad99cf", "3731380094c5b5f0fb72a87b64caf73c5a3c90b68351c84eb2bede61c4283b81"},
	{"protein", "03318b0daa2286057cb5a10b06d31be1", "023fd3158c800878f7965c307496c1bcb4621bb54b97a2fd4e00a758bb699c1f"},
	{"wine", "4db64a13e3668d394c63b75404fe056d", "67d058bcd16fbdc5facf9aa77ed32d8685260d8944c5dcd129f12e310297cdb7"},
	{"yacht", "7f76e247bb7ca38df3f1a5e918697b3f", "6dc08e1f2962f5f9af7c95159110df7ecbca1da241a41ef4281bf7383fc7d677"},
}

// The embedded tables are, byte for byte, the published ones.
func TestEmbeddedFilesArePublishedFiles(t *testing.T) {
	for _, set := range publishedSets {
		text := must.Get(openEmbedded(set.name + ".txt"))(t)
		h := md5.New()
		must.Get(io.Copy(h, text))(t)
		if got := hex.EncodeToString(h.Sum(nil)); got != set.md5 {
			t.Errorf("%s: MD5 %s, published %s", set.name, got, set.md5)
		}
	}
}

func TestUCIReturnsFreshCopies(t *testing.T) {
	a := must.Get(UCI("yacht"))(t)
	a.X[0], a.Y[0], a.Features[0] = 99, 99, "changed"
	b := must.Get(UCI("yacht"))(t)
	if b.X[0] == 99 || b.Y[0] == 99 || b.Features[0] == "changed" {
		t.Error("a change to one copy shows in another")
	}
}

func TestUnknownNameListsKnownOnes(t *testing.T) {
	_, err := UCI("bostn")
	_, err2 := GalSplits("bostn")
	for _, err := range []error{err, err2} {
		if err == nil {
			t.Fatal("no error")
		}
		for _, name := range append(UCINames(), `"bostn"`) {
			if !strings.Contains(err.Error(), name) {
				t.Errorf("%q does not mention %s", err, name)
			}
		}
	}
}

// testdata/year_sample.txt has the official form with invented numbers.
func TestParseYear(t *testing.T) {
	f := must.Get(os.Open("testdata/year_sample.txt"))(t)
	r, err := parseYear(f, 0)
	must.Do(t, errors.Join(err, f.Close()))
	if r.N != 4 || r.D != 90 || len(r.X) != 4*90 || r.Features != nil {
		t.Fatalf("N = %d, D = %d, %d inputs, names %q", r.N, r.D, len(r.X), r.Features)
	}
	if !slices.Equal(r.Y, []float64{2001, 2001, 1969, 1922}) {
		t.Errorf("years %v", r.Y)
	}
	if r.X[0] != 53.65885 || r.X[90] != -17.73236 || r.X[3*90+7] != -55.96954 {
		t.Errorf("features %v, %v, %v", r.X[0], r.X[90], r.X[3*90+7])
	}
}

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
