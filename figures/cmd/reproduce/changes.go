package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"densityuncertainty/figures/cifar"
	"densityuncertainty/figures/jobs"
	"densityuncertainty/figures/results"
)

// changes are what the flags make of a set's experiments.
type changes struct {
	epochs, trainN, testN, heldOut, samples *int
	options                                 assignments
}

// unchanged is the value of a number that was not given.
const unchanged = -1

func changeFlags(flags *flag.FlagSet) *changes {
	number := func(name, doc string) *int {
		return flags.Int(name, unchanged, doc+" (default that of the set)")
	}
	c := &changes{
		epochs:  number("epochs", "train for this `many` epochs, on the toy steps"),
		trainN:  number("train-n", "images: train on this `many`, 0 for all that are not held out"),
		testN:   number("test-n", "images: test on this `many` of each set, 0 for all"),
		heldOut: number("held-out", "images: keep this `many` training images out of training, for the energy statistic"),
		samples: number("samples", "draw this `many` Monte Carlo samples"),
		options: make(assignments),
	}
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
		for _, n := range []struct {
			value *int
			field *int
		}{{c.epochs, &e.Epochs}, {c.trainN, &e.TrainN}, {c.testN, &e.TestN}, {c.heldOut, &e.HeldOut}, {c.samples, &e.Samples}} {
			if *n.value != unchanged {
				*n.field = *n.value
			}
		}
		if len(c.options) > 0 {
			e.Options = maps.Clone(e.Options)
			if e.Options == nil {
				e.Options = make(map[string]string)
			}
			maps.Copy(e.Options, c.options)
		}
		if known[e.ID()] { // not changed, or changed into another of them
			continue
		}
		if e.Study == results.Images && e.Scale != results.Grid {
			e.Scale = results.Small
		}
		if err := check(*e); err != nil {
			return nil, usageError{err}
		}
	}
	return changed, nil
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
	keep        bool // checkpoints of finished experiments
	withoutSVHN bool // go on where it is missing
}

func (p *folders) flags(flags *flag.FlagSet) {
	flags.StringVar(&p.store, "store", "", "`folder` that results are appended to (default figures/runs of the checkout)")
	flags.StringVar(&p.work, "work", "", "`folder` for the checkpoints of image runs (default out/work of the checkout; with --store the folder work there)")
	flags.StringVar(&p.predictions, "predictions", "", "`folder` for the predictions of image runs (default the folder predictions in the store)")
	flags.BoolVar(&p.keep, "keep", false, "keep the checkpoints of image runs that are finished")
	flags.BoolVar(&p.withoutSVHN, withoutSVHNFlag, false, "run the experiments of the table ood-svhn even if SVHN's test part is not there: its columns then stay empty")
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
		p.predictions = filepath.Join(p.store, "predictions")
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
	if err := os.RemoveAll(cifar.WorkFolder(t.at.work, r.Experiment)); err != nil {
		// The result is safe; a folder that stays is no reason to stop.
		note = strings.TrimPrefix(note+"; ", "; ") + fmt.Sprintf("the checkpoints of %v stay: %v", r.Experiment, err)
	}
	return added, note, nil
}
