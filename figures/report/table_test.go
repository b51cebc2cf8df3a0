package report_test

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/report"
)

// awkward has all that some format must escape, and every part that a table can have.
func awkward() report.Table {
	return report.Table{
		Name: "x", Title: "Is a_b?", Caption: "50% of a_b & <c> | {d} $", Columns: []string{"n", "v", "w"},
		Legend: report.LegendAgainst("a_b"), Measured: []string{"In a_b.", "Twice."}, NotRun: []string{"c_d", "e"},
		Rows: []report.Row{
			{Group: "g_1", Name: "r|s", Cells: []report.Cell{{Text: "-1 ± 2", Bold: true, Verdict: report.Better}, {Text: "<b>"}}},
			{Group: "g_1", Name: "t", Cells: []report.Cell{
				{Text: "3", Verdict: report.NotSignificant, Difference: &metrics.Difference{Mean: -0.25, Low: -0.5, High: 1. / 3}}, {NotRun: true}}},
			{Group: "g_2", Name: "t", Cells: make([]report.Cell, 2)},
		},
	}
}

func TestRender(t *testing.T) {
	figtest.Renders(t, awkward())
	for format, want := range map[string][]string{
		report.Markdown: {
			"**Is a\\_b?**\n\n50% of a\\_b", "| **g\\_1** |  |  |\n| r\\|s | **-1 ± 2 ▲** | &lt;b> |\n| t | 3 | – |\n| **g\\_2** |  |  |\n| t | – | – |\n",
			"\n\n▲ better, ▽ worse than a\\_b, significant", "\n\nNot run: c\\_d; e.\n",
			"\n\n<details><summary>How this was measured</summary>\n\nIn a\\_b.\n\nTwice.\n\n</details>\n",
		},
		report.LaTeX: {
			`\caption{Is a\_b? 50\% of a\_b \& <c> | \{d\} \$}`, `\multicolumn{3}{l}{\textbf{g\_1}} \\`, `\textbf{$-$1 $\pm$ 2 $\blacktriangle$} & <b> \\`, "\\smallskip Not run: c",
		},
		report.CSV: {
			"Group,n,v,v: difference,from,to,verdict,w\ng_1,r|s,-1 ± 2,,,,,<b>\ng_1,t,3,-0.25,-0.5,0.3333,not significant,\n",
		},
	} {
		t.Run(format, func(t *testing.T) {
			out := must.Get(awkward().Render(format))(t)
			for _, w := range want {
				if !strings.Contains(out, w) {
					t.Errorf("it lacks %q:\n%s", w, out)
				}
			}
		})
	}
	// A legend explains marks, and is left out where nothing was compared.
	plain := awkward()
	plain.Rows = plain.Rows[2:]
	if out := must.Get(plain.Render(report.Markdown))(t); strings.Contains(out, "▲") {
		t.Errorf("a legend of no marks:\n%s", out)
	}
	must.GetErr((report.Table{Name: "empty"}).Render(report.Markdown))(t, `"empty" has no columns`)
	must.GetErr((report.Table{Columns: []string{"Method"}}).Render("docx"))(t, "md, latex, csv")
	ragged := report.Table{Name: "n", Columns: []string{"a", "b"}, Rows: []report.Row{{Name: "r"}}}
	must.GetErr(ragged.Render(report.Markdown))(t, `row "r" of n has 0 cells for 1`)
}

// A text of anybody's is shown as it is: no format takes a part of it for a row, a link, a formula or a heading.
func TestTextsOfOthers(t *testing.T) {
	for _, c := range []struct{ text, markdown, latex string }{
		{"a\nb", "a b", "a b"},
		{"a\r\n\r\nb", "a  b", "a  b"},
		{"[l](javascript:x)", `[l]\(javascript:x)`, `{[}l](javascript:x)`},
		{"![i][r]", `![i]\[r]`, `!{[}i]{[}r]`},
		{"[r]: x", `[r]\: x`, `{[}r]: x`},
		{"costs $5, or $6", `costs \$5, or \$6`, `costs \$5, or \$6`},
		{`\(x\)`, "&#92;(x&#92;)", `\textbackslash{}(x\textbackslash{})`},
		{"<b>&lt;", "&lt;b>&amp;lt;", `<b>\&lt;`},
		{"x ~~y~~", `x \~\~y\~\~`, "x \\textasciitilde{}\\textasciitilde{}y\\textasciitilde{}\\textasciitilde{}"},
		{"## head", `\## head`, `\#\# head`},
		{"> said", `\> said`, `> said`},
		{"- entry", `\- entry`, `- entry`},
		{"12. entry", `12\. entry`, `12. entry`},
		{"[x] task", `\[x] task`, `{[}x] task`},
		{"---", `\---`, `---`},
		{"-1.5 [-2, 1]", "-1.5 [-2, 1]", `$-$1.5 {[}$-$2, 1]`},
	} {
		t.Run(c.text, func(t *testing.T) {
			table := report.Table{
				Name: "n", Title: c.text, Caption: c.text, Columns: []string{c.text, "v"}, Measured: []string{c.text},
				Rows: []report.Row{{Group: c.text, Name: c.text, Cells: report.TextCells(c.text)}},
			}
			want := fmt.Sprintf("**%[1]s**\n\n%[1]s\n\n| %[1]s | v |\n| --- | --- |\n| **%[1]s** |  |\n| %[1]s | %[1]s |\n\n<details><summary>How this was measured</summary>\n\n%[1]s\n\n</details>\n", c.markdown)
			if got := must.Get(table.Render(report.Markdown))(t); got != want {
				t.Errorf("Markdown:\n%s\nwant\n%s", got, want)
			}
			got := must.Get(table.Render(report.LaTeX))(t)
			for _, want := range []string{`\caption{` + c.latex + ". " + c.latex + "}\n", "\n" + c.latex + ` & v \\` + "\n", `{\textbf{` + c.latex + "}}", "\n" + c.latex + " & " + c.latex + ` \\` + "\n", `\smallskip ` + c.latex + "\n"} {
				if !strings.Contains(got, want) {
					t.Errorf("LaTeX lacks %q:\n%s", want, got)
				}
			}
		})
	}
}

