package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"densityuncertainty/datasets/fetch"
	"densityuncertainty/environment"
	"densityuncertainty/figures/cifar"
	"densityuncertainty/figures/cifar/predictions"
	"densityuncertainty/figures/jobs"
	"densityuncertainty/figures/results"
)

const rescoreDoc = `reproduce rescore computes the metrics of image runs anew from the predictions that are kept beside the
store, without training. It says which lines of the store have other numbers or lack some, or have some
that are scored no more, and is an error if there are any; and how many have no predictions. With --out
it writes all lines of the store to a new one, with these metrics, the version of this program in the
field "scored_by", and their predictions.

With --networks images are predicted again first, by the trained networks that runs kept in a folder
("reproduce run --networks"): of networks that draw no samples, whose predictions must come out as they
are kept. The new store has what the kept ones lack, as a set of images that was not at hand then.

Usage: reproduce rescore [flags]
`

func (c command) rescore(ctx context.Context, args []string) (err error) {
	flags := newFlags("rescore")
	var at folders
	at.storeFlags(flags)
	out := flags.String("out", "", "`folder` of a new store")
	folderFlag(flags, &at.networks, "networks", "`folder` of trained networks to predict with again; needs --out")
	positional, err := c.parse(flags, rescoreDoc, args)
	if err != nil {
		return err
	}
	if len(positional) > 0 {
		return usagef("rescore takes no %q", positional[0])
	}
	if at.networks != "" && *out == "" {
		return usagef("--networks makes new predictions: name a folder for them with --out")
	}
	if err := at.fill(); err != nil {
		return err
	}
	lines, err := c.read(paths{at.store})
	if err != nil {
		return err
	}
	fresh := at.predictions
	if at.networks != "" {
		if fresh, err = os.MkdirTemp("", "reproduce-rescore-"); err != nil {
			return fmt.Errorf("making a folder for predictions: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(fresh)) }()
		if err := c.predictAgain(ctx, at, fresh, lines); err != nil {
			return err
		}
	}
	without := 0
	var changed, files []string
	for i, line := range lines {
		if line.Experiment.Study != results.Images || line.Diverged {
			continue
		}
		file := filepath.Join(fresh, predictions.FileName(line.ID))
		p, err := predictions.ReadOf(file, line.ID)
		if errors.Is(err, fs.ErrNotExist) {
			file = filepath.Join(at.predictions, predictions.FileName(line.ID))
			p, err = predictions.ReadOf(file, line.ID)
		}
		if errors.Is(err, fs.ErrNotExist) {
			without++
			continue
		}
		if err != nil {
			return err
		}
		scores, err := predictions.Score(p)
		if err != nil {
			return err
		}
		files = append(files, file)
		lines[i].ScoredBy = environment.Version()
		metrics := maps.Clone(line.Metrics)
		maps.DeleteFunc(metrics, func(name string, _ float64) bool { return predictions.Optional(name) })
		maps.Copy(metrics, scores)
		if !maps.EqualFunc(metrics, line.Metrics, predictions.Alike) {
			lines[i].Metrics = metrics
			changed = append(changed, fmt.Sprintf("%s %v: %s", line.ID, line.Experiment, lines[i].Difference(line, predictions.Alike)))
		}
	}
	c.print(c.stderr, fmt.Sprintf("%s scored from %s, %d with other numbers; %d without predictions\n", results.Counted(len(files), "line", "lines"), at.predictions, len(changed), without), exitOK)
	if *out == "" {
		if len(changed) > 0 {
			return fmt.Errorf("these lines have other numbers than their predictions give:\n  %s\nwrite a new store with --out", strings.Join(changed, "\n  "))
		}
		return nil
	}
	store, err := results.OpenStore(*out)
	if err != nil {
		return err
	}
	if added, _, err := store.AppendAll(lines); err != nil {
		return err
	} else if added < len(lines) {
		return fmt.Errorf("%s already has a result of %d of the %d experiments; name a new folder", *out, len(lines)-added, len(lines))
	}
	_, different, err := copyPredictions(files, filepath.Join(*out, predictions.Folder))
	if err == nil && len(different) > 0 {
		err = fmt.Errorf("the folder of the new store has predictions already:\n  %s", strings.Join(different, "\n  "))
	}
	return err
}

// A predictor predicts images again with networks that runs kept, as cifar.Runner does.
type predictor interface {
	Predict(ctx context.Context, e results.Experiment, networks string, progress func(done float64, note string)) (map[string]float64, error)
}

// predictAgain predicts the images of the lines whose networks are kept, into a folder, and compares what comes out with
// the lines.
func (c command) predictAgain(ctx context.Context, at folders, into string, lines []results.Result) error {
	var kept []results.Experiment
	for _, line := range lines {
		if line.Experiment.Study != results.Images || line.Diverged {
			continue
		}
		_, m, err := imageProtocol(line.Experiment)
		if err != nil || !cifar.PredictsAgain(m) {
			continue
		}
		if _, err := os.Stat(filepath.Join(at.networks, cifar.NetworkFile(line.Experiment, 0, m.Networks()))); err == nil {
			kept = append(kept, line.Experiment)
		}
	}
	if len(kept) == 0 {
		return usagef("%s has no network of a run in %s that draws no samples", at.networks, at.store)
	}
	keptIn := at.predictions
	at.predictions = into
	batches := jobs.Batches(kept, 1)
	runner, report, err := c.runnerFor(at, batches)
	if err != nil {
		return err
	}
	again := predicting{Runner: runner, networks: at.networks, stored: results.ByID(lines), kept: keptIn, fresh: into}
	if studies, are := runner.(jobs.Studies); are {
		runner = studies[results.Images]
	}
	again.images = runner.(predictor)
	return jobs.All(ctx, again, nowhere{}, batches, report)
}

// predicting is a runner that does not train.
type predicting struct {
	jobs.Runner
	images   predictor
	networks string
	stored   results.Index
	// The folders of the predictions that there are, and of those that are made.
	kept, fresh string
}

// Run implements jobs.Runner. A result whose likelihood is not that of the stored one is an error: the network is another,
// or computes otherwise.
func (r predicting) Run(ctx context.Context, batch []results.Experiment, progress func(done float64, note string)) (found []results.Result, err error) {
	for _, e := range batch {
		line, _ := r.stored.Find(e)
		metrics, err := r.images.Predict(ctx, e, r.networks, progress)
		if err != nil {
			return found, err
		}
		if before, now := line.Metrics[results.MetricNLL], metrics[results.MetricNLL]; math.Abs(now-before) > sameNetwork*before {
			return found, fmt.Errorf("%v: the network in %s has NLL %v, and the line in the store %v: it is another network, or this program computes otherwise than version %s",
				e, r.networks, now, before, line.Version)
		}
		if err := r.keepsSets(e); err != nil {
			return found, err
		}
		line.Metrics = metrics
		found = append(found, line)
	}
	return found, nil
}

// keepsSets is an error if the new predictions of an experiment are of fewer sets of images than those that there are.
func (r predicting) keepsSets(e results.Experiment) error {
	before, err := predictions.ReadOf(filepath.Join(r.kept, predictions.FileName(e.ID())), e.ID())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	after, err := predictions.ReadOf(filepath.Join(r.fresh, predictions.FileName(e.ID())), e.ID())
	if err != nil {
		return err
	}
	for _, set := range before.Others {
		if !slices.ContainsFunc(after.Others, func(s predictions.Set) bool { return s.Name == set.Name }) {
			return fmt.Errorf("%v: the predictions in %s have the set %s, whose images are not at hand now; put them into the folder of data, %s", e, r.kept, set.Name, fetch.EnvData)
		}
	}
	return nil
}

// sameNetwork is how far, as a part of itself, rounding may move the mean likelihood of a trained network.
const sameNetwork = 1e-4

// nowhere is a store that keeps nothing.
type nowhere struct{ jobs.Alone }

// Append implements jobs.Store.
func (nowhere) Append(results.Result) (added bool, note string, err error) { return true, "", nil }

// Missing implements jobs.Store.
func (nowhere) Missing(list []results.Experiment) ([]results.Experiment, error) { return list, nil }
