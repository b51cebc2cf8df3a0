package datasets

import (
	"archive/zip"
	"bufio"
	"compress/gzip"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"densityuncertainty/datasets/fetch"
)

// uciFiles holds the published data.txt of each small set, gzip-compressed, and
// the cooling loads of the energy set. uci/NOTICE.md states origin and terms.
//
//go:embed uci
var uciFiles embed.FS

// UCI returns a new copy of a regression set by its name (see [UCINames]). The error for an unknown name lists the
// known ones.
//
// The target of "energy" is the heating load (Y1), that of "energy-cooling" the cooling load (Y2), on the same rows.
// "year" may be downloaded; call [Year] to be able to cancel it.
func UCI(name string) (*Regression, error) {
	set, err := lookup(name)
	if err != nil {
		return nil, err
	}
	if set.name == yearName {
		return Year(context.Background(), nil)
	}
	r := set.describe()
	// In all of these files the features are the leading columns and the
	// target is the next one; naval has a second target after it.
	err = readEmbedded(set.file, func(row []float64) {
		r.X, r.Y = append(r.X, row[:set.d]...), append(r.Y, row[set.d])
	})
	if err == nil && set.target != "" {
		r.Y = nil
		err = readEmbedded(set.target, func(row []float64) { r.Y = append(r.Y, row...) })
	}
	return r, err
}

// readEmbedded reads the rows of one of the compiled-in files.
func readEmbedded(file string, add func(row []float64)) error {
	text, err := openEmbedded(file)
	if err != nil {
		return err
	}
	return readRows(text, strings.Fields, add)
}

// openEmbedded decompresses one of the compiled-in files, named without ".gz".
func openEmbedded(file string) (io.Reader, error) {
	f, err := uciFiles.Open(path.Join("uci", file+".gz"))
	if err != nil {
		return nil, err
	}
	return gzip.NewReader(f)
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
	{name: yearName, n: yearRows, d: yearD, splits: 1}, // twelve averages and 78 covariances of the timbre
}

// UCINames returns the names that [UCI] and [GalSplits] accept, in the order of the paper's table. energy is the
// heating load, energy-cooling the cooling load.
func UCINames() []string {
	names := make([]string, len(catalogue))
	for i, e := range catalogue {
		names[i] = e.name
	}
	return names
}

// UCISize returns the numbers of examples, features and published splits of a UCI data set without reading it. An
// unknown name is an error.
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

// readRows reads a published table, whose checksum is known: a row of numbers a
// line, which fields divides. Blank lines are passed over. add must not keep a row.
func readRows(r io.Reader, fields func(line string) []string, add func(row []float64)) error {
	lines := bufio.NewScanner(r)
	var row []float64
	for lines.Scan() {
		row = row[:0]
		for _, field := range fields(lines.Text()) {
			v, err := strconv.ParseFloat(strings.TrimSpace(field), 64)
			if err != nil {
				return fmt.Errorf("datasets: a published table: %w", err)
			}
			row = append(row, v)
		}
		if len(row) > 0 {
			add(row)
		}
	}
	return lines.Err()
}

// parseYear reads examples in the official form of YearPredictionMSD.txt: one a
// line, 91 comma-separated numbers, the first the year, which is the target, the
// others the 90 timbre features.
//
// Room is made for so many rows, as growing slices of this size would take twice the
// memory for a while.
func parseYear(r io.Reader, rows int) (*Regression, error) {
	set, err := lookup(yearName)
	if err != nil {
		return nil, err
	}
	out := set.describe()
	out.X, out.Y = make([]float64, 0, rows*yearD), make([]float64, 0, rows)
	commas := func(line string) []string { return strings.Split(line, ",") }
	err = readRows(r, commas, func(row []float64) { out.Y, out.X = append(out.Y, row[0]), append(out.X, row[1:]...) })
	out.N = len(out.Y)
	return out, err
}

// The checksum of the archive at the official address is as several public programs state it, since the publisher states
// none. Tests replace it.
var yearArchive = fetch.File{
	Name: "yearpredictionmsd.zip", URL: "https://archive.ics.uci.edu/static/public/203/yearpredictionmsd.zip",
	SHA256: "06f801af323bb7798e800583acce4ea1ed2697ac12c23f4424aea0a7a3d09e11",
}

// Year returns YearPredictionMSD: 515345 songs with 90 timbre features; the target is the year of release. [GalSplits]
// has the split that its donors prescribe.
//
// It reads yearpredictionmsd.zip (about 200 MB). The result takes about 375 MB of memory.
func Year(ctx context.Context, f *fetch.Fetcher) (r *Regression, err error) {
	path, err := f.Get(ctx, yearArchive)
	if err != nil {
		return nil, fmt.Errorf("datasets: getting %s: %w", yearArchive.Name, err)
	}
	archive, err := zip.OpenReader(path)
	if err != nil {
		return nil, fmt.Errorf("datasets: opening the archive %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, archive.Close()) }()
	file, err := archive.Open("YearPredictionMSD.txt")
	if err != nil {
		return nil, fmt.Errorf("datasets: opening the archive %s: %w", path, err)
	}
	return parseYear(file, yearRows)
}
