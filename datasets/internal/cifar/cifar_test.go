package cifar

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	"densityuncertainty/datasets/internal/imagefiles"
	"densityuncertainty/datasets/internal/parse"
	"densityuncertainty/datasets/internal/pickle"
)

// sample is a file of three images whose bytes are all different functions of
// their places.
type sample struct {
	kind   Kind
	coarse []int // nil for CIFAR-10
	labels []int
	pixels []byte
}

func samples() map[string]sample {
	pixels := make([]byte, 3*ImageSize)
	for i := range pixels {
		pixels[i] = byte(i*7 + i/ImageSize + i/1024)
	}
	return map[string]sample{
		"CIFAR-10":  {Ten(), nil, []int{9, 0, 3}, pixels},
		"CIFAR-100": {Hundred(), []int{19, 0, 4}, []int{99, 20, 0}, pixels},
	}
}

func (s sample) binary() []byte {
	var b []byte
	for i, l := range s.labels {
		if s.coarse != nil {
			b = append(b, byte(s.coarse[i]))
		}
		b = append(b, byte(l))
		b = append(b, s.pixels[i*ImageSize:(i+1)*ImageSize]...)
	}
	return b
}

func (s sample) python() []byte {
	entries := []imagefiles.Entry{
		{Key: "filenames", Value: []string{"a.png", "b.png", "c.png"}},
		{Key: "batch_label", Value: "training batch 1 of 1"},
	}
	if s.coarse == nil {
		entries = append(entries, imagefiles.Entry{Key: "labels", Value: s.labels})
	} else {
		entries = append(entries, imagefiles.Entry{Key: "fine_labels", Value: s.labels}, imagefiles.Entry{Key: "coarse_labels", Value: s.coarse})
	}
	return imagefiles.Pickle(append(entries, imagefiles.Entry{Key: "data", Value: imagefiles.Pixels{Columns: ImageSize, Data: s.pixels}})...)
}

func TestBothVersions(t *testing.T) {
	for name, s := range samples() {
		for _, c := range []struct {
			version string
			read    func(pixels []byte, labels []int) error
		}{
			{"binary", func(p []byte, l []int) error { return s.kind.Binary(s.binary(), p, l) }},
			{"python", func(p []byte, l []int) error { return s.kind.Pickle(s.python(), p, l) }},
		} {
			t.Run(c.version, func(t *testing.T) {
				pixels, labels := make([]byte, len(s.pixels)), make([]int, 3)
				if err := c.read(pixels, labels); err != nil {
					t.Errorf("%s, %s version: %v", name, c.version, err)
				}
				if !slices.Equal(labels, s.labels) || !bytes.Equal(pixels, s.pixels) {
					t.Errorf("%s, %s version: labels %v, want %v; pixels equal: %v", name, c.version, labels, s.labels, bytes.Equal(pixels, s.pixels))
				}
			})
		}
	}
}

func TestBinaryRefuses(t *testing.T) {
	for name, s := range samples() {
		whole := s.binary()
		record := int64(s.kind.RecordSize())
		wrong := slices.Clone(whole)
		wrong[record] = 200
		for _, c := range []struct {
			name   string
			file   []byte
			offset int64
			cause  error
		}{
			{"empty", nil, 0, io.ErrUnexpectedEOF},
			{"cut", whole[:len(whole)-1], 3*record - 1, io.ErrUnexpectedEOF},
			{"longer", append(slices.Clone(whole), 0), 3 * record, ErrTrailing},
			{"a wrong label", wrong, record, ErrLabel},
		} {
			t.Run(name+", "+c.name, func(t *testing.T) {
				err := s.kind.Binary(c.file, make([]byte, 3*ImageSize), make([]int, 3))
				var at *parse.Error
				if !errors.Is(err, c.cause) || !errors.As(err, &at) || at.Offset != c.offset {
					t.Errorf("%s, %s: got %v, want %v at byte %d", name, c.name, err, c.cause, c.offset)
				}
			})
		}
	}
}

