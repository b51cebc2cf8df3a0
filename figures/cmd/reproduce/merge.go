package main

import (
	"bytes"
	"cmp"
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

	"densityuncertainty/environment/atomicfile"
	"densityuncertainty/figures/cifar/predictions"
	"densityuncertainty/figures/jobs"
	"densityuncertainty/figures/results"
)

const mergeDoc = `reproduce merge adds the results in folders, and in folders below them, to the store, with their
predictions. What the store has already is left as it is, so the command can be repeated. Two results of
one experiment with different metrics are reported: the store keeps its own, or the first.

Usage: reproduce merge FOLDER... [flags]
`

func (c command) merge(_ context.Context, args []string) error {
	flags := newFlags("merge")
	var at folders
	at.storeFlags(flags)
	positional, err := c.parse(flags, mergeDoc, args)
	if err != nil {
		return err
	}
	if len(positional) == 0 {
		return usagef("merge wants at least one folder")
	}
	if err := at.fill(); err != nil {
		return err
	}
	var stores, files []string
	for _, folder := range positional {
		s, f, err := find(folder)
		if err != nil {
			return fmt.Errorf("looking for results: %w", err)
		}
		if len(s)+len(f) == 0 {
			return fmt.Errorf("%s and the folders below it have no results (files *.jsonl or *%s); name the folder of a store or of a job array's results", folder, predictions.Extension)
		}
		stores, files = append(stores, s...), append(files, f...)
	}
	store, err := results.OpenStore(at.store)
	if err != nil {
		return err
	}
	lines, err := c.read(paths{at.store})
	if err != nil {
		return err
	}
	known := results.ByID(lines)
	added, same := 0, 0
	var conflicts []string
	rejected := make(map[string][]string) // folders of results that are not taken, by the name of their predictions
	for _, file := range stores {
		found, err := c.read(paths{file})
		if err != nil {
			return err
		}
		var fresh []results.Result
		for _, line := range found {
			old, has := known[line.ID]
			if !has {
				fresh = append(fresh, line)
				known[line.ID] = line
				continue
			}
			difference := line.Difference(old, nil)
			if difference == "" {
				same++
				continue
			}
			conflicts = append(conflicts, fmt.Sprintf("%s has another result of %s %v: %s", file, line.ID, line.Experiment, difference))
			name := predictions.FileName(line.ID)
			rejected[name] = append(rejected[name], filepath.Dir(file))
		}
		n, _, err := store.AppendAll(fresh)
		if err != nil {
			return err
		}
		added += n
	}
	files = slices.DeleteFunc(files, func(file string) bool {
		from, of := rejected[filepath.Base(file)], storeOf(file, stores)
		// Those of a job array lie beside the folders of results of its tasks, and belong to none of them alone.
		return slices.Contains(from, of) || len(from) > 0 && of == ""
	})
	copied, different, err := copyPredictions(files, at.predictions)
	if err != nil {
		return err
	}
	conflicts = append(conflicts, different...)
	c.print(c.stderr, fmt.Sprintf("%s added to %s, there already: %d; %s of predictions copied\n", results.Counted(added, "result", "results"), at.store, same, results.Counted(copied, "file", "files")), exitOK)
	if len(conflicts) > 0 {
		return fmt.Errorf("%s from what is in the store, which was kept:\n  %s", results.Counted(len(conflicts), "result or file of predictions differs", "results or files of predictions differ"), strings.Join(conflicts, "\n  "))
	}
	return nil
}

// find returns the files of result lines, and those of predictions, in and below a folder. Links in it are not
// followed, as what they lead to need not be results, and pipes and the like are passed over.
func find(folder string) (stores, files []string, err error) {
	if folder, err = filepath.EvalSymlinks(folder); err != nil {
		return nil, nil, err
	}
	if info, err := os.Stat(folder); err != nil {
		return nil, nil, err
	} else if !info.IsDir() {
		return nil, nil, fmt.Errorf("%s is not a folder", folder)
	}
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != folder && slices.Contains([]string{"work", "networks"}, entry.Name()):
			return fs.SkipDir // checkpoints and trained networks, which are safetensors files too
		case !entry.Type().IsRegular():
			return nil
		case entry.Name() == jobs.TasksName: // of a job array
			return nil
		case filepath.Ext(path) == ".jsonl":
			stores = append(stores, path)
		case filepath.Ext(path) == predictions.Extension:
			files = append(files, path)
		}
		return nil
	})
	return stores, files, err
}

