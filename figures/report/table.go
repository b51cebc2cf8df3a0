package report

import (
	"encoding/csv"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"densityuncertainty/dul/metrics"
)

// Table is a finished table, ready to be rendered in one of TableFormats.
type Table struct {
	Name    string   // for labels and file names, for example "uci-nll"
	Title   string   // the question that it answers
	Caption string   // what one sees, in at most 40 words
	Columns []string // headings, the first is that of the row names
	Rows    []Row
	// Legend explains the marks of the verdicts, such as LegendAgainst or LegendPaper. It is shown if a cell has one.
	Legend   string
	Measured []string // how the numbers were measured, a paragraph each; readers unfold it
	NotRun   []string // names of what is left out because its runs were not made
}

// Row is one line of a table. Rows of one group follow each other; the group's name stands above them.
type Row struct {
	Group, Name string
	Cells       []Cell // one fewer than Table.Columns
}

// A Cell is one number with its spread, or a few words.
type Cell struct {
	Text string
	Bold bool
	// Value is the number that the text shows; nil for words. Align and pictures read it.
	Value *Value
	note  string // what the text has after the number
	// Verdict is shown as a mark: Better, Worse or Agrees. NotSignificant and the others have none.
	Verdict string
	// Difference has the verdict's difference, for the CSV and the picture of a Forest; nil for none.
	Difference *metrics.Difference
	// NotRun says that the cell waits for runs that were not made.
	NotRun bool
	// Theirs says that the cell is the paper's. Such cells keep no row and no column that waits for runs.
	Theirs bool
}

// The marks of verdicts.
var marks = map[string]string{Better: "▲", Worse: "▽", Agrees: "≈"}

// LegendPaper explains marks on numbers that are compared with published ones (see tables.Printed.Away).
const LegendPaper = "≈ within one standard deviation of the published number, ▲ better or ▽ worse by more."

// LegendAgainst returns the Legend of a table whose numbers are tested against a reference.
func LegendAgainst(reference string) string {
	return fmt.Sprintf("▲ better, ▽ worse than %s, significant at 5%% for all cells of the table together. No mark: not significant.", reference)
}

// shown is the text of a cell with its mark.
func (c Cell) shown() string {
	text := c.Text
	if text == "" || c.NotRun {
		text = "–"
	}
	if mark := marks[c.Verdict]; mark != "" {
		text += " " + mark
	}
	return text
}

// TextCells are cells of words.
func TextCells(texts ...string) []Cell {
	var cells []Cell
	for _, text := range texts {
		cells = append(cells, Cell{Text: text})
	}
	return cells
}

// WithoutNotRun returns the table without the rows and columns that wait for runs and have no number of ours. Their names
// are in NotRun; a group without any row left is named once.
func (t Table) WithoutNotRun() Table {
	kept := t
	kept.Columns, kept.Rows, kept.NotRun = t.Columns[:1:1], nil, slices.Clone(t.NotRun)
	some := map[string]bool{} // the groups of which rows are left
	for _, row := range t.Rows {
		some[row.Group] = some[row.Group] || !nothing(row.Cells)
	}
	var rows []Row
	for _, row := range t.Rows {
		switch name := strings.TrimPrefix(row.Group+", "+row.Name, ", "); {
		case !nothing(row.Cells):
			rows = append(rows, row)
			kept.Rows = append(kept.Rows, Row{Group: row.Group, Name: row.Name})
		case row.Group == "" || some[row.Group]:
			kept.NotRun = append(kept.NotRun, name)
		case !slices.Contains(kept.NotRun, row.Group):
			kept.NotRun = append(kept.NotRun, row.Group)
		}
	}
	for i, heading := range t.Columns[1:] {
		var column []Cell
		for _, row := range rows {
			column = append(column, row.Cells[i])
		}
		if nothing(column) {
			kept.NotRun = append(kept.NotRun, heading)
			continue
		}
		kept.Columns = append(kept.Columns, heading)
		for k, cell := range column {
			kept.Rows[k].Cells = append(kept.Rows[k].Cells, cell)
		}
	}
	return kept
}

// Cell returns the cell of a row and column, and the zero Cell if there is none.
func (t Table) Cell(group, row, column string) Cell {
	i := slices.IndexFunc(t.Rows, func(r Row) bool { return r.Group == group && r.Name == row })
	if k := slices.Index(t.Columns, column); i >= 0 && k > 0 {
		return t.Rows[i].Cells[k-1]
	}
	return Cell{}
}

// Turned is the table with a group for each row name, a row for each column, and a column for each group.
func (t Table) Turned() Table {
	turned := Table{Name: t.Name, Columns: []string{t.Columns[0]}}
	var names []string
	cells := map[[3]string]Cell{}
	for i, row := range t.Rows {
		if t.begins(i) {
			turned.Columns = append(turned.Columns, row.Group)
		}
		if !slices.Contains(names, row.Name) {
			names = append(names, row.Name)
		}
		for k, column := range t.Columns[1:] {
			cells[[3]string{row.Group, row.Name, column}] = row.Cells[k]
		}
	}
	for _, name := range names {
		for _, column := range t.Columns[1:] {
			row := Row{Group: name, Name: column}
			for _, group := range turned.Columns[1:] {
				row.Cells = append(row.Cells, cells[[3]string{group, name, column}])
			}
			turned.Rows = append(turned.Rows, row)
		}
	}
	return turned
}

