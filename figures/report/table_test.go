package report_test

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/paper"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// awkward has all that some format must escape.
func awkward() report.Table {
	return report.Table{Name: "x", Caption: "50% of a_b & <c> | {d} $", Columns: []string{"n", "v"},
		Rows: []report.Row{{Name: "r|s", Cells: []report.Cell{{{Text: "-1 ± 2"}, {Text: "<b>", Bold: true}}}}}}
}

func TestRender(t *testing.T) {
	figtest.Renders(t, awkward())
	for _, c := range []struct {
		format string
		want   []string
	}{
		{report.Markdown, []string{`r\|s`, "-1 ± 2<br>**&lt;b>**", `a\_b`}},
		{report.LaTeX, []string{`50\% of a\_b \& <c> | \{d\} \$`, `\shortstack{$-$1 $\pm$ 2 \\ \textbf{<b>}}`}},
		{report.HTML, []string{"a_b &amp; &lt;c&gt;", "-1 ± 2<br><b>&lt;b&gt;</b>"}},
	} {
		t.Run(c.format, func(t *testing.T) {
			out := must.Get(awkward().Render(c.format))(t)
			for _, w := range c.want {
				if !strings.Contains(out, w) {
					t.Errorf("it lacks %q:\n%s", w, out)
				}
			}
		})
	}
	if _, err := (report.Table{}).Render("docx"); err == nil || !strings.Contains(err.Error(), "md, latex, html") {
		t.Errorf("unknown format: %v", err)
	}
	ragged := report.Table{Name: "n", Columns: []string{"a", "b"}, Rows: []report.Row{{Name: "r"}}}
	if _, err := ragged.Render(report.Markdown); err == nil || !strings.Contains(err.Error(), `row "r" of n has 0 cells for 1`) {
		t.Errorf("a ragged table: %v", err)
	}
}

// A text of anybody's is shown as it is: no format takes a part of it for a row, a link, a formula or a heading.
func TestTextsOfOthers(t *testing.T) {
	for _, c := range []struct{ text, markdown, latex, html string }{
		{"a\nb", "a b", "a b", "a\nb"},
		{"a\r\n\r\nb", "a  b", "a  b", "a\r\n\r\nb"},
		{"[l](javascript:x)", `[l]\(javascript:x)`, `{[}l](javascript:x)`, "[l](javascript:x)"},
		{"![i][r]", `![i]\[r]`, `!{[}i]{[}r]`, "![i][r]"},
		{"[r]: x", `[r]\: x`, `{[}r]: x`, "[r]: x"},
		{"costs $5, or $6", `costs \$5, or \$6`, `costs \$5, or \$6`, "costs $5, or $6"},
		{`\(x\)`, "&#92;(x&#92;)", `\textbackslash{}(x\textbackslash{})`, `\(x\)`},
		{"<b>&lt;", "&lt;b>&amp;lt;", `<b>\&lt;`, "&lt;b&gt;&amp;lt;"},
		{"x ~~y~~", `x \~\~y\~\~`, "x \\textasciitilde{}\\textasciitilde{}y\\textasciitilde{}\\textasciitilde{}", "x ~~y~~"},
		{"## head", `\## head`, `\#\# head`, "## head"},
		{"> said", `\> said`, `> said`, "&gt; said"},
		{"- entry", `\- entry`, `- entry`, "- entry"},
		{"12. entry", `12\. entry`, `12. entry`, "12. entry"},
		{"[x] task", `\[x] task`, `{[}x] task`, "[x] task"},
		{"---", `\---`, `---`, "---"},
		{"-1.5 [-2, 1]", "-1.5 [-2, 1]", `$-$1.5 {[}$-$2, 1]`, "-1.5 [-2, 1]"},
	} {
		t.Run(c.text, func(t *testing.T) {
			table := report.Table{Name: "n", Caption: c.text, Columns: []string{c.text, "v"}, Notes: []string{c.text}, Rows: []report.Row{{Name: c.text, Cells: []report.Cell{{{Text: c.text}}}}}}
			want := fmt.Sprintf("%[1]s\n\n| %[1]s | v |\n| --- | --- |\n| %[1]s | %[1]s |\n\n- %[1]s\n", c.markdown)
			if got := must.Get(table.Render(report.Markdown))(t); got != want {
				t.Errorf("Markdown:\n%s\nwant\n%s", got, want)
			}
			for format, wants := range map[string][]string{
				report.LaTeX: {`\caption{` + c.latex + "}\n", "\n" + c.latex + ` & v \\` + "\n", "\n" + c.latex + " & " + c.latex + ` \\` + "\n", `\smallskip ` + c.latex + "\n"},
				report.HTML:  {"<caption>" + c.html + "</caption>", ">" + c.html + "</th>", "<td>" + c.html + "</td>", ">" + c.html + "</td></tr></tfoot>"},
			} {
				got := must.Get(table.Render(format))(t)
				for _, want := range wants {
					if !strings.Contains(got, want) {
						t.Errorf("%s lacks %q:\n%s", format, want, got)
					}
				}
			}
		})
	}
}

