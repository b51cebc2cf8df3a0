package datasets

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

	"densityuncertainty/environment/must"
)

var (
	matX = matVariable{name: "X", class: 9, dims: []int{2, 3, 2}, data: []byte("abcdefghijkl")}
	matY = matVariable{name: "labels", class: 6, dims: []int{3, 1}, data: []byte{1, 2, 10}}
	matZ = matVariable{name: "z", class: 6, dims: []int{1, 2}, data: []float64{-0.5, 1e300}}
)

func TestReadMAT(t *testing.T) {
	for _, plain := range []bool{false, true} {
		x, y, z := matX, matY, matZ
		x.plain, y.plain = plain, plain
		arrays, err := readMAT(bytes.NewReader(matOf(x, y, z)), 1000)
		if err != nil || len(arrays) != 3 {
			t.Fatalf("%d arrays, error %v", len(arrays), err)
		}
		for _, v := range []matVariable{x, y, z} {
			a := arrays[v.name]
			got, err := a.bytes()
			var want []float64
			if data, ok := v.data.([]byte); !ok {
				want = v.data.([]float64)
				if err == nil {
					t.Errorf("%s: bytes of an array of double precision", v.name)
				}
			} else {
				for _, b := range data {
					want = append(want, float64(b))
				}
				if err != nil || !bytes.Equal(got, data) {
					t.Errorf("%s: %q, error %v", v.name, got, err)
				}
			}
			if !slices.Equal(a.dims, v.dims) || !slices.Equal(a.float64s(), want) {
				t.Errorf("%s: %v of dimensions %v", v.name, a.float64s(), a.dims)
			}
		}
	}
}

// patched returns a file with one uncompressed variable and another byte at a
// place.
func patched(v matVariable, at int, b byte) []byte {
	v.plain = true
	file := matOf(v)
	file[at] = b
	return file
}

