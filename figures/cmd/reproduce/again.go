package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"

	"gonum.org/v1/gonum/floats"

	"densityuncertainty/figures/jobs"
	"densityuncertainty/figures/results"
)

// onlyCompares refuses flags that say where or how runs are kept, which --again has no use for.
func onlyCompares(flags *flag.FlagSet) (err error) {
	means := []string{"again", "methods", "datasets", "splits", "seeds", "fidelity", "scale", "store", "batch", withoutSVHNFlag,
		"epochs", "train-n", "test-n", "held-out", "samples", "set"}
	flags.Visit(func(f *flag.Flag) {
		if !slices.Contains(means, f.Name) && err == nil {
			err = usagef("--again only compares, here and now: leave out --%s", f.Name)
		}
	})
	return err
}

// again carries out experiments of the store once more, so many of each group, and says how many of them come out as
// they are stored, to the last digit or but for rounding, and lists the others. The store stays as it is, and what the
// runs leave behind is removed.
func (c command) again(ctx context.Context, r request, lines []results.Result) (err error) {
	found := &comparison{command: c, stored: results.ByID(lines)}
	taken := make(map[string]int)
	var wanted []results.Experiment
	for _, e := range r.wanted {
		if _, done := found.stored.Find(e); done && taken[e.Group()] < r.again {
			taken[e.Group()]++
			wanted = append(wanted, e)
		}
	}
	if len(wanted) == 0 {
		return usagef("%s has none of these experiments, so there is nothing to compare", r.folders.store)
	}
	at := folders{withoutSVHN: r.folders.withoutSVHN}
	if at.store, err = os.MkdirTemp("", "reproduce-again-"); err != nil {
		return fmt.Errorf("making a folder for the runs: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(at.store)) }()
	if err := at.fill(); err != nil {
		return err
	}
	batches := jobs.Batches(wanted, r.batch)
	runner, report, err := c.runnerFor(at, batches)
	if err != nil {
		return err
	}
	if err := jobs.All(ctx, runner, found, batches, report); err != nil {
		return comparisonError{fmt.Errorf("%w; until then %d runs came out as they are stored, and %d more but for rounding", err, found.same, found.rounded)}
	}
	if _, err := fmt.Fprintf(c.stdout, "of %d runs %d come out as they are stored, and %d more but for rounding (relative differences of at most %.0e)\n",
		len(wanted), found.same, found.rounded, rounding); err != nil {
		return fmt.Errorf("printing the count: %w", err)
	}
	if others := len(wanted) - found.same - found.rounded; others > 0 {
		return fmt.Errorf("%d of %d runs are not as they are stored; another backend, processor or version can be the reason", others, len(wanted))
	}
	return nil
}

// A comparisonError ends a comparison, of which nothing is kept.
type comparisonError struct{ error }

// Unwrap returns the reason.
func (e comparisonError) Unwrap() error { return e.error }

// A comparison takes results as a store does, and compares them with those of one.
type comparison struct {
	command
	jobs.Alone
	stored        results.Index
	same, rounded int
}

// rounding is the largest relative difference of a metric that the order of sums is blamed for: a run whose splits are
// trained by themselves adds in another order than one that trains them together. Training can make more of it.
const rounding = 1e-5

// digits is what storing does to a curve at most.
const digits = 5e-6

// Append prints how a result differs from the stored one, if it does by more than rounding.
func (x *comparison) Append(now results.Result) (added bool, note string, err error) {
	before, _ := x.stored.Find(now.Experiment)
	difference, by := differs(before, now)
	switch {
	case difference == "":
		x.same++
		return true, "", nil
	case by <= rounding:
		x.rounded++
		return true, "", nil
	}
	_, err = fmt.Fprintf(x.stdout, "%v: %s (stored by %s on %s, %s; now %s on %s, %s)\n", now.Experiment, difference,
		before.Version, before.Backend, before.Device, now.Version, now.Backend, now.Device)
	return true, "", err
}

// Missing lists all: nothing is stored.
func (x *comparison) Missing(list []results.Experiment) ([]results.Experiment, error) {
	return list, nil
}

// differs says which number of two results of an experiment differs most, and by how many times itself, of a curve by
// how many times its largest value; "" if none does. Times may differ, and a metric that only one of two versions
// measured. Curves are stored with six digits, of which that is no difference.
func differs(before, now results.Result) (text string, most float64) {
	if before.Diverged != now.Diverged {
		return fmt.Sprintf("diverged: %v, now %v", before.Diverged, now.Diverged), math.Inf(1)
	}
	if len(before.Metrics) > 0 && len(now.Metrics) == 0 {
		return "nothing is measured any more", math.Inf(1)
	}
	for name, curve := range before.Series {
		if len(now.Series[name]) != len(curve) {
			return fmt.Sprintf("the series %s has %d values, now %d", name, len(curve), len(now.Series[name])), math.Inf(1)
		}
		if len(curve) == 0 {
			continue
		}
		far, largest := floats.Distance(curve, now.Series[name], math.Inf(1)), floats.Norm(curve, math.Inf(1))
		if by := far / largest; by > digits && by > most {
			text, most = fmt.Sprintf("the series %s differs by %.2g times its largest value, and nothing by more", name, by), by
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before.Metrics)) {
		a, b := before.Metrics[name], now.Metrics[name]
		_, measured := now.Metrics[name]
		if !measured || name == results.MetricSecondsPerEpoch || name == results.MetricImagesPerSecond {
			continue
		}
		if by := math.Abs(b-a) / math.Max(math.Abs(a), math.Abs(b)); a != b && by > most {
			text, most = fmt.Sprintf("%s %v, now %v, differs by %.2g times itself, and nothing by more", name, a, b, by), by
		}
	}
	return text, most
}
