// Package figtest has what the tests of figures and tables share.
package figtest

import (
	"bytes"
	"flag"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gonum.org/v1/plot/cmpimg"
	"rsc.io/pdf"

	"densityuncertainty/environment/atomicfile"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

var update = flag.Bool("update", false, "write the golden pictures and texts instead of comparing with them")

// tolerance lets fonts be rasterised a shade differently on another processor.
const tolerance = 0.1

// Same says whether two PNG pictures look the same.
func Same(t *testing.T, a, b []byte) bool {
	t.Helper()
	return must.Get(cmpimg.EqualApprox("png", a, b, tolerance))(t)
}

// PNG makes a picture of a figure that was made without an error. A figure without a caption is an error.
func PNG(t *testing.T) func(report.Figure, error) []byte {
	return func(f report.Figure, err error) []byte {
		t.Helper()
		must.Do(t, err)
		if f.Caption == "" {
			t.Errorf("%s has no caption", f.Name)
		}
		return must.Get(f.Bytes(report.PNG))(t)
	}
}

// Golden compares a figure that was made without an error with its picture in testdata.
func Golden(t *testing.T) func(report.Figure, error) {
	return func(f report.Figure, err error) {
		t.Helper()
		golden(t, filepath.Join("testdata", f.Name+".png"), PNG(t)(f, err), func(a, b []byte) bool { return Same(t, a, b) })
	}
}

// GoldenText compares a text with that of a file.
func GoldenText(t *testing.T, path, got string) {
	t.Helper()
	golden(t, path, []byte(got), bytes.Equal)
}

// golden compares what a test made with a file, or with -update writes the file.
func golden(t *testing.T, path string, got []byte, same func(a, b []byte) bool) {
	t.Helper()
	if *update {
		must.Do(t, atomicfile.WriteBytes(path, got))
		return
	}
	want, err := os.ReadFile(path)
	if err != nil || !same(got, want) {
		t.Errorf("%s differs (%v); to write it, run the test with -update", path, err)
	}
}

// Titles are those of a figure's panels, row by row.
func Titles(f report.Figure) []string {
	var titles []string
	for _, row := range f.Panels {
		for _, p := range row {
			if p != nil {
				titles = append(titles, p.Title.Text)
			}
		}
	}
	return titles
}

// Text is a cell in words: "not run" for one that waits for runs, and otherwise its text, between asterisks if it is bold,
// and its verdict if it has one.
func Text(c report.Cell) string {
	text := c.Text
	switch {
	case c.NotRun:
		text = "not run"
	case c.Bold:
		text = "*" + text + "*"
	}
	if c.Verdict != "" {
		text += ", " + c.Verdict
	}
	return text
}

// Cell is the Text of the first cell with these headings. The row can have its group before its name, with a comma.
func Cell(t *testing.T, table report.Table, row, column string) string {
	t.Helper()
	for _, r := range table.Rows {
		for i, c := range table.Columns[1:] {
			if (r.Name == row || r.Group+", "+r.Name == row) && c == column {
				return Text(r.Cells[i])
			}
		}
	}
	t.Fatalf("%s has no cell %s, %s", table.Name, row, column)
	return ""
}

// Cells compares Texts of cells, given by row, column and text.
func Cells(t *testing.T, table report.Table, cells [][3]string) {
	t.Helper()
	for _, c := range cells {
		if got := Cell(t, table, c[0], c[1]); got != c[2] {
			t.Errorf("%s, %s: %s, want %s", c[0], c[1], got, c[2])
		}
	}
}

// Results makes up results of experiments, with metrics.
func Results(list experiment.Experiments, metrics func(e experiment.Experiment) map[string]float64) (all []experiment.Result) {
	for _, e := range list {
		all = append(all, experiment.Result{ID: e.ID(), Split: e.Split, Seed: e.Seed, Metrics: metrics(e)}.Of(e))
	}
	return all
}

// Renders checks that a table can be rendered in every format, and is well formed.
func Renders(t *testing.T, table report.Table) {
	t.Helper()
	for _, format := range report.TableFormats() {
		out := must.Get(table.Render(format))(t)
		switch format {
		case report.LaTeX:
			if i := strings.IndexFunc(out, func(r rune) bool { return r > 126 }); i >= 0 {
				t.Errorf("%s: LaTeX holds what it does not take: %.4q", table.Name, out[i:])
			}
		case report.Markdown:
			for _, line := range strings.Split(out, "\n") {
				if strings.HasPrefix(line, "|") && strings.Count(line, " | ") != len(table.Columns)-1 {
					t.Errorf("%s: a line of another width: %s", table.Name, line)
				}
			}
		}
	}
}

// texts are the pieces of text in an SVG drawing.
var texts = regexp.MustCompile(`(?s)<text[^>]*>(.*?)</text>`)

// SameText is an error where a figure's PDF has another text than its SVG, but for minus signs and blanks, which are not read.
func SameText(t *testing.T, f report.Figure) {
	t.Helper()
	var drawn, printed strings.Builder
	for _, m := range texts.FindAllSubmatch(must.Get(f.Bytes(report.SVG))(t), -1) {
		drawn.WriteString(html.UnescapeString(string(m[1])))
	}
	content := must.Get(f.Bytes(report.PDF))(t)
	for _, piece := range must.Get(pdf.NewReader(bytes.NewReader(content), int64(len(content))))(t).Page(1).Content().Text {
		printed.WriteString(piece.S)
	}
	if want := strings.NewReplacer("−", "–", " ", "").Replace(drawn.String()); printed.String() != want || want == "" {
		t.Errorf("%s as PDF has the text\n%s, as SVG\n%s", f.Name, printed.String(), want)
	}
}

// Exhibit is one of a list by its name, which must be there.
func Exhibit(t *testing.T, list tables.Exhibits, name string) tables.Exhibit {
	t.Helper()
	e, has := list.Named(name)
	if !has {
		t.Fatalf("there is no exhibit %s", name)
	}
	return e
}
