package pickle

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"densityuncertainty/datasets/internal/imagefiles"
	"densityuncertainty/datasets/internal/parse"
)

func TestLoad(t *testing.T) {
	pixels := make([]byte, 300)
	for i := range pixels {
		pixels[i] = byte(i)
	}
	many := make([]int, 2500) // more than one batch of additions
	for i := range many {
		many[i] = i % 256
	}
	file := imagefiles.Pickle(
		imagefiles.Entry{Key: "label", Value: "training batch 1 of 5"},
		imagefiles.Entry{Key: "labels", Value: many},
		imagefiles.Entry{Key: "data", Value: imagefiles.Pixels{Columns: 100, Data: pixels}},
		imagefiles.Entry{Key: "filenames", Value: []string{"a.png", ""}},
	)
	items := make([]any, len(many))
	for i, v := range many {
		items[i] = v
	}
	want := map[string]any{
		"label":     "training batch 1 of 5",
		"labels":    &List{items},
		"data":      &Array{Shape: []int{3, 100}, Data: pixels},
		"filenames": &List{[]any{"a.png", ""}},
	}
	got, err := Load(file)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, error %v", got, err)
	}
}

// What Python's own pickle.dumps(..., protocol=2) writes for values of the kinds
// that occur.
func TestLoadNumbers(t *testing.T) {
	for _, c := range []struct {
		file string
		want any
	}{
		{"\x80\x02K\xff.", 255},
		{"\x80\x02M\x10\x27.", 10000},
		{"\x80\x02J\xff\xff\xff\xff.", -1},
		{"\x80\x02N.", nil},
		{"\x80\x02\x89.", false},
		{"\x80\x02}q\x01.", map[string]any{}},
		{"\x80\x02]r\x00\x01\x00\x00.", &List{}},
		{"\x80\x02K\x01K\x02\x86.", tuple{1, 2}},
		{"\x80\x02(K\x01K\x02K\x03K\x04t.", tuple{1, 2, 3, 4}},
	} {
		t.Run(fmt.Sprintf("%q", c.file), func(t *testing.T) {
			got, err := Load([]byte(c.file))
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %v, error %v; want %v", got, err, c.want)
			}
		})
	}
}

func TestLoadRefuses(t *testing.T) {
	array := "cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
	dtype := "cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R"
	for _, c := range []struct {
		name, file string
		offset     int64
		cause      error
	}{
		{"empty", "", 0, ErrOpcode},
		{"protocol 3", "\x80\x03}.", 0, ErrOpcode},
		{"an opcode of protocol 2 that does not occur", "\x80\x02}\x88.", 3, ErrOpcode},
		{"the opcode for extension codes", "\x80\x02\x82\x01.", 2, ErrOpcode},
		{"a call to the system", "\x80\x02cos\nsystem\nU\x02lsq\x01\x85R.", 2, ErrName},
		{"a name of NumPy that does not occur", "\x80\x02cnumpy\nload\n.", 2, ErrName},
		{"a call without arguments", "\x80\x02cnumpy\ndtype\n(tR.", 17, ErrStack},
		{"another type", "\x80\x02cnumpy\ndtype\nU\x02f4K\x00K\x01\x87R.", 24, ErrStack},
		{"a called number", "\x80\x02K\x01K\x02\x85R.", 7, ErrStack},
		{"cut in a string", "\x80\x02U\x05ab", 2, io.ErrUnexpectedEOF},
		{"cut in a long string", "\x80\x02T\xff\xff\xff\x7fab", 2, io.ErrUnexpectedEOF},
		{"negative length", "\x80\x02T\xff\xff\xff\xff", 2, nil},
		{"no end", "\x80\x02}", 3, io.ErrUnexpectedEOF},
		{"nothing left", "\x80\x02.", 2, ErrStack},
		{"two values", "\x80\x02NN.", 4, ErrStack},
		{"an open mark", "\x80\x02N(.", 4, ErrStack},
		{"something after the end", "\x80\x02N.N", 3, nil},
		{"nothing to note", "\x80\x02q\x01.", 2, ErrStack},
		{"nothing to note after a mark", "\x80\x02N(q\x01.", 4, ErrStack},
		{"a tuple across a mark", "\x80\x02N(\x85.", 4, ErrStack},
		{"a tuple without mark", "\x80\x02Nt.", 3, ErrStack},
		{"additions to a number", "\x80\x02N(e.", 4, ErrStack},
		{"additions to nothing", "\x80\x02(e.", 3, ErrStack},
		{"a key alone", "\x80\x02}(U\x01au.", 7, ErrStack},
		{"a key that is a number", "\x80\x02}(NNu.", 6, ErrStack},
		{"a key twice", "\x80\x02}(U\x01aNU\x01aNu.", 12, ErrStack},
		{"contents for a number", "\x80\x02N)b.", 3, ErrOpcode},
		{"contents for nil", "\x80\x02NN\x85b.", 5, ErrStack},
		{"wrong contents of a type", "\x80\x02" + dtype + "K\x01\x85b.", 28, ErrStack},
		{"wrong contents of an array", "\x80\x02" + array + "K\x01\x85b.", 64, ErrStack},
		{"an array larger than its bytes", "\x80\x02" + array + "(K\x01J\xff\xff\xff\x7fJ\xff\xff\xff\x7f\x86" + dtype + "\x89T\x02\x00\x00\x00abtb.", 107, nil},
		{"an array of fewer bytes", "\x80\x02" + array + "(K\x01K\x01\x85" + dtype + "\x89T\x02\x00\x00\x00abtb.", 99, nil},
		{"an array of size 0", "\x80\x02" + array + "(K\x01K\x00\x85" + dtype + "\x89T\x02\x00\x00\x00abtb.", 99, nil},
		{"an array in another order", "\x80\x02" + array + "(K\x01K\x02\x85" + dtype + "NT\x02\x00\x00\x00abtb.", 99, ErrStack},
		{"an array of another type", "\x80\x02" + array + "(K\x01K\x02\x85N\x89T\x02\x00\x00\x00abtb.", 77, ErrStack},
		{"an array of another version", "\x80\x02" + array + "(K\x02K\x02\x85" + dtype + "\x89T\x02\x00\x00\x00abtb.", 99, ErrStack},
		{"an array filled twice", "\x80\x02" + array + strings.Repeat("(K\x01K\x02\x85"+dtype+"\x89T\x02\x00\x00\x00abtb", 2) + ".", 138, ErrStack},
		{"an array of negative size", "\x80\x02" + array + "(K\x01J\xff\xff\xff\xff\x85" + dtype + "\x89T\x02\x00\x00\x00abtb.", 102, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Load([]byte(c.file))
			var at *parse.Error
			if !errors.As(err, &at) || (c.cause != nil && !errors.Is(err, c.cause)) {
				t.Fatalf("got %v, want cause %v", err, c.cause)
			}
			if at.Offset != c.offset {
				t.Errorf("got %v, want it at byte %d", err, c.offset)
			}
		})
	}
}

