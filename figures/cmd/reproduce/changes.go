package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"densityuncertainty/figures/cifar/predictions"
	"densityuncertainty/figures/jobs"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
)

// changes are what the flags make of a set's experiments.
type changes struct {
	numbers []func(*results.Experiment) // those that were given
	options assignments
}

func changeFlags(flags *flag.FlagSet) *changes {
	c := &changes{options: make(assignments)}
	number := func(name, doc string, field func(*results.Experiment) *int) {
		flags.Func(name, doc+" (default that of the set)", func(text string) error {
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 {
				return errors.New("want a whole number of at least 0")
			}
			c.numbers = append(c.numbers, func(e *results.Experiment) { *field(e) = n })
			return nil
		})
	}
	number("epochs", "train for this `many` epochs, on the toy steps", func(e *results.Experiment) *int { return &e.Epochs })
	number("train-n", "images: train on this `many`, 0 for all that are not held out", func(e *results.Experiment) *int { return &e.TrainN })
	number("test-n", "images: test on this `many` of each set, 0 for all", func(e *results.Experiment) *int { return &e.TestN })
	number("held-out", "images: keep this `many` training images out of training, for the energy statistic", func(e *results.Experiment) *int { return &e.HeldOut })
	number("samples", "draw this `many` Monte Carlo samples", func(e *results.Experiment) *int { return &e.Samples })
	flags.Var(c.options, "set", "set an option, as `name=value`; repeat it for several (\"reproduce options\" lists them)")
	return c
}

// apply returns the changed experiments.
func (c *changes) apply(all []results.Experiment) ([]results.Experiment, error) {
	changed := slices.Clone(all)
	known := make(map[string]bool)
	for _, e := range all {
		known[e.ID()] = true
	}
	for i := range changed {
		e := &changed[i]
		for _, set := range c.numbers {
			set(e)
		}
		if len(c.options) > 0 {
			e.Options = maps.Clone(e.Options)
			if e.Options == nil {
				e.Options = make(map[string]string)
			}
			maps.Copy(e.Options, c.options)
			withoutUsual(e.Options, usualProtocol(*e))
		}
		if known[e.ID()] { // not changed, or changed into another of them
			continue
		}
		if e.Study == results.Images && !e.OnHeldOut() {
			e.Scale = results.Small
		}
		if err := check(*e); err != nil {
			return nil, usageError{err}
		}
	}
	return changed, nil
}

// withoutUsual removes options whose value is that of the protocol anyway: with them the experiment would be the same
// under another name.
func withoutUsual(options map[string]string, usual any) {
	for _, f := range methods.Fields(usual, "") {
		if value, has := options[f.Name]; has && value == f.Text(usual) {
			delete(options, f.Name)
		}
	}
}

// assignments is a flag name=value that can be given several times.
type assignments map[string]string

func (a assignments) String() string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(a)) {
		list = append(list, name+"="+a[name])
	}
	return strings.Join(list, ",")
}

// Set adds an assignment.
func (a assignments) Set(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" || value == "" {
		return fmt.Errorf("%q is not name=value", text)
	}
	a[name] = value
	return nil
}

// folders are the folders of a run.
type folders struct {
	store       string
	work        string // of checkpoints
	predictions string
	networks    string // of trained networks; "" keeps none
	keep        bool   // checkpoints of finished experiments
	withoutSVHN bool   // go on where it is missing
}

func (p *folders) flags(flags *flag.FlagSet) {
	p.storeFlags(flags)
	folderFlag(flags, &p.work, "work", "`folder` for checkpoints (default out/work of the checkout; with --store the folder work there)")
	folderFlag(flags, &p.networks, "networks", "`folder` in which image runs keep their trained networks as safetensors files (default none)")
	flags.BoolVar(&p.keep, "keep", false, "keep the checkpoints of runs that are finished")
	flags.BoolVar(&p.withoutSVHN, withoutSVHNFlag, false, "run the experiments of the table ood-svhn even if SVHN's test part is not there: its columns then stay empty")
}

// folderFlag adds a flag for a folder. An empty name is refused: it is a variable of a shell that is not set, and the
// results must not go to the default then.
func folderFlag(flags *flag.FlagSet, folder *string, name, doc string) {
	flags.Func(name, doc, func(text string) error {
		if text == "" {
			return errEmptyName
		}
		*folder = text
		return nil
	})
}

// storeFlags are those of commands that do not train.
func (p *folders) storeFlags(flags *flag.FlagSet) {
	folderFlag(flags, &p.store, "store", "`folder` of the results (default figures/runs of the checkout)")
	folderFlag(flags, &p.predictions, "predictions", "`folder` for the predictions of image runs (default the folder predictions in the store)")
}

// withoutSVHNFlag is the name of a flag that is passed on to the processes that a command starts.
const withoutSVHNFlag = "without-svhn"

// fill sets the defaults.
func (p *folders) fill() error {
	if p.store == "" {
		dir, err := results.DefaultDir()
		if err != nil {
			return err
		}
		p.store = dir
		if p.work == "" {
			p.work = filepath.Join(dir, "..", "..", "out", "work")
		}
	}
	if p.work == "" {
		p.work = filepath.Join(p.store, "work")
	}
	if p.predictions == "" {
		p.predictions = filepath.Join(p.store, predictions.Folder)
	}
	return nil
}

// removingCheckpoints is a store that removes an experiment's checkpoints once its result is kept.
type removingCheckpoints struct {
	store jobs.Appender
	at    folders
}

// Append keeps a result.
func (t removingCheckpoints) Append(r results.Result) (added bool, note string, err error) {
	added, note, err = t.store.Append(r)
	if err != nil || t.at.keep {
		return added, note, err
	}
	if err := os.RemoveAll(jobs.WorkFolder(t.at.work, r.Experiment)); err != nil {
		// The result is safe; a folder that stays is no reason to stop.
		note = strings.TrimPrefix(note+"; ", "; ") + fmt.Sprintf("the checkpoints of %v stay: %v", r.Experiment, err)
	}
	return added, note, nil
}
