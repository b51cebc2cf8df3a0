//go:build unix

package main

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/cifar"
	"densityuncertainty/figures/cifar/predictions"
	"densityuncertainty/figures/jobs"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
)

// imageResult is one whose predictions writePredictions makes up.
func imageResult() results.Result {
	return madeUp(cifar.Paper(cifar.CIFAR10, cifar.ResNet14).Small().Experiments(methods.MFVI)[0])
}

// storeWith is a store in dir with these results.
func storeWith(t *testing.T, dir string, lines ...results.Result) string {
	t.Helper()
	store := must.Get(results.OpenStore(dir))(t)
	for _, line := range lines {
		if _, _, err := store.Append(line); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// writePredictions makes up those of imageResult in a folder of the store, with the labels of three examples: two of
// them are right with 0, 1, 1, one with 0, 1, 0.
func writePredictions(t *testing.T, store string, labels ...int) string {
	t.Helper()
	e := imageResult().Experiment
	p := &predictions.Predictions{Experiment: e.ID(), Dataset: e.Dataset, Classes: 2, Samples: 2, Labels: labels, Probs: []float64{0.75, 0.25, 0.5, 0.5, 0.25, 0.75}}
	file := filepath.Join(store, "predictions", predictions.FileName(e.ID()))
	must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), predictions.Write(file, p)))
	return file
}

func TestMerge(t *testing.T) {
	dir := t.TempDir()
	store := filepath.Join(dir, "runs")
	from := storeWith(t, filepath.Join(dir, "from", "task-0"), imageResult())
	file := writePredictions(t, from, 0, 1, 1)
	link := filepath.Join(dir, "link")
	must.Do(t, os.Symlink(filepath.Join(dir, "from"), link))
	succeeds(t, "1 result added", "merge", link, "--store", store)
	succeeds(t, "0 results added to "+store+", there already: 1; 0 files of predictions copied", "merge", link, "--store", store)
	holds(t, store, 1)
	copied := filepath.Join(store, "predictions", filepath.Base(file))
	want := must.Get(os.ReadFile(file))(t)
	if got, err := os.ReadFile(copied); err != nil || string(got) != string(want) {
		t.Errorf("the predictions are others, %v", err)
	}

	fails(t, exitFailure, "and the folders below it have no results", "merge", t.TempDir(), "--store", store)
	other := imageResult()
	other.Metrics = map[string]float64{"accuracy": 0.75, "nll": 1, "ece10": 0.1, "brier": 2}
	diverged := imageResult()
	diverged.Diverged = true
	for _, c := range []struct {
		name string
		from string
		want []string
	}{
		{"another result", storeWith(t, filepath.Join(dir, "other"), other), []string{other.ID, "accuracy 0.75, in the store 0.5; brier 2, in the store none\n"}},
		{"a run that diverged", storeWith(t, filepath.Join(dir, "diverged"), diverged), []string{"diverged true, in the store false\n"}},
		{"other predictions", filepath.Dir(writePredictions(t, filepath.Join(dir, "labels"), 0, 1, 0)), []string{"has other predictions than " + copied, "accuracy 0.333333, in the store 0.666667; "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, want := range append(c.want, "1 result or file of predictions differs from what is in the store, which was kept") {
				fails(t, exitFailure, want, "merge", c.from, "--store", store)
			}
			if kept := holds(t, store, 1)[0]; kept.Metrics["accuracy"] != 0.5 || kept.Diverged {
				t.Errorf("the store has %v", kept)
			}
			if got, err := os.ReadFile(copied); err != nil || string(got) != string(want) {
				t.Errorf("the predictions were overwritten, %v", err)
			}
		})
	}
}

// How long a run took is no part of its result, and predictions of a result that the store has otherwise are not copied.
func TestMergeOfAnotherRun(t *testing.T) {
	again := imageResult()
	again.Metrics = maps.Clone(again.Metrics)
	again.Metrics[results.MetricSecondsPerEpoch] = 99
	succeeds(t, "there already: 1; ", "merge", storeWith(t, t.TempDir(), again), "--store", storeWith(t, t.TempDir(), imageResult()))

	again.Metrics[results.MetricAccuracy] = 0.75
	from, store := storeWith(t, t.TempDir(), again), storeWith(t, t.TempDir(), imageResult())
	writePredictions(t, from, 0, 1, 1)
	fails(t, exitFailure, "accuracy 0.75, in the store 0.5", "merge", from, "--store", store)
	if copied, err := filepath.Glob(filepath.Join(store, "predictions", "*")); err != nil || len(copied) != 0 {
		t.Errorf("copied %v, %v", copied, err)
	}
}

// The predictions of a job array lie in one folder beside those of its tasks, and belong to none of them alone. Its list
// of tasks is no result.
func TestMergeOfAJobArray(t *testing.T) {
	array := t.TempDir()
	again := imageResult()
	again.Metrics = map[string]float64{results.MetricAccuracy: 0.75}
	storeWith(t, filepath.Join(array, "results", "task-0"), again)
	writePredictions(t, filepath.Join(array, "results"), 0, 1, 1)
	must.Do(t, os.WriteFile(filepath.Join(array, jobs.TasksName), []byte("[]\n"), 0o600))
	store := storeWith(t, t.TempDir(), imageResult())
	fails(t, exitFailure, "accuracy 0.75, in the store 0.5", "merge", array, "--store", store)
	if copied := must.Get(filepath.Glob(filepath.Join(store, "predictions", "*")))(t); len(copied) != 0 {
		t.Errorf("predictions %v beside the result of another run", copied)
	}
	empty := t.TempDir()
	succeeds(t, "1 result added to "+empty+", there already: 0; 1 file of predictions copied", "merge", array, "--store", empty)
}

