package checkpoint

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"unicode/utf8"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"

	"densityuncertainty/environment/atomicfile"
)

// The safetensors format is a file of three parts:
//
//   - the length of the header, 8 bytes, little-endian;
//   - the header, a JSON object: for each tensor its type, its shape and where in
//     the data it begins and ends, and under "__metadata__" a map of texts;
//   - the data: the tensors' entries, little-endian and in row-major order,
//     without gaps.
//
// The format has no checksum. The files of this package have one among their texts:
// under checksumKey the SHA-256 of what writeTensors writes of them without it.
const (
	lengthSize  = 8
	metadataKey = "__metadata__"
	checksumKey = "content_sha256"
	// maxHeader is the longest header that other readers take.
	maxHeader = 100_000_000
	// alignment is that of the data, by spaces at the header's end.
	alignment = 8
	// bufferSize spares small tensors a system call each.
	bufferSize = 1 << 20
)

// typeNames are the format's names of the types that both it and GoMLX have.
var typeNames = map[dtypes.DType]string{
	dtypes.Bool: "BOOL",
	dtypes.Int8: "I8", dtypes.Int16: "I16", dtypes.Int32: "I32", dtypes.Int64: "I64",
	dtypes.Uint8: "U8", dtypes.Uint16: "U16", dtypes.Uint32: "U32", dtypes.Uint64: "U64",
	dtypes.Float16: "F16", dtypes.BFloat16: "BF16", dtypes.Float32: "F32", dtypes.Float64: "F64",
}

// typeOf is the inverse of typeNames.
func typeOf(name string) (dtypes.DType, bool) {
	for dtype, known := range typeNames {
		if known == name {
			return dtype, true
		}
	}
	return dtypes.InvalidDType, false
}

// An entry is a tensor's line in the header.
type entry struct {
	Type    string  `json:"dtype"`
	Shape   []int   `json:"shape"`
	Offsets []int64 `json:"data_offsets"`
}

// writeTensors writes a safetensors file. The tensors with the widest entries
// come first, so that all are aligned, then those with the first name.
func writeTensors(w io.Writer, named map[string]*tensors.Tensor, metadata map[string]string) error {
	names := slices.SortedFunc(maps.Keys(named), func(a, b string) int {
		return cmp.Or(cmp.Compare(named[b].DType().Size(), named[a].DType().Size()), cmp.Compare(a, b))
	})
	header := map[string]any{}
	if len(metadata) > 0 {
		header[metadataKey] = metadata
	}
	offset := int64(0)
	for _, name := range names {
		t := named[name]
		typeName, known := typeNames[t.DType()]
		if !known {
			return fmt.Errorf("tensor %s is of type %s, which safetensors files do not have", name, t.DType())
		}
		if name == metadataKey || !utf8.ValidString(name) {
			return fmt.Errorf("tensor name %q is reserved or not UTF-8", name)
		}
		end := offset + t.ByteSize()
		dims := append([]int{}, t.Shape().Dimensions...) // [] for a scalar, where nil would be null
		header[name] = entry{Type: typeName, Shape: dims, Offsets: []int64{offset, end}}
		offset = end
	}
	text, err := json.Marshal(header)
	if err != nil {
		return fmt.Errorf("encoding the header: %w", err)
	}
	for len(text)%alignment != 0 {
		text = append(text, ' ')
	}
	if _, err := w.Write(append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)); err != nil {
		return err
	}
	for _, name := range names {
		var writeErr error
		err := named[name].ConstBytes(func(data []byte) { _, writeErr = w.Write(data) })
		if err := errors.Join(err, writeErr); err != nil {
			return fmt.Errorf("writing tensor %s: %w", name, err)
		}
	}
	return nil
}

