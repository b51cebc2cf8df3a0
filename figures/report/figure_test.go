package report_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/report"
)

// shapes is a picture of the shapes that notebooks use, with a line at a height.
func shapes(height float64) (report.Figure, error) {
	p := report.New("Energies", "energy", "density")
	rng := rand.New(rand.NewPCG(3, 4))
	inside, outside := make([]float64, 400), make([]float64, 400)
	for i := range inside {
		inside[i], outside[i] = rng.NormFloat64(), 3+1.5*rng.NormFloat64()
	}
	err := errors.Join(report.Histogram(p, "CIFAR-10", inside, 25, report.Blue), report.Histogram(p, "SVHN", outside, 25, report.Orange),
		report.Line(p, "a line", []float64{-3, 8}, []float64{0, height}, report.Palette()[2]))
	p.Legend.Top = true
	f := report.Single("shapes", p, vg.Points(300), vg.Points(200))
	f.Caption = "Shapes."
	return f, err
}

func TestShapes(t *testing.T) { figtest.Golden(t)(shapes(0.3)) }

// The lowest row is below, what is outside of the range has the shade of its end, and the axes end with the map.
func TestShades(t *testing.T) {
	p := report.New("A map", "x", "y")
	var x, y, z []float64
	for i := range 20 {
		x, y = append(x, float64(i)/10), append(y, 10+float64(i))
		for j := range 20 {
			z = append(z, float64(i+j)/10-1) // -1 to 2.8
		}
	}
	must.Do(t, report.Shades(p, x, y, z, 0, 2))
	if p.X.Max != 1.9 || p.Y.Min != 10 {
		t.Errorf("axes from %v to %v and from %v to %v", p.X.Min, p.X.Max, p.Y.Min, p.Y.Max)
	}
	f := report.Single("shades", p, vg.Points(160), vg.Points(120))
	f.Caption = "A map."
	figtest.Golden(t)(f, nil)
}

// The bar says what the shades are, also those of a logarithmic scale, beside the dots of two classes.
func TestShadesWithBar(t *testing.T) {
	axis := floats.Span(make([]float64, 30), 0, 3)
	f := report.Figure{Name: "shades-bar", Caption: "Two scales.", Panels: [][]*plot.Plot{nil}, Width: vg.Points(300), Height: vg.Points(120)}
	for _, logarithmic := range []bool{false, true} {
		var z []float64
		for i := range 30 * 30 {
			z = append(z, float64(i))
		}
		p := report.New("A map", "x", "y")
		must.Do(t, report.ShadesWithBar(p, axis, axis, z, 10, 1000, logarithmic))
		must.Do(t, report.Classes(p, axis[:4], axis[10:14], []int{0, 1, 0, 1}, vg.Points(2)))
		f.Panels[0] = append(f.Panels[0], p)
		if z[0] != 0 {
			t.Error("the map's values were changed")
		}
	}
	figtest.Golden(t)(f, nil)
}

// A logarithmic axis spans the values above 0, and not too many powers of ten.
func TestLogAxis(t *testing.T) {
	for _, c := range []struct {
		values    []float64
		low, high float64
	}{
		{[]float64{3, 0, 40, -1}, 3, 40},
		{[]float64{1e-9, 5}, 0.005, 5},
		{[]float64{2, 2}, 1, 4},
		{[]float64{0}, 0.5, 2},
		{nil, 0.5, 2},
	} {
		p := report.New("", "x", "y")
		report.LogAxis(&p.Y, c.values)
		if p.Y.Min != c.low || p.Y.Max != c.high {
			t.Errorf("%v: from %v to %v, want %v to %v", c.values, p.Y.Min, p.Y.Max, c.low, c.high)
		}
		must.Do(t, report.Line(p, "", []float64{0, 1}, []float64{c.low, c.high}, report.Blue))
		must.Get(report.Single("n", p, 100, 100).Bytes(report.SVG))(t)
	}
}

// A line through 0 is refused on a logarithmic axis, whichever came first.
func TestLogAxisOrder(t *testing.T) {
	for _, first := range []bool{true, false} {
		p, y := report.New("", "x", "y"), []float64{0, 1, 10}
		if first {
			report.LogAxis(&p.Y, y)
		}
		must.Do(t, report.Line(p, "", []float64{0, 1, 2}, y, report.Blue))
		if !first {
			report.LogAxis(&p.Y, y)
		}
		t.Run(fmt.Sprint("axis first ", first), func(t *testing.T) {
			must.GetErr(report.Single("n", p, 100, 100).Bytes(report.SVG))(t, "the y axis is logarithmic")
		})
	}
}

