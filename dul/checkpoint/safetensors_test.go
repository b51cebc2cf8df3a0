package checkpoint

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"

	"densityuncertainty/environment/must"
)

// file is a safetensors file of a header and data.
func file(header, data string) []byte {
	return slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), []byte(header), []byte(data))
}

func readBytes(b []byte) (map[string]*tensors.Tensor, map[string]string, error) {
	return readTensors(bytes.NewReader(b), int64(len(b)))
}

func bytesOf(t testing.TB, value *tensors.Tensor) []byte {
	t.Helper()
	var all []byte
	must.Do(t, value.ConstBytes(func(data []byte) { all = slices.Clone(data) }))
	return all
}

// The bytes of a file, computed by hand from the format's description.
func TestFormat(t *testing.T) {
	var b bytes.Buffer
	must.Do(t, writeTensors(&b, map[string]*tensors.Tensor{
		"flag": tensors.FromFlatDataAndDimensions([]bool{true, false}, 2),
		"b/w":  tensors.FromFlatDataAndDimensions([]float32{1, -2}, 1, 2),
		"a":    tensors.FromScalar(float32(0.5)),
	}, map[string]string{"k": "v"}))
	header := `{"__metadata__":{"k":"v"},` +
		`"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},` +
		`"b/w":{"dtype":"F32","shape":[1,2],"data_offsets":[4,12]},` +
		`"flag":{"dtype":"BOOL","shape":[2],"data_offsets":[12,14]}}`
	header += strings.Repeat(" ", 7-(len(header)+7)%8)
	want := file(header, "\x00\x00\x00\x3f"+"\x00\x00\x80\x3f"+"\x00\x00\x00\xc0"+"\x01\x00")
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("wrote\n%q, want\n%q", b.Bytes(), want)
	}
}

func TestTensorsOfAllTypesRoundTrip(t *testing.T) {
	named := map[string]*tensors.Tensor{}
	for _, dtype := range slices.Sorted(maps.Keys(typeNames)) {
		name := typeNames[dtype]
		for _, dims := range [][]int{{}, {5}, {2, 3, 1}, {0, 4}} {
			value := tensors.FromShape(shapes.Make(dtype, dims...))
			must.Do(t, value.MutableBytes(func(data []byte) {
				for i := range data {
					if data[i] = byte(37*i + len(dims)); dtype == dtypes.Bool {
						data[i] %= 2
					}
				}
			}))
			named[fmt.Sprintf("%s/%v ä\"\\", name, dims)] = value
		}
	}
	nan := math.Float64frombits(0x7ff8000000000123)
	named["special"] = tensors.FromFlatDataAndDimensions([]float64{nan, math.Inf(-1), math.Copysign(0, -1), 5e-324}, 4)
	metadata := map[string]string{"version": "1", "<roles>": `{"a":"b"}`}
	var b bytes.Buffer
	must.Do(t, writeTensors(&b, named, metadata))
	got, gotMetadata := must.Get2(readBytes(b.Bytes()))(t)
	if !maps.Equal(gotMetadata, metadata) {
		t.Errorf("metadata %v, want %v", gotMetadata, metadata)
	}
	requireEqualTensors(t, got, named)
}

func TestWriteTensorsRefuses(t *testing.T) {
	one := tensors.FromScalar(float32(1))
	for says, named := range map[string]map[string]*tensors.Tensor{
		"is of type Complex64":          {"c": tensors.FromScalar(complex64(1))},
		`"__metadata__" is reserved`:    {metadataKey: one},
		`"\xff" is reserved or not UTF`: {"\xff": one},
	} {
		var b bytes.Buffer
		must.Err(t, writeTensors(&b, named, nil), says)
	}
}

