package datasets

import (
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"densityuncertainty/environment/must"
)

func TestParseTable(t *testing.T) {
	values, columns := must.Get2(parseTable(strings.NewReader("\n 1 2.5\t-3e-2 \r\n\n4 5 6"), "t"))(t)
	if columns != 3 || !slices.Equal(values, []float64{1, 2.5, -0.03, 4, 5, 6}) {
		t.Errorf("got %v in %d columns", values, columns)
	}
}

func TestParseTableErrors(t *testing.T) {
	for _, c := range []struct {
		text         string
		line, column int
		cause        error
	}{
		{"", 0, 0, errEmpty},
		{" \n\t\n", 0, 0, errEmpty},
		{"1 2\n3\n", 2, 0, errFieldCount},
		{"1 2\n\n3 4 5\n", 3, 0, errFieldCount},
		{"1 2\n3 NaN\n", 2, 2, errNotFinite},
		{"1 -Inf\n", 1, 2, errNotFinite},
		{"1 1e999\n", 1, 2, errNotFinite},
		{"1\nx\n", 2, 1, strconv.ErrSyntax},
		{"1\n1,5\n", 2, 1, strconv.ErrSyntax},
		{"0x1p3\n", 1, 1, strconv.ErrSyntax},
		{"1\n" + strings.Repeat("1 ", maxLine), 2, 0, nil},
	} {
		t.Run(c.text[:min(len(c.text), 20)], func(t *testing.T) {
			_, _, err := parseTable(strings.NewReader(c.text), "t.txt")
			requireParseError(t, c.text, err, "t.txt", c.line, c.column, c.cause)
		})
	}
}

// testdata/year_sample.txt has the official form with invented numbers.
func TestParseYear(t *testing.T) {
	f := must.Get(os.Open("testdata/year_sample.txt"))(t)
	r, err := parseYear(f, "year_sample.txt", 0)
	must.Do(t, errors.Join(err, f.Close()))
	if r.N != 4 || r.D != 90 || len(r.X) != 4*90 || len(r.Features) != 90 {
		t.Fatalf("N = %d, D = %d, %d inputs, %d feature names", r.N, r.D, len(r.X), len(r.Features))
	}
	if !slices.Equal(r.Y, []float64{2001, 2001, 1969, 1922}) {
		t.Errorf("years %v", r.Y)
	}
	if r.X[0] != 53.65885 || r.X[90] != -17.73236 || r.X[3*90+7] != -55.96954 {
		t.Errorf("features %v, %v, %v", r.X[0], r.X[90], r.X[3*90+7])
	}
}

func TestParseYearErrors(t *testing.T) {
	row := "2001" + strings.Repeat(",1.5", 90)
	for _, c := range []struct {
		text         string
		line, column int
		cause        error
	}{
		{"", 0, 0, errEmpty},
		{row + "\n" + row + ",1\n", 2, 0, errFieldCount},
		{row + "\n2001,1\n", 2, 0, errFieldCount},
		{row + "\n2001.5" + row[4:], 2, 0, errNotInteger},
		{strings.Replace(row, "1.5", "nan", 1), 1, 2, errNotFinite},
		{row[:len(row)-3] + "+Inf", 1, 91, errNotFinite},
		{row[:len(row)-3], 1, 91, strconv.ErrSyntax},
		{strings.Replace(row, ",1.5", ",1_5", 1), 1, 2, strconv.ErrSyntax},
	} {
		t.Run(c.text[:min(len(c.text), 20)], func(t *testing.T) {
			_, err := parseYear(strings.NewReader(c.text), "y.txt", 0)
			requireParseError(t, c.text, err, "y.txt", c.line, c.column, c.cause)
		})
	}
	// An archive that unpacks to more rows than the set has must not fill the memory.
	_, err := parseYear(strings.NewReader(row+"\n"+row+"\n"+row+"\n"), "y.txt", 2)
	requireParseError(t, "more rows", err, "y.txt", 3, 0, errRowCount)
}

// A failing disk must not look like the end of the file.
func TestParsersReportReadErrors(t *testing.T) {
	broken := errors.New("broken disk")
	half := func(text string) io.Reader {
		return io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken))
	}
	_, _, err := parseTable(half("1 2\n"), "f")
	requireParseError(t, "table", err, "f", 2, 0, broken)
	_, err = parseYear(half("2001"+strings.Repeat(",1", 90)+"\n"), "f", 0)
	requireParseError(t, "year", err, "f", 2, 0, broken)
}

func TestFileErrorText(t *testing.T) {
	for _, c := range []struct {
		want string
		e    *FileError
	}{
		{"datasets: f: no data", &FileError{File: "f", Err: errEmpty}},
		{"datasets: f: line 3: wrong number of columns", &FileError{File: "f", Line: 3, Err: errFieldCount}},
		{"datasets: f: line 3, column 2: not a finite number", &FileError{File: "f", Line: 3, Column: 2, Err: errNotFinite}},
		{"datasets: f: no data; get it", &FileError{File: "f", Err: errEmpty, Advice: "get it"}},
	} {
		t.Run(c.want, func(t *testing.T) {
			if c.e.Error() != c.want {
				t.Errorf("got %q, want %q", c.e, c.want)
			}
		})
	}
}

// requireParseError checks the place, and the cause where one is given.
func requireParseError(t *testing.T, text string, err error, file string, line, column int, cause error) {
	t.Helper()
	if len(text) > 60 {
		text = text[:60] + "..."
	}
	var parse *FileError
	if !errors.As(err, &parse) {
		t.Errorf("%q: got error %v, want a *FileError", text, err)
		return
	}
	if parse.File != file || parse.Line != line || parse.Column != column || (cause != nil && !errors.Is(err, cause)) {
		t.Errorf("%q: got %v; want file %s, line %d, column %d, cause %v", text, err, file, line, column, cause)
	}
}
