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

// CSV reads a regression set from a file with columns of numbers and of words.
type CSV struct {
	// Target is the name of the column that becomes Y; "" means the last. The other columns become X, in their order.
	Target string
	// Categories names columns of words, with at most 1000 different words each. Each word becomes an input that is 1 in
	// the rows with the word, and 0 in the others. "NA", "None", "-" and "." are ordinary words here.
	Categories []string
	// FillMissing allows cells without a value, except in the target. A missing number is NaN, which Columns.Fill
	// replaces by the mean of the training rows, and a second input of the column is 1. In a column of words it is the
	// word "". Without FillMissing it is an error.
	FillMissing bool
	// MissingWords are further words that mean "no value" in all columns, such as "unknown" or "-999". Empty cells
	// always do, and in columns of numbers NA, ?, null and the like too.
	MissingWords []string
}

// ReadCSV reads your own regression set: a text file with the names of the columns in the first line and numbers in all
// others, separated by commas, semicolons or tabs, whichever the first line has most of. The column target becomes Y
// ("" means the last), the others X, in their order. The set is named after the file, without folder and extension.
// [CSV] also reads categories and missing cells.
//
// A point is the decimal point, also between semicolons: 1.000 is 1. A comma in a number is an error.
// Fields are quoted as in package encoding/csv. Spaces around fields, blank lines, byte order marks, Windows line ends,
// a Ctrl-Z at the end, and a first line that names the separator, such as sep=;, are allowed. It is an error if
//
//   - a field is missing (empty, or NA, ?, null and the like), is no finite decimal number, or is a whole number that
//     float64 cannot hold;
//   - a line has more or fewer fields than the first;
//   - a column has no name, as the row numbers of pandas and R, or a number for a name, as in a file without a line of
//     names;
//   - two columns or inputs have the same name, or a name is not UTF-8.
//
// The error lists up to ten kinds of faults: for each kind and column the first line and the number of lines.
func ReadCSV(file, target string) (*Regression, error) { return CSV{Target: target}.Read(file) }

// Read reads a file as ReadCSV does, with the settings of c.
func (c CSV) Read(file string) (*Regression, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("datasets: %w", err)
	}
	defer f.Close()
	var text strings.Builder // whose String is no copy
	if info, err := f.Stat(); err == nil {
		text.Grow(int(info.Size()))
	}
	if _, err := io.Copy(&text, f); err != nil {
		return nil, fmt.Errorf("datasets: %w", err)
	}
	set, err := c.parse(text.String(), file)
	if err != nil {
		return nil, err
	}
	base := filepath.Base(file)
	set.Name = strings.TrimSuffix(base, filepath.Ext(base))
	return set, nil
}

// parse is Read of a text; file is used in messages only.
func (c CSV) parse(text, file string) (*Regression, error) {
	text = strings.TrimRight(strings.TrimLeft(text, "\ufeff"), "\x1a\r\n")
	separator := separatorOf(text)
	if named := separatorLine.FindStringSubmatch(text); named != nil {
		separator = named[1][0]
		text = text[len("sep=;"):] // the end of the line stays, so that lines are counted right
	}
	var found faults
	lines := readLines(text, separator)
	_, names, err := lines()
	if err != nil {
		return nil, fmt.Errorf("datasets: %s: there is no line of column names, separated by commas, semicolons or tabs (R: write.csv with row.names = FALSE): %w", file, err)
	}
	names = slices.Clone(names) // which the next line overwrites
	for j, name := range names {
		names[j] = strings.Clone(name) // not to keep the text
	}
	y := c.checkNames(names, &found)
	columns := make(Columns, len(names))
	words := make([]map[string]float64, len(names)) // the places in which the words of a column were found
	for j, name := range names {
		columns[j] = Column{Name: name, MissingWords: c.MissingWords}
		if slices.Contains(c.Categories, name) {
			columns[j].Categories, words[j] = []string{}, map[string]float64{}
		}
	}
	values := make([]float64, 0, min(strings.Count(text, "\n")*len(names), len(text))+len(names)) // NaN is missing, and a word is its place
	for {
		line, cells, err := lines()
		if err == io.EOF {
			break
		}
		if err != nil {
			found.add(line, 0, fault{err.Error(), "quotes are the first and the last character of a field, and those inside are doubled"})
			continue
		}
		if len(cells) != len(names) {
			advice := ""
			if len(cells) == len(names)+1 {
				advice = "if a name of the row comes first, as R writes it, write the file without (row.names = FALSE)"
			}
			found.add(line, 0, fault{fmt.Sprintf("wrong number of fields: %d, expected %d", len(cells), len(names)), advice})
			continue
		}
		for j, cell := range cells {
			column := &columns[j]
			v, wrong := column.value(cell, words[j])
			switch missing := wrong == nil && math.IsNaN(v); {
			case missing && j == y:
				wrong = &fault{column.without(cell).text, "give the target one, or leave the line out"}
			case missing && !c.FillMissing:
				wrong = column.without(cell)
			case missing && words[j] != nil:
				v = place(words[j], "")
			case missing:
				column.MayMiss = true
			}
			if wrong != nil {
				found.add(line, j+1, *wrong)
			}
			values = append(values, v)
		}
	}
	n := len(values) / len(names)
	if n == 0 && len(found) == 0 {
		found.add(1, 0, fault{"there is no line of values that can be read", ""})
	}
	set := &Regression{N: n}
	sorted, taken := make([][]float64, len(names)), map[string]bool{} // the places of words in order, and the names of inputs
	for j := range columns {
		column := &columns[j]
		if words[j] != nil {
			column.Categories = slices.Sorted(maps.Keys(words[j]))
			sorted[j] = make([]float64, len(column.Categories))
			for at, word := range column.Categories {
				sorted[j][int(words[j][word])] = float64(at)
			}
		}
		if len(column.Categories) > maxCategories {
			found.add(1, j+1, fault{fmt.Sprintf("%s has %d categories, and %d are allowed", column.Name, len(column.Categories), maxCategories), "leave the column out if it names the rows, or put rare ones together"})
		}
		if j == y {
			continue
		}
		for _, name := range column.inputs() {
			if taken[name] && !slices.Contains(names[:j], column.Name) {
				found.add(1, j+1, fault{fmt.Sprintf("there are two inputs %q", name), "rename the column " + column.Name})
			}
			taken[name], set.Features = true, append(set.Features, name)
		}
	}
	if err := found.err(file); err != nil {
		return nil, err
	}
	set.D = len(set.Features)
	set.X, set.Y = make([]float64, 0, n*set.D), make([]float64, 0, n)
	for row := range slices.Chunk(values, len(names)) {
		for j, v := range row {
			switch {
			case j == y:
				set.Y = append(set.Y, v)
			case sorted[j] != nil:
				set.X = columns[j].append(set.X, sorted[j][int(v)])
			default:
				set.X = columns[j].append(set.X, v)
			}
		}
	}
	columns = slices.Delete(columns, y, y+1)
	if slices.ContainsFunc(columns, func(c Column) bool { return c.Categories != nil || c.MayMiss }) {
		set.Columns = columns
	}
	return set, nil
}