// A file of many small values must not take many times its size, nor nest so
// deep that whoever walks the result runs out of stack.
func TestLoadIsBounded(t *testing.T) {
	const size = 8 << 20
	for _, c := range []struct{ name, opcodes string }{
		{"empty values", "N"},
		{"dictionaries", "}"},
		{"lists", "]"},
		{"nested tuples", "\x85"},
		{"nested lists", "(e"},
		{"marks", "("},
		{"large integers", "J\xff\xff\xff\x7f"},
		{"strings", "U\x01a"},
		{"arrays", "cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"},
	} {
		t.Run(c.name, func(t *testing.T) {
			prefix := "\x80\x02N"
			if c.opcodes == "(e" {
				prefix = "\x80\x02" + strings.Repeat("]", 1<<16)
			}
			file := []byte(prefix + strings.Repeat(c.opcodes, size/len(c.opcodes)))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Load(file)
			runtime.ReadMemStats(&after)
			if !errors.Is(err, ErrLimit) {
				t.Errorf("got %v, want ErrLimit", err)
			}
			if got := after.TotalAlloc - before.TotalAlloc; got > size+30<<20 {
				t.Errorf("%d bytes were allocated for %d", got, len(file))
			}
		})
	}
}

func TestErrorsNameTheOpcode(t *testing.T) {
	_, err := Load([]byte("\x80\x02cos\nsystem\n"))
	if want := `byte 2: a name that is not allowed: "os\nsystem\n"`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = Load([]byte("\x80\x02i"))
	if err == nil || !strings.Contains(err.Error(), "unknown opcode 0x69") {
		t.Errorf("got %v", err)
	}
}

// FuzzLoad holds the reader to a value of known types or an error within the
// file, and to no more items than the file has bytes.
func FuzzLoad(f *testing.F) {
	f.Add(imagefiles.Pickle(
		imagefiles.Entry{Key: "data", Value: imagefiles.Pixels{Columns: 2, Data: []byte("abcdef")}},
		imagefiles.Entry{Key: "labels", Value: []int{1, 2, 3}},
	))
	f.Add([]byte("\x80\x02}q\x01(U\x01aM\x10\x27U\x01b]q\x02(K\x01NeU\x01cJ\xff\xff\xff\xffu."))
	f.Add([]byte("\x80\x02(K\x01K\x02K\x03\x87\x89t."))
	f.Fuzz(func(t *testing.T, file []byte) {
		v, err := Load(file)
		if err != nil {
			var at *parse.Error
			if !errors.As(err, &at) || at.Offset < 0 || at.Offset > int64(len(file)) || at.Err == nil {
				t.Fatalf("error %v in a file of %d bytes", err, len(file))
			}
			return
		}
		if n := size(t, v); n > len(file) {
			t.Fatalf("%d items in %d bytes", n, len(file))
		}
	})
}

// size counts the items and bytes of a value. No value can hold another twice,
// as nothing that was noted is ever fetched.
func size(t *testing.T, v any) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			n += len(key) + size(t, item)
		}
	case *List:
		for _, item := range v.Items {
			n += size(t, item)
		}
	case tuple:
		for _, item := range v {
			n += size(t, item)
		}
	case *Array:
		entries := 1
		for _, d := range v.Shape {
			entries *= d
		}
		if v.Data != nil && entries != len(v.Data) {
			t.Fatalf("shape %v, %d bytes", v.Shape, len(v.Data))
		}
		n += len(v.Data)
	case string:
		n += len(v)
	case []byte:
		n += len(v)
	case int, bool, nil, name, uint8Type:
	default:
		t.Fatalf("a value of type %T", v)
	}
	return n
}
