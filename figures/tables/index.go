// Package tables makes tables of stored results: an Index finds the results of experiments, and says what the results of
// a cell amount to. Sets, tables and figures have names, by which the command reproduce knows them.
package tables

import (
	"fmt"
	"maps"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// An Index finds results by their experiments, and remembers which of them were used. A run counts
// as diverged, whatever numbers it has, if its predictions or one of its metrics are not finite, or if its root mean squared
// error is more than 3 times that of predicting the mean of the training targets (experiment.Scaled). It is not for several
// goroutines.
type Index struct {
	results map[string]experiment.Result
	used    map[string]experiment.Result
	parts   map[string][]experiment.Result // of results that were computed from others
	once    map[any]any                    // what Once returned
}

// NewIndex is the index of results by the identities of their experiments, such as Store.Results returns.
func NewIndex(list map[string]experiment.Result) *Index {
	return &Index{results: list, used: map[string]experiment.Result{}, once: map[any]any{}}
}

// Of is the index of a list of results, such as Engine.Run returns.
func Of(list []experiment.Result) *Index {
	all := map[string]experiment.Result{}
	for _, r := range list {
		all[r.ID] = r
	}
	return NewIndex(all)
}

// Committed is the index of the results that are part of the project's repository.
func Committed() (*Index, error) {
	folder, err := results.DefaultDir()
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
	return NewIndex(all), err
}

// Find returns the result of an experiment, and whether there is one. It counts as used.
func (x *Index) Find(e experiment.Experiment) (experiment.Result, bool) { return x.find(e, e.ID()) }

// find returns the result of an experiment with an identity.
func (x *Index) find(e experiment.Experiment, id string) (experiment.Result, bool) {
	r, has := x.results[id]
	if !has {
		return r, false
	}
	r = r.Of(e)
	if x.used != nil {
		parts, derived := x.parts[r.ID]
		if !derived {
			parts = []experiment.Result{r}
		}
		for _, part := range parts {
			x.used[part.ID] = part
		}
	}
	return asIndexed(r), true
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
	data, is := r.Experiment.Task.Data.(experiment.Scaled)
	rmse, has := r.Metrics[results.MetricRMSE]
	return is && has && rmse > hopeless*data.MeanError(r.Split)
}

// With returns a copy of the index with a derived result. Looking it up marks the results it was computed from as used.
func (x *Index) With(r experiment.Result, parts ...experiment.Result) *Index {
	more := x.using(x.used)
	more.results, more.parts = maps.Clone(x.results), maps.Clone(x.parts)
	if more.parts == nil {
		more.parts = map[string][]experiment.Result{}
	}
	more.results[r.ID], more.parts[r.ID] = r, parts
	return more
}

// Used are the results that were found so far, by their identities.
func (x *Index) Used() map[string]experiment.Result { return maps.Clone(x.used) }

// Watched is the same index, of which nothing was used yet.
func (x *Index) Watched() *Index { return x.using(map[string]experiment.Result{}) }

// Unwatched is the same index for a look that does not count as use.
func (x *Index) Unwatched() *Index { return x.using(nil) }

// using is the same index with another account of what was used.
func (x *Index) using(used map[string]experiment.Result) *Index {
	other := *x
	other.used = used
	return &other
}

// Once memoises compute by key; errors are not kept. Copies of an index share the memo. Give each kind of value a key type
// of its own, with the identities of the results that the value is computed from.
func Once[T any](x *Index, key any, compute func() (T, error)) (T, error) {
	if kept, has := x.once[key]; has {
		return kept.(T), nil
	}
	value, err := compute()
	if err == nil {
		x.once[key] = value
	}
	return value, err
}

// DivergedAlone is the verdict on experiments against a reference of which only one side diverged: report.Worse if all
// were run and some diverged and none of the reference's, report.Better the other way round, and "" otherwise.
func (x *Index) DivergedAlone(list, reference experiment.Experiments) string {
	ours, _ := x.Summarize(Mean{Of: list, Optional: true})
	theirs, _ := x.Summarize(Mean{Of: reference, Optional: true})
	all := func(s Summary) bool { return s.Wanted > 0 && s.Unmeasured+s.Diverged == s.Wanted }
	switch {
	case !all(ours) || !all(theirs) || (ours.Diverged > 0) == (theirs.Diverged > 0):
		return ""
	case ours.Diverged > 0:
		return report.Worse
	}
	return report.Better
}
