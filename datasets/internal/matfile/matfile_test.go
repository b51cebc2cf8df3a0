package matfile

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/datasets/internal/imagefiles"
	"densityuncertainty/datasets/internal/parse"
)

var (
	x = imagefiles.Variable{Name: "X", Class: 9, Dims: []int{2, 3, 2}, Data: []byte("abcdefghijkl")}
	y = imagefiles.Variable{Name: "labels", Class: 6, Dims: []int{3, 1}, Data: []byte{1, 2, 10}}
	z = imagefiles.Variable{Name: "z", Class: 6, Dims: []int{1, 2}, Data: []float64{-0.5, 1e300}}
)

func read(file []byte) ([]Array, error) {
	return Read(bytes.NewReader(file), int64(len(file)), 1000)
}

func TestRead(t *testing.T) {
	for _, plain := range []bool{false, true} {
		x, y, z := x, y, z
		x.Plain, y.Plain, z.Plain = plain, plain, false
		arrays, err := read(imagefiles.MAT(x, y, z))
		if err != nil || len(arrays) != 3 {
			t.Fatalf("%d arrays, error %v", len(arrays), err)
		}
		for i, v := range []imagefiles.Variable{x, y, z} {
			if a := arrays[i]; a.Name != v.Name || !slices.Equal(a.Dims, v.Dims) {
				t.Errorf("%q %v, want %q %v", a.Name, a.Dims, v.Name, v.Dims)
			}
		}
		if got, err := arrays[0].Bytes(); err != nil || !reflect.DeepEqual(got, x.Data) {
			t.Errorf("%q, error %v", got, err)
		}
		if got := arrays[1].Float64s(); !slices.Equal(got, []float64{1, 2, 10}) {
			t.Errorf("%v", got)
		}
		if got := arrays[2].Float64s(); !slices.Equal(got, []float64{-0.5, 1e300}) {
			t.Errorf("%v", got)
		}
		if _, err := arrays[2].Bytes(); err == nil {
			t.Error("bytes of an array of double precision")
		}
	}
}

// patched returns a file with one uncompressed variable and another byte at a
// place.
func patched(v imagefiles.Variable, at int, b byte) []byte {
	v.Plain = true
	file := imagefiles.MAT(v)
	file[at] = b
	return file
}

func TestReadRefuses(t *testing.T) {
	compressed := imagefiles.MAT(x)
	plain := x
	plain.Plain = true
	uncompressed := imagefiles.MAT(plain)
	huge := imagefiles.MAT(imagefiles.Variable{Name: "X", Class: 9, Dims: []int{1 << 30, 1 << 30, 1 << 30}, Data: []byte("abcdefgh")})
	many := imagefiles.MAT(slices.Repeat([]imagefiles.Variable{{Name: "e", Class: 9, Dims: []int{0, 0}, Data: []byte{}, Plain: true}}, maxArrays+1)...)
	// The parts of an uncompressed X start at 128: tag 128, flags 136, dimensions
	// 152, name 176, entries 184.
	for _, c := range []struct {
		name   string
		file   []byte
		offset int64
		cause  error
	}{
		{"empty", nil, 0, io.ErrUnexpectedEOF},
		{"a text", []byte(strings.Repeat("<html>", 100)), 124, ErrFormat},
		{"version 7.3", append([]byte(strings.Repeat(" ", 124)), 0, 2, 'I', 'M'), 124, ErrFormat},
		{"big-endian", append([]byte(strings.Repeat(" ", 124)), 1, 0, 'M', 'I'), 126, ErrUnsupported},
		{"cut in the header", uncompressed[:100], 0, io.ErrUnexpectedEOF},
		{"cut in a tag", uncompressed[:130], 128, io.ErrUnexpectedEOF},
		{"cut in a matrix", uncompressed[:200], 128, io.ErrUnexpectedEOF},
		{"cut in compressed data", compressed[:150], 128, io.ErrUnexpectedEOF},
		{"an element of another type", patched(x, 128, 13), 128, ErrUnsupported},
		{"a cell array", patched(x, 144, 1), 136, ErrUnsupported},
		{"complex numbers", patched(x, 145, 8), 136, ErrUnsupported},
		{"no flags", patched(x, 136, 5), 136, ErrFormat},
		{"an odd size of dimensions", patched(x, 156, 11), 152, ErrFormat},
		{"a negative dimension", patched(x, 163, 0x80), 152, ErrLimit},
		{"more entries than allowed", patched(x, 161, 4), 152, ErrLimit},
		{"a long name", patched(x, 178, 9), 176, ErrFormat},
		{"numbers of another type", patched(x, 184, 3), 184, ErrUnsupported},
		{"another number of entries", patched(x, 188, 13), 184, ErrSize},
		{"doubles of the length of bytes", patched(z, 160, 2), 176, ErrSize},
		{"dimensions beyond all bounds", huge, 128, ErrLimit},
		{"more arrays than any file has", many, int64(headerSize + maxArrays*(len(many)-headerSize)/(maxArrays+1)), ErrLimit},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := read(c.file)
			var at *parse.Error
			if !errors.Is(err, c.cause) || !errors.As(err, &at) || at.Offset != c.offset {
				t.Errorf("got %v, want %v at byte %d", err, c.cause, c.offset)
			}
		})
	}
}

