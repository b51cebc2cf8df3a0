package datasets

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
)

func TestParseTable(t *testing.T) {
	values, columns, err := parseTable(strings.NewReader("\n 1 2.5\t-3e-2 \r\n\n4 5 6"), "t")
	if err != nil {
		t.Fatal(err)
	}
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
		{"", 0, 0, ErrEmpty},
		{" \n\t\n", 0, 0, ErrEmpty},
		{"1 2\n3\n", 2, 0, ErrFieldCount},
		{"1 2\n\n3 4 5\n", 3, 0, ErrFieldCount},
		{"1 2\n3 NaN\n", 2, 2, ErrNotFinite},
		{"1 -Inf\n", 1, 2, ErrNotFinite},
		{"1 1e999\n", 1, 2, ErrNotFinite},
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

func TestParseIndices(t *testing.T) {
	got, err := parseIndices(strings.NewReader("3\n 0\r\n\n2"), "i", 4)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, []int{3, 0, 2}) {
		t.Errorf("got %v", got)
	}
}

func TestParseIndicesErrors(t *testing.T) {
	for _, c := range []struct {
		text         string
		line, column int
		cause        error
	}{
		{"", 0, 0, ErrEmpty},
		{"0\n-1\n", 2, 1, ErrRange},
		{"0\n4\n", 2, 1, ErrRange},
		{"99999999999999999999\n", 1, 1, ErrRange},
		{"1\n2\n1\n", 3, 1, ErrDuplicate},
		{"0\n0\n", 2, 1, ErrDuplicate},
		{"1.0\n", 1, 1, ErrNotInteger},
		{"one\n", 1, 1, ErrNotInteger},
		{"1 2\n", 1, 0, ErrFieldCount},
	} {
		t.Run(c.text, func(t *testing.T) {
			_, err := parseIndices(strings.NewReader(c.text), "i.txt", 4)
			requireParseError(t, c.text, err, "i.txt", c.line, c.column, c.cause)
		})
	}
}

// testdata/year_sample.txt has the official form with invented numbers.
func TestParseYear(t *testing.T) {
	f, err := os.Open("testdata/year_sample.txt")
	if err != nil {
		t.Fatal(err)
	}
	r, err := parseYear(f, "year_sample.txt", 0)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
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
		{"", 0, 0, ErrEmpty},
		{row + "\n" + row + ",1\n", 2, 0, ErrFieldCount},
		{row + "\n2001,1\n", 2, 0, ErrFieldCount},
		{row + "\n2001.5" + row[4:], 2, 1, ErrNotInteger},
		{strings.Replace(row, "1.5", "nan", 1), 1, 2, ErrNotFinite},
		{row[:len(row)-3] + "+Inf", 1, 91, ErrNotFinite},
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
	requireParseError(t, "more rows", err, "y.txt", 3, 0, ErrRowCount)
}

// A failing disk must not look like the end of the file.
func TestParsersReportReadErrors(t *testing.T) {
	broken := errors.New("broken disk")
	half := func(text string) io.Reader {
		return io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken))
	}
	_, _, err := parseTable(half("1 2\n"), "f")
	requireParseError(t, "table", err, "f", 2, 0, broken)
	_, err = parseIndices(half("1\n"), "f", 4)
	requireParseError(t, "indices", err, "f", 2, 0, broken)
	_, err = parseYear(half("2001"+strings.Repeat(",1", 90)+"\n"), "f", 0)
	requireParseError(t, "year", err, "f", 2, 0, broken)
}

func TestParseErrorText(t *testing.T) {
	for _, c := range []struct {
		want string
		e    *ParseError
	}{
		{"datasets: f: no data", &ParseError{File: "f", Err: ErrEmpty}},
		{"datasets: f: line 3: wrong number of columns", &ParseError{File: "f", Line: 3, Err: ErrFieldCount}},
		{"datasets: f: line 3, column 2: out of range", &ParseError{File: "f", Line: 3, Column: 2, Err: ErrRange}},
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
	var parse *ParseError
	if !errors.As(err, &parse) {
		t.Errorf("%q: got error %v, want a *ParseError", text, err)
		return
	}
	if parse.File != file || parse.Line != line || parse.Column != column || (cause != nil && !errors.Is(err, cause)) {
		t.Errorf("%q: got %v; want file %s, line %d, column %d, cause %v", text, err, file, line, column, cause)
	}
}

// galFolder writes a set of four rows with one split, in the published layout.
func galFolder(t *testing.T, change map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"data.txt":           "1 2 10 5\n3 4 20 5\n5 6 30 5\n7 8 40 5\n",
		"index_features.txt": "1\n0\n",
		"index_target.txt":   "2\n",
		"n_splits.txt":       "1\n",
		"index_train_0.txt":  "3\n1\n0\n",
		"index_test_0.txt":   "2\n",
	}
	for name, text := range change {
		files[name] = text
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestReadGalFolder(t *testing.T) {
	r, splits, err := ReadGalFolder(galFolder(t, nil), "mine")
	if err != nil {
		t.Fatal(err)
	}
	if r.Name != "mine" || r.N != 4 || r.D != 2 ||
		!slices.Equal(r.X, []float64{2, 1, 4, 3, 6, 5, 8, 7}) || !slices.Equal(r.Y, []float64{10, 20, 30, 40}) {
		t.Errorf("got %+v", r)
	}
	if len(splits) != 1 || !slices.Equal(splits[0].Train, []int{3, 1, 0}) || !slices.Equal(splits[0].Test, []int{2}) {
		t.Errorf("got splits %v", splits)
	}
}

func TestReadGalFolderErrors(t *testing.T) {
	for _, c := range []struct {
		file, text string
		blamed     string
		cause      error
	}{
		{"data.txt", "1 2\n3\n", "data.txt", ErrFieldCount},
		{"index_features.txt", "0\n9\n", "index_features.txt", ErrRange},
		{"index_target.txt", "0\n1\n", "index_target.txt", ErrRowCount},
		{"n_splits.txt", "-1\n", "n_splits.txt", ErrRange},
		{"index_train_0.txt", "0\n1\n4\n", "index_train_0.txt", ErrRange},
		{"index_test_0.txt", "3\n", "index_test_0.txt", ErrDuplicate},
		{"index_train_0.txt", "0\n1\n", "index_test_0.txt", ErrRowCount},
	} {
		t.Run(c.file+" "+c.cause.Error(), func(t *testing.T) {
			_, _, err := ReadGalFolder(galFolder(t, map[string]string{c.file: c.text}), "mine")
			var parse *ParseError
			if !errors.As(err, &parse) || filepath.Base(parse.File) != c.blamed || !errors.Is(err, c.cause) {
				t.Errorf("%s = %q: got %v; want %v in %s", c.file, c.text, err, c.cause, c.blamed)
			}
		})
	}
	if _, _, err := ReadGalFolder(t.TempDir(), "mine"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("empty folder: got %v", err)
	}
}
