package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"time"

	"densityuncertainty/figures/jobs"
	"densityuncertainty/figures/results"
)

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
	report := jobs.NewReporter(c.stderr, isTerminal(c.stderr), time.Now, studiesOn(jobs.Machine{}), batches)
	runner, err := c.newRunner(settings{at, workOf(batches), report.Note})
	if err != nil {
		return err
	}
	if err := jobs.All(ctx, runner, found, batches, report); err != nil {
		return err
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

// A comparison takes results as a store does, and compares them with those of one.
type comparison struct {
	command
	stored        results.Index
	same, rounded int
}

// rounding is the largest relative difference of a metric that the order of sums is blamed for: a run whose splits are
// trained by themselves adds in another order than one that trains them together. Training can make more of it.
const rounding = 1e-5

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

// differs says which metric of two results of an experiment differs most, and by how many times itself; "" if none
// does. Times may differ, and a metric that only one of two versions measured.
func differs(before, now results.Result) (text string, most float64) {
	if before.Diverged != now.Diverged {
		return fmt.Sprintf("diverged: %v, now %v", before.Diverged, now.Diverged), math.Inf(1)
	}
	for _, name := range slices.Sorted(maps.Keys(before.Metrics)) {
		a, b := before.Metrics[name], now.Metrics[name]
		_, measured := now.Metrics[name]
		if !measured || name == results.MetricSecondsPerEpoch || name == results.MetricImagesPerSecond {
			continue
		}
		if by := math.Abs(b-a) / math.Max(math.Abs(a), math.Abs(b)); a != b && by > most {
			text, most = fmt.Sprintf("%s %v, now %v, differs by %.2g times itself, and no metric by more", name, a, b, by), by
		}
	}
	return text, most
}
