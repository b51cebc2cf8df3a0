package datasets

import (
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
	"unicode"
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
// Quoted fields, blanks beside quotes, lines that are empty or blank, a byte order
// mark, Windows' line ends and a Ctrl-Z at the end are read too. It is an error if a
// field is missing (empty, or NA, ?, null and the like), is no finite decimal number,
// or is a whole number that float64 does not hold, and if a line has more or fewer
// fields than the first. So are two columns of one name, a column without a name, as
// the row numbers of pandas and R, and a number for a name, as in a file without a
// line of names. UTF-16, a first line sep= and lines that end with CR alone are
// refused by name.
//
// The error joins up to ten [*FileError]: of each kind of fault in each column the
// first, and how many lines have it.
func ReadCSV(file, target string) (*Regression, error) { return CSV{Target: target}.Read(file) }

// Read reads a file as ReadCSV does.
func (c CSV) Read(file string) (*Regression, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, &FileError{File: file, Err: err}
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
	if advice, err := checkText(text); err != nil {
		return nil, &FileError{File: file, Line: 1, Err: err, Advice: advice}
	}
	lines := lines{rest: text, separator: separatorOf(text)}
	found := faults{file: file, count: map[fault]int{}}
	fail := func(column int, err error, advice string) { found.add(lines.number, column, err, advice) }
	names, err := lines.read()
	switch {
	case err == io.EOF:
		fail(-1, errEmpty, "")
	case err != nil:
		fail(len(names), err, adviceQuotes)
	case len(names) < 2:
		fail(-1, fmt.Errorf("there is one column, %q; a regression needs a target and at least one input, separated by commas, semicolons or tabs", names[0]), "")
	}
	if err := found.err(); err != nil {
		return nil, err
	}
	columns, y := make(Columns, len(names)), c.checkNames(names, fail)
	words := make([]map[string]bool, len(names)) // of columns of words
	for j, name := range names {
		columns[j].Name = name
		if slices.Contains(c.Categories, name) {
			words[j] = map[string]bool{}
		}
	}
	type row struct {
		line  int
		cells []string
	}
	var rows []row
	for {
		cells, err := lines.read()
		if err == io.EOF {
			break
		}
		rows = append(rows, row{lines.number, cells})
		switch {
		case err != nil:
			fail(len(cells), err, adviceQuotes)
		case len(cells) != len(names):
			fail(-1, fmt.Errorf("%w: %d, expected %d", errFieldCount, len(cells), len(names)), "")
		}
		for j, cell := range cells[:min(len(cells), len(names))] {
			none := isMissing(cell)
			switch {
			case words[j] != nil && !none:
				words[j][cell] = true
			case words[j] != nil && c.FillMissing:
				words[j][""] = true
			case none && c.FillMissing && j != y:
				columns[j].MayMiss = true
			}
		}
	}
	for j, of := range words {
		if of != nil {
			columns[j].Categories = slices.Sorted(maps.Keys(of))
		}
		if len(of) > maxCategories {
			fail(j, fmt.Errorf("%s has %d categories, and %d are allowed", names[j], len(of), maxCategories), "leave the column out if it names the rows, or put rare ones together")
		}
	}
	if len(rows) == 0 {
		fail(-1, errEmpty, "")
	}
	set := &Regression{N: len(rows)}
	for _, row := range rows {
		if len(row.cells) != len(names) {
			continue
		}
		lines.number = row.line
		for j, cell := range row.cells {
			to := &set.X
			if j == y {
				to = &set.Y
			}
			if *to, err = columns[j].append(*to, cell); err != nil {
				fail(j, err, adviceOn(err))
			}
		}
	}
	if err := found.err(); err != nil {
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
func (c CSV) checkNames(names []string, fail func(column int, err error, advice string)) (y int) {
	for j, name := range names {
		if advice, err := checkColumnName(name); err != nil {
			fail(j, err, advice)
		} else if slices.Contains(names[:j], name) {
			fail(j, fmt.Errorf("there are two columns %q", name), "give each a name of its own")
		}
	}
	y = len(names) - 1
	if c.Target != "" {
		y = slices.Index(names, c.Target)
	}
	if y < 0 {
		fail(-1, fmt.Errorf("there is no column %q for the target; the columns are %s", c.Target, strings.Join(names, ", ")), "")
	}
	for _, name := range c.Categories {
		switch j := slices.Index(names, name); {
		case j < 0:
			fail(-1, fmt.Errorf("there is no column %q of categories; the columns are %s", name, strings.Join(names, ", ")), "give CSV.Categories names of columns")
		case j == y:
			fail(j, fmt.Errorf("the target %s cannot have categories", name), "give classes the numbers 0, 1, ...")
		}
	}
	return y
}

// A fault is a kind of fault in a column. The advice tells kinds apart.
type fault struct {
	column int
	advice string
}

// faults are what is wrong with a file.
type faults struct {
	file  string
	first []*FileError // of each kind
	count map[fault]int
}

// add adds a fault in a column, counted from 0; -1 is the whole line.
func (f *faults) add(line, column int, err error, advice string) {
	kind := fault{column + 1, advice}
	if f.count[kind]++; f.count[kind] == 1 {
		f.first = append(f.first, &FileError{File: f.file, Line: line, Column: column + 1, Err: err, Advice: advice})
	}
}

// err returns the faults by lines, nil if there are none.
func (f *faults) err() error {
	const most = 10
	var all []error
	slices.SortStableFunc(f.first, func(a, b *FileError) int { return a.Line - b.Line })
	for _, e := range f.first[:min(len(f.first), most)] {
		if n := f.count[fault{e.Column, e.Advice}]; n > 1 {
			e.Err = fmt.Errorf("%w (%d lines in all)", e.Err, n)
		}
		all = append(all, e)
	}
	if more := len(f.first) - most; more > 0 {
		all = append(all, &FileError{File: f.file, Err: fmt.Errorf("there are %d more kinds of faults", more)})
	}
	return errors.Join(all...)
}

const adviceQuotes = "quotes are the first and the last character of a field, and those inside are doubled"

// adviceOn says what to do about a cell.
func adviceOn(err error) string {
	switch {
	case errors.Is(err, errMissing):
		return "give it one, or leave the line out; CSV.FillMissing puts the mean of an input there"
	case errors.Is(err, errNotFinite):
		return "leave the line out, or give it a finite value"
	case errors.Is(err, errNotHeld):
		return "leave the column out if it names the rows, or else count from a nearer start"
	}
	return "all values are decimal numbers with a point; name columns of words in CSV.Categories"
}

// lines are the lines of a text that are not blank.
type lines struct {
	rest          string
	separator     rune
	number, ahead int // of the line that was read last, and of all lines read; quotes can extend a line
}

// read returns the fields of the next line, without the blanks around them. With an error it returns those before the fault.
func (l *lines) read() (fields []string, err error) {
	for {
		line, after, _ := strings.Cut(l.rest, "\n")
		if strings.TrimSpace(line) != "" {
			break
		}
		if l.rest == "" {
			return nil, io.EOF
		}
		l.rest = after
		l.ahead++
	}
	fields, rest, err := cutLine(l.rest, l.separator)
	if err != nil {
		_, rest, _ = strings.Cut(rest, "\n")
	}
	l.number = l.ahead + 1
	l.ahead += strings.Count(l.rest[:len(l.rest)-len(rest)], "\n")
	l.rest = rest
	return fields, err
}

// cutLine cuts the first line off a text. After an error, rest begins at the fault.
func cutLine(text string, separator rune) (fields []string, rest string, err error) {
	blank := func(r rune) bool { return r != separator && r != '\n' && unicode.IsSpace(r) }
	ends := string(separator) + "\n"
	for {
		field := ""
		text = strings.TrimLeftFunc(text, blank)
		quoted := strings.HasPrefix(text, `"`)
		if quoted {
			end := 1 // after the closing quote
			for {
				part := strings.IndexByte(text[end:], '"')
				if part < 0 {
					return fields, text, errors.New("a quote is not closed")
				}
				end += part + 1
				if !strings.HasPrefix(text[end:], `"`) {
					break
				}
				end++ // it was doubled
			}
			field = strings.ReplaceAll(text[1:end-1], `""`, `"`)
			text = strings.TrimLeftFunc(text[end:], blank)
		}
		end := strings.IndexAny(text, ends)
		if end < 0 {
			end = len(text)
		}
		switch plain := text[:end]; {
		case quoted && plain != "":
			return fields, text, fmt.Errorf("%q follows a closing quote", plain)
		case strings.Contains(plain, `"`):
			return fields, text, errors.New("there is a quote inside of a field without quotes")
		default:
			field += plain
		}
		fields = append(fields, strings.TrimSpace(field))
		if text = text[end:]; text == "" || text[0] == '\n' {
			return fields, strings.TrimPrefix(text, "\n"), nil
		}
		text = text[1:]
	}
}

// isMissing says whether a field stands for a value that is not there.
func isMissing(field string) bool {
	return len(field) <= 7 && slices.Contains(missingWords, strings.ToLower(field))
}

var missingWords = []string{ // of at most 7 bytes
	"", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "+nan", "null", "none", "nil", "missing", "nat", "n.a.", "\\n", "?", "-", "--", "—", ".",
	"#null!", "#div/0!", "#value!", "1.#qnan", "1.#ind", "-1.#ind",
}

// loneCR is a carriage return that ends no line of Windows.
var loneCR = regexp.MustCompile(`\r[^\r\n]`)

// checkText says why a text cannot be read as a table, and what to do about it.
func checkText(text string) (advice string, err error) {
	line, _, _ := strings.Cut(strings.TrimLeft(text, "\r\n\t \""), "\n")
	switch {
	case strings.HasPrefix(text, "\xff\xfe"), strings.HasPrefix(text, "\xfe\xff"), strings.Contains(line, "\x00"):
		return "save it as UTF-8 (Excel: CSV UTF-8)", errors.New("the text is not UTF-8 but, it seems, UTF-16")
	case strings.HasPrefix(strings.ToLower(line), "sep="):
		return "delete this line: the separator is found without it", errors.New("the first line names a separator for Excel, not the columns")
	case loneCR.MatchString(text):
		return "save it with the line ends of Unix or Windows", errors.New("lines end with CR alone, as on old Macs")
	}
	return "", nil
}

// separatorOf is the separator that the first line of a text that is not blank has most of outside of quotes, a comma where
// it has none.
func separatorOf(text string) rune {
	counts := make(map[rune]int)
	quoted, blank := false, true
	for _, c := range text {
		if c == '"' {
			quoted = !quoted
		}
		if c == '\n' && !quoted {
			if !blank {
				break
			}
			clear(counts)
		}
		blank = blank && unicode.IsSpace(c)
		if !quoted {
			counts[c]++
		}
	}
	separator := ','
	for _, other := range ";\t" {
		if counts[other] > counts[separator] {
			separator = other
		}
	}
	return separator
}

// checkColumnName says why a column cannot have a name, and what to do about it.
func checkColumnName(name string) (advice string, err error) {
	_, notNumber := strconv.ParseFloat(name, 64)
	switch {
	case name == "" || strings.HasPrefix(name, "Unnamed: "): // as pandas calls a column without a name
		return "row numbers are no inputs: write the file without them (pandas: to_csv(index=False), R: row.names = FALSE); name the column if it is an input", errors.New("the column has no name")
	case notNumber == nil || errors.Is(notNumber, strconv.ErrRange):
		return "the first line has the columns' names: write one above the data, or call the column x" + name, fmt.Errorf("the column's name is the number %s", name)
	}
	return "", nil
}

// parseFinite reads a decimal number. Go's own parser also takes hexadecimal
// floats, underscores between digits and the words "inf" and "nan"; in a data
// file each of these is damage. A whole number that float64 does not hold, such as
// an identifier of 17 digits, would become equal to others. It is refused too, unless
// it is how the number of float64 is written in the fewest digits, as 1e23 is.
func parseFinite(field string) (float64, error) {
	v, err := strconv.ParseFloat(field, 64)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && notFinite(v):
		return 0, fmt.Errorf("%w: %q", errNotFinite, field)
	case err != nil || strings.ContainsAny(field, "xX_"):
		return 0, fmt.Errorf("%q is not a decimal number", field)
	}
	if math.Abs(v) >= 1<<53 {
		written, _ := new(big.Rat).SetString(field) // what ParseFloat reads, Rat does
		shortest, _ := new(big.Rat).SetString(strconv.FormatFloat(v, 'e', -1, 64))
		if exact := new(big.Rat).SetFloat64(v); written.IsInt() && written.Cmp(exact) != 0 && written.Cmp(shortest) != 0 {
			return 0, fmt.Errorf("%w %s, which would be %.0f", errNotHeld, field, v)
		}
	}
	return v, nil
}