// storeOf is the folder of result lines that a file of predictions is in, or below: the innermost; "" for none.
func storeOf(file string, stores []string) string {
	innermost := ""
	for _, lines := range stores {
		folder := filepath.Dir(lines)
		if strings.HasPrefix(file, folder+string(filepath.Separator)) && len(folder) > len(innermost) {
			innermost = folder
		}
	}
	return innermost
}

// copyPredictions copies the files that the folder lacks, after reading them as predictions. Those that it has with
// other content are returned, and stay as they are.
func copyPredictions(files []string, folder string) (copied int, conflicts []string, err error) {
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return copied, conflicts, fmt.Errorf("copying predictions: %w", err)
		}
		read, err := predictions.Read(file)
		if err != nil {
			return copied, conflicts, fmt.Errorf("copying predictions: %w", err)
		}
		if predictions.FileName(read.Experiment) != filepath.Base(file) {
			return copied, conflicts, fmt.Errorf("copying predictions: %s has those of %s; rename it to %s", file, read.Experiment, predictions.FileName(read.Experiment))
		}
		target := filepath.Join(folder, filepath.Base(file))
		present, err := os.ReadFile(target)
		switch {
		case err == nil:
			if !bytes.Equal(present, content) {
				difference, err := otherScores(read, target)
				if err != nil {
					return copied, conflicts, err
				}
				conflicts = append(conflicts, fmt.Sprintf("%s has other predictions than %s: %s", file, target, difference))
			}
			continue
		case !errors.Is(err, fs.ErrNotExist):
			return copied, conflicts, fmt.Errorf("copying predictions: %w", err)
		}
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return copied, conflicts, fmt.Errorf("making the folder for predictions: %w", err)
		}
		if err := atomicfile.WriteBytes(target, content); err != nil {
			return copied, conflicts, fmt.Errorf("copying predictions: %w", err)
		}
		copied++
	}
	return copied, conflicts, nil
}

// otherScores names the metrics in which predictions differ from those in a file.
func otherScores(p *predictions.Predictions, file string) (string, error) {
	kept, err := predictions.Read(file)
	if err != nil {
		return "", err
	}
	now, err := predictions.Score(p)
	if err != nil {
		return "", err
	}
	before, err := predictions.Score(kept)
	if err != nil {
		return "", err
	}
	return cmp.Or(results.Result{Metrics: now}.Difference(results.Result{Metrics: before}, nil), "with the same metrics"), nil
}

const rescoreDoc = `reproduce rescore computes the metrics of image runs anew from the predictions that are kept beside the
store, without training. It says which lines of the store have other numbers or lack some, or have some
that are scored no more, and is an error if there are any; and how many have no predictions. With --out
it writes all lines of the store to a new one, with these metrics, and their predictions.

Usage: reproduce rescore [flags]
`

func (c command) rescore(_ context.Context, args []string) error {
	flags := newFlags("rescore")
	var at folders
	at.storeFlags(flags)
	out := flags.String("out", "", "`folder` of a new store")
	positional, err := c.parse(flags, rescoreDoc, args)
	if err != nil {
		return err
	}
	if len(positional) > 0 {
		return usagef("rescore takes no %q", positional[0])
	}
	if err := at.fill(); err != nil {
		return err
	}
	lines, err := c.read(paths{at.store})
	if err != nil {
		return err
	}
	without := 0
	var changed, files []string
	for i, line := range lines {
		if line.Experiment.Study != results.Images || line.Diverged {
			continue
		}
		file := filepath.Join(at.predictions, predictions.FileName(line.ID))
		p, err := predictions.Read(file)
		if errors.Is(err, fs.ErrNotExist) {
			without++
			continue
		}
		if err != nil {
			return err
		}
		if p.Experiment != line.ID {
			return fmt.Errorf("the predictions of %s are of experiment %s", line.ID, p.Experiment)
		}
		scores, err := predictions.Score(p)
		if err != nil {
			return err
		}
		files = append(files, file)
		metrics := maps.Clone(line.Metrics)
		maps.DeleteFunc(metrics, func(name string, _ float64) bool { return predictions.Optional(name) })
		maps.Copy(metrics, scores)
		if !maps.EqualFunc(metrics, line.Metrics, alike) {
			lines[i].Metrics = metrics
			changed = append(changed, fmt.Sprintf("%s %v: %s", line.ID, line.Experiment, lines[i].Difference(line, alike)))
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

// alike says whether two numbers are equal up to the rounding of the predictions that are kept.
func alike(a, b float64) bool { return math.Abs(a-b) <= 1e-5*max(1, math.Abs(b)) }