// place is the number of a word, in the order in which words are asked for.
func place(words map[string]float64, word string) float64 {
	at, known := words[word]
	if !known {
		at = float64(len(words))
		words[strings.Clone(word)] = at
	}
	return at
}

// readLines returns a function that reads the fields of the next line which is not empty, without blanks around them. They
// are overwritten by the next call. After an error it can be called again, but for io.EOF.
func readLines(text string, separator byte) func() (line int, cells []string, err error) {
	next := func() (int, []string, error) { return 0, nil, nil }
	if strings.IndexByte(text, '"') < 0 { // three times faster
		line, cells := 0, []string(nil)
		next = func() (int, []string, error) {
			if text == "" {
				return 0, nil, io.EOF
			}
			var rest string
			rest, text, _ = strings.Cut(text, "\n")
			line++
			cells = cells[:0]
			for {
				at := strings.IndexByte(rest, separator)
				if at < 0 {
					cells = append(cells, rest)
					return line, cells, nil
				}
				cells, rest = append(cells, rest[:at]), rest[at+1:]
			}
		}
	} else {
		quoted := csv.NewReader(strings.NewReader(text))
		quoted.Comma, quoted.TrimLeadingSpace, quoted.ReuseRecord, quoted.FieldsPerRecord = rune(separator), separator != '\t', true, -1
		next = func() (int, []string, error) {
			cells, err := quoted.Read()
			if wrong, is := errors.AsType[*csv.ParseError](err); is {
				return wrong.Line, nil, wrong.Err
			}
			if err != nil {
				return 0, nil, err
			}
			line, _ := quoted.FieldPos(0)
			return line, cells, nil
		}
	}
	return func() (int, []string, error) {
		for {
			line, cells, err := next()
			if err != nil {
				return line, nil, err
			}
			for j, cell := range cells {
				cells[j] = strings.TrimSpace(cell)
			}
			if len(cells) > 1 || cells[0] != "" {
				return line, cells, nil
			}
		}
	}
}

// separatorLine is a line by which Excel is told the separator.
var separatorLine = regexp.MustCompile(`^(?i:sep)=([,;\t|])\r?\n`)

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

// separatorOf is the separator that the first line of a text which is not empty has most of outside of quotes, a comma
// where it has none.
func separatorOf(text string) byte {
	counts, inside := [256]int{}, false
	for _, c := range []byte(strings.TrimLeft(text, "\r\n ")) {
		if c == '"' {
			inside = !inside
		}
		if c == '\n' && !inside {
			break
		}
		if !inside {
			counts[c]++
		}
	}
	separator := byte(',')
	for _, other := range []byte(";\t") {
		if counts[other] > counts[separator] {
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

// date matches a date, such as 2026-11-28, 28.11.26, 11/2026, 2026Q4, 28-Nov-2026 or Nov 28, 2026, and a time, such as 9:30.
var date = regexp.MustCompile(`(?i)^(\d{4}-?(q|w)?\d\d?$|\d{1,4}[-/.]\d{1,2}[-/.](\d\d|\d{4})([t ,]|$)|\d{1,2}/\d{4}$|\d{1,2}:\d\d|(\d{1,4}[-/. ]*)?(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[-/., ]*\d{1,4})`)

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
	case err != nil && date.MatchString(field):
		return 0, &fault{fmt.Sprintf("%q is a date or a time, and not a decimal number", field), "count days or seconds from a start, or give year, month and day columns of their own"}
	case err != nil || strings.IndexByte(field, '_') >= 0 || strings.IndexByte(field, 'x') >= 0 || strings.IndexByte(field, 'X') >= 0:
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
