// Package matfile reads numeric arrays from MATLAB files of version 5 ("MAT
// level 5"), as far as the files of SVHN need it: little-endian, compressed or
// not, numbers stored as unsigned bytes or in double precision.
package matfile

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"densityuncertainty/datasets/internal/parse"
)

// Causes of errors, wrapped in a [*parse.Error].
var (
	ErrFormat      = errors.New("not a MATLAB file of version 5")
	ErrUnsupported = errors.New("not supported")
	ErrSize        = errors.New("sizes do not agree")
	ErrLimit       = errors.New("larger than allowed")
)

// Types of data elements, by their names in MATLAB's description of the format.
const (
	miINT8       = 1
	miUINT8      = 2
	miINT32      = 5
	miUINT32     = 6
	miDOUBLE     = 9
	miMATRIX     = 14
	miCOMPRESSED = 15
)

const (
	headerSize = 128
	tagSize    = 8
	maxDims    = 8
	maxName    = 63 // MATLAB's limit
	maxArrays  = 100
	complexBit = 0x08
	// maxInflation bounds how many bytes one byte of deflated data can stand for:
	// two bits can repeat 258 bytes.
	maxInflation = 1032
)

// Numeric array classes: double (6) to 64-bit unsigned integer (15). The classes
// below are cells, structures, objects, text and sparse matrices.
const firstNumeric, lastNumeric = 6, 15

// An Array is a numeric array. Its numbers are in column-major order: the first
// index runs fastest.
type Array struct {
	Name string
	Dims []int

	stored uint32 // type of data element
	data   []byte
}

// Len is the number of entries.
func (a *Array) Len() int {
	n := 1
	for _, d := range a.Dims {
		n *= d
	}
	return n
}

// Bytes returns the entries of an array stored as unsigned bytes, not a copy.
func (a *Array) Bytes() ([]byte, error) {
	if a.stored != miUINT8 {
		return nil, fmt.Errorf("variable %s is not stored as unsigned bytes", a.Name)
	}
	return a.data, nil
}

// Float64s returns the entries.
func (a *Array) Float64s() []float64 {
	out := make([]float64, a.Len())
	for i := range out {
		if a.stored == miUINT8 {
			out[i] = float64(a.data[i])
		} else {
			out[i] = math.Float64frombits(binary.LittleEndian.Uint64(a.data[8*i:]))
		}
	}
	return out
}

// Read reads all arrays of a file of the given size in bytes. limit bounds the
// bytes of all their entries together; a file that asks for more, or for more
// than its own size can hold, is refused before room is made for it.
//
// Errors are [*parse.Error]. Within a compressed element the offset is that of
// the element, and the message says where in the unpacked data the fault is.
func Read(file io.Reader, size, limit int64) ([]Array, error) {
	r := &reader{r: bufio.NewReaderSize(file, 1<<16), left: size}
	if err := r.header(); err != nil {
		return nil, err
	}
	var arrays []Array
	for r.left > 0 {
		start := r.at
		kind, n, err := r.tag()
		if err != nil {
			return nil, err
		}
		if n > r.left {
			return nil, parse.Errorf(start, "%w: an element of %d bytes with %d left in the file", io.ErrUnexpectedEOF, n, r.left)
		}
		var a Array
		switch kind {
		case miCOMPRESSED:
			a, err = r.compressed(n, limit)
			if err != nil {
				return nil, parse.Errorf(start, "in the unpacked element, %w", err)
			}
		case miMATRIX:
			rest := r.left - n
			a, err = r.matrix(n, limit)
			if err != nil {
				return nil, err
			}
			r.left = rest
		default:
			return nil, parse.Errorf(start, "%w: an element of type %d", ErrUnsupported, kind)
		}
		if len(arrays) == maxArrays {
			return nil, parse.Errorf(start, "%w: more than %d arrays", ErrLimit, maxArrays)
		}
		limit -= int64(len(a.data))
		arrays = append(arrays, a)
	}
	return arrays, nil
}

// reader reads little-endian data and knows where it is.
type reader struct {
	r    io.Reader
	at   int64 // offset of the next byte
	left int64 // most bytes that can follow
}

// bytes reads n bytes.
func (r *reader) bytes(n int64) ([]byte, error) {
	if n > r.left {
		return nil, parse.Errorf(r.at, "%w: %d more bytes needed, %d can follow", io.ErrUnexpectedEOF, n, r.left)
	}
	p := make([]byte, n)
	m, err := io.ReadFull(r.r, p)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, parse.Errorf(r.at+int64(m), "%w", err)
	}
	r.at += n
	r.left -= n
	return p, nil
}

// header reads the text, the version and the byte order.
func (r *reader) header() error {
	h, err := r.bytes(headerSize)
	if err != nil {
		return err
	}
	if string(h[126:]) == "MI" {
		return parse.Errorf(126, "%w: big-endian data", ErrUnsupported)
	}
	if !bytes.Equal(h[124:], []byte{0, 1, 'I', 'M'}) {
		return parse.Errorf(124, "%w: the header ends with % x", ErrFormat, h[124:])
	}
	return nil
}

// tag reads the type and the size of an element that is not a small one.
func (r *reader) tag() (kind uint32, n int64, err error) {
	tag, err := r.bytes(tagSize)
	if err != nil {
		return 0, 0, err
	}
	return binary.LittleEndian.Uint32(tag), int64(binary.LittleEndian.Uint32(tag[4:])), nil
}

