package tarball

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"densityuncertainty/datasets/internal/imagefiles"
	"densityuncertainty/datasets/internal/parse"
)

var (
	one   = imagefiles.File{Name: "set/one.bin", Data: []byte("abc")}
	two   = imagefiles.File{Name: "./set/two.bin", Data: bytes.Repeat([]byte("x"), 1000)}
	sizes = map[string]int64{"set/one.bin": 3, "set/two.bin": 1000}
)

func TestEach(t *testing.T) {
	other := imagefiles.File{Name: "set/readme.html", Data: []byte("hello")}
	var got []string
	err := Each(bytes.NewReader(imagefiles.Tar(one, other, two)), sizes, func(name string, contents []byte) error {
		got = append(got, fmt.Sprint(name, " ", len(contents), " ", string(contents[:1])))
		return nil
	})
	if want := []string{"set/one.bin 3 a", "set/two.bin 1000 x"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, error %v; want %q", got, err, want)
	}
}

func TestEachRefuses(t *testing.T) {
	whole := imagefiles.Tar(one, two)
	damaged := slices.Clone(whole)
	damaged[512+10] ^= 1 // in the header of the first file
	stop := errors.New("stop")
	for _, c := range []struct {
		name    string
		archive []byte
		visit   error
		cause   error
	}{
		{"empty", nil, nil, ErrMissing},
		{"a file missing", imagefiles.Tar(one), nil, ErrMissing},
		{"a file twice", imagefiles.Tar(one, two, one), nil, ErrTwice},
		{"a longer file", imagefiles.Tar(one, imagefiles.File{Name: "set/two.bin", Data: make([]byte, 1001)}), nil, ErrSize},
		{"cut in a file", whole[:512+1024+512+999], nil, io.ErrUnexpectedEOF},
		{"cut in a header", whole[:512+100], nil, io.ErrUnexpectedEOF},
		{"a damaged header", damaged, nil, tar.ErrHeader},
		{"no archive", bytes.Repeat([]byte("<html>"), 200), nil, tar.ErrHeader},
		{"a file refused", whole, stop, stop},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Each(bytes.NewReader(c.archive), sizes, func(string, []byte) error { return c.visit })
			if !errors.Is(err, c.cause) {
				t.Errorf("got %v, want cause %v", err, c.cause)
			}
		})
	}
}

// A symbolic link with the name of a wanted file is not that file.
func TestEachRefusesLinks(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := errors.Join(w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "set/one.bin", Linkname: "/etc/passwd"}), w.Close()); err != nil {
		t.Fatal(err)
	}
	err := Each(&b, map[string]int64{"set/one.bin": 0}, func(string, []byte) error { return nil })
	if !errors.Is(err, ErrSize) {
		t.Errorf("got %v", err)
	}
}

// FuzzEach holds the walk to visiting each wanted file once with its size, or to
// an error.
func FuzzEach(f *testing.F) {
	small := map[string]int64{"a": 3, "d/b": 0, "d/c": 600}
	a := imagefiles.File{Name: "a", Data: []byte("abc")}
	b := imagefiles.File{Name: "./d/b"}
	c := imagefiles.File{Name: "d/c", Data: make([]byte, 600)}
	f.Add(imagefiles.Tar(a, b, c))
	f.Add(imagefiles.Tar(c, a))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, archive []byte) {
		visited := map[string]bool{}
		err := Each(bytes.NewReader(archive), small, func(name string, contents []byte) error {
			size, wanted := small[name]
			if !wanted || visited[name] || int64(len(contents)) != size {
				t.Fatalf("visited %q with %d bytes", name, len(contents))
			}
			visited[name] = true
			return nil
		})
		var at *parse.Error
		if errors.As(err, &at) && (at.Offset < 0 || at.Offset > int64(len(archive))) {
			t.Fatalf("%v in an archive of %d bytes", err, len(archive))
		}
		if err == nil && len(visited) != len(small) {
			t.Fatalf("visited %v", visited)
		}
	})
}
