package experiment_test

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/environment"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
)

// stored carries out experiments with a store.
func stored(t *testing.T, folder string, list ...experiment.Experiment) []experiment.Result {
	t.Helper()
	return must.Get(experiment.Engine{Store: &experiment.Store{Folder: folder}}.Run(context.Background(), list...))(t)
}

// untrained fails the test if anything is trained.
func untrained(t *testing.T, folder string) experiment.Engine {
	return experiment.Engine{Store: &experiment.Store{Folder: folder}, Progress: func(_ float64, note string) { t.Errorf("trained again: %s", note) }}
}

// A stored experiment is not trained again, also under another name. Its results come back, and bit by bit its predictions and their
// data.
func TestStoreKeepsResults(t *testing.T) {
	folder, ctx := t.TempDir(), context.Background()
	list := append(allSplits(adapted(t, dul.Density{})), transformer(t, dul.Density{}))
	made, first := must.Get(experiment.Run(ctx, list...))(t), stored(t, folder, list...)
	renamed := list.Change(func(e *experiment.Experiment) { e.Method.Name = "other" })
	again := must.Get(untrained(t, folder).Run(ctx, renamed...))(t)
	if len(again) != len(first) {
		t.Fatalf("%d results, want %d", len(again), len(first))
	}
	for i, e := range list {
		if again[i].Difference(first[i]) != "" || again[i].Method != "other" || again[i].Backend != first[i].Backend || !again[i].Finished.Equal(first[i].Finished) {
			t.Errorf("result %d is %+v, was %+v", i, again[i], first[i])
		}
		p, want := must.Get(again[i].Predictions())(t), must.Get(made[i].Predictions())(t)
		if !reflect.DeepEqual(p.Sets, want.Sets) || p.Unit != want.Unit || p.Zero != want.Zero || p.Split != e.Split {
			t.Errorf("the predictions of %v have changed in the store", e)
		}
		if d := must.Get(p.Data(ctx))(t); len(d.Sets) != len(p.Sets) {
			t.Errorf("the data of %v have %d sets", e, len(d.Sets))
		}
		if measured := must.Get(e.Measure(p))(t); !reflect.DeepEqual(measured, first[i].Metrics) {
			t.Errorf("measured again: %v, want %v", measured, first[i].Metrics)
		}
	}
	if entries := must.Get(os.ReadDir(filepath.Join(folder, ".work")))(t); len(entries) != 0 {
		t.Errorf("there are still %v", entries)
	}
	groups := string(must.Get(os.ReadFile(filepath.Join(folder, "groups.jsonl")))(t))
	if strings.Count(groups, "\n") != 2 || !strings.Contains(groups, list[0].Group()) || !strings.Contains(groups, "dul.Density") {
		t.Errorf("the groups are %s", groups)
	}
}

// Measuring refuses what is not a number.
func TestMeasureRefuses(t *testing.T) {
	e := small(baselines.Deterministic{})
	p := must.Get(must.Get(experiment.Run(context.Background(), e))(t)[0].Predictions())(t)
	bad := func(*experiment.Predictions) (map[string]float64, error) {
		return map[string]float64{"bad": math.NaN()}, nil
	}
	must.GetErr(e.Measure(p, bad))(t, experiment.ErrNotFinite, "metrics map[bad:NaN]")
	must.GetErr(p.Set("other"))(t, "there are some of test")
}

// lineFile is the file of results in a folder.
func lineFile(t *testing.T, folder string) string {
	t.Helper()
	for _, file := range must.Get(filepath.Glob(filepath.Join(folder, "*.csv")))(t) {
		if filepath.Base(file) != "runs.csv" {
			return file
		}
	}
	t.Fatal("there is no file of results")
	return ""
}