func TestReadMATRefuses(t *testing.T) {
	plain, other := matX, matY
	plain.plain, other.plain = true, true
	matrix := plain.matrix()
	longer := matOf(plain)
	longer = append(longer, make([]byte, 8)...)
	binary.LittleEndian.PutUint32(longer[132:], uint32(len(longer)-136))
	var many []matVariable
	for i := range 20 {
		v := matX
		v.name = string(rune('A' + i))
		many = append(many, v)
	}
	badSum := matOf(matX)
	badSum[len(badSum)-1] ^= 1
	// The parts of an uncompressed X start at 128: tag 128, flags 136, dimensions
	// 152, name 176, entries 184.
	for _, c := range []struct {
		name  string
		file  []byte
		says  string
		cause error
	}{
		{"empty", nil, "header", errMATFormat},
		{"a text", []byte(strings.Repeat("<html>", 100)), "header", errMATFormat},
		{"version 7.3", append([]byte(strings.Repeat(" ", 124)), 0, 2, 'I', 'M'), "00 02", errMATFormat},
		{"big-endian", append([]byte(strings.Repeat(" ", 124)), 1, 0, 'M', 'I'), "little-endian", errMATFormat},
		{"cut in the header", matOf(plain)[:100], "header", io.ErrUnexpectedEOF},
		{"cut in a tag", matOf(plain)[:130], "array 1", io.ErrUnexpectedEOF},
		{"cut in a matrix", matOf(plain)[:200], "array 1", io.ErrUnexpectedEOF},
		{"cut after a tag", matOf(plain)[:136], "array 1", io.ErrUnexpectedEOF},
		{"cut in compressed data", matOf(matX)[:150], "array 1", io.ErrUnexpectedEOF},
		{"cut in the second array", matOf(matX, plain)[:len(matOf(matX))+20], "array 2", io.ErrUnexpectedEOF},
		{"a wrong checksum", badSum, "array 1", zlib.ErrChecksum},
		{"an element of another type", patched(matX, 128, 13), "type 13", errUnsupported},
		{"packed twice", append(matOf(), matPacked(matPacked(matrix, nil), nil)...), "type 15", errUnsupported},
		{"a cell array", patched(matX, 144, 1), "class 1", errUnsupported},
		{"complex numbers", patched(matX, 145, 8), "flags 0x8", errUnsupported},
		{"no flags", patched(matX, 136, 5), "flags", errMATFormat},
		{"an odd size of dimensions", patched(matX, 156, 11), "11 of dimensions", errMATFormat},
		{"a negative dimension", patched(matX, 163, 0x80), "dimension", errSizes},
		{"more entries than there are", patched(matX, 161, 4), "dimension", errSizes},
		{"dimensions beyond all bounds", matOf(matVariable{name: "X", class: 9, dims: []int{1 << 30, 1 << 30, 1 << 30}, data: []byte("abcdefgh")}), `"X"`, errSizes},
		{"a long name", patched(matX, 178, 9), "9 bytes packed", errMATFormat},
		{"numbers of another type", patched(matX, 184, 3), "type 3", errUnsupported},
		{"another number of entries", patched(matX, 188, 11), "11 bytes", errSizes},
		{"a part longer than the matrix", patched(matX, 188, 100), "100 bytes", errSizes},
		{"doubles of the length of bytes", patched(matZ, 160, 2), "16 bytes", errSizes},
		{"something after the entries", append(longer, other.matrix()...), "8 follow", errSizes},
		{"something after the matrix", append(matOf(), matPacked(append(slices.Clone(matrix), 0), nil)...), "after the matrix", errSizes},
		{"something after the packed data", append(matOf(), matPacked(matrix, make([]byte, 9))...), "after the matrix", errSizes},
		{"a name twice", matOf(matX, matY, matX), `array 3 of the file, "X"`, errMATFormat},
		{"more than allowed", matOf(matVariable{name: "X", class: 9, dims: []int{1, 1000}, data: make([]byte, 1000)}), "allowed", errLimit},
		{"more than allowed in all", matOf(many...), "allowed", errLimit},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := readMAT(bytes.NewReader(c.file), 1000); !errors.Is(err, c.cause) || !strings.Contains(err.Error(), c.says) || strings.Count(err.Error(), c.cause.Error()) != 1 {
				t.Errorf("got %v, want %v, once, that says %q", err, c.cause, c.says)
			}
		})
	}
}

// Every byte of a compressed file matters: a changed one is an error, or the
// same arrays (unused header text).
func TestMATDamageShows(t *testing.T) {
	file := matOf(matX, matY)
	want := must.Get(readMAT(bytes.NewReader(file), 1000))(t)
	for i := 124; i < len(file); i++ {
		damaged := slices.Clone(file)
		damaged[i] ^= 0x10
		if got, err := readMAT(bytes.NewReader(damaged), 1000); err == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("byte %d changed: read without error", i)
		}
	}
}

// FuzzReadMAT mutates a file as it is, and the inside of a compressed element, which
// mutation of the packed bytes would not get to. It holds readMAT to an error, or to
// arrays whose sizes agree and keep to the limit.
func FuzzReadMAT(f *testing.F) {
	for _, v := range []matVariable{matX, matY, matZ} {
		f.Add(matOf(v), false)
		v.plain = true
		f.Add(matOf(v), false)
		f.Add(v.matrix(), true)
	}
	f.Fuzz(func(t *testing.T, file []byte, pack bool) {
		if pack {
			file = append(matOf(), matPacked(file, nil)...)
		}
		arrays, err := readMAT(bytes.NewReader(file), 1000)
		if err != nil {
			return
		}
		total := 0
		for _, a := range arrays {
			total += len(a.data)
			if b, err := a.bytes(); err == nil && len(b) != a.len() || len(a.dims) < 2 || len(a.float64s()) != a.len() {
				t.Fatalf("%d bytes of dimensions %v", len(b), a.dims)
			}
		}
		if total > 1000 {
			t.Fatalf("%d bytes of entries", total)
		}
	})
}