func TestLimitIsForAllArrays(t *testing.T) {
	file := imagefiles.MAT(x, y)
	if _, err := Read(bytes.NewReader(file), int64(len(file)), 15); err != nil {
		t.Errorf("exactly the limit: %v", err)
	}
	if _, err := Read(bytes.NewReader(file), int64(len(file)), 14); !errors.Is(err, ErrLimit) {
		t.Errorf("one byte beyond: %v", err)
	}
	file = imagefiles.MAT(z) // two entries, 16 bytes
	if _, err := Read(bytes.NewReader(file), int64(len(file)), 15); !errors.Is(err, ErrLimit) {
		t.Errorf("one byte beyond, in double precision: %v", err)
	}
}

// Every byte of a compressed file matters: a changed one is an error, or the
// same arrays (unused header text).
func TestDamageShows(t *testing.T) {
	file := imagefiles.MAT(x, y)
	want, err := read(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := 124; i < len(file); i++ {
		damaged := slices.Clone(file)
		damaged[i] ^= 0x10
		if got, err := read(damaged); err == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("byte %d changed: read without error", i)
		}
	}
}

// A small file cannot make the reader allocate what its compressed data could
// never expand to.
func TestInflationIsBounded(t *testing.T) {
	var inner bytes.Buffer
	for _, v := range []uint32{miMATRIX, 1 << 30, miUINT32, 8, 9, 0, miINT32, 8, 1 << 15, 1 << 14, 1<<16 | miINT8, 'X', miUINT8, 1 << 29} {
		if err := binary.Write(&inner, binary.LittleEndian, v); err != nil {
			t.Fatal(err)
		}
	}
	file := append(imagefiles.MAT(), packed(t, inner.Bytes(), nil)...)
	_, err := Read(bytes.NewReader(file), int64(len(file)), 1<<40)
	if !errors.Is(err, ErrSize) {
		t.Errorf("got %v", err)
	}
}

// Nothing may follow the parts of a matrix, the matrix in a compressed element,
// or the packed data in it.
func TestNothingIsLeftOver(t *testing.T) {
	plain, other := x, y
	plain.Plain, other.Plain = true, true
	longer := imagefiles.MAT(plain)
	longer = append(longer, make([]byte, 8)...)
	binary.LittleEndian.PutUint32(longer[132:], uint32(len(longer)-136))
	matrix := imagefiles.MAT(plain)[headerSize:]
	for _, c := range []struct {
		name string
		file []byte
	}{
		{"after the entries", append(longer, imagefiles.MAT(other)[headerSize:]...)},
		{"after the matrix", append(imagefiles.MAT(), packed(t, append(slices.Clone(matrix), 0), nil)...)},
		{"after the packed data", append(imagefiles.MAT(), packed(t, matrix, make([]byte, 9))...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := read(c.file); !errors.Is(err, ErrSize) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// packed makes a compressed element of data, with tail after the packed data.
func packed(t *testing.T, data, tail []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := zlib.NewWriterLevel(&b, zlib.NoCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	b.Write(tail)
	element := binary.LittleEndian.AppendUint32(nil, miCOMPRESSED)
	element = binary.LittleEndian.AppendUint32(element, uint32(b.Len()))
	return append(element, b.Bytes()...)
}

// FuzzRead mutates the file as it is.
func FuzzRead(f *testing.F) {
	plain := x
	plain.Plain = true
	f.Add(imagefiles.MAT(x, y))
	f.Add(imagefiles.MAT(plain, z))
	f.Fuzz(func(t *testing.T, file []byte) { requireConsistent(t, file) })
}

// FuzzElement mutates the inside of a compressed element, which mutation of the
// packed bytes would not get to.
func FuzzElement(f *testing.F) {
	for _, v := range []imagefiles.Variable{x, y, z} {
		v.Plain = true
		f.Add(imagefiles.MAT(v)[headerSize:])
	}
	f.Fuzz(func(t *testing.T, element []byte) {
		requireConsistent(t, append(imagefiles.MAT(), packed(t, element, nil)...))
	})
}

// requireConsistent holds Read to an error within the file, or to arrays whose
// sizes agree and keep to the limit.
func requireConsistent(t *testing.T, file []byte) {
	t.Helper()
	arrays, err := read(file)
	if err != nil {
		var at *parse.Error
		if !errors.As(err, &at) || at.Offset < 0 || at.Offset > int64(len(file)) || at.Err == nil {
			t.Fatalf("error %v in a file of %d bytes", err, len(file))
		}
		return
	}
	total := 0
	for _, a := range arrays {
		width := 8
		if b, err := a.Bytes(); err == nil {
			width = 1
			if len(b) != a.Len() {
				t.Fatalf("%d bytes of dimensions %v", len(b), a.Dims)
			}
		}
		if len(a.Dims) < 2 || len(a.Float64s()) != a.Len() {
			t.Fatalf("dimensions %v", a.Dims)
		}
		total += width * a.Len()
	}
	if total > 1000 {
		t.Fatalf("%d bytes of entries", total)
	}
}
