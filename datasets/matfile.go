package datasets

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// Causes of errors of MATLAB files, beside those of the disk and of zlib.
var (
	errMATFormat   = errors.New("not a MATLAB file of version 5")
	errUnsupported = errors.New("not supported")
	errSizes       = errors.New("sizes do not agree")
	errLimit       = errors.New("larger than allowed")
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
	complexBit = 0x08
)

// Numeric array classes: double (6) to 64-bit unsigned integer (15). The classes
// below are cells, structures, objects, text and sparse matrices.
const firstNumeric, lastNumeric = 6, 15

// matArray is a numeric array. Its numbers are in column-major order: the first
// index runs fastest.
type matArray struct {
	dims []int

	stored uint32 // type of data element
	data   []byte
}

// len is the number of entries.
func (a *matArray) len() int {
	n := 1
	for _, d := range a.dims {
		n *= d
	}
	return n
}

// bytes returns the entries of an array stored as unsigned bytes, not a copy.
func (a *matArray) bytes() ([]byte, error) {
	if a.stored != miUINT8 {
		return nil, errors.New("not stored as unsigned bytes")
	}
	return a.data, nil
}

// float64s returns the entries.
func (a *matArray) float64s() []float64 {
	out := make([]float64, a.len())
	for i := range out {
		if a.stored == miUINT8 {
			out[i] = float64(a.data[i])
		} else {
			out[i] = math.Float64frombits(binary.LittleEndian.Uint64(a.data[8*i:]))
		}
	}
	return out
}

// readMAT reads the numeric arrays of a MATLAB file of version 5 ("MAT level 5") by
// their names, as far as the files of SVHN need it: little-endian, compressed or
// not, numbers stored as unsigned bytes or in double precision. limit bounds the unpacked bytes
// of all arrays together, their descriptions of about a hundred bytes included. An
// error says which array of the file is at fault.
func readMAT(file io.Reader, limit int64) (map[string]matArray, error) {
	r := bufio.NewReaderSize(file, 1<<16)
	var header [headerSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return nil, fmt.Errorf("%w: the header: %w", errMATFormat, err)
	}
	if !bytes.Equal(header[124:], []byte{0, 1, 'I', 'M'}) {
		return nil, fmt.Errorf("%w (little-endian): the header ends with % x", errMATFormat, header[124:])
	}
	arrays := map[string]matArray{}
	for number := 1; ; number++ {
		if _, err := r.Peek(1); err == io.EOF {
			return arrays, nil
		}
		body, err := matMatrix(r, limit, true)
		if err != nil {
			return nil, fmt.Errorf("array %d of the file: %w", number, err)
		}
		limit -= int64(len(body))
		name, a, err := parseMatrix(body)
		if err != nil {
			return nil, fmt.Errorf("array %d of the file, %q: %w", number, name, err)
		}
		if _, again := arrays[name]; again {
			return nil, fmt.Errorf("array %d of the file, %q: %w: an earlier array has this name", number, name, errMATFormat)
		}
		arrays[name] = a
	}
}

