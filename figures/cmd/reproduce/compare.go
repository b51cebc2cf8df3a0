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
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

type againCommand struct {
	selection
	storeFlag
	Measure bool `help:"Train nothing: compute the metrics from the predictions that runs keep. Those that keep none are counted."`
}

// The largest relative difference of a metric that is put down to rounding. A split that is trained alone adds in another
// order than splits that are trained together, and training can make more of it. Kept predictions are measured in one
// order, but processors round differently.
const trainingRounds, measuringRounds = 1e-5, 1e-9

// Run runs or measures stored experiments again.
func (a againCommand) Run(ctx context.Context, c command) error {
	list, err := a.experiments(c)
	if err != nil {
		return err
	}
	store, index, err := a.open()
	if err != nil {
		return err
	}
	stored := slices.DeleteFunc(index.Results(list), func(r experiment.Result) bool { return r.ID == "" })
	if len(stored) == 0 {
		return usagef("%s has none of these experiments", store.Folder)
	}
	if !a.Measure {
		list = nil
		for _, r := range stored {
			list = append(list, *r.Experiment)
		}
		found, err := c.carryOut(ctx, experiment.Engine{}, list)
		if ctx.Err() != nil {
			return err
		}
		return errors.Join(err, c.compare(index, found, trainingRounds))
	}
	var found []experiment.Result
	missing := 0
	for _, r := range stored {
		p, err := r.Predictions()
		if err == nil && p.Diverged { // there is nothing to measure
			continue
		}
		now := experiment.Result{}.Of(*r.Experiment)
		if err == nil {
			now.Metrics, err = r.Experiment.Measure(p)
		}
		switch {
		case errors.Is(err, experiment.ErrNoPredictions):
			missing++
		case err != nil:
			return err
		default:
			found = append(found, now)
		}
	}
	if missing > 0 {
		c.tell("%s no predictions here", report.Counted(missing, "result has", "results have"))
	}
	return c.compare(index, found, measuringRounds)
}

// compare says how many results are as an index has them, and lists the others, which are an error. It compares the metrics
// that both sides have.
func (c command) compare(index *tables.Index, found []experiment.Result, rounding float64) error {
	var text strings.Builder
	same, rounded := 0, 0
	for _, now := range found {
		before, _ := index.Find(*now.Experiment)
		most := 0.0
		if before.Diverged != now.Diverged {
			most = math.Inf(1)
		}
		before.Metrics, now.Metrics = maps.Clone(before.Metrics), maps.Clone(now.Metrics)
		maps.DeleteFunc(before.Metrics, func(name string, _ float64) bool { _, has := now.Metrics[name]; return !has })
		maps.DeleteFunc(now.Metrics, func(name string, _ float64) bool { _, has := before.Metrics[name]; return !has })
		for name, was := range before.Metrics {
			if value := now.Metrics[name]; value != was {
				most = max(most, math.Abs(value-was)/max(math.Abs(value), math.Abs(was)))
			}
		}
		switch difference := before.Difference(now); {
		case difference == "":
			same++
		case most <= rounding:
			rounded++
		default:
			fmt.Fprintf(&text, "%v, stored and now: %s (stored by %s on %s)\n", *now.Experiment, difference, before.Version, before.Device)
		}
	}
	fmt.Fprintf(&text, "of %s %d equal the stored ones, and %d more up to rounding (relative differences of at most %.0e)\n",
		report.Counted(len(found), "result", "results"), same, rounded, rounding)
	err := c.say(text.String())
	if others := len(found) - same - rounded; others > 0 {
		err = errors.Join(err, fmt.Errorf("%d of %d results differ from the stored ones; another version, backend or processor can be the reason", others, len(found)))
	}
	return err
}
