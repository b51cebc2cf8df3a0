package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"densityuncertainty/figures/results"
)

// changes are what the flags make of a set's experiments.
type changes struct {
	numbers []func(*results.Experiment) // those that were given
	given   []string                    // their flags
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
			c.given = append(c.given, "--"+name+" "+text)
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

// apply returns the changed experiments, and how many of them got another scale by that.
func (c *changes) apply(all []results.Experiment) (changed []results.Experiment, rescaled int, err error) {
	changed = slices.Clone(all)
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
			c.withoutUsual(e)
		}
		if known[e.ID()] { // not changed, or changed into another of them
			continue
		}
		if e.Study == results.Images && !e.OnHeldOut() && e.Scale != results.Small {
			e.Scale = results.Small
			rescaled++
		}
		if err := check(*e); err != nil {
			return nil, 0, usagef("%s: %w", strings.Join(append(c.given, c.options.flags()...), ", "), err)
		}
	}
	return changed, rescaled, nil
}

// withoutUsual removes those of the given options whose value the experiment has without them: with them it would be
// the same under another name.
func (c *changes) withoutUsual(e *results.Experiment) {
	for _, name := range slices.Sorted(maps.Keys(c.options)) {
		without := *e
		without.Options = maps.Clone(e.Options)
		delete(without.Options, name)
		with, err := filledProtocol(*e)
		usual, usualErr := filledProtocol(without)
		if err == nil && usualErr == nil && reflect.DeepEqual(with, usual) {
			e.Options = without.Options
		}
	}
}

// assignments is a flag name=value that can be given several times.
type assignments map[string]string

func (a assignments) String() string { return strings.Join(a.flags(), " ") }

// flags are the assignments as they are given.
func (a assignments) flags() (list []string) {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		list = append(list, "--set "+name+"="+a[name])
	}
	return list
}

// Set adds an assignment.
func (a assignments) Set(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" || value == "" {
		return fmt.Errorf("%q is not name=value", text)
	}
	if before, has := a[name]; has {
		return fmt.Errorf("%s is given twice, as %s and %s", name, before, value)
	}
	a[name] = value
	return nil
}