// A PDF has the characters of Windows-1252, and names another.
func TestCharactersOfPDF(t *testing.T) {
	p := report.New("f − mean, ±2 sd, σ²é", "ä – €", "")
	must.Do(t, report.Line(p, "", []float64{0, 1}, []float64{-1, 1}, report.Blue))
	f := report.Single("n", p, 200, 200)
	must.GetErr(f.Bytes(report.PDF))(t, "'σ' (U+03C3)")
	p.Title.Text = "f − mean, ±2 sd, é²"
	figtest.SameText(t, f)
}

// A long legend stands beside the lines.
func TestLongLegend(t *testing.T) {
	p := report.New("Many lines", "x", "y")
	for i := range 14 {
		must.Do(t, report.Line(p, fmt.Sprintf("method %d", i), []float64{0, 1}, []float64{float64(i), 14}, report.Palette()[i%6]))
	}
	f := report.Single("long-legend", p, 300, 180)
	f.Caption = "Fourteen lines."
	figtest.Golden(t)(f, nil)
}

// Any two finite values are drawn, or an error says why not; no picture loops, panics or has a NaN.
func FuzzAxes(f *testing.F) {
	for _, pair := range [][2]float64{{0.3, 0.1 + 0.2}, {0.3, math.Nextafter(0.3, 1)}, {0, 1}, {1, 1}, {0, 0}, {0, 5e-324}, {1e300, 1e300}, {-1.7e308, 1.7e308}, {1e16, 1e16 + 2}, {-1, 1e-300}} {
		for _, log := range []bool{false, true} {
			f.Add(pair[0], pair[1], log)
		}
	}
	f.Fuzz(func(t *testing.T, a, b float64, log bool) {
		p := report.New("", "x", "y")
		if log {
			report.LogAxis(&p.Y, []float64{a, b})
		}
		if report.Line(p, "", []float64{1, 2}, []float64{a, b}, report.Blue) != nil {
			t.Skip("not finite")
		}
		content, err := report.Single("f", p, 100, 100).Bytes(report.SVG)
		if log && min(a, b) <= 0 && (err == nil || !strings.Contains(err.Error(), "logarithmic")) {
			t.Errorf("the error of %v and %v on a logarithmic axis is %v", a, b, err)
		}
		if bytes.Contains(content, []byte("NaN")) {
			t.Errorf("the picture of %v and %v has a NaN", a, b)
		}
	})
}

// A comparison of pictures must notice a line that moved.
func TestGoldenNoticesAChange(t *testing.T) {
	if before, after := figtest.PNG(t)(shapes(0.3)), figtest.PNG(t)(shapes(0.28)); figtest.Same(t, before, after) {
		t.Error("a moved line gives an equal picture")
	}
}

