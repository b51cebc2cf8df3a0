package datasets

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"testing"

	"densityuncertainty/datasets/fetch"
	"densityuncertainty/environment/must"
)

// tinyCIFAR is a set of the form of CIFAR-10 with three training files of two
// images and a test file, together with its archive and its files.
type tinyCIFAR struct {
	cifarSet
	packed testFile
	files  []testFile
	images *Images // training images, then test images
}

func newTinyCIFAR() *tinyCIFAR {
	tiny := &tinyCIFAR{
		cifarSet: cifarSet{name: "tiny", classes: []string{"a", "b", "c"}, labelKey: "classes", folder: "tiny-py"},
		images:   someImages(8),
	}
	for i := range tiny.images.Labels {
		tiny.images.Labels[i] = i % 3
	}
	for i, name := range []string{"batch_1", "batch_2", "batch_3", "test"} {
		part := tiny.images.Take([]int{2 * i, 2*i + 1})
		contents := pickled("classes", part.Labels, part.Pixels)
		sum := md5.Sum(contents)
		tiny.cifarSet.files = append(tiny.cifarSet.files, cifarFile{name, hex.EncodeToString(sum[:]), 2, name == "test"})
		tiny.files = append(tiny.files, testFile{"tiny-py/" + name, contents})
	}
	tiny.packed = testFile{"tiny-py.tar.gz", gzipped(tarOf(tiny.files...))}
	sum := sha256.Sum256(tiny.packed.data)
	tiny.archive = fetch.File{Name: tiny.packed.name, URL: "http://127.0.0.1:1/" + tiny.packed.name, Size: int64(len(tiny.packed.data)), SHA256: hex.EncodeToString(sum[:])}
	return tiny
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
	t.Run("folder", func(t *testing.T) { tiny.require(t, folderOf(t, tiny.files...)) })
	t.Run("archive", func(t *testing.T) { tiny.require(t, folderOf(t, tiny.packed)) })
}

func TestCIFARRefusesUnpackedFiles(t *testing.T) {
	tiny := newTinyCIFAR()
	for _, c := range []struct {
		name   string
		change func(contents []byte) []byte
		want   string
	}{
		{"missing", func([]byte) []byte { return nil }, "no such file"},
		{"damaged", func(b []byte) []byte { b[len(b)/2] ^= 1; return b }, "has the MD5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := slices.Clone(tiny.files)
			files[2].data = c.change(slices.Clone(files[2].data))
			if files[2].data == nil {
				files = slices.Delete(files, 2, 3)
			}
			_, _, err := tiny.load(t.Context(), folderOf(t, files...))
			must.Err(t, err, c.want, "batch_3", tiny.folder, tiny.archive.URL, fetch.EnvData, "unpack it again")
		})
	}
}

// Labels stand in batches of 1000.
func TestPickledBatches(t *testing.T) {
	m := someImages(2001)
	for i := range m.Labels {
		m.Labels[i] = i % 251
	}
	got := newImages("", nil, 0)
	(&cifarSet{labelKey: "k"}).read(pickled("k", m.Labels, m.Pixels), m.N, got)
	requireSameImages(t, m, got)
}

// The error for a set that is nowhere says what, where and what to do.
func TestCIFARNowhere(t *testing.T) {
	f := folderOf(t)
	for _, c := range []struct {
		load loadCIFAR
		says []any
	}{
		{CIFAR10, []any{"CIFAR-10", "cifar-10-batches-py/", "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"}},
		{CIFAR100, []any{"CIFAR-100", "cifar-100-python/", "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz"}},
	} {
		t.Run(c.says[0].(string), func(t *testing.T) {
			_, _, err := c.load(context.Background(), f)
			must.Err(t, err, append(c.says, f.Folder, f.Cache, fetch.EnvData)...)
		})
	}
}

// Every class of the real files has its number of images.
func TestRealCIFAR(t *testing.T) {
	for _, c := range []struct {
		set         *cifarSet
		train, test int // images of a class
	}{{&cifar10, 5000, 1000}, {&cifar100, 500, 100}} {
		t.Run(c.set.name, func(t *testing.T) {
			train, test := must.Get2(c.set.load(t.Context(), realFiles(t, c.set.folder)))(t)
			for _, part := range []struct {
				images              *Images
				perClass, wantTotal int
			}{{train, c.train, 50000}, {test, c.test, 10000}} {
				counts := make([]int, len(part.images.Classes))
				for _, label := range part.images.Labels {
					counts[label]++
				}
				if part.images.N != part.wantTotal || slices.Min(counts) != part.perClass || slices.Max(counts) != part.perClass {
					t.Errorf("%s: %d images, of the classes %v", part.images.Name, part.images.N, counts)
				}
			}
		})
	}
}
