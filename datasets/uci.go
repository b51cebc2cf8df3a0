package datasets

import (
	"compress/gzip"
	"context"
	"embed"
	"fmt"
	"io"
	"path"
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