func TestFigureFormats(t *testing.T) {
	f := must.Get(shapes(0.3))(t)
	for _, c := range []struct {
		format string
		check  func(t *testing.T, out []byte)
	}{
		{report.SVG, func(t *testing.T, out []byte) {
			d := xml.NewDecoder(bytes.NewReader(out))
			for {
				if _, err := d.Token(); err == io.EOF {
					break
				} else if err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Contains(out, []byte("Energies")) || !bytes.Contains(out, []byte("sans-serif")) {
				t.Error("the SVG lacks a title or a fallback font")
			}
		}},
		{report.PNG, func(t *testing.T, out []byte) {
			if c, err := png.DecodeConfig(bytes.NewReader(out)); err != nil || c.Width != 800 { // 300 points at 192 dots per inch
				t.Errorf("PNG: %+v, %v", c, err)
			}
		}},
		{report.PDF, func(t *testing.T, out []byte) { figtest.SameText(t, f) }},
	} {
		t.Run(c.format, func(t *testing.T) {
			out := must.Get(f.Bytes(c.format))(t)
			again := must.Get(f.Bytes(c.format))(t)
			if c.format != report.PDF && !bytes.Equal(out, again) {
				t.Error("the picture differs from one time to the next")
			}
			c.check(t, out)
		})
	}
	must.GetErr(f.Bytes("gif"))(t, "svg, png, pdf")
	must.GetErr((report.Figure{}).Bytes(report.PNG))(t) // a figure without panels was drawn
}

// What cannot be drawn is refused by name and place.
func TestShapesRefuse(t *testing.T) {
	p := report.New("", "", "")
	nan, inf := math.NaN(), math.Inf(1)
	one, two, bad := []float64{1}, []float64{1, 2}, []float64{1, nan}
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"line lengths", report.Line(p, "n", one, two, report.Blue), "line n: 1 x values but 2"},
		{"line empty", report.Line(p, "n", nil, nil, report.Blue), "line n: no points"},
		{"line NaN", report.Line(p, "n", two, bad, report.Blue), "line n: the y value at place 1 of 2 is NaN"},
		{"line infinite", report.Line(p, "n", []float64{inf, 0}, two, report.Blue), "line n: the x value at place 0 of 2 is +Inf"},
		{"line without a name", report.Line(p, "", two, bad, report.Blue), "line: the y value at place 1"},
		{"dashes NaN", report.Dashes(p, "n", two, bad, report.Blue), "line n: the y value at place 1"},
		{"band low", report.Band(p, "n", two, one, two, report.Blue), "band n: 2 x values but 1"},
		{"band high", report.Band(p, "n", two, two, one, report.Blue), "band n: 2 x values but 1"},
		{"band NaN low", report.Band(p, "n", two, bad, two, report.Blue), "band n: the y value at place 1"},
		{"band NaN high", report.Band(p, "n", two, two, bad, report.Blue), "band n: the y value at place 1"},
		{"points NaN", report.Points(p, "n", bad, two, report.Blue, 1), "points n: the x value at place 1"},
		{"map size", report.Shades(p, []float64{0, 1}, []float64{0, 1}, one, 0, 1), "a map of 2 by 2 places has 1 values"},
		{"map range", report.Shades(p, []float64{0, 1}, []float64{0, 1}, []float64{1, 2, 3, 4}, 1, 1), "a map in shades from 1 to 1"},
		{"map logarithmic", report.ShadesWithBar(p, []float64{0, 1}, []float64{0, 1}, []float64{1, 2, 3, 4}, 0, 1, true), "a map in shades of a logarithmic scale from 0"},
		{"map with a bar", report.ShadesWithBar(p, []float64{0, 1}, []float64{0, 1}, one, 0, 1, false), "a map of 2 by 2 places has 1 values"},
		{"classes lengths", report.Classes(p, two, two, []int{0}, 1), "points of classes: 2 x values, 2 y values and 1 classes"},
		{"classes empty", report.Classes(p, two, two, []int{0, 0}, 1), "points: no points"},
		{"map infinite", report.Shades(p, []float64{0, 1}, []float64{0, 1}, []float64{1, math.Inf(1), 3, 4}, 0, 1), "map: the value at place 1"},
		{"histogram empty", report.Histogram(p, "n", nil, 3, report.Blue), "histogram n: 0 values"},
		{"histogram bins", report.Histogram(p, "n", one, 0, report.Blue), "histogram n: 1 values in 0 bins"},
		{"histogram NaN", report.Histogram(p, "n", bad, 3, report.Blue), "histogram n: the value at place 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.err == nil || !strings.Contains(c.err.Error(), "report: "+c.want) {
				t.Errorf("got %v, want an error with %q", c.err, c.want)
			}
		})
	}
}

// Only the lowest row and the first column keep the labels of shared axes.
func TestShareAxes(t *testing.T) {
	for _, lowest := range []bool{false, true} {
		for _, first := range []bool{false, true} {
			t.Run(fmt.Sprintf("lowest %t first %t", lowest, first), func(t *testing.T) {
				p := report.New("", "x", "y")
				report.ShareAxes(p, lowest, first)
				for _, axis := range []struct {
					of   plot.Axis
					keep bool
				}{{p.X, lowest}, {p.Y, first}} {
					for _, tick := range axis.of.Tick.Marker.Ticks(0, 1) {
						if (strings.TrimSpace(tick.Label) != "") != axis.keep || tick.Label == "" {
							t.Errorf("the tick %q, want it with its label: %t", tick.Label, axis.keep)
						}
					}
					if (axis.of.Label.Text != "") != axis.keep {
						t.Errorf("the label %q, want it: %t", axis.of.Label.Text, axis.keep)
					}
				}
			})
		}
	}
}