// readHeader reads what is before the tensors of a file of a size, and says how many bytes they have.
func readHeader(r io.Reader, size int64) (entries map[string]entry, metadata map[string]string, dataSize int64, err error) {
	var length [lengthSize]byte
	if size < lengthSize {
		return nil, nil, 0, fmt.Errorf("the file has %d bytes, too few for the length of its header", size)
	}
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, nil, 0, fmt.Errorf("reading the length of the header: %w", err)
	}
	headerSize := binary.LittleEndian.Uint64(length[:])
	if headerSize > maxHeader || int64(headerSize) > size-lengthSize {
		return nil, nil, 0, fmt.Errorf("the header should have %d bytes, but the file has %d and a header at most %d: it is cut short or not a safetensors file", headerSize, size, maxHeader)
	}
	text := make([]byte, headerSize)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, nil, 0, fmt.Errorf("reading the header: %w", err)
	}
	if entries, metadata, err = parseHeader(text); err != nil {
		return nil, nil, 0, fmt.Errorf("the header is damaged: %w", err)
	}
	return entries, metadata, size - lengthSize - int64(headerSize), nil
}

// readTensors reads a safetensors file of the given size, in bytes. It takes only
// what writers of the format may write: data without gaps or overlaps to the last byte of the file.
// It allocates no more than a small multiple of the size.
func readTensors(r io.Reader, size int64) (named map[string]*tensors.Tensor, metadata map[string]string, err error) {
	entries, metadata, dataSize, err := readHeader(r, size)
	if err != nil {
		return nil, nil, err
	}
	names, err := layOut(entries, dataSize)
	if err != nil {
		return nil, nil, err
	}
	named = map[string]*tensors.Tensor{}
	for _, name := range names {
		e := entries[name]
		dtype, _ := typeOf(e.Type)
		t := tensors.FromShape(shapes.Make(dtype, e.Shape...))
		var readErr error
		err := t.MutableBytes(func(data []byte) { _, readErr = io.ReadFull(r, data) })
		if err := errors.Join(err, readErr); err != nil {
			return nil, nil, fmt.Errorf("reading tensor %q: %w", name, err)
		}
		named[name] = t
	}
	if want, has := metadata[checksumKey]; has {
		delete(metadata, checksumKey)
		if sum, err := checksum(named, metadata); err != nil || hex.EncodeToString(sum) != want {
			return nil, nil, errors.Join(fmt.Errorf("its content does not have the SHA-256 %s that it names: it was changed or damaged", want), err)
		}
	}
	return named, metadata, nil
}

// checksum is the SHA-256 of a file of tensors and texts.
func checksum(named map[string]*tensors.Tensor, metadata map[string]string) ([]byte, error) {
	hash := sha256.New()
	err := writeTensors(hash, named, metadata)
	return hash.Sum(nil), err
}

// parseHeader reads the header's JSON, which may name each tensor, and each of its
// fields, once.
func parseHeader(text []byte) (entries map[string]entry, metadata map[string]string, err error) {
	var header map[string]jsontext.Value
	if err := decodeStrictly(text, &header); err != nil {
		return nil, nil, err
	}
	entries = map[string]entry{}
	for _, name := range slices.Sorted(maps.Keys(header)) {
		if name == metadataKey {
			if err := decodeStrictly(header[name], &metadata); err != nil || metadata == nil {
				return nil, nil, fmt.Errorf("the metadata are not a map of texts: %w", cmp.Or(err, errors.New("null")))
			}
			continue
		}
		var e entry
		if err := decodeStrictly(header[name], &e); err != nil {
			return nil, nil, fmt.Errorf("tensor %q: %w", name, err)
		}
		entries[name] = e
	}
	return entries, metadata, nil
}