// nothing says whether cells wait for runs, and none of them has a number.
func nothing(cells []Cell) bool {
	waits := false
	for _, c := range cells {
		waits = waits || c.NotRun
		if !c.NotRun && !c.Theirs && c.Text != "" && c.Text != "–" {
			return false
		}
	}
	return waits
}

// said is what is said below a table, apart from how it was measured.
func (t Table) said() []string {
	var said []string
	marked := func(c Cell) bool { return marks[c.Verdict] != "" || c.Verdict == NotSignificant }
	if t.Legend != "" && slices.ContainsFunc(t.Rows, func(r Row) bool { return slices.ContainsFunc(r.Cells, marked) }) {
		said = append(said, t.Legend)
	}
	if len(t.NotRun) > 0 {
		said = append(said, "Not run: "+strings.Join(t.NotRun, "; ")+".")
	}
	return said
}

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

// markdownEscaper escapes what Markdown, or a formula in it, would not read as text. It leaves code between backticks,
// which our captions have, and brackets that are no link. Two backslashes before a bracket would begin a formula in a
// notebook, so one of them is an entity.
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

// sentences joins two texts, and ends the first like a sentence.
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

// A Value is a mean with its spread. Ours has the decimals that are asked for, and a published one the decimals that it
// was printed with. Without a number Mean is NaN.
type Value struct {
	Mean, Std float64 // Std, a standard deviation, is NaN for a single run and where none is known
	Decimals  int
}

// String is "2.593 ± 0.067", the mean alone where there is no standard deviation, and a dash where there is no mean.
func (n Value) String() string {
	if math.IsNaN(n.Mean) {
		return "–"
	}
	if math.IsNaN(n.Std) {
		return fmt.Sprintf("%.*f", n.Decimals, n.Mean)
	}
	return fmt.Sprintf("%.*f ± %.*f", n.Decimals, n.Mean, n.Decimals, n.Std)
}

// Printed is a published number as a cell of its own, with the decimals that it was printed with.
func (n Value) Printed() Cell { return Cell{Text: n.String(), Theirs: true} }

// Cell is a cell with the value. Align gives it the decimals of the numbers beside it.
func (n Value) Cell() Cell {
	if math.IsNaN(n.Mean) {
		return Cell{Text: n.String()}
	}
	return Cell{Text: n.String(), Value: &n}
}

// The verdicts on a cell. NLL, RMSE and ECE are better when lower, accuracy and the areas under curves
// when higher.
const (
	Agrees = "agrees" // at most one standard deviation away
	Better = "better" // by more than that
	Worse  = "worse"  // by more than that
)

// mostDecimals is the number of decimals beyond which numbers differ by rounding alone.
const mostDecimals = 6

// Decimals returns the number of decimals, from 0 to 6, that show x with so many significant digits; 0 if x is 0, NaN or
// infinite.
func Decimals(x float64, digits int) int {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return min(max(0, digits-1-int(math.Floor(math.Log10(math.Abs(x))))), mostDecimals)
}

// Align prints all cells with the decimals that show two significant digits of their median standard deviation. They are at
// most the largest Decimals of the cells or, if that is above 2, as many as show three digits of the largest number. A cell
// gets more to show a digit of its own deviation, and fewer if two digits of it need at least two decimals fewer. A cell of
// Theirs never gets more than its own Decimals.
func Align(cells ...*Cell) {
	var own []int
	most := 0
	largest := 0.0
	for _, c := range cells {
		if c.Value != nil {
			largest, most = max(largest, math.Abs(c.Value.Mean)), max(most, c.Value.Decimals)
			if c.Value.Std > 0 {
				own = append(own, Decimals(c.Value.Std, 2))
			}
		}
	}
	if most > 2 {
		most = max(most, Decimals(largest, 3))
	}
	decimals := most
	if slices.Sort(own); len(own) > 0 {
		decimals = min(most, own[len(own)/2])
	}
	for _, c := range cells {
		if c.Value == nil {
			continue
		}
		n := decimals
		if c.Value.Std > 0 {
			n = min(most, max(n, Decimals(c.Value.Std, 1)))
			if two := Decimals(c.Value.Std, 2); two < n-1 {
				n = two
			}
		}
		if c.Theirs {
			n = min(n, c.Value.Decimals)
		}
		c.Text = Value{c.Value.Mean, c.Value.Std, n}.String() + c.note
	}
}

// Noted is the cell with a note after its number.
func (c Cell) Noted(note string) Cell {
	c.note = note
	c.Text += note
	return c
}

// NotSignificant is the verdict on a difference that other data of the same kind may well reverse.
const NotSignificant = "not significant"
