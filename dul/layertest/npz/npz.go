// Package npz reads the arrays of NumPy .npz files for tests.
//
// An .npz file is a zip archive whose members are .npy files: one array each. Only what the
// reference cases need is read: little-endian float32, float64, int32, int64, uint8 and bool
// arrays in C (row-major) order. Everything else is an error that names the file and member.
package npz

import (
	"archive/zip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Archive holds the decoded arrays of one .npz file, by member name without ".npy".
type Archive struct {
	path   string
	arrays map[string]array
}

// array is one decoded member. Every supported type but large integers fits a float64 exactly.
type array struct {
	dtype string // NumPy type code without the byte-order mark: "f4", "i8", ...
	shape []int  // empty for a scalar
	data  []float64
}

// maxExact is the largest integer magnitude below which every integer is a float64.
const maxExact = 1 << 53

// Open reads all arrays of the .npz file at path.
func Open(path string) (Archive, error) {
	r, err := zip.OpenReader(path)
	if err != nil {
		return Archive{}, fmt.Errorf("npz: opening %s: %w", path, err)
	}
	a := Archive{path: path, arrays: make(map[string]array, len(r.File))}
	for _, member := range r.File {
		name, ok := strings.CutSuffix(member.Name, ".npy")
		if !ok {
			err = fmt.Errorf("member %q is not an .npy array", member.Name)
		} else if a.Has(name) {
			err = fmt.Errorf("member %q is there twice", member.Name)
		} else {
			a.arrays[name], err = readMember(member)
		}
		if err != nil {
			return Archive{}, errors.Join(fmt.Errorf("npz: %s: %w", path, err), r.Close())
		}
	}
	if err := r.Close(); err != nil {
		return Archive{}, fmt.Errorf("npz: closing %s: %w", path, err)
	}
	return a, nil
}

// Has reports whether the archive holds an array of that name.
func (a Archive) Has(name string) bool {
	_, ok := a.arrays[name]
	return ok
}

// Float64 returns a copy of the array as float64 in row-major order, whatever its numeric type
// (bool: 0 or 1), with its shape. A scalar has an empty shape and one value.
func (a Archive) Float64(name string) (data []float64, shape []int, err error) {
	arr, ok := a.arrays[name]
	if !ok {
		return nil, nil, fmt.Errorf("npz: %s: no such array: %q (it holds %s)", a.path, name, strings.Join(slices.Sorted(maps.Keys(a.arrays)), ", "))
	}
	return append([]float64(nil), arr.data...), append([]int{}, arr.shape...), nil
}

// Ints returns the array as integers and fails if any value is not a whole number.
func (a Archive) Ints(name string) (data []int, shape []int, err error) {
	values, shape, err := a.Float64(name)
	if err != nil {
		return nil, nil, err
	}
	data = make([]int, len(values))
	for i, v := range values {
		if v != math.Trunc(v) || math.Abs(v) > maxExact {
			return nil, nil, fmt.Errorf("npz: %s: %q[%d] = %v is not a whole number", a.path, name, i, v)
		}
		data[i] = int(v)
	}
	return data, shape, nil
}

// Scalar returns the single value of an array that holds exactly one.
func (a Archive) Scalar(name string) (float64, error) {
	values, shape, err := a.Float64(name)
	if err != nil {
		return 0, err
	}
	if len(values) != 1 {
		return 0, fmt.Errorf("npz: %s: %q has shape %v, want a single value", a.path, name, shape)
	}
	return values[0], nil
}

func readMember(member *zip.File) (array, error) {
	rc, err := member.Open()
	if err != nil {
		return array{}, fmt.Errorf("member %q: %w", member.Name, err)
	}
	raw, err := io.ReadAll(rc)
	if err := errors.Join(err, rc.Close()); err != nil {
		return array{}, fmt.Errorf("member %q: %w", member.Name, err)
	}
	arr, err := decodeNPY(raw)
	if err != nil {
		return array{}, fmt.Errorf("member %q: %w", member.Name, err)
	}
	return arr, nil
}

// The header of an .npy file is a Python dictionary written as text; these find its three keys.
var (
	descrKey   = regexp.MustCompile(`'descr':\s*'([<|=>]?)([a-z][0-9]+)'`)
	fortranKey = regexp.MustCompile(`'fortran_order':\s*(True|False)`)
	shapeKey   = regexp.MustCompile(`'shape':\s*\(([^)]*)\)`)
)

// decodeNPY decodes one .npy file, format versions 1 to 3: magic, version, header length, header,
// then the values.
func decodeNPY(raw []byte) (array, error) {
	const magic = "\x93NUMPY"
	if len(raw) < 12 || string(raw[:6]) != magic {
		return array{}, errors.New("not an .npy array: the magic number is missing")
	}
	if raw[6] < 1 || raw[6] > 3 {
		return array{}, fmt.Errorf("format version %d is not supported", raw[6])
	}
	start, length := 10, int(binary.LittleEndian.Uint16(raw[8:]))
	if raw[6] >= 2 {
		start, length = 12, int(binary.LittleEndian.Uint32(raw[8:]))
	}
	if length > len(raw)-start {
		return array{}, fmt.Errorf("the header needs %d bytes but only %d follow", length, len(raw)-start)
	}
	header := string(raw[start : start+length])
	descr, fortran, shapeText := descrKey.FindStringSubmatch(header), fortranKey.FindStringSubmatch(header), shapeKey.FindStringSubmatch(header)
	if descr == nil || fortran == nil || shapeText == nil {
		return array{}, fmt.Errorf("cannot read the header %q", strings.TrimSpace(header))
	}
	arr := array{dtype: descr[2]}
	count := 1
	for _, field := range strings.Split(shapeText[1], ",") {
		if field = strings.TrimSpace(field); field == "" {
			continue
		}
		n, err := strconv.Atoi(field)
		if err != nil || n < 0 {
			return array{}, fmt.Errorf("bad dimension %q in the header", field)
		}
		arr.shape = append(arr.shape, n)
		if n > 0 && count > len(raw)/n { // more values than bytes
			return array{}, fmt.Errorf("shape (%s) is too large for %d bytes", shapeText[1], len(raw))
		}
		count *= n
	}
	if descr[1] == ">" {
		return array{}, errors.New("big-endian arrays are not supported")
	}
	if fortran[1] == "True" && len(arr.shape) > 1 {
		return array{}, errors.New("arrays in Fortran order are not supported")
	}
	var err error
	arr.data, err = decodeValues(arr.dtype, raw[start+length:], count)
	return arr, err
}

func decodeValues(dtype string, body []byte, count int) ([]float64, error) {
	sizes := map[string]int{"f4": 4, "f8": 8, "i4": 4, "i8": 8, "u1": 1, "b1": 1}
	size, ok := sizes[dtype]
	if !ok {
		return nil, fmt.Errorf("type %q is not supported", dtype)
	}
	if len(body) != size*count {
		return nil, fmt.Errorf("%d values of type %s need %d bytes, found %d", count, dtype, size*count, len(body))
	}
	data := make([]float64, count)
	for i := range data {
		b := body[i*size:]
		switch dtype {
		case "f4":
			data[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
		case "f8":
			data[i] = math.Float64frombits(binary.LittleEndian.Uint64(b))
		case "i4":
			data[i] = float64(int32(binary.LittleEndian.Uint32(b)))
		case "i8":
			v := int64(binary.LittleEndian.Uint64(b))
			if v > maxExact || v < -maxExact {
				return nil, fmt.Errorf("integer %d is too large for a float64", v)
			}
			data[i] = float64(v)
		case "u1", "b1":
			if dtype == "b1" && b[0] > 1 {
				return nil, fmt.Errorf("bool %d is %d, neither false nor true", i, b[0])
			}
			data[i] = float64(b[0])
		}
	}
	return data, nil
}
