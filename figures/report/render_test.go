package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"image/png"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/cmpimg"
	"gonum.org/v1/plot/vg"

	"densityuncertainty/environment/atomicfile"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

var update = flag.Bool("update", false, "write the golden pictures instead of comparing with them")

// madeUp is a toy result that looks like a real one: the cubic, with a spread that has the shape the
// method is known for.
func madeUp(e experiment.Experiment) results.Result {
	rng := rand.New(rand.NewPCG(e.Seed, 1))
	r := results.Result{ID: e.ID(), Experiment: e, Series: map[string][]float64{}}
	add := func(name string, v float64) { r.Series[name] = append(r.Series[name], v) }
	for i := range 100 {
		x := 2 + 2*rng.Float64()
		if i%2 == 0 {
			x = -x
		}
		add(SeriesTrainX, x)
		add(SeriesTrainY, x*x*x+3*rng.NormFloat64())
	}
	for i := range 241 {
		x := -6 + 0.05*float64(i)
		std := 3.0
		switch e.Method {
		case experiment.Density:
			std = 3 + 5*math.Exp(-x*x) + 6*max(0, math.Abs(x)-4)
			if e.Options == nil {
				std *= 1 + math.Exp(-x*x)
			}
		case experiment.DensityRank1Mix:
			std = 3 + 2*max(0, math.Abs(x)-4)
		case experiment.VDropout:
			std = 1 + 3*math.Abs(x)
		default:
			std = 1 + math.Abs(x)
		}
		add(SeriesX, x)
		add(SeriesMean, x*x*x)
		add(SeriesStd, std)
		for name, z := range map[string]float64{SeriesQ005: -2.576, SeriesQ025: -1.96, SeriesQ975: 1.96, SeriesQ995: 2.576} {
			add(name, x*x*x+z*std)
		}
	}
	return r
}

func toyResults(t *testing.T, scale string) []results.Result {
	t.Helper()
	set, ok := experiment.SetByName("figure1")
	if !ok {
		t.Fatal("no set figure1")
	}
	var lines []results.Result
	for _, e := range set.At(scale) {
		lines = append(lines, madeUp(e))
	}
	return lines
}

// uciResults are made up; MFVI on protein was not run and wine only in part.
func uciResults(t *testing.T) []results.Result {
	t.Helper()
	set, ok := experiment.SetByName("uci")
	if !ok {
		t.Fatal("no set uci")
	}
	rng := rand.New(rand.NewPCG(7, 7))
	var lines []results.Result
	for _, e := range set.At(experiment.Full) {
		if e.Dataset == "protein" && e.Method == experiment.MFVI || e.Dataset == "wine" && e.Split > 4 {
			continue
		}
		level := 3 - 0.2*float64(len(e.Method)) + 0.1*rng.NormFloat64()
		lines = append(lines, results.Result{ID: e.ID(), Experiment: e, Metrics: map[string]float64{tables.MetricNLL: level, tables.MetricRMSE: level + 3}})
	}
	return lines
}

// tolerance lets fonts be rasterised a shade differently on another processor.
const tolerance = 0.1