// A table of three groups: some rows with two tested columns, one without, and a cell that waits for runs.
func TestForest(t *testing.T) {
	cell := func(mean, half float64, verdict string) report.Cell {
		return report.Cell{Text: "1", Verdict: verdict, Difference: &metrics.Difference{Mean: mean, Low: mean - half, High: mean + half}}
	}
	table := report.Table{Name: "forest", Columns: []string{"Data", "plain", "first", "second"}, Rows: []report.Row{
		{Group: "The authors' code", Name: "Boston Housing", Cells: []report.Cell{{Text: "1"}, cell(-0.2, 0.1, report.Better), cell(0.1, 0.2, report.NotSignificant)}},
		{Group: "The authors' code", Name: "Energy Efficiency (cooling)", Cells: []report.Cell{{Text: "1"}, cell(-0.02, 0.1, report.NotSignificant), {NotRun: true}}},
		{Group: "The authors' code", Name: "not tested", Cells: make([]report.Cell, 3)},
		{Group: "Adam", Name: "Boston Housing", Cells: []report.Cell{{}, cell(0.2, 0.1, report.Worse), cell(-0.1, 0.05, report.Better)}},
		{Group: "Adam", Name: "Energy Efficiency (cooling)", Cells: []report.Cell{{}, cell(0.02, 0.1, report.NotSignificant), cell(0, 0.05, report.NotSignificant)}},
		{Group: "Text", Name: "Yacht", Cells: []report.Cell{{}, cell(1.2, 0.1, report.Worse), {}}},
	}}
	f, err := report.Forest{Axis: "change of NLL (nats)", Columns: 2}.Of(table)
	f.Caption = "Differences."
	figtest.Golden(t)(f, err)
	if got := figtest.Titles(f); !slices.Equal(got, []string{"The authors' code", "Adam", "Text"}) {
		t.Errorf("panels %q", got)
	}
	table.Rows = table.Rows[2:3]
	must.GetErr((report.Forest{}).Of(table))(t, "forest has nothing to draw")
}

// With fixed axes, too, a bar that is not a number is an error.
func TestForestRefusesNaN(t *testing.T) {
	for _, d := range []metrics.Difference{{Mean: math.NaN()}, {Mean: 1, Low: math.NaN(), High: 2}, {Mean: 1, High: math.NaN()}} {
		table := report.Table{Name: "n", Columns: []string{"Method", "a"}, Rows: []report.Row{{Name: fmt.Sprint(d), Cells: []report.Cell{{Difference: &d}}}}}
		must.GetErr((report.Forest{Within: 5}).Of(table))(t, "the bar of "+fmt.Sprint(d))
	}
}

// The numbers of a table, with a line for every name in every panel.
func TestForestOfNumbers(t *testing.T) {
	number := func(mean, std float64) report.Cell { return report.Value{Mean: mean, Std: std, Decimals: 3}.Cell() }
	chance := 0.5
	table := report.Table{Name: "numbers", Columns: []string{"Method", "n", "entropy", "energy"}, Rows: []report.Row{
		{Group: "CIFAR-10", Name: "Density", Cells: []report.Cell{{Text: "2"}, number(0.8, 0.02), number(0.6, 0.05)}},
		{Group: "CIFAR-10", Name: "MFVI", Cells: []report.Cell{{Text: "1"}, number(0.7, math.NaN()), {}}},
		{Group: "CIFAR-100", Name: "MFVI", Cells: []report.Cell{{Text: "1"}, number(0.55, 0), {NotRun: true}}},
	}}
	f, err := report.Forest{Axis: "area", Numbers: true, Line: &chance}.Of(table)
	f.Caption = "Numbers."
	figtest.Golden(t)(f, err)
	for _, p := range f.Panels[0] {
		if ticks := p.Y.Tick.Marker.Ticks(0, 1); len(ticks) != 2 || p.X.Max > 1 {
			t.Errorf("%s has the lines %v and ends at %g", p.Title.Text, ticks, p.X.Max)
		}
	}
}
