package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/run"
)

const runDoc = `reproduce run carries out the experiments of a set (or of all sets) that are not in the store yet.
Stop it with Ctrl-C and run it again to go on: what is finished is stored and not repeated.

Usage: reproduce run SET|all [flags]
`

func (c command) run(ctx context.Context, args []string) error {
	flags := newFlags("run")
	methods := flags.String("methods", "", "only these `methods`, separated by commas")
	datasets := flags.String("datasets", "", "only these `data sets`, separated by commas")
	splits := flags.String("splits", "", "only these `splits`, for example 0-4 or 0,3,7")
	fidelity := flags.String("fidelity", "", "only this `fidelity`: paper or released")
	scale := flags.String("scale", experiment.Full, "`scale`: full, or quick for a small run that is never compared with the paper")
	dir := flags.String("store", "", "`folder` that results are appended to (default figures/runs of the checkout)")
	batch := flags.Int("batch", 0, "train at most this `many` splits together, 0 for all")
	dry := flags.Bool("dry-run", false, "only print what would run")
	positional, err := c.parse(flags, runDoc, args)
	if err != nil {
		return err
	}
	wanted, err := selectSets(positional)
	if err != nil {
		return err
	}
	filter := experiment.Filter{Methods: words(*methods), Datasets: words(*datasets), Fidelity: *fidelity, Scale: *scale}
	if filter.Splits, err = parseSplits(*splits); err != nil {
		return err
	}
	if err := checkFilter(filter); err != nil {
		return err
	}
	if wanted = filter.Apply(wanted); len(wanted) == 0 {
		return usagef("no experiment of %s passes the flags; see \"reproduce list\"", strings.Join(positional, " "))
	}
	if *dir == "" {
		if *dir, err = results.DefaultDir(); err != nil {
			return err
		}
	}
	return c.runMissing(ctx, wanted, *dir, *batch, *dry)
}

// runMissing runs, or only lists, the wanted experiments that the store in dir lacks.
func (c command) runMissing(ctx context.Context, wanted []experiment.Experiment, dir string, batchSize int, dry bool) error {
	var lines []results.Result
	_, err := os.Stat(dir)
	if err == nil {
		lines, err = c.read(paths{dir})
	} else if os.IsNotExist(err) {
		err = nil
	}
	if err != nil {
		return err
	}
	missing := run.Missing(wanted, lines)
	batches := run.Batches(missing, batchSize)
	c.print(c.stderr, fmt.Sprintf("%d experiments, %d already in %s, %d to run in %d batches\n",
		len(wanted), len(wanted)-len(missing), dir, len(missing), len(batches)), exitOK)
	if dry {
		for _, e := range missing {
			if _, err := fmt.Fprintln(c.stdout, e.ID(), e); err != nil {
				return fmt.Errorf("printing the plan: %w", err)
			}
		}
		return nil
	}
	if len(missing) == 0 {
		return nil
	}
	store, err := results.OpenStore(dir)
	if err != nil {
		return err
	}
	runner, err := c.newRunner()
	if err != nil {
		return err
	}
	return run.All(ctx, runner, store, batches, run.NewReporter(c.stderr, isTerminal(c.stderr), time.Now, batches))
}

// selectSets returns the experiments of the one set that is named, or of all.
func selectSets(positional []string) ([]experiment.Experiment, error) {
	var names []string
	for _, s := range experiment.Sets() {
		names = append(names, s.Name)
	}
	if len(positional) != 1 {
		return nil, usagef("run wants one set: %s or all", strings.Join(names, ", "))
	}
	if positional[0] == "all" {
		var all []experiment.Experiment
		for _, s := range experiment.Sets() {
			all = append(all, s.Experiments...)
		}
		return all, nil
	}
	set, ok := experiment.SetByName(positional[0])
	if !ok {
		return nil, usagef("unknown set %q, want %s or all", positional[0], strings.Join(names, ", "))
	}
	return set.Experiments, nil
}

// checkFilter finds misspelt names, which would otherwise select nothing.
func checkFilter(f experiment.Filter) error {
	check := func(flag string, values, allowed []string) error {
		for _, v := range values {
			if !slices.Contains(allowed, v) {
				return usagef("--%s: unknown %q, want %s", flag, v, strings.Join(allowed, ", "))
			}
		}
		return nil
	}
	if err := check("methods", f.Methods, experiment.Methods()); err != nil {
		return err
	}
	if err := check("datasets", f.Datasets, append(experiment.Datasets(), experiment.ToyCubic)); err != nil {
		return err
	}
	if f.Fidelity != "" {
		if err := check("fidelity", []string{f.Fidelity}, []string{experiment.Paper, experiment.Released}); err != nil {
			return err
		}
	}
	return check("scale", []string{f.Scale}, []string{experiment.Full, experiment.Quick})
}

// words splits a list at commas; an empty text is an empty list.
func words(text string) []string {
	if text == "" {
		return nil
	}
	list := strings.Split(text, ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return list
}

// maxSplit bounds a range, so that a slip of the finger does not fill the memory.
const maxSplit = 1000

// parseSplits reads numbers and ranges: "0-4,7" is 0, 1, 2, 3, 4, 7.
func parseSplits(text string) ([]int, error) {
	var list []int
	for _, word := range words(text) {
		from, to, isRange := strings.Cut(word, "-")
		if !isRange {
			to = from
		}
		first, err1 := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil || first < 0 || last < first || last > maxSplit {
			return nil, usagef("--splits: %q is not a split or a range such as 0-4", word)
		}
		for s := first; s <= last; s++ {
			list = append(list, s)
		}
	}
	return list, nil
}

// isTerminal reports whether w is a terminal rather than a file, pipe or buffer.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
