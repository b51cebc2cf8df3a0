package imagepack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// noise returns records of random bytes.
func noise(records, labels int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	file := make([]byte, records*(labels+imageSize))
	for i := range file {
		file[i] = byte(r.Uint32())
	}
	return file
}

// scenes returns records somewhat like photographs: waves in random directions,
// with noise of standard deviation 1.5, whose entropy is 2.6 of a pixel's 8 bits.
func scenes(records, labels int) []byte {
	r := rand.New(rand.NewPCG(3, 4))
	file := noise(records, labels)
	for record := range file[:records] {
		pixels := file[record*(labels+imageSize)+labels:][:imageSize]
		fx, fy, phase := r.Float64()/3, r.Float64()/3, 6*r.Float64()
		for i := range pixels {
			p, y, x := i/(side*side), i/side%side, i%side
			v := 128 + 15*float64(p) + 60*math.Sin(fx*float64(x)+fy*float64(y)+phase) + 1.5*r.NormFloat64()
			pixels[i] = byte(min(max(v, 0), 255))
		}
	}
	return file
}

func TestRoundTrip(t *testing.T) {
	constant := bytes.Repeat([]byte{255}, 3*(1+imageSize))
	for name, test := range map[string]struct {
		file   []byte
		labels int
		at     float64 // largest size allowed, as a part of the file's
	}{
		"noise":        {noise(20, 1), 1, 1.06}, // what cannot be predicted costs the learning of its statistics
		"two labels":   {scenes(200, 2), 2, 0.5},
		"no labels":    {scenes(20, 0), 0, 0.7},
		"constant":     {constant, 1, 0.2},
		"empty":        {nil, 1, 0},
		"many records": {bytes.Repeat(scenes(1, 1), blockRecords+3), 1, 0.5}, // more than one block
	} {
		packed, err := Pack(test.file, test.labels)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if limit := test.at*float64(len(test.file)) + 9; float64(len(packed)) > limit {
			t.Errorf("%s: %d of %d bytes, want at most %.0f", name, len(packed), len(test.file), limit)
		}
		file, err := Unpack(packed, int64(len(test.file)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !bytes.Equal(file, test.file) {
			t.Errorf("%s: restored file differs", name)
		}
	}
}

// Extreme pixels reach every bound of the arithmetic.
func TestRoundTripOfExtremes(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	file := make([]byte, 30*imageSize)
	for i := range file {
		file[i] = byte(255 * r.IntN(2))
	}
	packed, err := Pack(file, 0)
	if err != nil {
		t.Fatal(err)
	}
	if restored, err := Unpack(packed, int64(len(file))); err != nil || !bytes.Equal(restored, file) {
		t.Errorf("restored file differs, error %v", err)
	}
}

func TestLevel(t *testing.T) {
	before := 0
	for sum := range uint32(30*255 + 1) {
		l := level(sum)
		if l < before || l > before+1 || l >= contexts {
			t.Fatalf("level(%d) = %d after %d, of %d", sum, l, before, contexts)
		}
		before = l
	}
	if before != contexts-1 {
		t.Errorf("the largest level is %d, want %d", before, contexts-1)
	}
}

func TestPackRefusesPartsOfRecords(t *testing.T) {
	for _, labels := range []int{-1, 2, maxLabels + 1} {
		if _, err := Pack(make([]byte, 1+imageSize), labels); err == nil {
			t.Errorf("no error for a record of 1 label taken as one of %d", labels)
		}
	}
}

func TestUnpackFindsDamage(t *testing.T) {
	file := scenes(3, 1)
	packed, err := Pack(file, 1)
	if err != nil {
		t.Fatal(err)
	}
	size := int64(len(file))
	changed := func(at int, to byte) []byte {
		damaged := bytes.Clone(packed)
		damaged[at] = to
		return damaged
	}
	for name, test := range map[string]struct {
		packed []byte
		size   int64
	}{
		"empty":             {nil, size},
		"cut head":          {packed[:5], size},
		"cut lengths":       {packed[:10], size},
		"cut block":         {packed[:len(packed)-1], size},
		"longer":            {append(bytes.Clone(packed), 0), size},
		"other size":        {packed, size - 1 - imageSize},
		"too many labels":   {changed(0, maxLabels+1), size},
		"other labels":      {changed(0, 2), size},
		"length of a block": {changed(12, 255), size},
	} {
		if _, err := Unpack(test.packed, test.size); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: error %v, want ErrDamaged", name, err)
		}
	}
}

// Damage of a block must end as a wrong file, never as a panic.
func FuzzUnpack(f *testing.F) {
	packed, err := Pack(scenes(1, 1), 1)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(packed)
	f.Fuzz(func(t *testing.T, packed []byte) {
		const size = 1 + imageSize
		if len(packed) > 8 {
			binary.LittleEndian.PutUint64(packed[1:], size)
		}
		file, err := Unpack(packed, size)
		if err == nil && len(file) != size {
			t.Errorf("%d bytes", len(file))
		}
	})
}

func BenchmarkUnpack(b *testing.B) {
	file := scenes(500, 1)
	packed, err := Pack(file, 1)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(file)))
	for b.Loop() {
		if _, err := Unpack(packed, int64(len(file))); err != nil {
			b.Fatal(err)
		}
	}
}
