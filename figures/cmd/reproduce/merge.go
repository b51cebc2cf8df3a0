package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
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