func full(n int, mean, std float64) results.Summary {
	return results.Summary{Scale: results.Full, N: n, Wanted: 20, Epochs: 100, Mean: mean, Std: std}
}

func TestDifference(t *testing.T) {
	nan := math.NaN()
	quick, diverged := full(2, 1, 1), full(19, 1, 1)
	quick.Scale, diverged.Diverged = results.Quick, 1
	for _, c := range []struct {
		name   string
		ours   results.Summary
		theirs report.Published
		inStd  float64
		down   string // the verdict where lower is better
		up     string
	}{
		{"explained by rounding", full(20, 0.00063, 0.00003), report.Published{0.001, 0, 3}, 0, report.Agrees, report.Agrees},
		{"beyond rounding", full(20, 0.00063, 0.00003), report.Published{0.002, 0, 3}, (0.00063 - 0.002 + 0.0005) / 0.00003, report.Better, report.Worse},
		{"above", full(20, 3, 0.5), report.Published{2, 0.1, 1}, 1.9, report.Worse, report.Better},
		{"within one", full(20, 3, 1), report.Published{2, 0.1, 1}, 0.95, report.Agrees, report.Agrees},
		{"no deviation", full(1, 1, nan), report.Published{1, 1, 3}, nan, report.NoUnit, report.NoUnit},
		{"a deviation of zero", full(2, 1, 0), report.Published{1, 1, 3}, nan, report.NoUnit, report.NoUnit},
		{"quick", quick, report.Published{1, 1, 3}, nan, report.Unsettled, report.Unsettled},
		{"nothing", results.Summary{}, report.Published{1, 1, 3}, nan, report.Unsettled, report.Unsettled},
		{"diverged", diverged, report.Published{1, 1, 3}, nan, report.Unsettled, report.Unsettled},
		{"not published", full(20, 1, 1), report.Published{nan, nan, 0}, nan, report.Unsettled, report.Unsettled},
	} {
		t.Run(c.name, func(t *testing.T) {
			down, verdict := report.Difference(c.ours, c.theirs)
			up, other := report.DifferenceUp(c.ours, c.theirs)
			same := func(got float64) bool {
				return math.Abs(got-c.inStd) < 1e-9 || math.IsNaN(got) && math.IsNaN(c.inStd)
			}
			if !same(down) || !same(up) || verdict != c.down || other != c.up {
				t.Errorf("got %v %q and %v %q, want %v, %q and %q", down, verdict, up, other, c.inStd, c.down, c.up)
			}
		})
	}
}

func TestCells(t *testing.T) {
	nan := math.NaN()
	part, quick, images, none, diverged := full(2, 2.6, 0.1), full(2, 3, 0.1), full(2, 3, 0.1), full(0, nan, nan), full(19, 0.95, 0.05)
	quick.Scale, images.Scale, images.Images, diverged.Diverged = results.Quick, results.Quick, 500, 1
	none.Unmeasured = 20
	lost := full(0, nan, nan)
	lost.Diverged = 20
	theirs := report.Published{2.593, 0.067, 3}
	for _, c := range []struct {
		name    string
		summary results.Summary
		theirs  report.Published
		want    string // of Compare; the first line, and what follows "diverged", is that of SummaryCell
	}{
		{"complete", full(20, 2.65, 0.103), theirs, "2.650 ± 0.103 (n=20) | paper 2.593 ± 0.067 | +0.5 sd, agrees"},
		{"part", part, theirs, "2.600 ± 0.100 (n=2 of 20) | paper 2.593 ± 0.067 | +0.1 sd, agrees"},
		{"one", full(1, 2.5, nan), theirs, "2.500 (n=1 of 20) | paper 2.593 ± 0.067 | -0.093, no sd"},
		{"quick", quick, theirs, "quick, 100 epochs: 3.000 ± 0.100 (n=2) | paper 2.593 ± 0.067"},
		{"quick on images", images, theirs, "quick, 100 epochs of 500 images: 3.000 ± 0.100 (n=2) | paper 2.593 ± 0.067"},
		{"small numbers", full(20, 0.001, 0.1), theirs, "0.00100 ± 0.10000 (n=20) | paper 2.593 ± 0.067 | -25.9 sd, better"},
		{"not run", results.Summary{}, theirs, "not run | paper 2.593 ± 0.067"},
		{"not measured", none, theirs, "not measured | paper 2.593 ± 0.067"},
		{"diverged", diverged, theirs, "0.950 ± 0.050 (n=19) | 1 of 20 runs diverged | paper 2.593 ± 0.067"},
		{"all diverged", lost, theirs, "20 of 20 runs diverged | paper 2.593 ± 0.067"},
		{"no deviation published", full(20, 2.65, 0.1), report.Published{2.6, nan, 1}, "2.650 ± 0.100 (n=20) | paper 2.6 | +0.0 sd, agrees"},
		{"not published", full(20, 2.65, 0.1), report.Published{nan, nan, 0}, "2.650 ± 0.100 (n=20) | paper –"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := figtest.Text(report.Compare(report.Difference, c.summary, c.theirs, "paper", 3)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if got, _, _ := strings.Cut(c.want, " | paper"); got != figtest.Text(report.SummaryCell(c.summary, 3)) {
				t.Errorf("the summary alone is %s, want %s", figtest.Text(report.SummaryCell(c.summary, 3)), got)
			}
		})
	}
}

