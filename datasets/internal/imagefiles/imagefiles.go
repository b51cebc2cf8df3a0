// Package imagefiles writes small files in the official formats of the image
// sets, for tests of what reads them.
package imagefiles

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// Pickle writes values as Python 2 did in protocol 2. It knows strings,
// integers from 0 to 255, lists of them, and [Pixels].
func Pickle(dict ...Entry) []byte {
	p := &pickler{}
	p.out.WriteString("\x80\x02}")
	p.put()
	p.out.WriteByte('(')
	for _, e := range dict {
		p.value(e.Key)
		p.value(e.Value)
	}
	p.out.WriteString("u.")
	return p.out.Bytes()
}

// An Entry is a key of a dictionary and its value.
type Entry struct {
	Key   string
	Value any
}

// Pixels is an array of bytes with the given number of columns.
type Pixels struct {
	Columns int
	Data    []byte
}

type pickler struct {
	out   bytes.Buffer
	noted int
}

// put notes the value just written, as Python does with every value that could
// occur again.
func (p *pickler) put() {
	p.noted++
	if p.noted < 256 {
		p.out.Write([]byte{'q', byte(p.noted)})
		return
	}
	p.out.WriteByte('r')
	p.uint32(p.noted)
}

func (p *pickler) uint32(v int) {
	p.out.Write(binary.LittleEndian.AppendUint32(nil, uint32(v)))
}

func (p *pickler) value(v any) {
	switch v := v.(type) {
	case string:
		p.out.Write([]byte{'U', byte(len(v))})
		p.out.WriteString(v)
		p.put()
	case int:
		p.out.Write([]byte{'K', byte(v)})
	case []string:
		list(p, v)
	case []int:
		list(p, v)
	case Pixels:
		p.pixels(v)
	default:
		panic(fmt.Sprintf("imagefiles: a %T", v))
	}
}

func list[T any](p *pickler, items []T) {
	p.out.WriteByte(']')
	p.put()
	for batch := range slices.Chunk(items, 1000) {
		p.out.WriteByte('(')
		for _, item := range batch {
			p.value(item)
		}
		p.out.WriteByte('e')
	}
}

// pixels writes the calls with which NumPy rebuilds an array of unsigned bytes.
func (p *pickler) pixels(v Pixels) {
	p.out.WriteString("cnumpy.core.multiarray\n_reconstruct\n")
	p.put()
	p.out.WriteString("cnumpy\nndarray\n")
	p.put()
	p.out.WriteString("K\x00\x85U\x01b\x87R")
	p.put()
	p.out.WriteString("(K\x01")
	for _, n := range []int{len(v.Data) / v.Columns, v.Columns} {
		p.out.WriteByte('M')
		p.out.Write(binary.LittleEndian.AppendUint16(nil, uint16(n)))
	}
	p.out.WriteString("\x86cnumpy\ndtype\n")
	p.put()
	p.out.WriteString("U\x02u1K\x00K\x01\x87R")
	p.put()
	p.out.WriteString("(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T")
	p.uint32(len(v.Data))
	p.out.Write(v.Data)
	p.out.WriteString("tb")
}

// A File is a member of an archive.
type File struct {
	Name string
	Data []byte
}

// Tar packs files into an archive, which begins with an entry for a folder.
func Tar(files ...File) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	must(w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "folder/", Mode: 0o755}))
	for _, f := range files {
		must(w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.Name, Size: int64(len(f.Data)), Mode: 0o644}))
		_, err := w.Write(f.Data)
		must(err)
	}
	must(w.Close())
	return b.Bytes()
}

// Gzip compresses data.
func Gzip(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(data)
	must(err)
	must(w.Close())
	return b.Bytes()
}

// A Variable is a numeric array of a MATLAB file. Data is []byte or []float64 in
// column-major order. Class is MATLAB's: 6 for double precision, 9 for unsigned
// bytes; doubles that all are small whole numbers are stored as bytes there.
type Variable struct {
	Name  string
	Class byte
	Dims  []int
	Data  any
	Plain bool // not compressed
}

// Types of elements of a MATLAB file.
const (
	miINT8       = 1
	miUINT8      = 2
	miINT32      = 5
	miUINT32     = 6
	miDOUBLE     = 9
	miMATRIX     = 14
	miCOMPRESSED = 15
)

// MAT writes a MATLAB file of version 5.
func MAT(variables ...Variable) []byte {
	out := fmt.Appendf(nil, "%-124s\x00\x01IM", "MATLAB 5.0 MAT-file")
	for _, v := range variables {
		if v.Plain {
			out = append(out, v.matrix()...)
			continue
		}
		var packed bytes.Buffer
		z := zlib.NewWriter(&packed)
		_, err := z.Write(v.matrix())
		must(err)
		must(z.Close())
		// Compressed elements, alone of all, are not padded.
		out = append(append(out, words(miCOMPRESSED, packed.Len())...), packed.Bytes()...)
	}
	return out
}

func (v Variable) matrix() []byte {
	parts := element(miUINT32, words(int(v.Class), 0))
	parts = append(parts, element(miINT32, words(v.Dims...))...)
	parts = append(parts, element(miINT8, []byte(v.Name))...)
	switch data := v.Data.(type) {
	case []byte:
		parts = append(parts, element(miUINT8, data)...)
	case []float64:
		var b []byte
		for _, x := range data {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		}
		parts = append(parts, element(miDOUBLE, b)...)
	default:
		panic(fmt.Sprintf("imagefiles: a variable of %T", data))
	}
	return element(miMATRIX, parts)
}

// element writes a type, a size and data padded to a multiple of eight bytes. Up
// to four bytes of data go into the place of the size.
func element(kind int, data []byte) []byte {
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

func must(err error) {
	if err != nil {
		panic(err) // writing to memory does not fail
	}
}
