package datasets

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// CSV says what the columns of a file are.
type CSV struct {
	// Target is the name of the column that becomes Y; "" is the last column. The others become X, in their order.
	Target string
	// Categories names columns of words. Each word of the column becomes an input, which is 1 in the rows that have the
	// word, and 0 in the others.
	Categories []string
	// FillMissing also reads cells without a value. A missing number is NaN, in the place of which Columns.Fill puts the
	// mean of the training rows, and a further input of the column is 1. In a column of words it is the word "". Without
	// FillMissing, and in the target, cells without a value are an error.
	FillMissing bool
}

// ReadCSV reads a regression set of your own: a text file with the names of the
// columns in its first line and numbers in all others, separated by commas,
// semicolons or tabs, whichever the first line has most of. The column with the
// name target becomes Y, with "" the last one, and the others X, in their order.
// The set has the file's name without folder and extension. [CSV] also reads
// categories and missing cells.
//
// Fields are quoted as in package encoding/csv. Blanks before and after a field, empty
// lines, a byte order mark, Windows' line ends and a Ctrl-Z at the end are read too. It
// is an error if a field is missing (empty, or NA, ?, null and the like), is no finite
// decimal number, or is a whole number that float64 does not hold, and if a line has more
// or fewer fields than the first. So are two columns of one name, a column without a
// name, as the row numbers of pandas and R, a number for a name, as in a file without a
// line of names, and names that are not UTF-8.
//
// The error names up to ten kinds of faults: of each kind in each column the first line,
// and how many lines have it.
func ReadCSV(file, target string) (*Regression, error) { return CSV{Target: target}.Read(file) }

// Read reads a file as ReadCSV does.
func (c CSV) Read(file string) (*Regression, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("datasets: %w", err)
	}
	set, err := c.parse(string(text), file)
	if err != nil {
		return nil, err
	}
	base := filepath.Base(file)
	set.Name = strings.TrimSuffix(base, filepath.Ext(base))
	return set, nil
}

// parse is Read of a text; file is used in messages only.
func (c CSV) parse(text, file string) (*Regression, error) {
	text = strings.TrimRight(strings.TrimPrefix(text, "\xef\xbb\xbf"), "\x1a\r\n")
	lines := csv.NewReader(strings.NewReader(text))
	lines.Comma = separatorOf(text)
	lines.TrimLeadingSpace = lines.Comma != '\t'
	names, err := lines.Read()
	if err != nil {
		return nil, fmt.Errorf("datasets: %s: there is no line of column names: %w", file, err)
	}
	for j, name := range names {
		names[j] = strings.TrimSpace(name)
	}
	var found faults
	y := c.checkNames(names, &found)
	type row struct {
		line  int
		cells []string
	}
	var rows []row
	for {
		cells, err := lines.Read()
		if err == io.EOF {
			break
		}
		if wrong, is := errors.AsType[*csv.ParseError](err); is && wrong.Err == csv.ErrFieldCount {
			found.add(wrong.Line, 0, fault{fmt.Sprintf("%v: %d, expected %d", wrong.Err, len(cells), len(names)), ""})
			continue
		} else if is {
			found.add(wrong.Line, 0, fault{wrong.Err.Error(), "quotes are the first and the last character of a field, and those inside are doubled"})
			continue
		}
		for j, cell := range cells {
			cells[j] = strings.TrimSpace(cell)
		}
		line, _ := lines.FieldPos(0)
		rows = append(rows, row{line, cells})
	}
	if len(rows) == 0 && len(found) == 0 {
		found.add(1, 0, fault{"there is no line of values that can be read", ""})
	}
	columns := make(Columns, len(names))
	for j, name := range names {
		columns[j].Name = name
		category, words := slices.Contains(c.Categories, name), map[string]bool{}
		for _, row := range rows {
			none := isMissing(row.cells[j])
			switch {
			case category && !none:
				words[row.cells[j]] = true
			case category && c.FillMissing:
				words[""] = true
			case none && c.FillMissing && j != y:
				columns[j].MayMiss = true
			}
		}
		if category {
			columns[j].Categories = slices.Sorted(maps.Keys(words))
		}
		if len(words) > maxCategories {
			found.add(1, j+1, fault{fmt.Sprintf("%s has %d categories, and %d are allowed", name, len(words), maxCategories), "leave the column out if it names the rows, or put rare ones together"})
		}
	}
	set := &Regression{N: len(rows)}
	for _, row := range rows {
		for j, cell := range row.cells {
			to := &set.X
			if j == y {
				to = &set.Y
			}
			var wrong *fault
			if *to, wrong = columns[j].append(*to, cell); wrong != nil {
				found.add(row.line, j+1, *wrong)
			}
		}
	}
	if err := found.err(file); err != nil {
		return nil, err
	}
	columns = slices.Delete(columns, y, y+1)
	for _, column := range columns {
		set.Features = append(set.Features, column.inputs()...)
	}
	if set.D = len(set.Features); slices.ContainsFunc(columns, func(c Column) bool { return c.Categories != nil || c.MayMiss }) {
		set.Columns = columns
	}
	return set, nil
}

