package report

import (
	"encoding/csv"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The formats of tables.
const (
	Markdown = "md"
	LaTeX    = "latex"
	CSV      = "csv" // the cells, and differences with their intervals
)

// TableFormats lists the formats that Table.Render knows.
func TableFormats() []string { return []string{Markdown, LaTeX, CSV} }

// Render returns the table as text in one of TableFormats.
func (t Table) Render(format string) (string, error) {
	if len(t.Columns) == 0 {
		return "", fmt.Errorf("report: the table %q has no columns", t.Name)
	}
	for _, row := range t.Rows {
		if len(row.Cells) != len(t.Columns)-1 {
			return "", fmt.Errorf("report: row %q of %s has %d cells for %d columns", row.Name, t.Name, len(row.Cells), len(t.Columns)-1)
		}
	}
	switch format {
	case Markdown:
		return t.markdown(), nil
	case LaTeX:
		return t.latex(), nil
	case CSV:
		return t.csv()
	}
	return "", fmt.Errorf("report: unknown format %q, want one of %s", format, strings.Join(TableFormats(), ", "))
}

// oneLine puts the lines of a text side by side: a line break would end the row of a table, or the caption.
var oneLine = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ")

// markdownEscaper leaves nothing that Markdown, or a formula in it, would take for more than text, but for code between
// backticks, which captions of ours have. Brackets stay, but for those of a link. Two backslashes before a bracket would begin a formula in a notebook, so that one is an entity.
var markdownEscaper = strings.NewReplacer("|", `\|`, "*", `\*`, "_", `\_`, "~", `\~`, "$", `\$`, "&", "&amp;", "<", "&lt;", "](", `]\(`, "][", `]\[`, "]:", `]\:`, "[^", `\[^`, `\`, "&#92;")

// markdownBlock is what would make a line a heading, a quotation or an entry of a list.
var markdownBlock = regexp.MustCompile(`^(\s*(?:\d+)?)([#>+=.)\[-])(\s|$|[#>=xX-])`)

// escapeMarkdown returns what Markdown shows as the text, on one line.
func escapeMarkdown(text string) string {
	return markdownBlock.ReplaceAllString(markdownEscaper.Replace(oneLine.Replace(text)), `$1\$2$3`)
}

// markdown has the title, the caption, the table, what is said below it, and how it was measured, which readers unfold.
func (t Table) markdown() string {
	escape := escapeMarkdown
	var b strings.Builder
	writeRow := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	if t.Title != "" {
		fmt.Fprintf(&b, "**%s**\n\n", escape(t.Title))
	}
	if t.Caption != "" {
		fmt.Fprintf(&b, "%s\n\n", escape(t.Caption))
	}
	writeRow(t.headings(escape))
	writeRow(slices.Repeat([]string{"---"}, len(t.Columns)))
	for i, row := range t.Rows {
		if t.begins(i) {
			writeRow(append([]string{"**" + escape(row.Group) + "**"}, make([]string, len(row.Cells))...))
		}
		writeRow(row.in(escape, "**%s**"))
	}
	for _, text := range t.said() {
		fmt.Fprintf(&b, "\n%s\n", escape(text))
	}
	if len(t.Measured) > 0 {
		b.WriteString("\n<details><summary>How this was measured</summary>\n\n")
		for _, text := range t.Measured {
			fmt.Fprintf(&b, "%s\n\n", escape(text))
		}
		b.WriteString("</details>\n")
	}
	return b.String()
}

// begins says whether a group of rows begins with row i.
func (t Table) begins(i int) bool {
	return t.Rows[i].Group != "" && (i == 0 || t.Rows[i].Group != t.Rows[i-1].Group)
}

// headings are the names of the columns, escaped for a format.
func (t Table) headings(escape func(string) string) (headings []string) {
	for _, column := range t.Columns {
		headings = append(headings, escape(column))
	}
	return headings
}

// in is a row for a format: its name and the texts of its cells, escaped, with the bold ones put into bold.
func (r Row) in(escape func(string) string, bold string) []string {
	texts := []string{escape(r.Name)}
	for _, cell := range r.Cells {
		text := escape(cell.shown())
		if cell.Bold {
			text = fmt.Sprintf(bold, text)
		}
		texts = append(texts, text)
	}
	return texts
}

// latexMinus finds the sign of a negative number.
var latexMinus = regexp.MustCompile(`(^|[ }])-([0-9])`)

var latexEscaper = strings.NewReplacer(`\`, `\textbackslash{}`, "&", `\&`, "%", `\%`, "$", `\$`, "#", `\#`, "_", `\_`, "{", `\{`, "}", `\}`,
	"▲", `$\blacktriangle$`, "▽", `$\triangledown$`, "≈", `$\approx$`, "~", `\textasciitilde{}`, "^", `\textasciicircum{}`, "±", `$\pm$`, "−", `$-$`, "≥", `$\geq$`, "≤", `$\leq$`, "–", "--", "→", `$\rightarrow$`, `"`, "''", "“", "``", "”", "''",
	"[", "{[}") // after the end of a row it would begin an argument

// latex renders with the packages booktabs and amssymb. A minus sign before a digit is set as one.
func (t Table) latex() string {
	escape := func(s string) string {
		return latexMinus.ReplaceAllString(latexEscaper.Replace(oneLine.Replace(s)), `$1$$-$$$2`)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%% needs \\usepackage{booktabs,amssymb}\n\\begin{table}\n\\centering\n\\footnotesize\n\\caption{%s}\n\\label{tab:%s}\n", escape(sentences(t.Title, t.Caption)), t.Name)
	fmt.Fprintf(&b, "\\begin{tabular}{l%s}\n\\toprule\n", strings.Repeat("c", len(t.Columns)-1))
	fmt.Fprintf(&b, "%s \\\\\n\\midrule\n", strings.Join(t.headings(escape), " & "))
	for i, row := range t.Rows {
		if t.begins(i) {
			fmt.Fprintf(&b, "\\multicolumn{%d}{l}{\\textbf{%s}} \\\\\n", len(t.Columns), escape(row.Group))
		}
		fmt.Fprintf(&b, "%s \\\\\n", strings.Join(row.in(escape, `\textbf{%s}`), " & "))
	}
	b.WriteString("\\bottomrule\n\\end{tabular}\n")
	for _, text := range append(t.said(), t.Measured...) {
		fmt.Fprintf(&b, "\n\\smallskip %s\n", escape(text))
	}
	b.WriteString("\\end{table}\n")
	return b.String()
}

// sentences are two texts one after the other, of which the first ends like a sentence.
func sentences(first, second string) string {
	if first == "" || second == "" || strings.ContainsAny(first[len(first)-1:], ".?!:") {
		return strings.TrimSpace(first + " " + second)
	}
	return first + ". " + second
}

// csv is for programs, as RFC 4180 has it. A column with differences is followed by four: the difference, the ends of its
// interval, and the verdict. Where rows have groups, these are the first column.
func (t Table) csv() (string, error) {
	grouped := slices.ContainsFunc(t.Rows, func(r Row) bool { return r.Group != "" })
	head := []string{t.Columns[0]}
	if grouped {
		head = []string{"Group", t.Columns[0]}
	}
	tested := make([]bool, len(t.Columns)-1)
	for i, column := range t.Columns[1:] {
		head = append(head, column)
		tested[i] = slices.ContainsFunc(t.Rows, func(r Row) bool { return r.Cells[i].Difference != nil })
		if tested[i] {
			head = append(head, column+": difference", "from", "to", "verdict")
		}
	}
	records := [][]string{head}
	for _, row := range t.Rows {
		record := []string{row.Name}
		if grouped {
			record = []string{row.Group, row.Name}
		}
		for i, cell := range row.Cells {
			record = append(record, cell.Text)
			switch d := cell.Difference; {
			case d != nil:
				record = append(record, number(d.Mean), number(d.Low), number(d.High), cell.Verdict)
			case tested[i]:
				record = append(record, "", "", "", "")
			}
		}
		records = append(records, record)
	}
	var b strings.Builder
	if err := csv.NewWriter(&b).WriteAll(records); err != nil {
		return "", fmt.Errorf("report: the table %s as CSV: %w", t.Name, err)
	}
	return b.String(), nil
}

// number has four significant digits.
func number(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }
