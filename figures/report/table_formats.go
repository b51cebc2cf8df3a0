package report

import (
	"encoding/csv"
	"fmt"
	"html"
	"regexp"
	"strings"
)

// The formats of tables.
const (
	Markdown = "md"
	LaTeX    = "latex"
	HTML     = "html"
	CSV      = "csv" // the cells alone: no caption, no notes, nothing in bold
)

// TableFormats lists the formats that Table.Render knows.
func TableFormats() []string { return []string{Markdown, LaTeX, HTML, CSV} }

// Render returns the table as text in one of TableFormats.
func (t Table) Render(format string) (string, error) {
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
	case HTML:
		return t.html(), nil
	case CSV:
		return t.csv()
	}
	return "", fmt.Errorf("report: unknown format %q, want one of %s", format, strings.Join(TableFormats(), ", "))
}

// join renders the lines of a cell: each is escaped, made bold if it is, and set apart by separator.
func (c Cell) join(escape func(string) string, bold, separator string) string {
	var parts []string
	for _, line := range c {
		part := escape(line.Text)
		if line.Bold {
			part = fmt.Sprintf(bold, part)
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return escape("–")
	}
	return strings.Join(parts, separator)
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

func (t Table) markdown() string {
	escape := escapeMarkdown
	var b strings.Builder
	writeRow := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	if t.Caption != "" {
		fmt.Fprintf(&b, "%s\n\n", escape(t.Caption))
	}
	head, rule := make([]string, len(t.Columns)), make([]string, len(t.Columns))
	for i, column := range t.Columns {
		head[i], rule[i] = escape(column), "---"
	}
	writeRow(head)
	writeRow(rule)
	for _, row := range t.Rows {
		cells := []string{escape(row.Name)}
		for _, cell := range row.Cells {
			cells = append(cells, cell.join(escape, "**%s**", "<br>"))
		}
		writeRow(cells)
	}
	for i, note := range t.Notes {
		if i == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "- %s\n", escape(note))
	}
	return b.String()
}

var latexEscaper = strings.NewReplacer(`\`, `\textbackslash{}`, "&", `\&`, "%", `\%`, "$", `\$`, "#", `\#`, "_", `\_`, "{", `\{`, "}", `\}`,
	"~", `\textasciitilde{}`, "^", `\textasciicircum{}`, "±", `$\pm$`, "−", `$-$`, "≥", `$\geq$`, "≤", `$\leq$`, "–", "--", "→", `$\rightarrow$`, `"`, "''",
	"[", "{[}") // after the end of a row it would begin an argument

// latex renders with the booktabs package. A minus sign before a digit is set as one.
func (t Table) latex() string {
	escape := func(s string) string { return latexMinus(latexEscaper.Replace(oneLine.Replace(s))) }
	var b strings.Builder
	fmt.Fprintf(&b, "%% needs \\usepackage{booktabs}\n\\begin{table}\n\\centering\n\\footnotesize\n\\caption{%s}\n\\label{tab:%s}\n", escape(t.Caption), t.Name)
	fmt.Fprintf(&b, "\\begin{tabular}{l%s}\n\\toprule\n", strings.Repeat("c", len(t.Columns)-1))
	var head []string
	for _, column := range t.Columns {
		head = append(head, escape(column))
	}
	fmt.Fprintf(&b, "%s \\\\\n\\midrule\n", strings.Join(head, " & "))
	for _, row := range t.Rows {
		cells := []string{escape(row.Name)}
		for _, cell := range row.Cells {
			joined := cell.join(escape, `\textbf{%s}`, ` \\ `)
			if len(cell) > 1 {
				joined = `\shortstack{` + joined + `}`
			}
			cells = append(cells, joined)
		}
		fmt.Fprintf(&b, "%s \\\\\n", strings.Join(cells, " & "))
	}
	b.WriteString("\\bottomrule\n\\end{tabular}\n")
	for _, note := range t.Notes {
		fmt.Fprintf(&b, "\n\\smallskip %s\n", escape(note))
	}
	b.WriteString("\\end{table}\n")
	return b.String()
}

// latexMinus turns a hyphen that begins a number into a minus sign.
func latexMinus(s string) string {
	var b strings.Builder
	for i := range len(s) {
		startsNumber := s[i] == '-' && i+1 < len(s) && s[i+1] >= '0' && s[i+1] <= '9' && (i == 0 || s[i-1] == ' ' || s[i-1] == '}')
		if startsNumber {
			b.WriteString("$-$")
		} else {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

func (t Table) html() string {
	var b strings.Builder
	fmt.Fprintf(&b, "<table id=\"%s\">\n<caption>%s</caption>\n<thead><tr>", html.EscapeString(t.Name), html.EscapeString(t.Caption))
	for _, column := range t.Columns {
		fmt.Fprintf(&b, "<th scope=\"col\">%s</th>", html.EscapeString(column))
	}
	b.WriteString("</tr></thead>\n<tbody>\n")
	for _, row := range t.Rows {
		fmt.Fprintf(&b, "<tr><th scope=\"row\">%s</th>", html.EscapeString(row.Name))
		for _, cell := range row.Cells {
			fmt.Fprintf(&b, "<td>%s</td>", cell.join(html.EscapeString, "<b>%s</b>", "<br>"))
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</tbody>\n")
	if len(t.Notes) > 0 {
		fmt.Fprintf(&b, "<tfoot><tr><td colspan=\"%d\">", len(t.Columns))
		for i, note := range t.Notes {
			if i > 0 {
				b.WriteString("<br>")
			}
			b.WriteString(html.EscapeString(note))
		}
		b.WriteString("</td></tr></tfoot>\n")
	}
	b.WriteString("</table>\n")
	return b.String()
}

// csv is for programs, as RFC 4180 has it; the lines of a cell are set apart by "; ".
func (t Table) csv() (string, error) {
	records := [][]string{t.Columns}
	for _, row := range t.Rows {
		record := []string{row.Name}
		for _, cell := range row.Cells {
			record = append(record, cell.join(func(s string) string { return s }, "%s", "; "))
		}
		records = append(records, record)
	}
	var b strings.Builder
	if err := csv.NewWriter(&b).WriteAll(records); err != nil {
		return "", fmt.Errorf("report: the table %s as CSV: %w", t.Name, err)
	}
	return b.String(), nil
}
