package datasets

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// ReadCSV reads a regression set of one's own: a text file with the names of the
// columns in its first line and numbers in all others, separated by commas,
// semicolons or tabs, whichever the first line has most of. The column with the
// name target becomes Y, with "" the last one, and the others X, in their order.
// The set has the file's name without folder and extension.
//
// Quoted fields, blanks before quotes, lines that are empty or blank, a byte order
// mark and Windows' line ends are read too. The error is a [*FileError] if a field
// is missing (empty, or NA, ?, null and the like) or no finite decimal number, if a
// line has more or fewer fields than the first, or if the target is missing or
// there twice. It also is one if a column has no name, as the row numbers that
// pandas and R write have none, or a number for a name, as in a file without a line
// of names: neither may become an input unnoticed. UTF-16, a first line sep= and
// lines that end with CR alone are refused by name.
func ReadCSV(file, target string) (*Regression, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, &FileError{File: file, Err: err}
	}
	set, err := parseCSV(f, file, target)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	base := filepath.Base(file)
	set.Name = strings.TrimSuffix(base, filepath.Ext(base))
	return set, nil
}

// parseCSV is ReadCSV of an open file; file is used in messages only.
func parseCSV(r io.Reader, file, target string) (*Regression, error) {
	buffered := bufio.NewReaderSize(r, maxLine)
	first, err := buffered.Peek(maxLine)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, &FileError{File: file, Err: err}
	}
	if mark := []byte("\xef\xbb\xbf"); bytes.HasPrefix(first, mark) {
		if _, err := buffered.Discard(len(mark)); err != nil {
			return nil, &FileError{File: file, Err: err}
		}
	}
	if advice, err := checkText(first); err != nil {
		return nil, &FileError{File: file, Line: 1, Err: err, Advice: advice}
	}
	table, columns := csv.NewReader(buffered), 0
	table.Comma, table.ReuseRecord, table.FieldsPerRecord = separatorOf(first), true, -1
	table.TrimLeadingSpace = table.Comma != '\t' // which is a space itself
	at := func(column int, err error, advice string) error {
		line, _ := table.FieldPos(max(column, 0))
		return &FileError{File: file, Line: line, Column: column + 1, Err: err, Advice: advice}
	}
	read := func() ([]string, error) {
		fields, err := table.Read()
		for err == nil && len(fields) == 1 && strings.TrimSpace(fields[0]) == "" {
			fields, err = table.Read()
		}
		var malformed *csv.ParseError
		switch {
		case errors.As(err, &malformed):
			err = &FileError{File: file, Line: malformed.Line, Err: fmt.Errorf("%w, at byte %d of the line", malformed.Err, malformed.Column),
				Advice: "quotes are the first and the last character of a field, without blanks beside them, and those inside are doubled"}
		case err != nil && err != io.EOF:
			err = &FileError{File: file, Err: err}
		case err == nil && columns > 0 && len(fields) != columns:
			err = at(-1, fmt.Errorf("%w: %d, expected %d", errFieldCount, len(fields), columns), "")
		}
		return fields, err
	}
	names, err := read()
	if err == io.EOF {
		err = &FileError{File: file, Err: errEmpty}
	}
	if err != nil {
		return nil, err
	}
	names, columns = slices.Clone(names), len(names) // read uses the slice again
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	for j, name := range names {
		if advice, err := checkColumnName(name); err != nil {
			return nil, at(j, err, advice)
		}
	}
	y, err := targetColumn(names, target)
	if err != nil {
		return nil, &FileError{File: file, Line: 1, Err: err}
	}
	set := &Regression{Features: slices.Delete(slices.Clone(names), y, y+1), D: len(names) - 1}
	for {
		fields, err := read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		for j, field := range fields {
			field = strings.TrimSpace(field)
			if slices.Contains(missing, strings.ToLower(field)) {
				return nil, at(j, fmt.Errorf("%s has no value%s", names[j], strings.TrimSuffix(" ("+field+")", " ()")), "give it one, or leave the line out")
			}
			v, err := parseFinite(field)
			if err != nil {
				return nil, at(j, fmt.Errorf("%s: %w", names[j], err), "all values are decimal numbers with a point; give categories numbers, or columns of 0 and 1")
			}
			if j == y {
				set.Y = append(set.Y, v)
			} else {
				set.X = append(set.X, v)
			}
		}
	}
	if set.N = len(set.Y); set.N == 0 {
		return nil, &FileError{File: file, Err: errEmpty}
	}
	return set, nil
}

// missing are the words, in lower case, for a value that is not there.
var missing = []string{"", "na", "n/a", "#n/a", "<na>", "null", "none", "nil", "missing", "nat", "n.a.", "\\n", "?", "-", "--", "—", ".", "#null!", "#div/0!", "#value!", "1.#qnan"}

// loneCR is a carriage return that ends no line of Windows.
var loneCR = regexp.MustCompile(`\r[^\r\n]`)

// checkText says why a text that begins like this cannot be read as a table, and what to do about it.
func checkText(first []byte) (advice string, err error) {
	line, _, _ := bytes.Cut(first, []byte("\n"))
	start := strings.ToLower(strings.TrimLeft(strings.TrimPrefix(string(line[:min(len(line), 16)]), "\xef\xbb\xbf"), "\" \t"))
	switch {
	case bytes.HasPrefix(first, []byte("\xff\xfe")), bytes.HasPrefix(first, []byte("\xfe\xff")), bytes.IndexByte(line, 0) >= 0:
		return "save it as UTF-8 (Excel: CSV UTF-8)", errors.New("the text is not UTF-8 but, it seems, UTF-16")
	case strings.HasPrefix(start, "sep="):
		return "delete this line: the separator is found without it", errors.New("the first line names a separator for Excel, not the columns")
	case loneCR.Match(first):
		return "save it with the line ends of Unix or Windows", errors.New("lines end with CR alone, as on old Macs")
	}
	return "", nil
}

// separatorOf is the separator that the first line of a text that is not blank has most of outside of quotes, a comma where
// it has none.
func separatorOf(text []byte) rune {
	counts := make(map[rune]int)
	quoted, blank := false, true
	for _, c := range string(text) {
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

// targetColumn is the place of the target among the names of columns.
func targetColumn(names []string, target string) (int, error) {
	switch {
	case len(names) < 2:
		return 0, fmt.Errorf("there is one column, %q; a regression needs a target and at least one input, separated by commas, semicolons or tabs", names[0])
	case target == "":
		return len(names) - 1, nil
	}
	y := slices.Index(names, target)
	if y < 0 {
		return 0, fmt.Errorf("there is no column %q for the target; the columns are %s", target, strings.Join(names, ", "))
	}
	if slices.Contains(names[y+1:], target) {
		return 0, fmt.Errorf("there are two columns %q; the target must be one", target)
	}
	return y, nil
}
