package npz

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"densityuncertainty/environment/must"
)

// npy builds one .npy file in format version 1.
func npy(t *testing.T, descr, shape string, fortran string, values any) []byte {
	t.Helper()
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", descr, fortran, shape)
	for (10+len(header)+1)%64 != 0 {
		header += " "
	}
	header += "\n"
	var b bytes.Buffer
	b.WriteString("\x93NUMPY\x01\x00")
	for _, v := range []any{uint16(len(header)), []byte(header), values} {
		must.Do(t, binary.Write(&b, binary.LittleEndian, v))
	}
	return b.Bytes()
}

func archive(t *testing.T, members map[string][]byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "case.npz")
	f := must.Get(os.Create(path))(t)
	w := zip.NewWriter(f)
	for name, body := range members {
		m := must.Get(w.Create(name))(t)
		if _, err := m.Write(body); err != nil {
			t.Fatal(err)
		}
	}
	must.Do(t, errors.Join(w.Close(), f.Close()))
	return path
}

func TestOpenReadsEveryType(t *testing.T) {
	path := archive(t, map[string][]byte{
		"f4.npy":     npy(t, "<f4", "(2, 3)", "False", []float32{1, 2.5, -3, 0.1, 5, 6}),
		"f8.npy":     npy(t, "<f8", "(2,)", "False", []float64{math.Pi, math.Inf(-1)}),
		"i4.npy":     npy(t, "<i4", "(1,)", "False", []int32{-7}),
		"i8.npy":     npy(t, "<i8", "(2,)", "False", []int64{-1, 9}),
		"b1.npy":     npy(t, "|b1", "(3,)", "False", []bool{true, false, true}),
		"u1.npy":     npy(t, "|u1", "(1,)", "False", []uint8{255}),
		"scalar.npy": npy(t, "<f8", "()", "False", []float64{4}),
		"empty.npy":  npy(t, "<f8", "(0, 3)", "False", []float64{}),
	})
	a := must.Get(Open(path))(t)
	for _, c := range []struct {
		name  string
		data  []float64
		shape []int
	}{
		{"f4", []float64{1, 2.5, -3, float64(float32(0.1)), 5, 6}, []int{2, 3}},
		{"f8", []float64{math.Pi, math.Inf(-1)}, []int{2}},
		{"i4", []float64{-7}, []int{1}},
		{"i8", []float64{-1, 9}, []int{2}},
		{"b1", []float64{1, 0, 1}, []int{3}},
		{"u1", []float64{255}, []int{1}},
		{"scalar", []float64{4}, []int{}},
		{"empty", nil, []int{0, 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			data, shape := must.Get2(a.Float64(c.name))(t)
			if !reflect.DeepEqual(data, c.data) || !reflect.DeepEqual(shape, c.shape) {
				t.Errorf("got %v %v, want %v %v", data, shape, c.data, c.shape)
			}
			if !a.Has(c.name) || a.Has(c.name+"?") {
				t.Error("Has is wrong")
			}
		})
	}
	if v, err := a.Scalar("scalar"); err != nil || v != 4 {
		t.Errorf("Scalar = %v, %v", v, err)
	}
	if _, err := a.Scalar("f4"); err == nil {
		t.Error("Scalar accepted six values")
	}
	if v, _, err := a.Ints("i8"); err != nil || !reflect.DeepEqual(v, []int{-1, 9}) {
		t.Errorf("Ints = %v, %v", v, err)
	}
	if _, _, err := a.Ints("f4"); err == nil {
		t.Error("Ints accepted 2.5")
	}
	if _, _, err := a.Float64("missing"); err == nil || !strings.Contains(err.Error(), "it holds b1, ") {
		t.Errorf("missing array: %v", err)
	}
}

func TestOpenRejects(t *testing.T) {
	good := npy(t, "<f8", "(2,)", "False", []float64{1, 2})
	for _, c := range []struct {
		says, member string
		content      []byte
	}{
		{"magic number", "a.npy", []byte("this is not an array")},
		{"need 16 bytes", "a.npy", good[:len(good)-1]},
		{"not supported", "a.npy", npy(t, "<c8", "(1,)", "False", []float64{1})},
		{"big-endian", "a.npy", npy(t, ">f8", "(1,)", "False", []float64{1})},
		{"Fortran order", "a.npy", npy(t, "<f8", "(1, 1)", "True", []float64{1})},
		{"not an .npy", "a.txt", good},
		{"shape (4294967296, 4294967296) is too large", "a.npy", npy(t, "<f8", "(4294967296, 4294967296)", "False", []float64{})},
		{"version 4", "a.npy", append([]byte("\x93NUMPY\x04"), good[7:]...)},
		{"bool 1 is 2", "a.npy", npy(t, "|b1", "(2,)", "False", []uint8{1, 2})},
		{"too large", "a.npy", npy(t, "<i8", "(1,)", "False", []int64{math.MaxInt64})},
	} {
		t.Run(c.says, func(t *testing.T) {
			if _, err := Open(archive(t, map[string][]byte{c.member: c.content})); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("want an error with %q, got %v", c.says, err)
			}
		})
	}
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for range 2 {
		m := must.Get(w.Create("a.npy"))(t)
		must.Get(m.Write(good))(t)
	}
	must.Do(t, w.Close())
	twice := filepath.Join(t.TempDir(), "twice.npz")
	must.Do(t, os.WriteFile(twice, b.Bytes(), 0o600))
	if _, err := Open(twice); err == nil || !strings.Contains(err.Error(), `"a.npy" is there twice`) {
		t.Errorf("a member twice: %v", err)
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none.npz")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}

// FuzzDecode holds the decoder to an error, or to an array that has as many values as its shape says.
func FuzzDecode(f *testing.F) {
	for _, c := range []struct {
		descr, shape, body string
	}{
		{"<f8", "(1, 1)", "01234567"}, {"<i8", "()", "\x01\x00\x00\x00\x00\x00\x00\x00"}, {"<f4", "(0, 9)", ""}, {"|b1", "(2,)", "\x00\x01"},
		{"<i4", "(4294967296, 4294967296)", ""}, {">f8", "(1,)", "01234567"}, {"<u1", "(3,)", "abc"},
	} {
		header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", c.descr, c.shape)
		f.Add(byte(1), header, c.body)
		f.Add(byte(3), header, c.body)
	}
	f.Fuzz(func(t *testing.T, version byte, header, body string) {
		raw := []byte{0x93, 'N', 'U', 'M', 'P', 'Y', version, 0}
		if version >= 2 {
			raw = binary.LittleEndian.AppendUint32(raw, uint32(len(header)))
		} else {
			raw = binary.LittleEndian.AppendUint16(raw, uint16(len(header)))
		}
		a, err := decodeNPY(append(append(raw, header...), body...))
		if err != nil {
			return
		}
		n := 1
		for _, d := range a.shape {
			n *= d
		}
		if len(a.data) != n || n > len(body) || version < 1 || version > 3 {
			t.Errorf("%d values of shape %v from %d bytes of version %d", len(a.data), a.shape, len(body), version)
		}
	})
}
