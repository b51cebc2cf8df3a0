package datasets

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"densityuncertainty/datasets/fetch"
)

const (
	yearText    = "YearPredictionMSD.txt"
	yearArchive = "yearpredictionmsd.zip"
	yearURL     = "https://archive.ics.uci.edu/static/public/203/yearpredictionmsd.zip"

	yearLimit = 1 << 30 // bytes of the unpacked table, and of the archive; the official ones have 449 and 211 million
)

// Year returns YearPredictionMSD: 515345 songs, 90 timbre features, target the
// year of release. [GalSplits] gives the split that its donors prescribe.
//
// The file is taken from the first of these places that has it: the folder named
// by the environment variable DENSITYUNCERTAINTY_DATA (as YearPredictionMSD.txt
// or yearpredictionmsd.zip), the cache, the mirror named by that variable (as
// yearpredictionmsd.zip), the official address at the UCI repository (about
// 200 MB). f sets these places and may watch the progress; nil means the
// defaults. See [fetch.Fetcher] for the details and the errors.
//
// No official checksum of the file is known to this program. So a download is
// accepted if its archive is whole and the table in it has the published numbers
// of rows and columns, all of them finite numbers. Its checksum then is recorded
// beside it, and later uses are held to that.
//
// The result takes about 375 MB of memory.
func Year(ctx context.Context, f *fetch.Fetcher) (*Regression, error) {
	text, found, err := f.Local(yearText)
	if err != nil {
		return nil, err
	}
	if found {
		return readYearText(text)
	}
	var r *Regression
	path, err := f.Get(ctx, fetch.File{
		Name:  yearArchive,
		URL:   yearURL,
		Limit: yearLimit,
		// The check of a new file is to read it; what it read need not be read again.
		Check: func(path string) (err error) {
			r, err = readYearArchive(path)
			return err
		},
	})
	if err != nil {
		return nil, fmt.Errorf("datasets: getting %s: %w", yearText, err)
	}
	if r != nil {
		return r, nil
	}
	return readYearArchive(path)
}

func readYearText(path string) (*Regression, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("datasets: opening the year set: %w", err)
	}
	r, err := wholeYear(f, path)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	return r, nil
}

// readYearArchive reads the table out of the official zip archive.
func readYearArchive(archive string) (*Regression, error) {
	z, err := zip.OpenReader(archive)
	if err != nil {
		return nil, fmt.Errorf("datasets: opening the archive %s (a cut-off download looks like this): %w", archive, err)
	}
	r, err := yearInArchive(&z.Reader, archive)
	if err := errors.Join(err, z.Close()); err != nil {
		return nil, err
	}
	return r, nil
}

func yearInArchive(z *zip.Reader, archive string) (*Regression, error) {
	for _, member := range z.File {
		if !strings.EqualFold(path.Base(member.Name), yearText) {
			continue
		}
		// Reading ends with an error after the size that the archive gives.
		if size := member.UncompressedSize64; size > yearLimit {
			return nil, &FileError{File: archive, Err: fmt.Errorf("%w: %s has %d bytes unpacked, of which %d are allowed", errLimit, member.Name, size, yearLimit)}
		}
		f, err := member.Open()
		if err != nil {
			return nil, fmt.Errorf("datasets: opening %s in %s: %w", member.Name, archive, err)
		}
		r, err := wholeYear(f, filepath.Base(archive)+": "+member.Name)
		return r, errors.Join(err, f.Close())
	}
	return nil, fmt.Errorf("datasets: the archive %s holds no %s", archive, yearText)
}

// wholeYear reads the table and insists on the published number of rows.
func wholeYear(f io.Reader, name string) (*Regression, error) {
	r, err := parseYear(f, name, yearRows)
	if err != nil {
		return nil, err
	}
	if r.N != yearRows {
		return nil, &FileError{File: name, Err: fmt.Errorf("%w: %d, expected %d", errRowCount, r.N, yearRows)}
	}
	return r, nil
}
