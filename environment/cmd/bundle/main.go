// Bundle makes the files that take the experiments to machines without Go and
// without a network. ./environment/bundle builds the programs and calls it:
//
//	bundle make --base FOLDER --version VERSION --out FOLDER [--data SETS] [--part-size SIZE] [--dry-run]
//
// On such a machine the install.sh that it writes calls it once more, to restore
// the data:
//
//	bundle unpack FOLDER
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"densityuncertainty/datasets/fetch"
)

// The exit statuses.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the default handling is back, so that a second one ends the program at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// usageError is a command line that makes no sense.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// run carries out the command line and returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	err := usagef("want \"make\" or \"unpack\"")
	if len(args) > 0 {
		switch args[0] {
		case "make":
			err = runMake(ctx, args[1:], stdout)
		case "unpack":
			err = usagef("unpack wants one folder")
			if len(args) == 2 {
				err = unpack(ctx, args[1], stdout)
			}
		}
	}
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	status := exitFailure
	if usage := (usageError{}); errors.As(err, &usage) {
		status = exitUsage
	}
	if _, err := fmt.Fprintln(stderr, "error:", err); err != nil {
		return exitFailure
	}
	return status
}

// runMake reads the flags of "bundle make" and carries it out.
func runMake(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("make", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	base := flags.String("base", "", "`folder` that the bundle begins with: bin with the programs, and what else is to lie beside it")
	version := flags.String("version", "devel", "`version` of the code")
	data := flags.String("data", "cifar10,cifar100,svhn", "the `sets` to include, separated by commas, or none")
	out := flags.String("out", "", "`folder` to write to")
	size := flags.String("part-size", "60MiB", "the largest `size` of a part")
	dry := flags.Bool("dry-run", false, "only check the flags, that the data are there, and that the bundle is not")
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		return err
	}
	if err != nil {
		return usageError{err}
	}
	if flags.NArg() > 0 {
		return usagef("unknown argument %q", flags.Arg(0))
	}
	if *out == "" {
		return usagef("--out needs a folder")
	}
	if *base == "" && !*dry {
		return usagef("--base needs a folder")
	}
	m := maker{version: *version, fetcher: new(fetch.Fetcher), out: *out, stdout: stdout}
	if m.sets, err = selectSets(catalogue, *data); err != nil {
		return err
	}
	if m.partSize, err = parseSize(*size); err != nil {
		return err
	}
	if *dry {
		return m.find(ctx)
	}
	m.base, m.date = *base, commitDate()
	if m.glibc, err = neededGlibc(filepath.Join(*base, filepath.FromSlash(xlaProgram))); err != nil {
		return err
	}
	return m.make(ctx)
}

// leastPart keeps the parts of a bundle to a number that can be handled.
const leastPart = 1 << 20

// parseSize reads a number of bytes, such as 60MiB, 500kB or 1048576.
func parseSize(text string) (int64, error) {
	digits := strings.TrimRight(text, "BGMKkmgib")
	units := map[string]int64{"": 1, "B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
	unit, known := units[text[len(digits):]]
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || !known {
		return 0, usagef("--part-size: %q is not a size such as 60MiB, 500MB or 62914560", text)
	}
	if n*unit < leastPart {
		return 0, usagef("--part-size: %q is too small, want at least 1MiB", text)
	}
	return n * unit, nil
}