// layOut checks that the tensors fill the data from its first byte to its last,
// and returns their names in that order.
func layOut(entries map[string]entry, dataSize int64) ([]string, error) {
	for name, e := range entries {
		size, err := e.size()
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", name, err)
		}
		if len(e.Offsets) != 2 || e.Offsets[0] < 0 || e.Offsets[1] > dataSize || e.Offsets[1] < e.Offsets[0] || e.Offsets[1]-e.Offsets[0] != size {
			return nil, fmt.Errorf("tensor %q of %s %v needs %d bytes, but has the place %v in data of %d bytes", name, e.Type, e.Shape, size, e.Offsets, dataSize)
		}
	}
	names := slices.SortedFunc(maps.Keys(entries), func(a, b string) int {
		return cmp.Or(slices.Compare(entries[a].Offsets, entries[b].Offsets), cmp.Compare(a, b))
	})
	end := int64(0)
	for _, name := range names {
		if begin := entries[name].Offsets[0]; begin != end {
			return nil, fmt.Errorf("tensor %q begins at byte %d of the data, the one before it ends at %d", name, begin, end)
		}
		end = entries[name].Offsets[1]
	}
	if end != dataSize {
		return nil, fmt.Errorf("the tensors have %d bytes, the file has %d for them: it is cut short or something was added", end, dataSize)
	}
	return names, nil
}

// size is the number of bytes of a tensor.
func (e entry) size() (int64, error) {
	dtype, known := typeOf(e.Type)
	if !known {
		return 0, fmt.Errorf("type %q is not known here", e.Type)
	}
	if e.Shape == nil {
		return 0, errors.New("it has no shape")
	}
	size := int64(dtype.Size())
	for _, dim := range e.Shape {
		product := size * int64(dim)
		if dim < 0 || (dim > 0 && product/int64(dim) != size) {
			return 0, fmt.Errorf("shape %v has a negative axis or is too large", e.Shape)
		}
		size = product
	}
	return size, nil
}

// EncodeTensors writes named tensors and metadata to w in the safetensors format, which other programs read, without a
// checksum.
func EncodeTensors(w io.Writer, named map[string]*tensors.Tensor, metadata map[string]string) error {
	if err := writeTensors(w, named, metadata); err != nil {
		return fmt.Errorf("checkpoint: encoding tensors: %w", err)
	}
	return nil
}

// writeFile writes tensors and texts, with a checksum of both, as a whole or not at all.
func writeFile(path string, named map[string]*tensors.Tensor, metadata map[string]string) error {
	if _, taken := metadata[checksumKey]; taken {
		return fmt.Errorf("the text %q is reserved for the checksum; give yours another name", checksumKey)
	}
	sum, err := checksum(named, metadata)
	if err != nil {
		return err
	}
	texts := map[string]string{checksumKey: hex.EncodeToString(sum)}
	maps.Copy(texts, metadata)
	return atomicfile.Write(path, func(file io.Writer) error {
		w := bufio.NewWriterSize(file, bufferSize)
		return errors.Join(writeTensors(w, named, texts), w.Flush())
	})
}

// readFile reads a file of tensors and texts and checks its checksum, if it has one.
func readFile(path string) (named map[string]*tensors.Tensor, metadata map[string]string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil {
		named, metadata, err = readTensors(bufio.NewReaderSize(file, bufferSize), info.Size())
	}
	return named, metadata, errors.Join(err, file.Close())
}

// ReadTensors reads a safetensors file that Export, EncodeTensors or another program wrote. If the file has Export's
// checksum, another content is an error.
func ReadTensors(path string) (named map[string]*tensors.Tensor, metadata map[string]string, err error) {
	if named, metadata, err = readFile(path); err != nil {
		return nil, nil, fmt.Errorf("checkpoint: reading tensors of %s: %w", path, err)
	}
	return named, metadata, nil
}

// ReadMetadata reads only the metadata of a safetensors file, without verifying the checksum.
func ReadMetadata(path string) (map[string]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	_, metadata, _, err := readHeader(file, info.Size())
	if err != nil {
		return nil, fmt.Errorf("checkpoint: reading the texts of %s: %w", path, err)
	}
	return metadata, nil
}

// ParseTensors is ReadTensors for the content of a file.
func ParseTensors(content []byte) (named map[string]*tensors.Tensor, metadata map[string]string, err error) {
	if named, metadata, err = readTensors(bytes.NewReader(content), int64(len(content))); err != nil {
		return nil, nil, fmt.Errorf("checkpoint: reading tensors: %w", err)
	}
	return named, metadata, nil
}