// A store that was changed is refused, with the place and what to do.
func TestChangedStore(t *testing.T) {
	e := small(baselines.Deterministic{})
	origin := t.TempDir()
	stored(t, origin, allSplits(e)...)
	name := filepath.Base(lineFile(t, origin))
	for _, c := range []struct {
		name, file, want string
		change           func(content []byte) []byte
	}{
		{"a metric", name, "row 2: strconv.ParseFloat", func(b []byte) []byte { return bytes.Replace(b, []byte("0."), []byte("x."), 2) }},
		{"a column", name, "the first columns are", func(b []byte) []byte { return bytes.Replace(b, []byte("split"), []byte("fold"), 1) }},
		{"a field less", name, "wrong number of fields", func(b []byte) []byte { return append(b, "a,b\n"...) }},
		{"no group", "groups.jsonl", "is not in groups.jsonl or runs.csv; restore these files", func([]byte) []byte { return nil }},
		{"no run", "runs.csv", "is not in groups.jsonl or runs.csv; restore these files", func([]byte) []byte { return nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := t.TempDir()
			must.Do(t, os.CopyFS(folder, os.DirFS(origin)))
			file := filepath.Join(folder, c.file)
			must.Do(t, os.WriteFile(file, c.change(must.Get(os.ReadFile(file))(t)), 0o644))
			_, err := (&experiment.Store{Folder: folder}).Results()
			must.Err(t, err, c.want)
			must.GetErr(untrained(t, folder).Run(context.Background(), e))(t) // the store was used
		})
	}
	// Predictions of another run.
	folder, other := t.TempDir(), t.TempDir()
	must.Do(t, os.CopyFS(folder, os.DirFS(origin)))
	longer := e
	longer.Recipe.Epochs = 3
	stored(t, other, longer)
	taken := must.Get(os.ReadFile(filepath.Join(other, "predictions", longer.ID()+".safetensors.gz")))(t)
	mine := filepath.Join(folder, "predictions", e.ID()+".safetensors.gz")
	must.Do(t, os.WriteFile(mine, taken, 0o644))
	must.GetErr(must.Get((&experiment.Store{Folder: folder}).Results())(t)[e.ID()].Predictions())(t, "are of the experiment ")
}

// A last line that a killed process left unfinished is run again, and the others count.
func TestTornLine(t *testing.T) {
	folder, list := t.TempDir(), allSplits(small(baselines.Deterministic{}))
	first := stored(t, folder, list...)
	file := lineFile(t, folder)
	content := must.Get(os.ReadFile(file))(t)
	must.Do(t, os.WriteFile(file, content[:len(content)-20], 0o644))
	if found := must.Get((&experiment.Store{Folder: folder}).Results())(t); len(found) != len(list)-1 {
		t.Fatalf("%d results, want %d", len(found), len(list)-1)
	}
	again := stored(t, folder, list...)
	for i := range first {
		for metric, want := range first[i].Metrics {
			must.Near(t, again[i].Metrics[metric], want, 1e-6*math.Abs(want), "%s of split %d, as it was", metric, i)
		}
	}
	if n := bytes.Count(must.Get(os.ReadFile(file))(t), []byte("\n")); n != 1+len(list) {
		t.Errorf("%d lines, want %d", n, 1+len(list))
	}
}

// Two lines of one experiment are an error where their numbers differ, and one result where they do not.
func TestTwoLinesOfOneExperiment(t *testing.T) {
	e, a := small(baselines.Deterministic{}), t.TempDir()
	stored(t, a, e)
	content := must.Get(os.ReadFile(lineFile(t, a)))(t)
	must.Do(t, os.WriteFile(filepath.Join(a, "copy.csv"), content, 0o644))
	if found := must.Get((&experiment.Store{Folder: a}).Results())(t); len(found) != 1 {
		t.Errorf("%d results", len(found))
	}
	content[len(content)-2] ^= 1 // the last digit of the last metric
	must.Do(t, os.WriteFile(filepath.Join(a, "other.csv"), content, 0o644))
	must.GetErr((&experiment.Store{Folder: a}).Results())(t, "with different numbers: ")
}

