package notebook

import (
	"image/color"
	"math"
	"strings"
	"testing"
)

func TestBitmapValues(t *testing.T) {
	colour := Colour("c", []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 2)
	if got, want := colour.At(1, 0), (color.RGBA{2, 6, 10, 255}); got != want || colour.Bounds().Dy() != 2 {
		t.Errorf("colour at row 0, column 1: %v of %v, want %v", got, colour.Bounds(), want)
	}
	grey := Grey("g", []float64{-1, 0, 1, 2, 4, 9}, 3, 4)
	for i, want := range []uint8{0, 0, 64, 128, 255, 255} {
		if got := grey.At(i%3, i/3).(color.Gray).Y; got != want {
			t.Errorf("grey %d: %d, want %d", i, got, want)
		}
	}
}

func TestBitmapMisuseStopsTheCell(t *testing.T) {
	for _, c := range []struct {
		name string
		call func()
	}{
		{"four planes", func() { Colour("x", make([]byte, 4), 1) }},
		{"no bytes", func() { Colour("x", nil, 1) }},
		{"no width", func() { Grey("x", []float64{1}, 0, 1) }},
		{"no whole row", func() { Grey("x", []float64{1, 2, 3}, 2, 1) }},
		{"no scale", func() { Grey("x", []float64{1}, 1, 0) }},
		{"a scale of NaN", func() { Grey("x", []float64{1}, 1, math.NaN()) }},
		{"NaN", func() { Grey("x", []float64{math.NaN()}, 1, 1) }},
		{"no bitmaps", func() { Bitmaps(1) }},
		{"no width of bitmaps", func() { Bitmaps(0, Grey("x", []float64{1}, 1, 1)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := panicOf(c.call); !strings.Contains(got, `"x"`) && !strings.Contains(got, "bitmaps of width") {
				t.Errorf("%s: panic %q", c.name, got)
			}
		})
	}
}
