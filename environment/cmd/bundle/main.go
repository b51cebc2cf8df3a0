// Bundle collects the data sets that ./environment/bundle takes along:
//
//	bundle [--data SETS] [FOLDER]
//
// It copies their official files into FOLDER, in the layout of the folder
// DENSITYUNCERTAINTY_DATA, and reads them there as the experiments will. What is
// not on this machine is downloaded. Without FOLDER it only says where they are.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"densityuncertainty/datasets"
	"densityuncertainty/datasets/fetch"
	"densityuncertainty/environment/atomicfile"
)

// A dataSet is what can be asked for with --data.
type dataSet struct {
	name string
	// forms are the sets of files that can be taken along, each with names below
	// the folder of data: the first that is there whole is taken.
	forms [][]string
	// official is downloaded where no form is there; without address it cannot be.
	official fetch.File
	// read reads the set as the experiments will, which checks it.
	read func(ctx context.Context, f *fetch.Fetcher) error
}

// inFolder is a file with a name below a folder.
func inFolder(folder string, f fetch.File) fetch.File {
	f.Name = folder + "/" + f.Name
	return f
}

var catalogue = []dataSet{
	{
		name: "cifar10",
		forms: [][]string{{"cifar-10-binary.tar.gz"}, {
			"cifar-10-batches-bin/data_batch_1.bin", "cifar-10-batches-bin/data_batch_2.bin", "cifar-10-batches-bin/data_batch_3.bin",
			"cifar-10-batches-bin/data_batch_4.bin", "cifar-10-batches-bin/data_batch_5.bin", "cifar-10-batches-bin/test_batch.bin",
		}, {"cifar-10-python.tar.gz"}, {
			"cifar-10-batches-py/data_batch_1", "cifar-10-batches-py/data_batch_2", "cifar-10-batches-py/data_batch_3",
			"cifar-10-batches-py/data_batch_4", "cifar-10-batches-py/data_batch_5", "cifar-10-batches-py/test_batch",
		}},
		official: datasets.CIFAR10Archive(),
		read: func(ctx context.Context, f *fetch.Fetcher) error {
			_, _, err := datasets.CIFAR10(ctx, f)
			return err
		},
	},
	{
		name: "cifar100",
		forms: [][]string{
			{"cifar-100-binary.tar.gz"}, {"cifar-100-binary/train.bin", "cifar-100-binary/test.bin"},
			{"cifar-100-python.tar.gz"}, {"cifar-100-python/train", "cifar-100-python/test"},
		},
		official: datasets.CIFAR100Archive(),
		read: func(ctx context.Context, f *fetch.Fetcher) error {
			_, _, err := datasets.CIFAR100(ctx, f)
			return err
		},
	},
	{
		name:     "svhn",
		forms:    [][]string{{"svhn/test_32x32.mat"}, {"test_32x32.mat"}},
		official: inFolder("svhn", datasets.SVHNTestFile()),
		read: func(ctx context.Context, f *fetch.Fetcher) error {
			_, err := datasets.SVHN(ctx, f, datasets.SVHNTest)
			return err
		},
	},
	{
		name:     "svhn-excerpt",
		forms:    [][]string{{"svhn/train_first1083_32x32.mat"}, {"train_first1083_32x32.mat"}},
		official: fetch.File{Name: "svhn/train_first1083_32x32.mat"},
		read: func(ctx context.Context, f *fetch.Fetcher) error {
			_, err := datasets.SVHNTrainExcerpt(ctx, f)
			return err
		},
	},
}

var errUsage = errors.New("usage: bundle [--data SETS] [FOLDER]")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, catalogue, new(fetch.Fetcher), os.Args[1:], os.Stdout)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "error:", err)
	if errors.Is(err, errUsage) {
		os.Exit(2)
	}
	os.Exit(1)
}