// Numbers that are compared have like decimals, by the middle one of their spreads.
func TestAlign(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name    string
		numbers []report.Value
		want    []string
	}{
		{"spreads alike", []report.Value{{2.7104, 0.1451, 3}, {2.5512, 0.3012, 3}, {3.18, 0.0912, 3}}, []string{"2.71 ± 0.15", "2.55 ± 0.30", "3.18 ± 0.09"}},
		{"no more than asked", []report.Value{{0.7762, 0.0003, 3}, {0.7601, 0.0041, 3}}, []string{"0.776 ± 0.000", "0.760 ± 0.004"}},
		{"one far apart", []report.Value{{-3.8041, 1.422, 3}, {-5.0251, 0.0371, 3}, {-4.0421, 0.0091, 3}}, []string{"-3.8 ± 1.4", "-5.025 ± 0.037", "-4.042 ± 0.009"}},
		{"a small spread among large", []report.Value{{10.71, 7.2, 3}, {3.19, 0.05, 3}, {5.4, 2.3, 3}}, []string{"10.7 ± 7.2", "3.19 ± 0.05", "5.4 ± 2.3"}},
		{"single runs", []report.Value{{0.0109, nan, 4}, {0.0265, 0.0069, 4}}, []string{"0.0109", "0.0265 ± 0.0069"}},
		{"small numbers", []report.Value{{0.000625, 0.000044, 3}, {0.00623, 0.00038, 3}}, []string{"0.00063 ± 0.00004", "0.00623 ± 0.00038"}},
		{"no numbers", nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			words := report.Cell{Text: "words"}
			cells := []*report.Cell{&words}
			for _, n := range c.numbers {
				cell := n.Cell()
				cells = append(cells, &cell)
			}
			report.Align(cells...)
			var got []string
			for _, cell := range cells[1:] {
				got = append(got, cell.Text)
			}
			if !slices.Equal(got, c.want) || words.Text != "words" {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	ours, given := report.Value{Mean: 0.0004, Std: 0.0004, Decimals: 3}.Cell(), report.Value{Mean: 0.00071, Std: 0.0001, Decimals: 4}.Cell()
	given.Theirs = true
	if report.Align(&ours, &given); ours.Text != "0.00040 ± 0.00040" || given.Text != "0.0007 ± 0.0001" {
		t.Errorf("ours is %s, and theirs %s", ours.Text, given.Text)
	}
}

// Rows and columns that wait for runs are left out, unless one cell has a number of ours: a dash is none, and neither is one
// of the paper's. What was never to be run stays.
func TestWithoutNotRun(t *testing.T) {
	waits := report.Cell{NotRun: true}
	number := func(text string) report.Cell { return report.Cell{Text: text} }
	theirs := report.Value{Mean: 3, Std: math.NaN(), Decimals: 1}.Printed()
	all := report.Table{Columns: []string{"name", "a", "b", "c", "d"}, NotRun: []string{"before"}, Rows: []report.Row{
		{Group: "g", Name: "x", Cells: []report.Cell{waits, number("1"), waits, theirs}},
		{Group: "g", Name: "y", Cells: []report.Cell{waits, waits, number("–"), theirs}},
		{Name: "z", Cells: []report.Cell{{}, waits, number("2"), {}}},
		{Group: "h", Name: "x", Cells: []report.Cell{waits, {}, {}, {}}},
		{Group: "h", Name: "y", Cells: []report.Cell{waits, {}, {}, {}}},
	}}
	got := all.WithoutNotRun()
	want := report.Table{Columns: []string{"name", "b", "c", "d"}, NotRun: []string{"before", "g, y", "h", "a"}, Rows: []report.Row{
		{Group: "g", Name: "x", Cells: []report.Cell{number("1"), waits, theirs}}, {Name: "z", Cells: []report.Cell{waits, number("2"), {}}},
	}}
	if !reflect.DeepEqual(got, want) || len(all.Columns) != 5 || len(all.Rows[0].Cells) != 4 {
		t.Errorf("%+v, want %+v", got, want)
	}
}