// Files beside the store's own, such as conflict copies, are named. They count where the store has nothing else.
func TestConflictCopies(t *testing.T) {
	folder, e := t.TempDir(), small(baselines.Deterministic{})
	before := stored(t, folder, e)[0]
	copied := func(from, to string, change func(content []byte)) {
		content := must.Get(os.ReadFile(filepath.Join(folder, from)))(t)
		change(content)
		must.Do(t, os.WriteFile(filepath.Join(folder, to), content, 0o644))
	}
	same, results := func([]byte) {}, filepath.Base(lineFile(t, folder))
	names := []string{"runs (conflicted copy).csv", "runs-LAPTOP.csv", "groups.sync-conflict-20261128.jsonl", "table (1).csv", "groups.jsonl (conflicted copy).gz"}
	copied("runs.csv", names[0], same)
	copied("runs.csv", names[1], same)
	copied("groups.jsonl", names[2], same)
	copied(results, names[3], func(content []byte) { content[len(content)-2] ^= 1 })
	for _, name := range []string{names[4], "._runs.csv", "._groups.jsonl"} {
		must.Do(t, os.WriteFile(filepath.Join(folder, name), []byte("\x00\"damaged\n,"), 0o644))
	}
	for range 2 {
		said, en := "", untrained(t, folder)
		en.Notes = func(text string) { said += text }
		after := must.Get(en.Run(t.Context(), e))(t)[0]
		if difference := after.Difference(before); difference != "" {
			t.Errorf("the result has other metrics: %s", difference)
		}
		for _, name := range names {
			if !strings.Contains(said, name+" in the store is none of its own files") {
				t.Errorf("%s is not in the notes %s", name, said)
			}
		}
		must.Do(t, os.RemoveAll(filepath.Join(folder, "runs.csv"))) // and then the copies are all there is
		must.Do(t, os.RemoveAll(filepath.Join(folder, "groups.jsonl")))
	}
}

// Results of another version of this code, or of code that was changed, are said to be so.
func TestVersionsOfResults(t *testing.T) {
	folder, e, now := t.TempDir(), small(baselines.Deterministic{}), environment.Version()
	stored(t, folder, e)
	was := now
	for _, version := range []string{"0123456789ab", "0123456789ab+dirty", now} {
		runs := filepath.Join(folder, "runs.csv")
		must.Do(t, os.WriteFile(runs, bytes.Replace(must.Get(os.ReadFile(runs))(t), []byte(was), []byte(version), 1), 0o644))
		said, en := "", untrained(t, folder)
		en.Notes = func(text string) { said += text }
		must.Get(en.Run(t.Context(), e))(t)
		want, dirty := "1 of them were made by version "+version, strings.HasSuffix(version, "+dirty")
		if (strings.Contains(said, want) && strings.HasSuffix(said, " of this project, and this is "+now)) != (version != now || dirty) || strings.Contains(said, "may have changed since") != dirty {
			t.Errorf("%s: the notes are %s", version, said)
		}
		was = version
	}
}

// A training that was stopped resumes when its experiment is run in another list.
func TestStoppedInAnotherList(t *testing.T) {
	e, other := transformer(t, baselines.MFVI{}), transformer(t, baselines.Deterministic{})
	e.Recipe.Epochs = 60
	want := must.Get(experiment.Run(context.Background(), e))(t)[0]
	ctx, stop := context.WithCancel(context.Background())
	en := experiment.Engine{Store: &experiment.Store{Folder: t.TempDir()}, CheckpointEvery: time.Millisecond}
	en.Progress = func(_ float64, note string) {
		if strings.Contains(note, "epoch 30 of 60") {
			stop()
		}
	}
	must.GetErr(en.Run(ctx, e))(t, context.Canceled)
	en.Progress = func(_ float64, note string) {
		if strings.Contains(note, "epoch 1 of 60") {
			t.Errorf("it begins anew: %s", note)
		}
	}
	got := must.Get(en.Run(context.Background(), other, e))(t)[1]
	if difference := got.Difference(want); difference != "" {
		t.Error(difference)
	}
}

// A result that cannot be kept ends the run at once: what follows would be lost too.
func TestStoreThatCannotBeWritten(t *testing.T) {
	folder := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(folder, "predictions"), nil, 0o644))
	a, b := small(baselines.Deterministic{}), small(baselines.Deterministic{})
	b.Recipe.Epochs = 3
	found, err := experiment.Engine{Store: &experiment.Store{Folder: folder}}.Run(context.Background(), a, b)
	if err == nil || !strings.Contains(err.Error(), "the result could not be kept") || len(found) != 0 {
		t.Errorf("%d results, and the error %v", len(found), err)
	}
	must.Do(t, os.WriteFile(filepath.Join(folder, "file"), nil, 0o644))
	must.GetErr(untrained(t, filepath.Join(folder, "file")).Run(context.Background(), a))(t, "reading the store")
	must.GetErr(untrained(t, "").Run(context.Background(), a))(t, "has no Folder")
}
