package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"densityuncertainty/environment/atomicfile"
	"densityuncertainty/figures/cifar"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/uci"
)

const chooseDoc = `reproduce choose chooses hyperparameters of each method by the runs in the store that tried them, measured on held-out
training examples: with "uci" the optimizer and the noise for each split, of the set uci-tuning, and with "images" the
noise for the set processor, of the set processor-grid. It prints the choices, or writes them to a file if there are
any and does not have more already, and says for what runs are missing; those of the program are figures/uci/tuned.csv and figures/cifar/chosen.csv.

Usage: reproduce choose uci|images [FILE] [flags]
`

func (c command) choose(_ context.Context, args []string) error {
	flags := newFlags("choose")
	stores := storeFlag(flags)
	positional, err := c.parse(flags, chooseDoc, args)
	if err != nil {
		return err
	}
	if n := len(positional); n == 0 || n > 2 || positional[0] != results.UCI && positional[0] != results.Images {
		return usagef("choose wants uci or images, and a file at most")
	}
	lines, err := c.read(*stores)
	if err != nil {
		return err
	}
	from, set := uci.Choose, "uci-tuning"
	if positional[0] == results.Images {
		from, set = cifar.ChosenOptions, "processor-grid"
	}
	file, missing, err := from(lines)
	if err != nil {
		return err
	}
	lacking := fmt.Sprintf("nothing is chosen for %s: not all of their runs of %s are there", strings.Join(missing, "; "), set)
	if bytes.Count(file, []byte("\n")) <= 1 { // the heading alone, which must not replace a file of choices
		return fmt.Errorf("%s; carry them out with \"reproduce run %s\", or name their store with --store", lacking, set)
	}
	if len(missing) > 0 {
		c.print(c.stderr, lacking+"\n", exitOK)
	}
	if len(positional) > 1 {
		switch present, err := os.ReadFile(positional[1]); {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("reading the choices that are to be replaced: %w", err)
		case bytes.Count(present, []byte("\n")) > bytes.Count(file, []byte("\n")):
			return fmt.Errorf("%s has more choices than the runs here make, and stays as it is; remove it first, or name another file", positional[1])
		}
		return atomicfile.WriteBytes(positional[1], file)
	}
	if _, err := c.stdout.Write(file); err != nil {
		return fmt.Errorf("printing the choices: %w", err)
	}
	return nil
}

const exportDoc = `reproduce export makes the folder of trained networks that are part of the program (default figures/cifar/networks
of the checkout) of those that "reproduce run processor --networks FOLDER" kept and of the lines in the store:
seed 0 of deterministic, rank1, density and density-constant, with how each was made.

Usage: reproduce export FOLDER [flags]
`

func (c command) export(_ context.Context, args []string) error {
	flags := newFlags("export")
	stores := storeFlag(flags)
	out := flags.String("out", "", "`folder` to write")
	positional, err := c.parse(flags, exportDoc, args)
	if err != nil {
		return err
	}
	if len(positional) != 1 {
		return usagef("export wants the folder of networks")
	}
	if *out == "" {
		dir, err := results.DefaultDir()
		if err != nil {
			return fmt.Errorf("finding the folder to write, which --out names: %w", err)
		}
		*out = filepath.Join(dir, "..", "cifar", "networks")
	}
	lines, err := c.read(*stores)
	if err != nil {
		return err
	}
	names, missing, err := cifar.ExportNetworks(lines, positional[0], *out)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("there is nothing to export: %s has no network of a line in the store", positional[0])
	}
	c.print(c.stderr, fmt.Sprintf("wrote %s to %s\n", strings.Join(names, ", "), *out), exitOK)
	if len(missing) > 0 {
		c.print(c.stderr, fmt.Sprintf("without %s, whose network or line is missing\n", strings.Join(missing, ", ")), exitOK)
	}
	return nil
}

const optionsDoc = `reproduce options lists the options that "reproduce run --set" takes, with their values in the two
fidelities: of one study, toy, uci or images, or of all.

Usage: reproduce options [STUDY]
`

func (c command) options(_ context.Context, args []string) error {
	positional, err := c.parse(newFlags("options"), optionsDoc, args)
	if err != nil {
		return err
	}
	studies := []string{results.Toy, results.UCI, results.Images}
	if len(positional) > 0 {
		if len(positional) > 1 || !slices.Contains(studies, positional[0]) {
			return usagef("options takes one study: %s", strings.Join(studies, ", "))
		}
		studies = positional
	}
	for _, study := range studies {
		text, err := optionsTables()[study].Render(report.Markdown)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(c.stdout, "%s experiments:\n\n%s\n", study, text); err != nil {
			return fmt.Errorf("printing the options: %w", err)
		}
	}
	return nil
}