// maxCategories is the largest number of categories of a column.
const maxCategories = 1000

// checkNames reports what is wrong with the names of columns, and returns the place of the target.
func (c CSV) checkNames(names []string, found *faults) (y int) {
	if len(names) < 2 {
		found.add(1, 0, fault{fmt.Sprintf("there is one column, %q; a regression needs a target and at least one input, separated by commas, semicolons or tabs", names[0]), ""})
	}
	for j, name := range names {
		if wrong := checkColumnName(name); wrong != nil {
			found.add(1, j+1, *wrong)
		} else if slices.Contains(names[:j], name) {
			found.add(1, j+1, fault{fmt.Sprintf("there are two columns %q", name), "give each a name of its own"})
		}
	}
	y = len(names) - 1
	if c.Target != "" {
		y = slices.Index(names, c.Target)
	}
	if y < 0 {
		found.add(1, 0, fault{fmt.Sprintf("there is no column %q for the target; the columns are %s", c.Target, strings.Join(names, ", ")), "give CSV.Target the name of a column"})
	}
	for _, name := range c.Categories {
		switch j := slices.Index(names, name); {
		case j < 0:
			found.add(1, 0, fault{fmt.Sprintf("there is no column %q of categories; the columns are %s", name, strings.Join(names, ", ")), "give CSV.Categories names of columns"})
		case j == y:
			found.add(1, j+1, fault{fmt.Sprintf("the target %s cannot have categories", name), "give classes the numbers 0, 1, ..."})
		}
	}
	return y
}

// A fault says what is wrong with a cell or a line, and what to do about it.
type fault struct{ text, advice string }

// faults are what is wrong with a file: of each kind the first, and how many lines have it. Faults of one column with the
// same advice are of one kind.
type faults []struct {
	column int
	fault
	lines int
}

// add adds a fault in a column, counted from 1; 0 is the whole line.
func (f *faults) add(line, column int, wrong fault) {
	for i := range *f {
		if kind := &(*f)[i]; kind.column == column && kind.advice == wrong.advice {
			kind.lines++
			return
		}
	}
	place := fmt.Sprintf("line %d", line)
	if column > 0 {
		place += fmt.Sprintf(", column %d", column)
	}
	*f = append(*f, faults{{column, fault{place + ": " + wrong.text, wrong.advice}, 1}}...)
}

