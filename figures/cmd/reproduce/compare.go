package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

type againCommand struct {
	selection
	Count int `default:"1" placeholder:"N" help:"Run at most N stored experiments of each group: experiments that differ in split and seed alone (default: 1)."`
	storeFlag
	GPU bool `name:"gpu" help:"Refuse to compute on anything but a GPU."`
}

// The largest relative difference of a metric that is put down to rounding. A split that is trained alone adds in another
// order than splits that are trained together, and training can make more of it. Kept predictions are measured in one
// order, but processors round differently.
const trainingRounds, measuringRounds = 1e-5, 1e-9

// Run runs stored experiments again.
func (a againCommand) Run(ctx context.Context, c command) error {
	s, err := stored(c, a.selection, a.storeFlag)
	if err != nil {
		return err
	}
	if a.Count < 1 {
		return usagef("--count is %d, want at least 1", a.Count)
	}
	taken := map[string]int{}
	list := slices.DeleteFunc(s.list, func(e experiment.Experiment) bool {
		group := e.Group()
		taken[group]++
		return taken[group] > a.Count
	})
	if err := needGPU(a.GPU); err != nil {
		return err
	}
	found, err := c.carryOut(ctx, experiment.Engine{}, list)
	if ctx.Err() != nil {
		return err
	}
	return errors.Join(err, c.compare(s.index, found, nil, trainingRounds))
}

type measureCommand struct {
	selection
	Metrics []string `placeholder:"NAMES" help:"Compare these metrics alone, separated by commas (default: all)."`
	storeFlag
}

// Run measures kept predictions again.
func (m measureCommand) Run(c command) error {
	s, err := stored(c, m.selection, m.storeFlag)
	if err != nil {
		return err
	}
	metrics, missing, err := s.store.Measure(s.list)
	if err != nil {
		return err
	}
	var found []experiment.Result
	for _, e := range s.list {
		if now, has := metrics[e.ID()]; has {
			found = append(found, experiment.Result{Metrics: now}.Of(e))
		}
	}
	if len(missing) > 0 {
		count := map[string]int{}
		for _, e := range missing {
			e.Split, e.Seed = 0, 0
			count[strings.Replace(e.String(), ", split 0, seed 0", "", 1)]++
		}
		text := results.Counted(len(missing), "result has", "results have") + " no predictions here:\n"
		for _, group := range slices.Sorted(maps.Keys(count)) {
			text += fmt.Sprintf("  %s: %d\n", group, count[group])
		}
		if err := c.say(text); err != nil {
			return err
		}
	}
	return c.compare(s.index, found, m.Metrics, measuringRounds)
}

// A stock is experiments that a store has results of.
type stock struct {
	store *experiment.Store
	index *tables.Index
	list  experiment.Experiments
}

// stored are the selected experiments that the store has.
func stored(c command, s selection, from storeFlag) (found stock, err error) {
	if found.list, err = s.experiments(c); err != nil {
		return found, err
	}
	if found.store, found.index, err = from.open(); err != nil {
		return found, err
	}
	found.list = slices.DeleteFunc(found.list, func(e experiment.Experiment) bool { _, has := found.index.Find(e); return !has })
	if len(found.list) == 0 {
		return found, usagef("%s has none of these experiments", found.store.Folder)
	}
	return found, nil
}

// compare says how many results are as an index has them, and lists the others, which are an error. It compares the metrics
// of these names that both sides have, or all of them.
func (c command) compare(index *tables.Index, found []experiment.Result, names []string, rounding float64) error {
	var text strings.Builder
	same, rounded, new, known := 0, 0, map[string]int{}, map[string]bool{}
	for _, now := range found {
		before, _ := index.Find(*now.Experiment)
		most := 0.0
		if before.Diverged != now.Diverged {
			most = math.Inf(1)
		}
		old, fresh := map[string]float64{}, map[string]float64{}
		for name, value := range now.Metrics {
			known[name] = true
			was, has := before.Metrics[name]
			if len(names) > 0 && !slices.Contains(names, name) {
				continue
			}
			if !has {
				new[name]++
				continue
			}
			if old[name], fresh[name] = was, value; was != value {
				most = max(most, math.Abs(value-was)/max(math.Abs(value), math.Abs(was)))
			}
		}
		before.Metrics, now.Metrics = old, fresh
		switch difference := before.Difference(now); {
		case difference == "":
			same++
		case most <= rounding:
			rounded++
		default:
			fmt.Fprintf(&text, "%v, stored and now: %s (stored by %s on %s)\n", *now.Experiment, difference, before.Version, before.Device)
		}
	}
	for _, name := range names {
		if len(found) > 0 && !known[name] {
			return usagef("--metrics: these experiments have no metric %q, but %s", name, inWords(slices.Sorted(maps.Keys(known))))
		}
	}
	fmt.Fprintf(&text, "of %s %d are as they are stored, and %d more but for rounding (relative differences of at most %.0e)\n",
		results.Counted(len(found), "result", "results"), same, rounded, rounding)
	for _, name := range slices.Sorted(maps.Keys(new)) {
		fmt.Fprintf(&text, "%s were stored without the metric %s\n", results.Counted(new[name], "result", "results"), name)
	}
	err := c.say(text.String())
	if others := len(found) - same - rounded; others > 0 {
		err = errors.Join(err, fmt.Errorf("%d of %d results are not as they are stored; another version, backend or processor can be the reason", others, len(found)))
	}
	return err
}
