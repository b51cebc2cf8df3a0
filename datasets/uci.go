package datasets

import (
	"bufio"
	"compress/gzip"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"path"
	"strconv"
	"strings"
)

// uciFiles holds the published data.txt of each small set, gzip-compressed, and
// the cooling loads of the energy set. uci/NOTICE.md states origin and terms.
//
//go:embed uci
var uciFiles embed.FS

// UCI returns a regression set by its short name (see [UCINames]). Each call
// returns a fresh copy. The error for an unknown name lists the valid ones.
//
// "energy" has the heating load (Y1) as its target, "energy-cooling" the cooling
// load (Y2), on the same rows. "year" may need the network; call [Year] to be able
// to cancel it or to watch its progress.
func UCI(name string) (*Regression, error) {
	set, err := lookup(name)
	if err != nil {
		return nil, err
	}
	if set.name == yearName {
		return Year(context.Background(), nil)
	}
	values, columns, err := embeddedTable(set.file)
	if err != nil {
		return nil, err
	}
	if len(values) != set.n*columns || columns <= set.d {
		return nil, fmt.Errorf("datasets: embedded file of %q: %d values in %d columns, expected %d rows of more than %d columns",
			name, len(values), columns, set.n, set.d)
	}
	r := set.describe()
	r.X = make([]float64, 0, set.n*set.d)
	r.Y = make([]float64, 0, set.n)
	for i := range set.n {
		row := values[i*columns : (i+1)*columns]
		// In all of these files the features are the leading columns and the
		// target is the next one; naval has a second target after it.
		r.X = append(r.X, row[:set.d]...)
		r.Y = append(r.Y, row[set.d])
	}
	if set.target != "" {
		y, columns, err := embeddedTable(set.target)
		if err != nil {
			return nil, err
		}
		if columns != 1 || len(y) != set.n {
			return nil, fmt.Errorf("datasets: embedded target of %q: %d values in %d columns, expected %d in 1",
				name, len(y), columns, set.n)
		}
		r.Y = y
	}
	return r, nil
}

// embeddedTable parses one of the compiled-in files.
func embeddedTable(file string) (values []float64, columns int, err error) {
	text, err := openEmbedded(file)
	if err != nil {
		return nil, 0, err
	}
	return parseTable(text, file)
}

// openEmbedded decompresses one of the compiled-in files, named without ".gz".
func openEmbedded(file string) (io.Reader, error) {
	f, err := uciFiles.Open(path.Join("uci", file+".gz"))
	if err != nil {
		return nil, fmt.Errorf("datasets: embedded file: %w", err)
	}
	text, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("datasets: embedded file %s: %w", file, err)
	}
	return text, nil
}

const (
	yearName  = "year"
	yearRows  = 515345
	yearTrain = 463715
	yearD     = 90
)

// entry is what is known about a set without reading its file; uci/NOTICE.md has origin, citation and terms.
type entry struct {
	name         string
	file         string // embedded file; "" for year
	target       string // embedded file of the target, where it is not in file
	n, d, splits int
	features     []string
}

func (e *entry) describe() *Regression {
	return &Regression{Name: e.name, Features: append([]string(nil), e.features...), N: e.n, D: e.d}
}

var energyFeatures = []string{
	"relative compactness", "surface area", "wall area", "roof area",
	"overall height", "orientation", "glazing area", "glazing area distribution",
}

// catalogue lists the sets in the order of the paper's UCI table, year last.
var catalogue = []entry{
	{
		name: "boston", file: "boston.txt", n: 506, d: 13, splits: 20,
		features: []string{"CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX", "PTRATIO", "B", "LSTAT"},
	},
	{
		name: "concrete", file: "concrete.txt", n: 1030, d: 8, splits: 20,
		features: []string{"cement", "blast furnace slag", "fly ash", "water", "superplasticizer", "coarse aggregate", "fine aggregate", "age"},
	},
	{
		name: "energy", file: "energy.txt", n: 768, d: 8, splits: 20,
		features: energyFeatures,
	},
	{
		name: "energy-cooling", file: "energy.txt", target: "energy-cooling.txt", n: 768, d: 8, splits: 20,
		features: energyFeatures,
	},
	{
		name: "kin8nm", file: "kin8nm.txt", n: 8192, d: 8, splits: 20,
		features: []string{"theta1", "theta2", "theta3", "theta4", "theta5", "theta6", "theta7", "theta8"},
	},
	{
		name: "naval", file: "naval.txt", n: 11934, d: 16, splits: 20,
		features: []string{"lp", "v", "GTT", "GTn", "GGn", "Ts", "Tp", "T48", "T1", "T2", "P48", "P1", "P2", "Pexh", "TIC", "mf"},
	},
	{
		name: "protein", file: "protein.txt", n: 45730, d: 9, splits: 5,
		features: []string{"F1", "F2", "F3", "F4", "F5", "F6", "F7", "F8", "F9"},
	},
	{
		name: "wine", file: "wine.txt", n: 1599, d: 11, splits: 20,
		features: []string{
			"fixed acidity", "volatile acidity", "citric acid", "residual sugar", "chlorides",
			"free sulfur dioxide", "total sulfur dioxide", "density", "pH", "sulphates", "alcohol",
		},
	},
	{
		name: "yacht", file: "yacht.txt", n: 308, d: 6, splits: 20,
		features: []string{
			"longitudinal position of the centre of buoyancy", "prismatic coefficient", "length-displacement ratio",
			"beam-draught ratio", "length-beam ratio", "Froude number",
		},
	},
	{
		name: yearName, n: yearRows, d: yearD, splits: 1,
		features: yearFeatures(),
	},
}

