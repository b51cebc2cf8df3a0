package datasets

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"

	"densityuncertainty/datasets/fetch"
)

// The checksum of the archive at the official address is as several public programs state it, since the publisher states
// none. Tests replace it.
var yearArchive = fetch.File{
	Name: "yearpredictionmsd.zip", URL: "https://archive.ics.uci.edu/static/public/203/yearpredictionmsd.zip",
	SHA256: "06f801af323bb7798e800583acce4ea1ed2697ac12c23f4424aea0a7a3d09e11",
}

// Year returns YearPredictionMSD: 515345 songs with 90 timbre features; the target is the year of release. [GalSplits]
// has the split that its donors prescribe.
//
// It reads yearpredictionmsd.zip (about 200 MB) in the folder DENSITYUNCERTAINTY_DATA (an environment variable), in the
// cache, or from its official address at the UCI repository. f sets these places; nil means the defaults (see
// [fetch.Fetcher]). The archive must have its checksum. The result takes about 375 MB of memory.
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
