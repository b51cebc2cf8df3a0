package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"densityuncertainty/environment/atomicfile"
	"densityuncertainty/figures/results"
)

type chooseCommand struct {
	Study string `arg:"" help:"uci, for the optimizer and the noise of each split, by the runs of the set uci-tuning; or images, for the noise in the set processor, by the runs of processor-grid."`
	File  path   `arg:"" optional:"" help:"The file to write (default: it is printed). A file that has more choices stays as it is."`
	storesFlag
}

// Run chooses hyperparameters.
func (s chooseCommand) Run(c command) error {
	all, err := selected("study", c.choosers, func(one chooser) string { return one.name }, s.Study)
	if err != nil || len(all) != 1 {
		return errors.Join(err, usagef("choose wants one study"))
	}
	index, err := s.read()
	if err != nil {
		return err
	}
	file, missing, err := all[0].choose(index)
	if err != nil {
		return err
	}
	lacking := fmt.Sprintf("nothing is chosen for %s: not all of their runs of %s are there", strings.Join(missing, "; "), all[0].set)
	choices := func(content []byte) int { return bytes.Count(content, []byte("\n")) - 1 } // below the heading
	if choices(file) <= 0 {
		return fmt.Errorf("%s; carry them out with \"reproduce run %s\", or name their store with --store", lacking, all[0].set)
	}
	if len(missing) > 0 {
		c.tell("%s", lacking)
	}
	if s.File == "" {
		return c.say(string(file))
	}
	switch present, err := os.ReadFile(string(s.File)); {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("reading the choices that are to be replaced: %w", err)
	case choices(present) > choices(file):
		return fmt.Errorf("%s has more choices than the runs here make, and stays as it is; remove it first, or name another file", s.File)
	}
	return atomicfile.WriteBytes(string(s.File), file)
}

type exportCommand struct {
	From path `arg:"" name:"folder" help:"The folder that \"reproduce run processor --networks FOLDER\" kept networks in."`
	storesFlag
	Out path `placeholder:"FOLDER" help:"The folder to write (default: figures/cifar/networks of the checkout)."`
}

// Run makes the folder of trained networks.
func (e exportCommand) Run(c command) error {
	out := string(e.Out)
	if out == "" {
		runs, err := results.DefaultDir()
		if err != nil {
			return fmt.Errorf("finding the folder to write, which --out names: %w", err)
		}
		out = filepath.Join(runs, "..", "cifar", "networks")
	}
	index, err := e.read()
	if err != nil {
		return err
	}
	names, missing, err := c.export(index, string(e.From), out)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("there is nothing to export: %s has no network of a result in the store", e.From)
	}
	c.tell("wrote %s to %s", strings.Join(names, ", "), out)
	if len(missing) > 0 {
		c.tell("without %s, whose network or result is missing", strings.Join(missing, ", "))
	}
	return nil
}