func run(ctx context.Context, all []dataSet, f *fetch.Fetcher, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("bundle", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	list := flags.String("data", "cifar10,cifar100,svhn", "the `sets`, separated by commas, or none")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		if _, err := fmt.Fprintln(stdout, errUsage); err != nil {
			return fmt.Errorf("printing the usage: %w", err)
		}
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w", errUsage, err)
	case flags.NArg() > 1:
		return fmt.Errorf("%w: got %d folders", errUsage, flags.NArg())
	}
	sets, err := selectSets(all, *list)
	if err != nil {
		return err
	}
	get := f.Get
	if flags.NArg() == 0 {
		get = func(_ context.Context, file fetch.File) (string, error) { return whereabouts(f, file) }
	}
	for _, s := range sets {
		files, err := s.find(ctx, f, get)
		if err != nil {
			return fmt.Errorf("the data set %s is not here; put it into the folder that %s names, or leave it out with --data: %w", s.name, fetch.EnvData, err)
		}
		from := files[0].path
		if len(files) > 1 {
			from = filepath.Dir(from)
		}
		if _, err := fmt.Fprintf(stdout, "data: %s from %s\n", s.name, from); err != nil {
			return fmt.Errorf("reporting: %w", err)
		}
		if flags.NArg() == 1 {
			if err := s.collect(ctx, files, flags.Arg(0)); err != nil {
				return err
			}
		}
	}
	return nil
}

// whereabouts says where a file is, or would be downloaded from.
func whereabouts(f *fetch.Fetcher, file fetch.File) (string, error) {
	path, found, err := f.Have(file)
	switch {
	case err != nil || found:
		return path, err
	case file.URL == "":
		return "", fetch.ErrNoAddress
	}
	return file.URL + ", when it is wanted", nil
}

// selectSets returns the sets of a list of names, in the catalogue's order.
func selectSets(all []dataSet, list string) ([]dataSet, error) {
	if list == "none" {
		return nil, nil
	}
	var known []string
	for _, s := range all {
		known = append(known, s.name)
	}
	wanted := strings.Split(list, ",")
	for _, name := range wanted {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("%w: --data: unknown %q, want none or some of %s", errUsage, name, strings.Join(known, ","))
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(s dataSet) bool { return !slices.Contains(wanted, s.name) }), nil
}

// A dataFile is a file on this machine, and its name below the folder of data.
type dataFile struct{ name, path string }

// find returns the files of the first form that is in the folder of data, or else the official one, which get gets.
func (s dataSet) find(ctx context.Context, f *fetch.Fetcher, get func(context.Context, fetch.File) (string, error)) ([]dataFile, error) {
	for _, form := range s.forms {
		var files []dataFile
		for _, name := range form {
			path, found, err := f.Local(name)
			if err != nil {
				return nil, err
			}
			if found {
				files = append(files, dataFile{name, path})
			}
		}
		if len(files) == len(form) {
			return files, nil
		}
	}
	path, err := get(ctx, s.official)
	return []dataFile{{s.official.Name, path}}, err
}

// collect copies the files into a folder, and reads the set from there.
func (s dataSet) collect(ctx context.Context, files []dataFile, folder string) (err error) {
	for _, file := range files {
		if err := copyFile(filepath.Join(folder, filepath.FromSlash(file.name)), file.path); err != nil {
			return fmt.Errorf("copying the data set %s: %w", s.name, err)
		}
	}
	// A cache that is empty, so that nothing can come from elsewhere.
	empty, err := os.MkdirTemp("", "bundle")
	if err != nil {
		return fmt.Errorf("making an empty cache: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(empty)) }()
	if err := s.read(ctx, &fetch.Fetcher{Mirror: folder, Cache: empty}); err != nil {
		return fmt.Errorf("the data set %s is not as published: %w", s.name, err)
	}
	return nil
}

// copyFile copies a file as a whole or not at all. Where FOLDER is the folder that
// the data are in, the file is there already.
func copyFile(to, from string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	same, err := isAt(in, to)
	if err == nil && !same {
		err = atomicfile.Write(to, func(w io.Writer) error {
			_, err := io.Copy(w, in)
			return err
		})
	}
	return errors.Join(err, in.Close())
}

// isAt says whether path leads to the open file.
func isAt(f *os.File, path string) (bool, error) {
	own, err := f.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(own, there), err
}