// matMatrix reads the next element of r, which must be a matrix or, where packed ones
// are allowed, a packed one.
func matMatrix(r io.Reader, limit int64, packed bool) ([]byte, error) {
	var tag [tagSize]byte
	if _, err := io.ReadFull(r, tag[:]); err != nil {
		return nil, fmt.Errorf("its tag: %w", err)
	}
	kind, n := binary.LittleEndian.Uint32(tag[:]), int64(binary.LittleEndian.Uint32(tag[4:]))
	switch {
	case kind == miMATRIX && n > limit:
		return nil, fmt.Errorf("%w: %d bytes, of which %d are allowed", errLimit, n, limit)
	case kind == miMATRIX:
		body := make([]byte, n)
		switch _, err := io.ReadFull(r, body); {
		case err == io.EOF: // none of them
			return nil, fmt.Errorf("its %d bytes: %w", n, io.ErrUnexpectedEOF)
		case err != nil:
			return nil, fmt.Errorf("its %d bytes: %w", n, err)
		}
		return body, nil
	case kind == miCOMPRESSED && packed:
		// Unpacking takes no more bytes than it needs from a buffered reader, so that
		// what is left over can be seen.
		deflated := bufio.NewReader(io.LimitReader(r, n))
		z, err := zlib.NewReader(deflated)
		if err != nil {
			return nil, err
		}
		body, err := matMatrix(z, limit, false)
		if err != nil {
			return nil, err
		}
		// Reading on to the end also compares the checksum.
		for _, rest := range []io.Reader{z, deflated} {
			if m, err := rest.Read(make([]byte, 1)); m > 0 || err != io.EOF {
				return nil, fmt.Errorf("%w after the matrix", errors.Join(errSizes, err))
			}
		}
		return body, nil
	}
	return nil, fmt.Errorf("%w: an element of type %d", errUnsupported, kind)
}

// parseMatrix reads the four parts of an array: flags, dimensions, name, entries.
func parseMatrix(body []byte) (name string, a matArray, err error) {
	var parts [4][]byte
	var kinds [4]uint32
	for i := range parts {
		if kinds[i], parts[i], body, err = matPart(body); err != nil {
			return name, a, err
		}
	}
	flags, dims := parts[0], parts[1]
	name, a.stored, a.data = string(parts[2]), kinds[3], parts[3]
	if kinds[0] != miUINT32 || kinds[1] != miINT32 || kinds[2] != miINT8 || len(flags) != 8 || len(dims) < 8 || len(dims)%4 != 0 {
		return name, a, fmt.Errorf("%w: parts of types %d with %d bytes of flags and %d of dimensions", errMATFormat, kinds, len(flags), len(dims))
	}
	if class := flags[0]; class < firstNumeric || class > lastNumeric || flags[1]&complexBit != 0 {
		return name, a, fmt.Errorf("%w: an array of class %d with flags %#x, expected real numbers", errUnsupported, class, flags[1])
	}
	width, known := map[uint32]int{miUINT8: 1, miDOUBLE: 8}[a.stored]
	if !known {
		return name, a, fmt.Errorf("%w: numbers of type %d", errUnsupported, a.stored)
	}
	entries := 1
	for ; len(dims) > 0; dims = dims[4:] {
		d := int(int32(binary.LittleEndian.Uint32(dims)))
		if d < 0 || d > 0 && entries > len(a.data)/d {
			return name, a, fmt.Errorf("%w: %d bytes of entries, and a dimension is %d", errSizes, len(a.data), d)
		}
		entries *= d
		a.dims = append(a.dims, d)
	}
	if len(a.data) != width*entries || len(body) > 0 {
		return name, a, fmt.Errorf("%w: %d bytes for dimensions %v, and %d follow", errSizes, len(a.data), a.dims, len(body))
	}
	return name, a, nil
}

// matPart cuts the next part off a matrix; data is padded to a multiple of eight bytes.
// Up to four bytes may be packed into the tag itself.
func matPart(body []byte) (kind uint32, data, rest []byte, err error) {
	if len(body) < tagSize {
		return 0, nil, nil, fmt.Errorf("%w: %d bytes where a part should begin", errSizes, len(body))
	}
	kind, n := binary.LittleEndian.Uint32(body), int(binary.LittleEndian.Uint32(body[4:]))
	if small := int(kind >> 16); small > 4 {
		return 0, nil, nil, fmt.Errorf("%w: %d bytes packed into a tag", errMATFormat, small)
	} else if small > 0 {
		return kind & 0xffff, body[4 : 4+small], body[tagSize:], nil
	}
	body = body[tagSize:]
	if n > len(body) {
		return 0, nil, nil, fmt.Errorf("%w: a part of %d bytes, and %d are left", errSizes, n, len(body))
	}
	return kind, body[:n:n], body[min((n+7)&^7, len(body)):], nil
}
