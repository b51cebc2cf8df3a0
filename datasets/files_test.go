package datasets

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"densityuncertainty/datasets/fetch"
	"densityuncertainty/environment/must"
)

// testFile is a file with its path in a folder or an archive.
type testFile struct {
	name string
	data []byte
}

// folderOf writes files into a new folder and returns a fetcher that looks there
// and nowhere else.
func folderOf(t *testing.T, files ...testFile) *fetch.Fetcher {
	t.Helper()
	folder := t.TempDir()
	for _, file := range files {
		path := filepath.Join(folder, filepath.FromSlash(file.name))
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, file.data, 0o644)))
	}
	return &fetch.Fetcher{Folder: folder, Cache: t.TempDir(), Client: offline}
}

// realFiles returns a fetcher of the official files in the folder named by
// DENSITYUNCERTAINTY_DATA, which goes nowhere else. It skips the test if one of
// the files is not there.
func realFiles(t testing.TB, names ...string) *fetch.Fetcher {
	t.Helper()
	folder := os.Getenv(fetch.EnvData)
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(folder, name)); folder == "" || err != nil {
			t.Skipf("needs %s in the folder that %s names; it is %q", name, fetch.EnvData, folder)
		}
	}
	return &fetch.Fetcher{Folder: folder, Cache: t.TempDir(), Client: offline}
}

// offline knows no host but this machine, so that no test leaves it.
var offline = &http.Client{Transport: localTransport{}}

type localTransport struct{}

func (localTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Hostname() != "127.0.0.1" {
		return nil, &net.DNSError{Err: "no such host", Name: r.URL.Hostname(), IsNotFound: true}
	}
	return http.DefaultTransport.RoundTrip(r)
}

// loadCIFAR is CIFAR10 or CIFAR100.
type loadCIFAR func(context.Context, *fetch.Fetcher) (train, test *Images, err error)

// tarOf packs files into an archive, which begins with an entry for a folder.
func tarOf(files ...testFile) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	panicOn(w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "folder/", Mode: 0o755}))
	for _, f := range files {
		panicOn(w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.name, Size: int64(len(f.data)), Mode: 0o644}))
		_, err := w.Write(f.data)
		panicOn(err)
	}
	panicOn(w.Close())
	return b.Bytes()
}

func gzipped(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(data)
	panicOn(errors.Join(err, w.Close()))
	return b.Bytes()
}

// pickled writes a dictionary of labels and pixels as Python 2 did in protocol 2.
func pickled(key string, labels []int, pixels []byte) []byte {
	out := fmt.Appendf(nil, "\x80\x02}q\x01(U%c%sq\x02]r\x03\x00\x01\x00", len(key), key)
	for batch := range slices.Chunk(labels, 1000) {
		out = append(out, '(')
		for _, label := range batch {
			out = append(out, 'K', byte(label))
		}
		out = append(out, 'e')
	}
	out = append(out, "U\x04dataq\x04cnumpy.core.multiarray\n_reconstruct\nq\x05T"...)
	out = append(binary.LittleEndian.AppendUint32(out, uint32(len(pixels))), pixels...)
	return append(out, "tbu."...)
}

// matVariable is an array of bytes of a MATLAB file, in column-major order. class is
// MATLAB's: 6 for double precision, 9 for unsigned bytes; doubles that all are small
// whole numbers are stored as bytes there.
type matVariable struct {
	name  string
	class byte
	dims  []int
	data  []byte
	plain bool // not compressed
}

// Types of data elements, by their names in MATLAB's description of the format.
const miINT8, miUINT8, miINT32, miUINT32, miMATRIX = 1, 2, 5, 6, 14

// matOf writes a MATLAB file of version 5.
func matOf(variables ...matVariable) []byte {
	out := fmt.Appendf(nil, "%-124s\x00\x01IM", "MATLAB 5.0 MAT-file")
	for _, v := range variables {
		if v.plain {
			out = append(out, v.matrix()...)
		} else {
			out = append(out, matPacked(v.matrix())...)
		}
	}
	return out
}

// matPacked makes a compressed element of data.
// Compressed elements, alone of all, are not padded.
func matPacked(data []byte) []byte {
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	_, err := z.Write(data)
	panicOn(errors.Join(err, z.Close()))
	return append(words(miCOMPRESSED, packed.Len()), packed.Bytes()...)
}

func (v matVariable) matrix() []byte {
	parts := slices.Concat(matElement(miUINT32, words(int(v.class), 0)), matElement(miINT32, words(v.dims...)), matElement(miINT8, []byte(v.name)))
	return matElement(miMATRIX, append(parts, matElement(miUINT8, v.data)...))
}

// matElement writes a type, a size and data padded to a multiple of eight bytes. Up
// to four bytes of data go into the place of the size.
func matElement(kind int, data []byte) []byte {
	if n := len(data); 0 < n && n <= 4 {
		return append(words(n<<16|kind), append(slices.Clone(data), 0, 0, 0)[:4]...)
	}
	out := append(words(kind, len(data)), data...)
	return append(out, make([]byte, -len(data)&7)...)
}

func words(values ...int) []byte {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return b
}

func panicOn(err error) {
	if err != nil {
		panic(err) // writing to memory does not fail
	}
}
