// Package tables makes tables of stored results: an Index finds the results of experiments, and says what the results of
// a cell amount to. Tables and their pictures have names, by which the command reproduce knows them and their runs.
package tables

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/spec"
)

// An Index finds results by their experiments, and remembers which were asked for. A run counts
// as diverged, whatever numbers it has, if its predictions or one of its metrics are not finite, or if its root mean squared
// error is more than 3 times that of predicting the mean of the training targets (see Table of package experiment). It is not for several
// goroutines.
type Index struct {
	results map[string]experiment.Result
	asked   *[]experiment.Result
	seen    map[string]bool // the identities of asked
	cached  map[any]any     // what Cached returned
}

// indexOf is the index of results by the identities of their experiments.
func indexOf(list map[string]experiment.Result) *Index {
	return (&Index{results: list, cached: map[any]any{}}).Fresh()
}

// Of is the index of a list of results, such as Engine.Run returns.
func Of(list []experiment.Result) *Index {
	all := map[string]experiment.Result{}
	for _, r := range list {
		all[r.ID] = r
	}
	return indexOf(all)
}

// DefaultDir is the folder of the committed results, figures/runs of the checkout that holds the working directory.
func DefaultDir() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("tables: finding the working directory: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if s := (experiment.Store{Folder: filepath.Join(dir, "figures", "runs")}); s.Committed() {
			return s.Folder, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("tables: %s is not inside a checkout of densityuncertainty; name the store's folder", start)
		}
	}
}

// Committed is the index of the results that are part of the project's repository.
func Committed() (*Index, error) {
	folder, err := DefaultDir()
	if err != nil {
		return nil, err
	}
	x, err := Read(&experiment.Store{Folder: folder})
	if err == nil && len(x.results) == 0 {
		err = fmt.Errorf("tables: there are no results in %s, which are part of the repository; restore that folder", folder)
	}
	return x, err
}

// Read is the index of the results of a store.
func Read(store *experiment.Store) (*Index, error) {
	all, err := store.Results()
	return indexOf(all), err
}

// Find returns the result of an experiment, and whether there is one.
func (x *Index) Find(e experiment.Experiment) (experiment.Result, bool) { return x.find(e, e.ID()) }

// find returns the result of an experiment with an identity.
func (x *Index) find(e experiment.Experiment, id string) (experiment.Result, bool) {
	r, has := x.results[id]
	r = r.Of(e)
	if !x.seen[id] {
		x.seen[id], *x.asked = true, append(*x.asked, r)
	}
	return asIndexed(r), has
}

// asIndexed is a result that has no metrics if it counts as diverged; see Index.
func asIndexed(r experiment.Result) experiment.Result {
	if diverged(r) {
		r.Diverged, r.Metrics = true, nil
	}
	return r
}

// hopeless is how many times the error of predicting the mean of the training targets the root mean squared error of a run
// has to be for the run to count as diverged. On random splits six of this project's runs are beyond 5, and all others below 2.
const hopeless = 3

// diverged says whether a run counts as diverged; see Index.
func diverged(r experiment.Result) bool {
	if r.Diverged || len(r.NotFinite()) > 0 {
		return true
	}
	if r.Experiment == nil {
		return false
	}
	data, is := r.Experiment.Task.Data.(interface{ MeanError(split int) float64 })
	rmse, has := r.Metrics[experiment.MetricRMSE]
	return is && has && rmse > hopeless*data.MeanError(r.Split)
}

// With returns a copy of the index with a further result, such as a derived one.
func (x *Index) With(r experiment.Result) *Index {
	more := *x
	more.results = maps.Clone(x.results)
	more.results[r.ID] = r
	return &more
}

// Asked are the results of all experiments that were looked for so far, each once. If an experiment was not run, its result
// has no ID.
func (x *Index) Asked() []experiment.Result { return *x.asked }

// Fresh returns a copy of the index with an empty Asked.
func (x *Index) Fresh() *Index {
	other := *x
	other.asked, other.seen = new([]experiment.Result), map[string]bool{}
	return &other
}

// Cached calls compute once for each key, unless it fails. Copies of an index share the cache. Give each kind of value a key type
// of its own, with the identities of the results that the value is computed from.
func Cached[T any](x *Index, key any, compute func() (T, error)) (T, error) {
	if kept, has := x.cached[key]; has {
		return kept.(T), nil
	}
	value, err := compute()
	if err == nil {
		x.cached[key] = value
	}
	return value, err
}

// DivergedAlone returns a verdict if all runs are there and runs of only one side diverged: report.Worse if the side is
// list, report.Better if it is reference. Otherwise it returns "".
func (x *Index) DivergedAlone(list, reference experiment.Experiments) string {
	return divergedAlone(x.Results(list), x.Results(reference))
}

