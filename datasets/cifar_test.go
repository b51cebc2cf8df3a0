package datasets

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
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

// tinyCIFAR is a set of the form of CIFAR-10 with three training files of two
// images and a test file, together with its archives and the contents of its
// files, in both versions.
type tinyCIFAR struct {
	cifarSet
	archives []testFile
	contents [][]testFile // of each version
	images   *Images      // training images, then test images
}

func newTinyCIFAR() *tinyCIFAR {
	tiny := &tinyCIFAR{
		cifarSet: cifarSet{name: "tiny", classes: []string{"a", "b", "c"}, labelBytes: 2, labelKey: "classes"},
		images:   someImages(8),
	}
	for i := range tiny.images.Labels {
		tiny.images.Labels[i] = i % 3
	}
	binary := cifarVersion{folder: "tiny-bin", read: (*cifarSet).binary}
	python := cifarVersion{folder: "tiny-py", read: (*cifarSet).python}
	tiny.contents = make([][]testFile, 2)
	for i, name := range []string{"batch_1", "batch_2", "batch_3", "test"} {
		part := tiny.images.Take([]int{2 * i, 2*i + 1})
		var records []byte
		for k, label := range part.Labels {
			records = append(append(records, 77, byte(label)), part.Image(k)...)
		}
		tiny.contents[0] = append(tiny.contents[0], binary.describe(name+".bin", records, name == "test"))
		tiny.contents[1] = append(tiny.contents[1], python.describe(name, pickled("classes", part.Labels, part.Pixels), name == "test"))
	}
	for i, v := range []cifarVersion{binary, python} {
		name := v.folder + ".tar.gz"
		packed := gzipped(tarOf(tiny.contents[i]...))
		sum := sha256.Sum256(packed)
		v.archive = fetch.File{Name: name, URL: "http://127.0.0.1:1/" + name, Size: int64(len(packed)), SHA256: hex.EncodeToString(sum[:])}
		tiny.archives = append(tiny.archives, testFile{name, packed})
		tiny.versions = append(tiny.versions, v)
	}
	return tiny
}

// describe enters a file of two images into the version and returns it with its
// name in the archive.
func (v *cifarVersion) describe(name string, contents []byte, test bool) testFile {
	sum := md5.Sum(contents)
	v.files = append(v.files, cifarFile{name, hex.EncodeToString(sum[:]), int64(len(contents)), 2, test})
	return testFile{v.folder + "/" + name, contents}
}

func (tiny *tinyCIFAR) require(t *testing.T, f *fetch.Fetcher) {
	t.Helper()
	train, test := must.Get2(tiny.load(context.Background(), f))(t)
	if train.Name != "tiny train" || test.Name != "tiny test" || train.N != 6 || test.N != 2 || !slices.Equal(test.Classes, tiny.classes) {
		t.Errorf("%d images %q and %d images %q of classes %q", train.N, train.Name, test.N, test.Name, test.Classes)
	}
	requireSameImages(t, tiny.images.Take([]int{0, 1, 2, 3, 4, 5}), train)
	requireSameImages(t, tiny.images.Take([]int{6, 7}), test)
}

func requireSameImages(t *testing.T, want, got *Images) {
	t.Helper()
	if got.N != want.N || !slices.Equal(got.Labels, want.Labels) || !bytes.Equal(got.Pixels, want.Pixels) {
		t.Errorf("%s: %d images, %s: %d; equal labels: %v, equal pixels: %v",
			got.Name, got.N, want.Name, want.N, slices.Equal(got.Labels, want.Labels), bytes.Equal(got.Pixels, want.Pixels))
	}
}

func TestCIFARFromEveryPlace(t *testing.T) {
	tiny := newTinyCIFAR()
	for i, version := range tiny.versions {
		t.Run(version.folder, func(t *testing.T) { tiny.require(t, folderOf(t, tiny.contents[i]...)) })
		t.Run(version.archive.Name, func(t *testing.T) { tiny.require(t, folderOf(t, tiny.archives[i])) })
	}
	t.Run("downloaded, then from the cache", func(t *testing.T) {
		requests := 0
		publisher := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests++
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(tiny.archives[0].data))
		}))
		defer publisher.Close()
		tiny.versions[0].archive.URL = publisher.URL
		f := &fetch.Fetcher{Cache: t.TempDir(), Client: offline}
		tiny.require(t, f)
		tiny.require(t, f)
		if requests != 1 {
			t.Errorf("%d requests, want 1", requests)
		}
	})
}

func TestCIFARRefusesUnpackedFiles(t *testing.T) {
	tiny := newTinyCIFAR()
	for i, version := range tiny.versions {
		for _, c := range []struct {
			name   string
			change func(contents []byte) []byte
			cause  error
		}{
			{"missing", func([]byte) []byte { return nil }, errLacking},
			{"truncated", func(b []byte) []byte { return b[:len(b)-1] }, errFileSize},
			{"longer", func(b []byte) []byte { return append(b, 0) }, errFileSize},
			{"damaged", func(b []byte) []byte { b[len(b)/2] ^= 1; return b }, ErrChecksum},
		} {
			t.Run(version.folder+" "+c.name, func(t *testing.T) {
				files := slices.Clone(tiny.contents[i])
				files[2].data = c.change(slices.Clone(files[2].data))
				if files[2].data == nil {
					files = slices.Delete(files, 2, 3)
				}
				_, _, err := tiny.load(context.Background(), folderOf(t, files...))
				var file *FileError
				if !errors.Is(err, c.cause) || !errors.As(err, &file) {
					t.Fatalf("got %v, want %v", err, c.cause)
				}
				for _, part := range []string{"batch_3", version.folder, version.archive.URL, fetch.EnvData, "unpack it again"} {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%q does not name %q", err, part)
					}
				}
			})
		}
	}
}