func TestPickleRefuses(t *testing.T) {
	data := imagefiles.Entry{Key: "data", Value: imagefiles.Pixels{Columns: ImageSize, Data: make([]byte, 2*ImageSize)}}
	labels := imagefiles.Entry{Key: "labels", Value: []int{1, 2}}
	for _, c := range []struct {
		name  string
		file  []byte
		cause error
	}{
		{"cut", imagefiles.Pickle(data, labels)[:5000], io.ErrUnexpectedEOF},
		{"another opcode", []byte("\x80\x02i"), pickle.ErrOpcode},
		{"no dictionary", []byte("\x80\x02]."), ErrContents},
		{"no images", imagefiles.Pickle(labels), ErrContents},
		{"images of another size", imagefiles.Pickle(imagefiles.Entry{Key: "data", Value: imagefiles.Pixels{Columns: 2, Data: []byte("abcd")}}, labels), ErrContents},
		{"an image too few", imagefiles.Pickle(imagefiles.Entry{Key: "data", Value: imagefiles.Pixels{Columns: ImageSize, Data: make([]byte, ImageSize)}}, labels), ErrContents},
		{"no labels", imagefiles.Pickle(data), ErrContents},
		{"labels of CIFAR-100", imagefiles.Pickle(data, imagefiles.Entry{Key: "fine_labels", Value: []int{1, 2}}), ErrContents},
		{"a label too few", imagefiles.Pickle(data, imagefiles.Entry{Key: "labels", Value: []int{1}}), ErrContents},
		{"a label out of range", imagefiles.Pickle(data, imagefiles.Entry{Key: "labels", Value: []int{1, 10}}), ErrLabel},
		{"a label below range", bytes.Replace(imagefiles.Pickle(data, labels), []byte("K\x01K\x02e"), []byte("J\xff\xff\xff\xffK\x02e"), 1), ErrLabel},
		{"a label that is text", imagefiles.Pickle(data, imagefiles.Entry{Key: "labels", Value: []string{"1", "2"}}), ErrLabel},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := Ten().Pickle(c.file, make([]byte, 2*ImageSize), make([]int, 2)); !errors.Is(err, c.cause) {
				t.Errorf("got %v, want cause %v", err, c.cause)
			}
		})
	}
}

// fuzzBinary builds a file out of labels, which mutation can reach, and images of
// one value each, then cuts it off or makes it longer. The reader has to accept
// just the files of the right length whose labels are in range.
func fuzzBinary(f *testing.F, kind Kind) {
	f.Add([]byte{1, 2, 3, 4}, uint16(0), []byte{})
	f.Add([]byte{1, 2, 200, 4}, uint16(1), []byte{})
	f.Add([]byte{}, uint16(0), []byte{5})
	f.Fuzz(func(t *testing.T, text []byte, cut uint16, tail []byte) {
		text = text[:min(len(text), 16)]
		n := len(text) / len(kind.labels)
		inRange := true
		var file []byte
		for i := range n {
			for j, l := range kind.labels {
				v := text[i*len(kind.labels)+j]
				inRange = inRange && int(v) < l.classes
				file = append(file, v)
			}
			file = append(file, bytes.Repeat([]byte{byte(i + 1)}, ImageSize)...)
		}
		kept := max(0, len(file)-int(cut))
		file = append(file[:kept], tail...)
		pixels, labels := make([]byte, n*ImageSize), make([]int, n)
		err := kind.Binary(file, pixels, labels)
		if err != nil {
			var at *parse.Error
			if !errors.As(err, &at) || at.Offset < 0 || at.Offset > int64(len(file)) {
				t.Fatalf("%v in a file of %d bytes", err, len(file))
			}
			if cut == 0 && len(tail) == 0 && inRange {
				t.Fatalf("a good file of %d images: %v", n, err)
			}
			return
		}
		if len(file) != n*kind.RecordSize() {
			t.Fatalf("%d bytes accepted as %d images", len(file), n)
		}
		again := sample{kind: kind, labels: labels, pixels: pixels}
		for i := range labels {
			if last := file[i*kind.RecordSize()+len(kind.labels)-1]; labels[i] != int(last) || labels[i] >= kind.labels[len(kind.labels)-1].classes {
				t.Fatalf("image %d: label %d, in the file %d", i, labels[i], last)
			}
			if !bytes.Equal(again.pixels[i*ImageSize:(i+1)*ImageSize], file[i*kind.RecordSize()+len(kind.labels):(i+1)*kind.RecordSize()]) {
				t.Fatalf("image %d: other pixels", i)
			}
		}
	})
}

func FuzzBinaryTen(f *testing.F)     { fuzzBinary(f, Ten()) }
func FuzzBinaryHundred(f *testing.F) { fuzzBinary(f, Hundred()) }

// FuzzPickle holds the reader of the Python version to an error, or to labels in
// range.
func FuzzPickle(f *testing.F) {
	all := samples()
	s := all["CIFAR-100"]
	f.Add(s.python())
	f.Add(imagefiles.Pickle(imagefiles.Entry{Key: "coarse_labels", Value: []int{1}}))
	f.Fuzz(func(t *testing.T, file []byte) {
		labels := make([]int, 3)
		if s.kind.Pickle(file, make([]byte, 3*ImageSize), labels) != nil {
			return
		}
		for _, l := range labels {
			if l < 0 || l >= 100 {
				t.Fatalf("label %d", l)
			}
		}
	})
}