// The lowest mean of a row or column is bold among complete ones; in a column only where there are two to compare.
func TestBold(t *testing.T) {
	complete, part := func(mean float64) results.Summary { return full(20, mean, 1) }, func(mean float64) results.Summary { return full(19, mean, 1) }
	for _, c := range []struct {
		name        string
		summaries   []results.Summary
		row, column int // the place that is bold; -1 for none
	}{
		{"lowest of the complete", []results.Summary{complete(3), part(1), complete(2)}, 2, 2},
		{"the first of equals", []results.Summary{complete(2), complete(2), part(1)}, 0, 0},
		{"one complete", []results.Summary{part(1), complete(3), part(2)}, 1, -1},
		{"none complete", []results.Summary{part(1), part(2), {}}, -1, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			row := report.Row{Cells: []report.Cell{report.TextCell("a", "second"), report.TextCell("b"), report.TextCell("c")}}
			row.BoldLowest(c.summaries)
			var table report.Table
			for range c.summaries {
				table.Rows = append(table.Rows, report.Row{Cells: []report.Cell{report.TextCell("left"), report.TextCell("right", "second")}})
			}
			table.BoldLowestInColumn(1, c.summaries)
			for i := range c.summaries {
				if row.Cells[i][0].Bold != (i == c.row) || len(row.Cells[i]) > 1 && row.Cells[i][1].Bold {
					t.Errorf("cell %d of the row is %s, want cell %d bold", i, figtest.Text(row.Cells[i]), c.row)
				}
				if cells := table.Rows[i].Cells; cells[0][0].Bold || cells[1][0].Bold != (i == c.column) || cells[1][1].Bold {
					t.Errorf("row %d of the column is %s, %s, want row %d bold", i, figtest.Text(cells[0]), figtest.Text(cells[1]), c.column)
				}
			}
		})
	}
}

func ExampleDifference() {
	cell, _ := paper.Lookup(paper.UCINLL, "Yacht Hydrodynamics", "Density Uncertainty")
	ours := results.Summary{Scale: results.Full, N: 20, Wanted: 20, Mean: 2.611, Std: 0.095}
	inStd, verdict := report.Difference(ours, report.Published{Mean: cell.Mean, Std: cell.Std, Decimals: cell.Decimals})
	fmt.Printf("%+.2f sd, %s\n", inStd, verdict)
	// Output: +0.18 sd, agrees
}

// A column stays where one row has something in it.
func TestWithoutEmptyColumns(t *testing.T) {
	full := report.Table{Columns: []string{"name", "a", "b", "c"}, Rows: []report.Row{
		{Name: "x", Cells: report.TextCells(report.NotRun, "1", report.NotRun)},
		{Name: "y", Cells: report.TextCells(report.NotRun, report.NotRun, "–")},
	}}
	got := full.WithoutEmptyColumns()
	want := report.Table{Columns: []string{"name", "b", "c"}, Rows: []report.Row{
		{Name: "x", Cells: report.TextCells("1", report.NotRun)}, {Name: "y", Cells: report.TextCells(report.NotRun, "–")},
	}}
	if !reflect.DeepEqual(got, want) || len(full.Columns) != 4 || len(full.Rows[0].Cells) != 3 {
		t.Errorf("%+v, want %+v, of %+v", got, want, full)
	}
}
