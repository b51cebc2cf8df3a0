package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"densityuncertainty/datasets"
	"densityuncertainty/datasets/fetch"
)

// A dataSet is what can be asked for with --data.
type dataSet struct {
	name  string
	files []dataFile
	// archive holds the files, for where they are not there unpacked; no name if
	// there is none.
	archive fetch.File
	// check reads the set as the experiments will.
	check func(ctx context.Context, f *fetch.Fetcher) error
}

// A dataFile is a file in the layout of the folder DENSITYUNCERTAINTY_DATA.
type dataFile struct {
	name string
	// labels is the number of labels of a record, if the file consists of labels
	// and images; else it is 0, and the file is taken along as it is.
	labels int
	url    string // the official address, if it is published by itself
}

const toronto = "https://www.cs.toronto.edu/~kriz/"

// catalogue lists the sets. The files are checked against what is published by
// reading them as the experiments do, once they have been packed and restored.
var catalogue = []dataSet{
	{
		name: "cifar10",
		files: records(1, "cifar-10-batches-bin/", "data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
			"data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"),
		archive: fetch.File{Name: "cifar-10-binary.tar.gz", URL: toronto + "cifar-10-binary.tar.gz"},
		check: func(ctx context.Context, f *fetch.Fetcher) error {
			_, _, err := datasets.CIFAR10(ctx, f)
			return err
		},
	},
	{
		name:    "cifar100",
		files:   records(2, "cifar-100-binary/", "train.bin", "test.bin"),
		archive: fetch.File{Name: "cifar-100-binary.tar.gz", URL: toronto + "cifar-100-binary.tar.gz"},
		check: func(ctx context.Context, f *fetch.Fetcher) error {
			_, _, err := datasets.CIFAR100(ctx, f)
			return err
		},
	},
	{
		name:  "svhn",
		files: []dataFile{{name: "svhn/test_32x32.mat", url: "http://ufldl.stanford.edu/housenumbers/test_32x32.mat"}},
		check: func(ctx context.Context, f *fetch.Fetcher) error {
			_, err := datasets.SVHN(ctx, f, datasets.SVHNTest)
			return err
		},
	},
	{
		name:  "svhn-excerpt",
		files: []dataFile{{name: "svhn/train_first1083_32x32.mat"}},
		check: func(ctx context.Context, f *fetch.Fetcher) error {
			_, err := datasets.SVHNTrainExcerpt(ctx, f)
			return err
		},
	},
}

func records(labels int, folder string, names ...string) []dataFile {
	var files []dataFile
	for _, name := range names {
		files = append(files, dataFile{name: folder + name, labels: labels})
	}
	return files
}

func setNames(sets []dataSet) []string {
	var names []string
	for _, s := range sets {
		names = append(names, s.name)
	}
	return names
}

// selectSets returns the sets of a list of names, in the catalogue's order.
func selectSets(all []dataSet, list string) ([]dataSet, error) {
	if list == "none" {
		return nil, nil
	}
	wanted := strings.Split(list, ",")
	for _, name := range wanted {
		if !slices.Contains(setNames(all), name) {
			return nil, usagef("--data: unknown %q, want none or some of %s", name, strings.Join(setNames(all), ","))
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(s dataSet) bool { return !slices.Contains(wanted, s.name) }), nil
}

// find returns the paths of the set's files, or of the archive that holds them,
// which is downloaded if need be.
func (s dataSet) find(ctx context.Context, f *fetch.Fetcher) (paths []string, archive string, err error) {
	for _, file := range s.files {
		path, found, err := locate(f, file.name)
		if err != nil {
			return nil, "", err
		}
		if !found && s.archive.Name == "" {
			if path, err = f.Get(ctx, fetch.File{Name: file.name, URL: file.url}); err != nil {
				return nil, "", s.lacking(err)
			}
			found = true
		}
		if found {
			paths = append(paths, path)
		}
	}
	if len(paths) == len(s.files) {
		return paths, "", nil
	}
	if archive, err = f.Get(ctx, s.archive); err != nil {
		return nil, "", s.lacking(err)
	}
	return nil, archive, nil
}

func (s dataSet) lacking(err error) error {
	return fmt.Errorf("the data set %s is not here; put it into the folder that %s names, or leave it out with --data: %w", s.name, fetch.EnvData, err)
}

// locate looks for a file in the local folder, as the loaders do: SVHN's may also
// lie outside of a folder of their own.
func locate(f *fetch.Fetcher, name string) (path string, found bool, err error) {
	path, found, err = f.Local(name)
	if err == nil && !found {
		path, found, err = f.Local(strings.TrimPrefix(name, "svhn/"))
	}
	return path, found, err
}

// each calls visit with every file of the set and its contents.
func (s dataSet) each(ctx context.Context, f *fetch.Fetcher, visit func(file dataFile, contents []byte) error) error {
	paths, archive, err := s.find(ctx, f)
	if err != nil {
		return err
	}
	if archive != "" {
		return s.eachInArchive(ctx, archive, visit)
	}
	for i, file := range s.files {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		contents, err := os.ReadFile(paths[i])
		if err != nil {
			return fmt.Errorf("reading %s: %w", s.name, err)
		}
		if err := visit(file, contents); err != nil {
			return fmt.Errorf("%s: %w", paths[i], err)
		}
	}
	return nil
}

func (s dataSet) eachInArchive(ctx context.Context, path string, visit func(file dataFile, contents []byte) error) (err error) {
	missing := make(map[string]dataFile)
	for _, file := range s.files {
		missing[file.name] = file
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading %s: %w", s.name, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	archive := tar.NewReader(unzipped)
	for {
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		file, wanted := missing[strings.TrimPrefix(header.Name, "./")]
		if !wanted {
			continue
		}
		delete(missing, file.name)
		contents, err := io.ReadAll(archive)
		if err == nil {
			err = visit(file, contents)
		}
		if err != nil {
			return fmt.Errorf("%s: %s: %w", path, file.name, err)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%s lacks %s", path, strings.Join(slices.Sorted(maps.Keys(missing)), ", "))
	}
	return nil
}