// err names the faults of a file. It is nil if there are none.
func (f faults) err(file string) error {
	const most = 10
	var all []error
	for _, kind := range f[:min(len(f), most)] {
		text := kind.text
		if kind.lines > 1 {
			text += fmt.Sprintf(" (%d lines in all)", kind.lines)
		}
		if kind.advice != "" {
			text += "; " + kind.advice
		}
		all = append(all, fmt.Errorf("datasets: %s: %s", file, text))
	}
	if more := len(f) - most; more > 0 {
		all = append(all, fmt.Errorf("datasets: %s: there are %d more kinds of faults", file, more))
	}
	return errors.Join(all...)
}

// isMissing says whether a field stands for a value that is not there.
func isMissing(field string) bool {
	return len(field) <= 7 && slices.Contains(missingWords, strings.ToLower(field))
}

var missingWords = []string{ // of at most 7 bytes
	"", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "+nan", "null", "none", "nil", "missing", "nat", "n.a.", "\\n", "?", "-", "--", "—", ".",
	"#null!", "#div/0!", "#value!", "1.#qnan", "1.#ind", "-1.#ind",
}

// quoted matches a field in quotes, also one whose closing quote is missing.
var quoted = regexp.MustCompile(`"[^"]*"?`)

// separatorOf is the separator that the first line of a text which is not empty has most of outside of quotes, a comma
// where it has none.
func separatorOf(text string) rune {
	line, _, _ := strings.Cut(strings.TrimLeft(quoted.ReplaceAllString(text, ""), "\r\n"), "\n")
	separator := ','
	for _, other := range ";\t" {
		if strings.Count(line, string(other)) > strings.Count(line, string(separator)) {
			separator = other
		}
	}
	return separator
}

// checkColumnName says why a column cannot have a name, and what to do about it.
func checkColumnName(name string) *fault {
	_, notNumber := strconv.ParseFloat(name, 64)
	switch {
	case !utf8.ValidString(name) || strings.ContainsAny(name, "\x00\r"):
		return &fault{fmt.Sprintf("the column's name is %q: the text is not UTF-8, or its lines end with CR alone", name), "save it as UTF-8 (Excel: CSV UTF-8), with the line ends of Unix or Windows"}
	case name == "" || strings.HasPrefix(name, "Unnamed: "): // as pandas calls a column without a name
		return &fault{"the column has no name", "row numbers are no inputs: write the file without them (pandas: to_csv(index=False), R: row.names = FALSE); name the column if it is an input"}
	case notNumber == nil || errors.Is(notNumber, strconv.ErrRange):
		return &fault{"the column's name is the number " + name, "the first line has the columns' names: write one above the data, or call the column x" + name}
	}
	return nil
}

// parseFinite reads a decimal number. Go's own parser also takes hexadecimal
// floats, underscores between digits and the words "inf" and "nan"; in a data
// file each of these is damage. A whole number that float64 does not hold, such as
// an identifier of 17 digits, would become equal to others. It is refused too, unless
// it is how the number of float64 is written in the fewest digits, as 1e23 is.
func parseFinite(field string) (float64, *fault) {
	v, err := strconv.ParseFloat(field, 64)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && notFinite(v):
		return 0, &fault{fmt.Sprintf("not a finite number: %q", field), "leave the line out, or give it a finite value"}
	case err != nil || strings.ContainsAny(field, "xX_"):
		return 0, &fault{fmt.Sprintf("%q is not a decimal number", field), "all values are decimal numbers with a point; name columns of words in CSV.Categories"}
	}
	if math.Abs(v) >= 1<<53 {
		written, _ := new(big.Rat).SetString(field) // what ParseFloat reads, Rat does
		shortest, _ := new(big.Rat).SetString(strconv.FormatFloat(v, 'e', -1, 64))
		if exact := new(big.Rat).SetFloat64(v); written.IsInt() && written.Cmp(exact) != 0 && written.Cmp(shortest) != 0 {
			return 0, &fault{fmt.Sprintf("float64 does not hold the whole number %s, which would be %.0f", field, v), "leave the column out if it names the rows, or else count from a nearer start"}
		}
	}
	return v, nil
}