// Labels stand in batches of 1000.
func TestPickledBatches(t *testing.T) {
	m := someImages(2001)
	for i := range m.Labels {
		m.Labels[i] = i % 251
	}
	got := newImages("", nil, m.N)
	(&cifarSet{labelKey: "k"}).python(pickled("k", m.Labels, m.Pixels), got.Pixels, got.Labels)
	requireSameImages(t, m, got)
}

func TestCIFARRefusesArchives(t *testing.T) {
	tiny := newTinyCIFAR()
	whole := tiny.archives[0]
	_, _, err := tiny.load(context.Background(), folderOf(t, testFile{whole.name, whole.data[:len(whole.data)-100]}))
	if !errors.Is(err, fetch.ErrDamaged) || !strings.Contains(err.Error(), whole.name+" has SHA-256") || !strings.Contains(err.Error(), "remove or replace the local file") {
		t.Errorf("truncated: got %v", err)
	}
}

// The error for a set that is nowhere says what, where and what to do.
func TestCIFARNowhere(t *testing.T) {
	f := folderOf(t)
	for _, c := range []struct {
		load loadCIFAR
		says []string
	}{
		{CIFAR10, []string{"CIFAR-10", "cifar-10-batches-bin/", "cifar-10-batches-py/", "cifar-10-binary.tar.gz", "cifar-10-python.tar.gz", "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"}},
		{CIFAR100, []string{"CIFAR-100", "cifar-100-binary/", "cifar-100-python/", "cifar-100-binary.tar.gz", "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz"}},
	} {
		t.Run(c.says[0], func(t *testing.T) {
			_, _, err := c.load(context.Background(), f)
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range append(c.says, f.Folder, f.Cache, fetch.EnvData) {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not name %q", err, part)
				}
			}
		})
	}
}

func TestCIFARCancelled(t *testing.T) {
	tiny := newTinyCIFAR()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, files := range [][]testFile{tiny.contents[0], tiny.archives[:1]} {
		if _, _, err := tiny.load(ctx, folderOf(t, files...)); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
}

// Both versions of the real files are read alike; their names of classes are
// those of this package; every class has its number of images.
func TestRealCIFAR(t *testing.T) {
	for _, c := range []struct {
		set         *cifarSet
		text        string
		train, test int // images of a class
	}{
		{&cifar10, "batches.meta.txt", 5000, 1000},
		{&cifar100, "fine_label_names.txt", 500, 100},
	} {
		t.Run(c.set.name, func(t *testing.T) {
			binary, python := c.set.versions[0], c.set.versions[1]
			f := realFiles(t, binary.folder)
			train, test := must.Get2(c.set.load(context.Background(), f))(t)
			for _, part := range []struct {
				images    *Images
				perClass  int
				wantTotal int
			}{{train, c.train, 50000}, {test, c.test, 10000}} {
				counts := make([]int, len(part.images.Classes))
				for _, label := range part.images.Labels {
					counts[label]++
				}
				if part.images.N != part.wantTotal || slices.Min(counts) != part.perClass || slices.Max(counts) != part.perClass {
					t.Errorf("%s: %d images, of the classes %v", part.images.Name, part.images.N, counts)
				}
			}
			text := must.Get(os.ReadFile(filepath.Join(f.Folder, binary.folder, c.text)))(t)
			if got := strings.Fields(string(text)); !slices.Equal(got, c.set.classes) {
				t.Errorf("classes %q, in %s %q", c.set.classes, c.text, got)
			}

			f = realFiles(t, binary.folder, python.folder)
			paths := must.Get(python.unpacked(f))(t)
			train2, test2 := must.Get2(c.set.readFolder(context.Background(), python, paths))(t)
			requireSameImages(t, train, train2)
			requireSameImages(t, test, test2)
		})
	}
}

// A real file with one changed byte is found out by name.
func TestRealCIFARDamaged(t *testing.T) {
	version := cifar10.versions[0]
	f := realFiles(t, version.folder)
	folder := t.TempDir()
	must.Do(t, os.Mkdir(filepath.Join(folder, version.folder), 0o755))
	for i, file := range version.files {
		contents := must.Get(os.ReadFile(filepath.Join(f.Folder, version.folder, file.name)))(t)
		if i == 3 {
			contents[12345678] ^= 1
		}
		must.Do(t, os.WriteFile(filepath.Join(folder, version.folder, file.name), contents, 0o644))
	}
	f.Folder = folder
	_, _, err := CIFAR10(context.Background(), f)
	var file *FileError
	if !errors.As(err, &file) || filepath.Base(file.File) != "data_batch_4.bin" || !errors.Is(err, ErrChecksum) {
		t.Errorf("got %v", err)
	}
}
