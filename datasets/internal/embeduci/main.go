// Command embeduci makes the compressed files that package datasets embeds, from
// a folder in the layout published with Gal & Ghahramani, "Dropout as a Bayesian
// Approximation", ICML 2016 (one folder per set, each holding data/data.txt and
// data/index_*.txt). It is needed only to make them anew:
//
//	go run ./internal/embeduci -gal FOLDER -energy CSV -out uci
//
// CSV is the Energy efficiency set with a header and both targets, as eight
// features, heating load and cooling load, in the published order of rows.
//
// It refuses input whose data.txt differs from the published one, or whose splits
// differ from those that package datasets draws. The output depends on nothing but
// the input and the version of Go.
package main

import (
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"encoding/csv"
	"encoding/hex"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"

	"densityuncertainty/datasets"
	"densityuncertainty/datasets/internal/published"
	"densityuncertainty/environment/atomicfile"
)

func main() {
	gal := flag.String("gal", "", "folder with the published data sets")
	energy := flag.String("energy", "", "CSV file of the energy set with both targets")
	out := flag.String("out", "uci", "folder to write to")
	flag.Parse()
	if *gal == "" || *energy == "" {
		fmt.Fprintln(os.Stderr, "embeduci: both -gal and -energy are needed")
		os.Exit(2)
	}
	if err := run(*gal, *energy, *out); err != nil {
		fmt.Fprintln(os.Stderr, "embeduci:", err)
		os.Exit(1)
	}
}

func run(gal, energyCSV, out string) error {
	for _, set := range published.Sets {
		dir := filepath.Join(gal, set.Folder, "data")
		text, err := os.ReadFile(filepath.Join(dir, "data.txt"))
		if err != nil {
			return fmt.Errorf("%s: %w", set.Name, err)
		}
		if sum := md5.Sum(text); hex.EncodeToString(sum[:]) != set.MD5 {
			return fmt.Errorf("%s: data.txt has MD5 %x, the published file has %s", set.Name, sum, set.MD5)
		}
		r, splits, err := datasets.ReadGalFolder(dir, set.Name)
		if err != nil {
			return err
		}
		drawn, err := datasets.GalSplits(set.Name)
		if err != nil {
			return err
		}
		if !reflect.DeepEqual(drawn, splits) {
			return fmt.Errorf("%s: the index files differ from the splits that package datasets draws", set.Name)
		}
		if err := writeCompressed(filepath.Join(out, set.Name+".txt.gz"), text); err != nil {
			return err
		}
		if set.Name == "energy" {
			cooling, err := coolingLoads(energyCSV, r)
			if err != nil {
				return err
			}
			if err := writeCompressed(filepath.Join(out, "energy-cooling.txt.gz"), cooling); err != nil {
				return err
			}
		}
	}
	return nil
}

// coolingLoads returns the last column of the CSV as text, one value a line, once
// its other columns are seen to be the rows of the published set: equal features,
// and a heating load that agrees to the published number of decimals.
func coolingLoads(path string, heating *datasets.Regression) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	records, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(records) != heating.N+1 || len(records[0]) != heating.D+2 {
		return nil, fmt.Errorf("%s: expected a header and %d rows of %d columns", path, heating.N, heating.D+2)
	}
	var loads bytes.Buffer
	for i, record := range records[1:] {
		values := make([]float64, len(record))
		for j, field := range record {
			if values[j], err = strconv.ParseFloat(field, 64); err != nil {
				return nil, fmt.Errorf("%s: row %d: %w", path, i, err)
			}
		}
		for j, x := range heating.Row(i) {
			if values[j] != x {
				return nil, fmt.Errorf("%s: row %d: feature %d is %v, in the published set %v", path, i, j, values[j], x)
			}
		}
		const rounding = 0.0051 // the published set has two decimals
		if math.Abs(values[heating.D]-heating.Y[i]) > rounding {
			return nil, fmt.Errorf("%s: row %d: heating load %v, in the published set %v", path, i, values[heating.D], heating.Y[i])
		}
		fmt.Fprintln(&loads, record[heating.D+1])
	}
	return loads.Bytes(), nil
}

// writeCompressed writes text gzip-compressed, without a time stamp or name, so
// that the same text gives the same file, by way of a temporary file.
func writeCompressed(path string, text []byte) error {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return atomicfile.WriteBytes(path, packed.Bytes())
}
