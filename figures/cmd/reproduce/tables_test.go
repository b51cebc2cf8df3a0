package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"densityuncertainty/environment"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// nothingKept is for tables of runs without predictions.
func nothingKept(string) (file string, found bool) { return "", false }

// quickStore has made-up quick runs of these sets.
func quickStore(t *testing.T, sets ...string) string {
	t.Helper()
	store := filepath.Join(t.TempDir(), "runs")
	for _, set := range sets {
		succeeds(t, "100%", "run", set, "--scale", "quick", "--store", store)
	}
	return store
}

func TestTable(t *testing.T) {
	store, dir := quickStore(t, "figure1", "distance", "uci"), t.TempDir()
	text := succeeds(t, "", "table", "uci-nll", "--store", store)
	for _, want := range []string{"quick, 20 epochs: 2.000", "not run<br>paper"} {
		if !strings.Contains(text, want) {
			t.Errorf("the table lacks %q:\n%s", want, text)
		}
	}
	cite := "densityuncertainty " + environment.Version() + ", paper fidelity, 30 runs, of them 30 quick"
	for _, c := range []struct{ format, ending, last string }{
		{report.Markdown, ".md", "\n\n" + cite + "\n"},
		{report.LaTeX, ".tex", "\\end{table}\n% " + cite + "\n"},
		{report.HTML, ".html", "</table>\n<p>" + cite + "</p>\n"},
		{report.CSV, ".csv", "\n"},
	} {
		t.Run(c.format, func(t *testing.T) {
			out := filepath.Join(dir, c.format)
			if stdout := succeeds(t, "wrote "+out, "table", "all", "--format", c.format, "--out", out, "--store", store); stdout != "" {
				t.Errorf("it also prints:\n%s", stdout)
			}
			if files, err := filepath.Glob(filepath.Join(out, "*"+c.ending)); err != nil || len(files) != len(namedTables()) {
				t.Errorf("files %v, %v", files, err)
			}
			text, err := os.ReadFile(filepath.Join(out, "uci-nll"+c.ending))
			if err != nil || !strings.HasSuffix(string(text), c.last) || c.format == report.CSV && strings.Contains(string(text), cite) {
				t.Errorf("it does not end with %q (%v):\n%s", c.last, err, text)
			}
		})
	}
}

// The ending of the file says in which format a table is written.
func TestTableByTheEnding(t *testing.T) {
	store := t.TempDir()
	for _, c := range []struct{ file, begins string }{
		{"a.md", "Test negative"}, {"a.tex", "% needs"}, {"a.html", "<table"}, {"a.csv", "Data set,"}, {"a", "Test negative"},
	} {
		t.Run(c.file, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), c.file)
			succeeds(t, "wrote "+out, "table", "uci-nll", "--out", out, "--store", store)
			if text, err := os.ReadFile(out); err != nil || !strings.HasPrefix(string(text), c.begins) {
				t.Errorf("%.40q, %v", text, err)
			}
		})
	}
}