// Of two results that are both new the first is kept, and the predictions that lie beside it with it.
func TestMergeOfTwoResults(t *testing.T) {
	dir := t.TempDir()
	other := imageResult()
	other.Metrics = map[string]float64{results.MetricAccuracy: 0.75}
	first := storeWith(t, filepath.Join(dir, "a"), imageResult())
	storeWith(t, filepath.Join(dir, "b"), other)
	file := writePredictions(t, first, 0, 1, 1)
	store := filepath.Join(dir, "runs")
	fails(t, exitFailure, "accuracy 0.75, in the store 0.5", "merge", dir, "--store", store)
	if _, err := os.Stat(filepath.Join(store, "predictions", filepath.Base(file))); err != nil {
		t.Error(err)
	}
	// Those of the result that is not taken stay where they are, also where the other one has none.
	must.Do(t, os.Remove(file))
	writePredictions(t, filepath.Join(dir, "b"), 0, 1, 1)
	store = filepath.Join(dir, "runs", "again")
	fails(t, exitFailure, "accuracy 0.75, in the store 0.5", "merge", first, filepath.Join(dir, "b"), "--store", store)
	if copied := must.Get(filepath.Glob(filepath.Join(store, "predictions", "*")))(t); len(copied) != 0 {
		t.Errorf("predictions %v beside the result of another run", copied)
	}
}

// What is no file of results is passed over, and what is no file of predictions is not copied.
func TestMergeChecks(t *testing.T) {
	dir := t.TempDir()
	outside := storeWith(t, filepath.Join(dir, "outside"), imageResult())
	result, file := filepath.Join(outside, results.FileName(imageResult().Experiment)), writePredictions(t, outside, 0, 1, 1)
	for _, c := range []struct {
		name string
		make func(path, of string) error
	}{
		{"link", func(path, of string) error { return os.Symlink(of, path) }},
		{"dangling link", func(path, _ string) error { return os.Symlink(filepath.Join(dir, "none"), path) }},
		{"pipe", func(path, _ string) error { return syscall.Mkfifo(path, 0o600) }},
		{"folder", func(path, _ string) error { return os.Mkdir(path, 0o755) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			from, store := t.TempDir(), t.TempDir()
			yacht := madeUp(results.Union(sets()...)[100])
			storeWith(t, from, yacht) // beside them is a file that counts
			must.Do(t, errors.Join(c.make(filepath.Join(from, "a.jsonl"), result), c.make(filepath.Join(from, filepath.Base(file)), file)))
			succeeds(t, "1 result added to "+store+", there already: 0; 0 files", "merge", from, "--store", store)
			if lines := holds(t, store, 1); lines[0].ID != yacht.ID {
				t.Errorf("the store has %v", lines[0].Experiment)
			}
		})
	}
	content := must.Get(os.ReadFile(file))(t)
	for _, c := range []struct {
		name, file string
		content    []byte
		want       string
	}{
		{"damaged predictions", filepath.Base(file), content[:len(content)-4], "damaged"},
		{"predictions of another experiment", "0123456789abcdef" + predictions.Extension, content, "rename it to " + filepath.Base(file)},
	} {
		t.Run(c.name, func(t *testing.T) {
			from, store := t.TempDir(), t.TempDir()
			path := filepath.Join(from, c.file)
			must.Do(t, os.WriteFile(path, c.content, 0o600))
			fails(t, exitFailure, c.want, "merge", from, "--store", store)
			fails(t, exitFailure, path, "merge", from, "--store", store)
			if copied, err := filepath.Glob(filepath.Join(store, "predictions", "*")); err != nil || len(copied) != 0 {
				t.Errorf("copied %v, %v", copied, err)
			}
		})
	}
	t.Run("a file in place of the folder", func(t *testing.T) {
		fails(t, exitFailure, result+" is not a folder", "merge", result, "--store", t.TempDir())
	})
}

// A pipe or a link that leads nowhere in the store ends the program instead of making it wait.
func TestPipeInTheStore(t *testing.T) {
	for _, args := range [][]string{{"run", "figure1"}, {"list"}, {"table", "gap-ratio"}, {"figure", "figure1"}, {"rescore"}} {
		t.Run(args[0], func(t *testing.T) {
			store := t.TempDir()
			must.Do(t, syscall.Mkfifo(filepath.Join(store, "toy-toy-cubic-paper.jsonl"), 0o600))
			start(t, nil, append(args, "--store", store)...).ends(t, exitFailure, "toy-toy-cubic-paper.jsonl is no regular file")
		})
	}
}

// A command that saves nothing can be stopped at any time, also where it waits for a file.
func TestSIGTERMWhileWaiting(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "README.md")
	must.Do(t, syscall.Mkfifo(pipe, 0o600))
	p := start(t, nil, "fill", pipe, "--store", dir)
	w, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits until the program reads
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	p.signal(t, dir, 0, syscall.SIGTERM)
	p.ends(t, -1)
}