// yearFeatures names the twelve timbre averages and the 78 timbre covariances.
func yearFeatures() []string {
	var names []string
	for i := range 12 {
		names = append(names, fmt.Sprintf("timbre average %d", i+1))
	}
	for i := range yearD - 12 {
		names = append(names, fmt.Sprintf("timbre covariance %d", i+1))
	}
	return names
}

// UCINames lists the names that [UCI] and [GalSplits] accept, in the order of the
// paper's table: energy is the heating load, energy-cooling the cooling load.
func UCINames() []string {
	names := make([]string, len(catalogue))
	for i, e := range catalogue {
		names[i] = e.name
	}
	return names
}

// UCISize is the number of examples, of features and of published splits of a UCI
// data set by its name, known without reading it. It returns an error for a name that
// is not among UCINames.
func UCISize(name string) (examples, features, splits int, err error) {
	e, err := lookup(name)
	if err != nil {
		return 0, 0, 0, err
	}
	return e.n, e.d, e.splits, nil
}

func lookup(name string) (*entry, error) {
	for i := range catalogue {
		if catalogue[i].name == name {
			return &catalogue[i], nil
		}
	}
	return nil, fmt.Errorf("datasets: unknown data set %q; the known ones are %s", name, strings.Join(UCINames(), ", "))
}

// maxLine is the longest line, in bytes, that a parser accepts; the longest of
// the known files has about 1500.
const maxLine = 1 << 20

// parseRows reads a table of finite decimal numbers, one row a line, all rows
// equally long: as the first one, or with columns above 0 as that says. fields
// divides a line. Blank lines are passed over (some published files end with one).
// Each row is handed to add, which must not keep it.
//
// file is used in messages only. Faults, an error of add, and a table without rows
// are reported as a [*FileError].
func parseRows(r io.Reader, file string, columns int, fields func(line string) []string, add func(row []float64) error) error {
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, maxLine)
	var row []float64
	line, rows := 0, 0
	for ; sc.Scan(); line++ {
		text := strings.TrimSpace(sc.Text())
		if text == "" {
			continue
		}
		row = row[:0]
		split := fields(text)
		if columns == 0 {
			columns = len(split)
		}
		if len(split) != columns {
			return &FileError{File: file, Line: line + 1, Err: fmt.Errorf("%w: %d, expected %d", errFieldCount, len(split), columns)}
		}
		for j, field := range split {
			v, err := parseFinite(strings.TrimSpace(field))
			if err != nil {
				return &FileError{File: file, Line: line + 1, Column: j + 1, Err: err}
			}
			row = append(row, v)
		}
		if err := add(row); err != nil {
			return &FileError{File: file, Line: line + 1, Err: err}
		}
		rows++
	}
	if err := sc.Err(); err != nil {
		return &FileError{File: file, Line: line + 1, Err: err}
	}
	if rows == 0 {
		return &FileError{File: file, Err: errEmpty}
	}
	return nil
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
	case err != nil:
		return 0, err
	case strings.ContainsAny(field, "xX_"):
		return 0, fmt.Errorf("not a decimal number: %q: %w", field, strconv.ErrSyntax)
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

// parseTable reads a table with blanks or tabs between its numbers, and returns the
// values row-major and the number of columns.
func parseTable(r io.Reader, file string) (values []float64, columns int, err error) {
	err = parseRows(r, file, 0, strings.Fields, func(row []float64) error {
		values, columns = append(values, row...), len(row)
		return nil
	})
	return values, columns, err
}

// parseYear reads examples in the official form of YearPredictionMSD.txt: one a
// line, 91 comma-separated numbers, the first the year (the target, a whole
// number), the others the 90 timbre features.
//
// Room is made for so many rows, as growing slices of this size would take twice the
// memory for a while.
func parseYear(r io.Reader, file string, rows int) (*Regression, error) {
	set, err := lookup(yearName)
	if err != nil {
		return nil, err
	}
	out := set.describe()
	out.X = make([]float64, 0, rows*yearD)
	out.Y = make([]float64, 0, rows)
	commas := func(line string) []string { return strings.Split(line, ",") }
	err = parseRows(r, file, yearD+1, commas, func(row []float64) error {
		if year := row[0]; year != math.Trunc(year) {
			return fmt.Errorf("%w: year %v", errNotInteger, year)
		}
		out.Y, out.X = append(out.Y, row[0]), append(out.X, row[1:]...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	out.N = len(out.Y)
	return out, nil
}
