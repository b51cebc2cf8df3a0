package notebook

import (
	"errors"
	"fmt"
	"image/color"
	"math"
	"strings"
	"testing"

	"densityuncertainty/environment/must"
)

// drawn is a drawing that tells what it was drawn for.
func drawn(at []float64) ([]byte, error) { return fmt.Appendf(nil, "<svg>%g</svg>", at), nil }

var exploreSliders = []Slider{{Name: "γ < 1", Positions: []float64{0, 0.1 + 0.2, 0.5}, Start: 1}, {Name: "β", Positions: []float64{1, 9}}}

func ExampleExplore() {
	band := func(at []float64) ([]byte, error) {
		variance := at[0]*0.5 + at[1]
		return fmt.Appendf(nil, `<svg height="%g"/>`, variance), nil
	}
	Explore("the variance of a unit", band,
		Slider{Name: "γ", Positions: []float64{0, 1, 2}, Start: 1},
		Slider{Name: "β", Positions: []float64{0, 9}})
	// Output:
	// [picture: the variance of a unit; γ 0; β 0]
	// [picture: the variance of a unit; γ 1; β 0]
	// [picture: the variance of a unit; γ 2; β 0]
	// [picture: the variance of a unit; γ 1; β 0]
	// [picture: the variance of a unit; γ 1; β 9]
}

func TestExploreMisuseStopsTheCell(t *testing.T) {
	for _, c := range []struct {
		name    string
		draw    func([]float64) ([]byte, error)
		sliders []Slider
		want    string
	}{
		{"no sliders", drawn, nil, "there is no slider"},
		{"no name", drawn, []Slider{{Name: " ", Positions: []float64{1}}}, `slider " "`},
		{"no positions", drawn, []Slider{{Name: "γ"}}, `slider "γ" starts at number 0 of 0 positions`},
		{"a start outside", drawn, []Slider{{Name: "γ", Positions: []float64{1}, Start: -1}}, "starts at number -1 of 1"},
		{"no drawing", func([]float64) ([]byte, error) { return []byte("PNG"), nil }, exploreSliders, "3 bytes without an <svg> element"},
		{"an error", func([]float64) ([]byte, error) { return nil, errors.New("no data") }, exploreSliders, `"band" at [0 1]: no data`},
	} {
		t.Run(c.name, func(t *testing.T) {
			must.Panic(t, func() { Explore("band", c.draw, c.sliders...) }, c.want)
		})
	}
}

// All pictures are there, of which one is seen. That they follow the sliders is for the tests in a browser.
func exploreInNotebook(t *testing.T, k *kernel) {
	Explore("a \"band\"", drawn, exploreSliders...)
	shown := k.shown()
	found := shown[len(shown)-1]
	seen, _ := drawn([]float64{0.1 + 0.2, 1})
	for _, want := range []string{
		`<span>γ &lt; 1</span><input type="range" aria-label="γ &lt; 1" min="0" max="2" value="1" aria-valuetext="0.3" data-texts="0 0.3 0.5"><output>0.3</output>`,
		`<span>β</span><input type="range" aria-label="β" min="0" max="1" value="0" aria-valuetext="1" data-texts="1 9"><output>1</output>`,
		`background:white" alt="a &#34;band&#34;; γ &lt; 1 0.3; β 1" src="` + strings.ReplaceAll(source("image/svg+xml", seen), "+", "&#43;") + `"`,
	} {
		if !strings.Contains(found, want) {
			t.Errorf("no %s in\n%s", want, found)
		}
	}
	if pictures, hidden := strings.Count(found, "<img "), strings.Count(found, "display:none"); pictures != 5 || hidden != 4 {
		t.Errorf("%d pictures, of which %d are hidden; want 5 and 4", pictures, hidden)
	}
}

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
	for name, call := range map[string]func(){
		"four planes": func() { Colour("x", make([]byte, 4), 1) }, "no bytes": func() { Colour("x", nil, 1) },
		"no width": func() { Grey("x", []float64{1}, 0, 1) }, "no whole row": func() { Grey("x", []float64{1, 2, 3}, 2, 1) },
		"no scale": func() { Grey("x", []float64{1}, 1, 0) }, "a scale of NaN": func() { Grey("x", []float64{1}, 1, math.NaN()) },
		"NaN": func() { Grey("x", []float64{math.NaN()}, 1, 1) },
	} {
		t.Run(name, func(t *testing.T) { must.Panic(t, call, `"x"`) })
	}
	must.Panic(t, func() { Bitmaps(1) }, "bitmaps of width")
	must.Panic(t, func() { Bitmaps(0, Grey("x", []float64{1}, 1, 1)) }, "bitmaps of width")
}