// checkGolden compares the PNG with the one in testdata.
func checkGolden(t *testing.T, f Figure) {
	t.Helper()
	got, err := f.Bytes(PNG)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", f.Name+".png")
	if *update {
		if err := atomicfile.WriteBytes(path, got); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	same, err := cmpimg.EqualApprox("png", got, want, tolerance)
	if err != nil {
		t.Fatal(err)
	}
	if !same {
		failed := filepath.Join(os.TempDir(), f.Name+"_got.png")
		t.Errorf("%s differs from %s; the new picture is %s; if it is right, run: go test ./figures/render -update", f.Name, path, failed)
		if err := os.WriteFile(failed, got, 0o600); err != nil {
			t.Error(err)
		}
	}
}

func TestGolden(t *testing.T) {
	lines := slices.Concat(toyResults(t, experiment.Full), distanceResults(t), uciResults(t))
	for _, named := range List() {
		t.Run(named.Name, func(t *testing.T) {
			f, err := named.Make(lines, 0)
			if err != nil {
				t.Fatal(err)
			}
			if f.Name != named.Name || f.Caption == "" {
				t.Errorf("figure %s calls itself %q, caption %q", named.Name, f.Name, f.Caption)
			}
			checkGolden(t, f)
		})
	}
}

// The shapes that notebooks use.
func TestGoldenShapes(t *testing.T) {
	p := New("Energies", "energy", "density")
	rng := rand.New(rand.NewPCG(3, 4))
	inside, outside := make([]float64, 400), make([]float64, 400)
	for i := range inside {
		inside[i], outside[i] = rng.NormFloat64(), 3+1.5*rng.NormFloat64()
	}
	if err := errors.Join(Histogram(p, "CIFAR-10", inside, 25, Blue), Histogram(p, "SVHN", outside, 25, Orange),
		Line(p, "a line", []float64{-3, 8}, []float64{0, 0.3}, Palette()[2])); err != nil {
		t.Fatal(err)
	}
	p.Legend.Top = true
	checkGolden(t, Single("shapes", p, vg.Points(300), vg.Points(200)))
}

// A golden test must notice a change of one panel.
func TestGoldenNoticesAChange(t *testing.T) {
	lines := toyResults(t, experiment.Full)
	before, err := Figure1(lines, 0, Wide)
	if err != nil {
		t.Fatal(err)
	}
	one, err := before.Bytes(PNG)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range lines {
		if v.Experiment.Method == experiment.Density && v.Experiment.Seed == 0 {
			for i := range v.Series[SeriesMean] {
				v.Series[SeriesMean][i] += 5
			}
		}
	}
	after, err := Figure1(lines, 0, Wide)
	if err != nil {
		t.Fatal(err)
	}
	two, err := after.Bytes(PNG)
	if err != nil {
		t.Fatal(err)
	}
	if same, err := cmpimg.EqualApprox("png", one, two, tolerance); err != nil || same {
		t.Errorf("a moved line gives an equal picture: %v, %v", same, err)
	}
}

func TestQuickFigureSaysSo(t *testing.T) {
	f, err := Figure1(toyResults(t, experiment.Quick), 1, Square)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range f.Panels {
		for _, p := range row {
			if !strings.Contains(p.Title.Text, "quick run, 800 steps") {
				t.Errorf("title %q", p.Title.Text)
			}
		}
	}
	if !strings.Contains(f.Caption, "QUICK RUN") {
		t.Errorf("caption %q", f.Caption)
	}
	full, err := Figure1(append(toyResults(t, experiment.Quick), toyResults(t, experiment.Full)...), 1, Square)
	if err != nil || strings.Contains(full.Caption, "QUICK") {
		t.Errorf("full runs beside quick ones: %q, %v", full.Caption, err)
	}
}

func TestMissingRunsAreNamed(t *testing.T) {
	lines := toyResults(t, experiment.Full)
	_, err := Figure1(lines[3:], 0, Wide) // MFVI comes first
	if err == nil || !strings.Contains(err.Error(), "seed 0 of mfvi; run: reproduce run figure1") {
		t.Errorf("got %v", err)
	}
}

func TestDivergedPanel(t *testing.T) {
	lines := toyResults(t, experiment.Full)
	for i := range lines {
		if lines[i].Experiment.Method == experiment.Rank1 {
			lines[i].Diverged = true
			for _, name := range []string{SeriesMean, SeriesQ005} {
				delete(lines[i].Series, name)
			}
		}
	}
	f, err := Figure1(lines, 0, Wide)
	if err != nil || !strings.Contains(f.Panels[0][2].Title.Text, "diverged") {
		t.Errorf("diverged panel: %v", err)
	}
}

func TestFormats(t *testing.T) {
	f, err := Figure1(toyResults(t, experiment.Full), 0, Wide)
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range Formats() {
		out, err := f.Bytes(format)
		if err != nil {
			t.Fatal(err)
		}
		again, err := f.Bytes(format)
		if err != nil {
			t.Fatal(err)
		}
		if format != PDF && !bytes.Equal(out, again) {
			t.Errorf("%s differs from one time to the next", format)
		}
		switch format {
		case SVG:
			d := xml.NewDecoder(bytes.NewReader(out))
			for {
				if _, err := d.Token(); err == io.EOF {
					break
				} else if err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Contains(out, []byte("(d) Density Uncertainty")) || !bytes.Contains(out, []byte("sans-serif")) {
				t.Error("the SVG lacks a title or a fallback font")
			}
		case PNG:
			if c, err := png.DecodeConfig(bytes.NewReader(out)); err != nil || c.Width < 1500 {
				t.Errorf("PNG: %+v, %v", c, err)
			}
		case PDF:
			if !bytes.HasPrefix(out, []byte("%PDF-")) {
				t.Error("not a PDF")
			}
		}
	}
	if _, err := f.Bytes("gif"); err == nil || !strings.Contains(err.Error(), "svg, png, pdf") {
		t.Errorf("unknown format: %v", err)
	}
	for _, bad := range []Figure{{}, {Panels: [][]*plot.Plot{{nil}, {nil, nil}}}} {
		if _, err := bad.Bytes(PNG); err == nil {
			t.Error("a bad grid was drawn")
		}
	}
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "picture.svg")
	f := Single("picture", New("t", "x", "y"), 100, 100)
	f.Panels[0][0].X.Max, f.Panels[0][0].Y.Max = 1, 1
	for range 2 {
		if err := f.WriteFile(path); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("files left: %v, %v", entries, err)
	}
	if err := f.WriteFile(filepath.Join(dir, "missing", "picture.svg")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing folder: %v", err)
	}
	if err := f.WriteFile(filepath.Join(dir, "picture")); err == nil {
		t.Error("a name without an ending was accepted")
	}
	// A folder in the way makes the last step fail; the temporary file must not stay.
	blocked := filepath.Join(dir, "blocked.svg")
	if err := os.MkdirAll(filepath.Join(blocked, "inner"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := f.WriteFile(blocked); err == nil {
		t.Error("a folder was overwritten")
	}
	if entries, err = os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("files left: %v, %v", entries, err)
	}
}

func TestRoundTicks(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      string
	}{
		{0, 1, "0.0 0.5 1.0"},
		{2.2, 6.7, "3 4 5 6"},
		{3.558, 3.570, "3.560 3.565 3.570"},
		{-127, 133, "-100 0 100"},
		{-6, 6, "-5 0 5"},
		{0.3, 0.5, "0.3 0.4 0.5"},
		{-0.004, 0.004, "-0.004 -0.002 0.000 0.002 0.004"},
		{1, 1, ""},
	} {
		var labels []string
		for _, tick := range (roundTicks{wanted: 4}).Ticks(c.low, c.high) {
			labels = append(labels, tick.Label)
		}
		if got := strings.Join(labels, " "); got != c.want {
			t.Errorf("[%v, %v]: got %s, want %s", c.low, c.high, got, c.want)
		}
	}
}

func TestShapesReject(t *testing.T) {
	p := New("", "", "")
	nan := []float64{math.NaN()}
	one, two := []float64{1}, []float64{1, 2}
	for name, err := range map[string]error{
		"line lengths":     Line(p, "n", one, two, Blue),
		"line empty":       Line(p, "n", nil, nil, Blue),
		"line NaN":         Line(p, "n", one, nan, Blue),
		"band low":         Band(p, "n", two, one, two, Blue),
		"band high":        Band(p, "n", two, two, one, Blue),
		"band NaN":         Band(p, "n", one, one, nan, Blue),
		"points NaN":       Points(p, "n", nan, one, Blue, 1),
		"histogram empty":  Histogram(p, "n", nil, 3, Blue),
		"histogram bins":   Histogram(p, "n", one, 0, Blue),
		"error bars std":   ErrorBars(p, "n", one, one, two, Blue, oursShape),
		"error bars empty": ErrorBars(p, "n", nil, nil, nil, Blue, oursShape),
	} {
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := UCIComparison(nil, "ece"); err == nil {
		t.Error("an unknown metric was accepted")
	}
}
