package datasets

import (
	"bufio"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"io"
)

// miCOMPRESSED is the type of a compressed element, by its name in MATLAB's description of the format.
const miCOMPRESSED = 15

const (
	headerSize = 128
	tagSize    = 8
)

// matArray is a numeric array. Its numbers are in column-major order: the first index runs fastest.
type matArray struct {
	dims []int
	data []byte
}

// readMAT reads the numeric arrays of a MATLAB file of version 5 ("MAT level 5") by their names, as far as the files of
// SVHN need it: little-endian, compressed or not, numbers stored as unsigned bytes. It trusts a
// file whose checksum is known; what it makes of another one is an error or any arrays, none of more than limit bytes.
func readMAT(file io.Reader, limit int64) (map[string]matArray, error) {
	r := bufio.NewReaderSize(file, 1<<16)
	if _, err := r.Discard(headerSize); err != nil {
		return nil, fmt.Errorf("the header of the MATLAB file: %w", err)
	}
	arrays := map[string]matArray{}
	for {
		kind, n, err := matTag(r)
		if err == io.EOF {
			return arrays, nil
		}
		if err != nil {
			return nil, err
		}
		element := io.LimitReader(r, n)
		matrix := element
		if kind == miCOMPRESSED {
			if matrix, err = zlib.NewReader(element); err != nil {
				return nil, err
			}
			if _, n, err = matTag(matrix); err != nil {
				return nil, err
			}
		}
		if n > limit {
			return nil, fmt.Errorf("an array of %d bytes, of which %d are allowed", n, limit)
		}
		body := make([]byte, n)
		if _, err := io.ReadFull(matrix, body); err != nil {
			return nil, err
		}
		if _, err := io.Copy(io.Discard, element); err != nil {
			return nil, err
		}
		var parts [4][]byte // flags, dimensions, name, entries
		for i := range parts {
			if parts[i], body, err = matPart(body); err != nil {
				return nil, err
			}
		}
		a := matArray{data: parts[3]}
		for dims := parts[1]; len(dims) >= 4; dims = dims[4:] {
			a.dims = append(a.dims, int(binary.LittleEndian.Uint32(dims)))
		}
		arrays[string(parts[2])] = a
	}
}

// matTag reads the type of an element and its size.
func matTag(r io.Reader) (kind uint32, size int64, err error) {
	var tag [tagSize]byte
	_, err = io.ReadFull(r, tag[:])
	return binary.LittleEndian.Uint32(tag[:]), int64(binary.LittleEndian.Uint32(tag[4:])), err
}

// matPart cuts the next part off a matrix; data is padded to a multiple of eight bytes. Up to four bytes may be packed
// into the tag itself.
func matPart(body []byte) (data, rest []byte, err error) {
	if len(body) < tagSize {
		return nil, nil, fmt.Errorf("%d bytes where a part of a MATLAB array should begin", len(body))
	}
	n := int(binary.LittleEndian.Uint32(body[4:]))
	if small := int(binary.LittleEndian.Uint16(body[2:])); 0 < small && small <= 4 {
		return body[4 : 4+small], body[tagSize:], nil
	}
	if body = body[tagSize:]; n > len(body) {
		return nil, nil, fmt.Errorf("a part of a MATLAB array of %d bytes, and %d are left", n, len(body))
	}
	return body[:n:n], body[min((n+7)&^7, len(body)):], nil
}