func TestFigure(t *testing.T) {
	store, dir := quickStore(t, "figure1", "distance", "uci"), t.TempDir()
	cite := fmt.Sprintf("\ndensityuncertainty %s, paper fidelity, 4 runs, of them 4 quick\n", environment.Version())
	for _, c := range []struct{ name, file, format, begins string }{
		{"svg", "a.svg", "--format=svg", "<?xml"},
		{"png", "a.png", "--format=png", "\x89PNG"},
		{"pdf", "a.pdf", "--format=pdf", "%PDF"},
		{"by the ending", "b.png", "--format=", "\x89PNG"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(dir, c.file)
			stdout := succeeds(t, "", "figure", "figure1", "--seed", "2", c.format, "--out", out, "--store", store)
			if !strings.HasPrefix(stdout, out+": ") || !strings.Contains(stdout, "seed 2. QUICK RUN") || !strings.HasSuffix(stdout, cite) {
				t.Errorf("it prints %q", stdout)
			}
			if picture, err := os.ReadFile(out); err != nil || !strings.HasPrefix(string(picture), c.begins) {
				t.Errorf("%.20q, %v", picture, err)
			} else if has := strings.Contains(string(picture), "seed 2. QUICK RUN") && strings.Contains(string(picture), cite[1:len(cite)-1]+"</desc>"); has != (c.name == "svg") {
				t.Errorf("it holds its caption and citation: %v", has)
			}
		})
	}
	t.Run("into a folder", func(t *testing.T) {
		out := t.TempDir()
		succeeds(t, "", "figure", "figure1", "--seed", "2", "--out", out, "--store", store)
		succeeds(t, "", "table", "gap-ratio", "--format", "csv", "--out", out, "--store", store)
		for _, name := range []string{"figure1.svg", "gap-ratio.csv"} {
			if _, err := os.Stat(filepath.Join(out, name)); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("all", func(t *testing.T) {
		stdout := succeeds(t, "", "figure", "all", "--format", "png", "--out", filepath.Join(dir, "all"), "--store", store)
		if n := strings.Count(stdout, "\ndensityuncertainty "); n != 10 {
			t.Errorf("%d captions, want 10\n%s", n, stdout)
		}
	})
	t.Run("all, here", func(t *testing.T) {
		t.Chdir(t.TempDir())
		succeeds(t, "", "figure", "all", "--store", store)
		succeeds(t, "", "figure", "figure1", "--seed", "2", "--out", "new/", "--store", store)
		for _, name := range []string{"uci-nll.svg", "new/figure1.svg"} {
			if _, err := os.Stat(name); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("all, of some runs", func(t *testing.T) {
		out := t.TempDir()
		status, stdout, stderr := reproduce("figure", "all", "--out", out, "--store", quickStore(t, "figure1"))
		if n := strings.Count(stdout, "\ndensityuncertainty "); status != exitFailure || n == 0 || !strings.Contains(stderr, fmt.Sprintf("%d of %d figures could not be drawn:\n  ", len(namedFigures())-n, len(namedFigures()))) {
			t.Errorf("status %d, %d captions\n%s", status, n, stderr)
		}
		if _, err := os.Stat(filepath.Join(out, "figure1.svg")); err != nil {
			t.Error(err)
		}
	})
	t.Run("no runs", func(t *testing.T) {
		fails(t, exitFailure, "run: reproduce run figure1", "figure", "figure1", "--seed", "2", "--store", t.TempDir())
	})
	t.Run("a seed without curves", func(t *testing.T) {
		fails(t, exitFailure, "only runs of the seeds [0 1 2] keep the curves", "figure", "figure1", "--seed", "9", "--store", store)
	})
}

func TestDescribed(t *testing.T) {
	for _, c := range []struct{ svg, want string }{
		{"<?xml version=\"1.0\"?>\n<svg width=\"1\">\n</svg>", "<?xml version=\"1.0\"?>\n<svg width=\"1\">\n<desc>a &lt; b</desc>\n</svg>"},
		{"<svg", "<svg"},
		{"<?xml?>", "<?xml?>"},
		{"", ""},
	} {
		if got := string(described([]byte(c.svg), "a < b")); got != c.want {
			t.Errorf("%q: %q, want %q", c.svg, got, c.want)
		}
	}
}

func TestCitation(t *testing.T) {
	all := results.Union(sets()...)
	of := func(scale, fidelity string, n int) []results.Result {
		var lines []results.Result
		for _, e := range (results.Filter{Scale: scale, Fidelity: fidelity}).Apply(all)[:n] {
			lines = append(lines, madeUp(e))
		}
		return lines
	}
	paper, quick, released, small := of("full", "paper", 5), of("quick", "paper", 2), of("full", "released", 1), of("small", "paper", 3)
	for _, c := range []struct {
		name, want string
		lines      []results.Result
	}{
		{"none", ", 0 runs", nil},
		{"full", ", paper fidelity, 5 runs", paper},
		{"some quick", ", paper fidelity, 7 runs, of them 2 quick", append(paper, quick...)},
		{"both fidelities", ", paper and released fidelity, 6 runs, of them 2 quick and 3 small", append(append(released, quick...), small...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, want := citation(results.ByID(c.lines)), "densityuncertainty "+environment.Version()+c.want; got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

func TestFillIn(t *testing.T) {
	text := "a\n<!-- generated: options uci -->\nto be replaced\n<!-- end of generated -->\n<!-- generated: table uci-nll -->\n<!-- end of generated -->\nb\n"
	filled, parts, changed, err := fillIn(text, nil, nothingKept)
	if err != nil || parts != 2 || changed != 2 || strings.Contains(filled, "to be replaced") || !strings.Contains(filled, "| clip |") ||
		strings.Contains(filled, "densityuncertainty ") || !strings.HasPrefix(filled, "a\n") || !strings.HasSuffix(filled, "b\n") {
		t.Errorf("filled in %d parts, %d changed, error %v:\n%s", parts, changed, err, filled)
	}
	if again, parts, changed, err := fillIn(filled, nil, nothingKept); err != nil || again != filled || parts != 2 || changed != 0 {
		t.Errorf("filling twice gives another text (%d parts, %d changed, error %v):\n%s", parts, changed, err, again)
	}
	windows := strings.ReplaceAll(text, "\n", "\r\n")
	if got, _, _, err := fillIn(windows, nil, nothingKept); err != nil || got != strings.ReplaceAll(filled, "\n", "\r\n") {
		t.Errorf("with other line ends it gives another text (error %v):\n%q", err, got)
	}
	const begin, end = "<!-- generated: options uci -->\n", "<!-- end of generated -->\n"
	for _, c := range []struct{ name, wrong, want string }{
		{"a table", "<!-- generated: table none -->\n" + end, "line 1: there is nothing to generate for"},
		{"a study", "<!-- generated: options cifar -->\n" + end, "options STUDY"},
		{"no end", begin, "line 1: a generated part begins that does not end"},
		{"no beginning", "a\n" + end, "line 2: a generated part ends that does not begin"},
		{"one in another", begin + "x\n" + begin + "y\n" + end + "z\n" + end, "line 3: a generated part begins inside the one that begins at line 1"},
		{"no blank", "<!-- generated: options uci-->\n" + end, "line 1: \"<!-- generated: options uci-->\" is no mark"},
		{"no colon", "<!-- generated options uci -->\n" + end, "is no mark"},
		{"something beside it", begin + "| <!-- end of generated -->\n", "line 2: "},
		{"no part", "a\nb\n", "it has no generated part"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, _, _, err := fillIn(c.wrong, nil, nothingKept); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// The command writes the file, and says what it did.
func TestFill(t *testing.T) {
	file, store := filepath.Join(t.TempDir(), "page.md"), t.TempDir()
	must.Do(t, os.WriteFile(file, []byte("<!-- generated: options toy -->\n<!-- end of generated -->\n"), 0o600))
	for _, want := range []string{"parts: 1, changed: 1\n", "parts: 1, changed: 0\n"} {
		succeeds(t, file+": generated "+want, "fill", file, "--store", store)
		if text := must.Get(os.ReadFile(file))(t); !strings.Contains(string(text), "| pretrain\\_steps |") {
			t.Errorf("the file is\n%s", text)
		}
	}
}

// The generated parts of the pages must be those of the committed result lines.
func TestPagesAreUpToDate(t *testing.T) {
	lines := must.Get(results.Committed())(t)
	kept := must.Get(predictionsOf(nil))(t)
	for _, page := range []string{"README.md", "figures/README.md", "figures/toy/README.md", "figures/uci/README.md", "figures/cifar/README.md"} {
		t.Run(page, func(t *testing.T) {
			text := must.Get(os.ReadFile(filepath.Join("..", "..", "..", page)))(t)
			if filled, _, _, err := fillIn(string(text), lines, kept); err != nil || filled != string(text) {
				t.Errorf("%s does not show the committed result lines (%v); run: go run ./figures/cmd/reproduce fill %s", page, err, page)
			}
		})
	}
}