// compressed reads the matrix packed in the next n bytes.
func (r *reader) compressed(n, limit int64) (Array, error) {
	// Unpacking takes no more bytes than it needs from a buffered reader, so that
	// what is left over can be seen.
	packed := bufio.NewReader(io.LimitReader(r.r, n))
	z, err := zlib.NewReader(packed)
	if err != nil {
		return Array{}, parse.Errorf(0, "%w", err)
	}
	inner := &reader{r: z, left: maxInflation * n}
	kind, size, err := inner.tag()
	if err != nil {
		return Array{}, err
	}
	if kind != miMATRIX {
		return Array{}, parse.Errorf(0, "%w: an element of type %d", ErrUnsupported, kind)
	}
	a, err := inner.matrix(size, limit)
	if err != nil {
		return Array{}, err
	}
	// Reading on to the end also compares the checksum.
	var extra [1]byte
	if m, err := io.ReadFull(z, extra[:]); m > 0 || err != io.EOF {
		return Array{}, parse.Errorf(inner.at, "%w after the matrix", errors.Join(ErrSize, err))
	}
	if _, err := packed.ReadByte(); err != io.EOF {
		return Array{}, parse.Errorf(inner.at, "%w after the packed data", errors.Join(ErrSize, err))
	}
	r.at += n
	r.left -= n
	return a, nil
}

// matrix reads the four parts of an array in the next n bytes: flags,
// dimensions, name, entries.
func (r *reader) matrix(n, limit int64) (Array, error) {
	if n > r.left {
		return Array{}, parse.Errorf(r.at, "%w: a matrix of %d bytes where %d can follow", ErrSize, n, r.left)
	}
	r.left = n
	start := r.at
	flags, err := r.part(miUINT32, 8, 8)
	if err != nil {
		return Array{}, err
	}
	if class := flags[0]; class < firstNumeric || class > lastNumeric || flags[1]&complexBit != 0 {
		return Array{}, parse.Errorf(start, "%w: an array of class %d with flags %#x, expected real numbers", ErrUnsupported, class, flags[1])
	}
	start = r.at
	dims, err := r.part(miINT32, 8, 4*maxDims)
	if err != nil {
		return Array{}, err
	}
	var a Array
	entries := int64(1)
	if len(dims)%4 != 0 {
		return Array{}, parse.Errorf(start, "%w: %d bytes of dimensions", ErrFormat, len(dims))
	}
	for ; len(dims) > 0; dims = dims[4:] {
		d := int32(binary.LittleEndian.Uint32(dims))
		if d < 0 || (d > 0 && entries > limit/int64(d)) {
			return Array{}, parse.Errorf(start, "%w: a dimension is %d, and %d bytes of entries are allowed", ErrLimit, d, limit)
		}
		entries *= int64(d)
		a.Dims = append(a.Dims, int(d))
	}
	text, err := r.part(miINT8, 0, maxName)
	if err != nil {
		return Array{}, err
	}
	a.Name = string(text)
	if err := r.entries(&a, entries, limit); err != nil {
		return Array{}, err
	}
	if r.left != 0 {
		return Array{}, parse.Errorf(r.at, "%w: %d bytes follow the entries", ErrSize, r.left)
	}
	return a, nil
}

// entries reads the numbers of an array.
func (r *reader) entries(a *Array, entries, limit int64) error {
	start := r.at
	kind, n, small, err := r.subTag()
	if err != nil {
		return err
	}
	width := int64(1)
	switch kind {
	case miUINT8:
	case miDOUBLE:
		width = 8
	default:
		return parse.Errorf(start, "%w: variable %q is stored as numbers of type %d", ErrUnsupported, a.Name, kind)
	}
	switch {
	case n != width*entries:
		return parse.Errorf(start, "%w: %d bytes for variable %q of dimensions %v", ErrSize, n, a.Name, a.Dims)
	case n > limit:
		return parse.Errorf(start, "%w: %d bytes, of which %d are allowed", ErrLimit, n, limit)
	}
	a.stored = kind
	if small != nil {
		a.data = small
		return nil
	}
	if a.data, err = r.bytes(n); err != nil {
		return err
	}
	return r.pad(n)
}

// part reads a part of a matrix that must have the given type and between least
// and most bytes.
func (r *reader) part(want uint32, least, most int64) ([]byte, error) {
	start := r.at
	kind, n, small, err := r.subTag()
	if err != nil {
		return nil, err
	}
	if kind != want || n < least || n > most {
		return nil, parse.Errorf(start, "%w: %d bytes of type %d where %d to %d of type %d should be", ErrFormat, n, kind, least, most, want)
	}
	if small != nil {
		return small, nil
	}
	data, err := r.bytes(n)
	if err != nil {
		return nil, err
	}
	return data, r.pad(n)
}

// subTag reads the tag of a part of a matrix. Up to four bytes of data may be
// packed into the tag itself; they are returned as small then.
func (r *reader) subTag() (kind uint32, n int64, small []byte, err error) {
	start := r.at
	tag, err := r.bytes(tagSize)
	if err != nil {
		return 0, 0, nil, err
	}
	kind = binary.LittleEndian.Uint32(tag)
	if length := kind >> 16; length != 0 {
		if length > 4 {
			return 0, 0, nil, parse.Errorf(start, "%w: %d bytes packed into a tag", ErrFormat, length)
		}
		return kind & 0xffff, int64(length), tag[4 : 4+length], nil
	}
	return kind, int64(binary.LittleEndian.Uint32(tag[4:])), nil, nil
}

// pad skips the bytes that follow n bytes of data up to a multiple of eight.
func (r *reader) pad(n int64) error {
	_, err := r.bytes(min(-n&7, r.left))
	return err
}