// Files that break the format, and what the error must say.
var broken = []struct {
	name string
	file []byte
	says string
}{
	{"empty", nil, "too few"},
	{"no header", []byte{2, 0, 0, 0, 0, 0, 0, 0}, "cut short"},
	{"length over all bounds", []byte("\xff\xff\xff\xff\xff\xff\xff\xff{}"), "cut short"},
	{"length over the limit", []byte("\x01\xe1\xf5\x05\x00\x00\x00\x00{}"), "at most 100000000"},
	{"array", file("[]", ""), "damaged"},
	{"not JSON", file("{nonsense}", ""), "damaged"},
	{"something after", file("{} {}", ""), "after top-level value"},
	{"name twice", file(`{"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}`, "x"), `duplicate object member name "a"`},
	{"field in capitals", file(`{"a":{"DType":"U8","shape":[],"data_offsets":[0,1]}}`, "x"), `unknown object member name "DType"`},
	{"name that is not UTF-8", file("{\"\xff\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", "x"), "invalid UTF-8"},
	{"metadata null", file(`{"__metadata__":null}`, ""), "not a map"},
	{"metadata number", file(`{"__metadata__":{"a":1}}`, ""), "not a map"},
	{"unknown field", file(`{"a":{"dtype":"U8","shape":[],"data_offsets":[0,1],"stride":1}}`, "x"), "stride"},
	{"unknown type", file(`{"a":{"dtype":"F13","shape":[],"data_offsets":[0,1]}}`, "x"), "F13"},
	{"no type", file(`{"a":{"shape":[],"data_offsets":[0,1]}}`, "x"), `type ""`},
	{"no shape", file(`{"a":{"dtype":"U8","data_offsets":[0,1]}}`, "x"), "no shape"},
	{"no offsets", file(`{"a":{"dtype":"U8","shape":[]}}`, "x"), "the place []"},
	{"fraction", file(`{"a":{"dtype":"U8","shape":[1.5],"data_offsets":[0,1]}}`, "x"), "1.5"},
	{"negative axis", file(`{"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}}`, "x"), "negative axis"},
	{"too large", file(`{"a":{"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, ""), "too large"},
	{"wrong size", file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, "xxxx"), "needs 8 bytes"},
	{"negative offset", file(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[-1,1]}}`, "x"), "the place [-1 1]"},
	{"reversed offsets", file(`{"a":{"dtype":"U8","shape":[9223372036854775807],"data_offsets":[1,-9223372036854775808]}}`, "x"), "the place"},
	{"past the end", file(`{"a":{"dtype":"U8","shape":[9],"data_offsets":[0,9]}}`, "x"), "data of 1 bytes"},
	{"gap", file(`{"a":{"dtype":"U8","shape":[],"data_offsets":[1,2]}}`, "xx"), "begins at byte 1"},
	{"overlap", file(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, "xxx"), "begins at byte 1"},
	{"data left over", file(`{"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}`, "xy"), "something was added"},
}

func TestReadTensorsRefuses(t *testing.T) {
	for _, c := range broken {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := readBytes(c.file)
			must.Err(t, err, c.says)
		})
	}
}

// Whatever the bytes, reading ends without a panic, and what it accepts is what
// a file of the same tensors holds.
func FuzzReadTensors(f *testing.F) {
	for _, c := range broken {
		f.Add(c.file)
	}
	f.Add(file(`{}`, ""))
	f.Add(file(`{"__metadata__":{"k":"v"},"a":{"dtype":"F64","shape":[2],"data_offsets":[0,16]},"b":{"dtype":"BOOL","shape":[0,7],"data_offsets":[16,16]}}  `, "0123456789abcdef"))
	f.Fuzz(func(t *testing.T, b []byte) {
		named, metadata, err := readBytes(b)
		if err != nil {
			return
		}
		var written bytes.Buffer
		if err := writeTensors(&written, named, metadata); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		again, metadataAgain, err := readBytes(written.Bytes())
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if !maps.Equal(metadata, metadataAgain) {
			t.Fatalf("metadata %v became %v", metadata, metadataAgain)
		}
		requireEqualTensors(t, again, named)
	})
}

// requireEqualTensors compares tensors by name, bit by bit.
func requireEqualTensors(t *testing.T, got, want map[string]*tensors.Tensor) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d tensors, want %d", len(got), len(want))
	}
	for name, w := range want {
		if g := got[name]; g == nil || !g.Shape().Equal(w.Shape()) || !bytes.Equal(bytesOf(t, g), bytesOf(t, w)) {
			t.Fatalf("%s is %v, want %v", name, g, w)
		}
	}
}
