package datasets

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"densityuncertainty/datasets/fetch"
)

// The checksums of the archive at the official address and of the table in it are as several public programs state them,
// since the publisher states none. Tests replace them.
var (
	yearText    = fetch.File{Name: "YearPredictionMSD.txt", SHA256: YearSHA256}
	yearArchive = fetch.File{
		Name: "yearpredictionmsd.zip", URL: "https://archive.ics.uci.edu/static/public/203/yearpredictionmsd.zip",
		SHA256: "06f801af323bb7798e800583acce4ea1ed2697ac12c23f4424aea0a7a3d09e11",
	}
)

// YearSHA256 is the SHA-256 of the table that [Year] reads, YearPredictionMSD.txt.
const YearSHA256 = "4b6f8e50235b359e01689ae7fb33ad0f89677e9a15f25f3d6259327a6bb927bb"

// Year returns YearPredictionMSD: 515345 songs, 90 timbre features, target the
// year of release. [GalSplits] gives the split that its donors prescribe.
//
// The file is taken from the first of these places that has it: the folder named
// by the environment variable DENSITYUNCERTAINTY_DATA (as YearPredictionMSD.txt
// or yearpredictionmsd.zip), the cache, the official address at the UCI repository
// (about 200 MB). f sets these places; nil means the defaults. See [fetch.Fetcher]
// for the details and the errors. Table and archive are held to their checksums.
//
// The result takes about 375 MB of memory.
func Year(ctx context.Context, f *fetch.Fetcher) (*Regression, error) {
	_, found, err := f.Local(yearText.Name)
	if err != nil {
		return nil, err
	}
	if found {
		text, err := f.Get(ctx, yearText)
		if err != nil {
			return nil, err
		}
		file, err := os.Open(text)
		return readYear(file, err)
	}
	path, err := f.Get(ctx, yearArchive)
	if err != nil {
		return nil, fmt.Errorf("datasets: getting %s: %w", yearText.Name, err)
	}
	archive, err := zip.OpenReader(path)
	if err != nil {
		return nil, fmt.Errorf("datasets: opening the archive %s: %w", path, err)
	}
	file, err := archive.Open(yearText.Name)
	r, err := readYear(file, err)
	return r, errors.Join(err, archive.Close())
}

// readYear reads the table from an open file, unless it could not be opened.
func readYear(file io.ReadCloser, err error) (*Regression, error) {
	if err != nil {
		return nil, fmt.Errorf("datasets: opening the year set: %w", err)
	}
	r, err := parseYear(file, yearRows)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	return r, nil
}