func divergedAlone(runs, reference []experiment.Result) string {
	ours, _ := Mean{Number: Number{Optional: true}}.summarize(runs)
	theirs, _ := Mean{Number: Number{Optional: true}}.summarize(reference)
	all := func(s Summary) bool { return s.Wanted > 0 && s.Unmeasured+s.Diverged == s.Wanted }
	switch {
	case !all(ours) || !all(theirs) || (ours.Diverged > 0) == (theirs.Diverged > 0):
		return ""
	case ours.Diverged > 0:
		return report.Worse
	}
	return report.Better
}

// An Exhibit is a table, its picture, and the runs that both are made of, under one name. Table and picture are pure functions of
// results and kept predictions.
type Exhibit struct {
	Name, Doc string
	Table     func(x *Index) (report.Table, error)  // nil for a picture alone
	Picture   func(x *Index) (report.Figure, error) // nil for none
	// Needs, if not nil, are the runs. It is for tables that show whatever was run, up to a number of seeds, and for runs without
	// a table or picture. If it is nil, the runs are all that table and picture look for.
	Needs func() experiment.Experiments
	Parts Exhibits // more tables and pictures of it, which come with it or alone by their own names
}

// Exhibits are a study's list of exhibits.
type Exhibits []Exhibit

// withParts lists each exhibit and its parts.
func (list Exhibits) withParts() (all Exhibits) {
	for _, e := range list {
		all = append(all, e)
		for _, part := range e.Parts {
			part.Doc = "a part of " + e.Name
			all = append(all, part)
		}
	}
	return all
}

// Tables are the exhibits and parts that have a table.
func (list Exhibits) Tables() Exhibits {
	return slices.DeleteFunc(list.withParts(), func(e Exhibit) bool { return e.Table == nil })
}

// Pictures are the exhibits and parts that have a picture.
func (list Exhibits) Pictures() Exhibits {
	return slices.DeleteFunc(list.withParts(), func(e Exhibit) bool { return e.Picture == nil })
}

// Named returns the exhibit or part with a name, and whether there is one.
func (list Exhibits) Named(name string) (Exhibit, bool) {
	all := list.withParts()
	i := slices.IndexFunc(all, func(e Exhibit) bool { return e.Name == name })
	if i < 0 {
		return Exhibit{}, false
	}
	return all[i], true
}

// Table makes the table of the exhibit or part with a name.
func (list Exhibits) Table(x *Index, name string) (report.Table, error) {
	if e, _ := list.Named(name); e.Table != nil {
		return e.Table(x)
	}
	return report.Table{}, fmt.Errorf("tables: unknown table %q; \"reproduce list\" shows the tables", name)
}

// Picture draws the picture of the exhibit or part with a name.
func (list Exhibits) Picture(x *Index, name string) (report.Figure, error) {
	if e, _ := list.Named(name); e.Picture != nil {
		return e.Picture(x)
	}
	return report.Figure{}, fmt.Errorf("tables: unknown figure %q; \"reproduce list\" shows the figures", name)
}

// Runs are the experiments that the exhibit and its parts are made of, each once.
func (e Exhibit) Runs() experiment.Experiments {
	var all experiment.Experiments
	for _, part := range (Exhibits{e}).withParts() {
		all = append(all, part.runs()...)
	}
	return all.Distinct()
}

func (e Exhibit) runs() (list experiment.Experiments) {
	if e.Needs != nil {
		return e.Needs()
	}
	x := Of(nil)
	if e.Table != nil {
		_, _ = e.Table(x) // an error says what is missing
	}
	if e.Picture != nil {
		_, _ = e.Picture(x)
	}
	for _, r := range x.Asked() {
		list = append(list, *r.Experiment)
	}
	return list
}

// Picture returns a function that draws a table as a forest, with the caption that prose has for the table's name and " picture".
func Picture(prose report.Prose, f report.Forest, table func(x *Index) (report.Table, error)) func(x *Index) (report.Figure, error) {
	return func(x *Index) (report.Figure, error) {
		t, err := table(x)
		if err != nil {
			return report.Figure{}, err
		}
		figure, err := f.Of(t)
		figure.Caption = prose.Caption(t.Name+" picture", nil)
		return figure, err
	}
}

// AddDifferences returns t with a row for each field in which the experiment by the paper's text differs from the one by the
// authors' code, with both values.
func AddDifferences(t report.Table, text, code experiment.Experiment) (report.Table, error) {
	t.Columns = []string{"Field", "paper's text", "authors' code"}
	differences, err := spec.Differences(code, text)
	for _, d := range differences {
		t.Rows = append(t.Rows, report.Row{Name: d.Path, Cells: report.TextCells(d.Was, d.Is)})
	}
	return t, err
}
