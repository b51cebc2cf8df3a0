package results_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/results"
)

// Watch counts the lines that were looked up or grouped, and no others.
func TestWatch(t *testing.T) {
	var runs []results.Experiment
	var lines []results.Result
	for i, scale := range []string{results.Full, results.Full, results.Quick, results.Quick} {
		e := results.Experiment{Study: results.UCI, Method: "density", Dataset: "yacht", Splits: "gal", Split: i, Epochs: 100, Samples: 10, Fidelity: results.Paper, Scale: scale}
		runs = append(runs, e)
		lines = append(lines, results.Result{ID: e.ID(), Experiment: e, Metrics: map[string]float64{results.MetricNLL: float64(i)}, Batched: 1, Finished: time.Now()})
	}
	for _, c := range []struct {
		name string
		use  func(lines []results.Result) error
		want []int // the splits
	}{
		{"nothing", func(lines []results.Result) error { results.ByID(lines); return nil }, nil},
		{"Find", func(lines []results.Result) error { results.ByID(lines[:2]).Find(runs[1]); return nil }, []int{1}},
		{"Find what is not there", func(lines []results.Result) error { results.ByID(lines[:2]).Find(runs[2]); return nil }, nil},
		{"Summarize full runs", func(lines []results.Result) error {
			_, err := results.ByID(lines).Summarize(runs, results.MetricNLL)
			return err
		}, []int{0, 1}},
		{"Summarize quick runs", func(lines []results.Result) error {
			_, err := results.ByID(lines[2:]).Summarize(runs, results.MetricNLL)
			return err
		}, []int{2, 3}},
		{"Unwatched", func(lines []results.Result) error { results.Groups(results.Unwatched(lines)); return nil }, nil},
		{"MadeOf", func(lines []results.Result) error {
			made := results.Result{ID: "made"}.MadeOf(lines[1:3])
			results.Groups([]results.Result{made})
			return nil
		}, []int{1, 2}},
		{"Groups", func(lines []results.Result) error { results.Groups(lines[1:3]); return nil }, []int{1, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			watched, used := results.Watch(lines)
			must.Do(t, c.use(watched))
			if err := c.use(lines); err != nil { // lines that nobody watches
				t.Fatal(err)
			}
			var splits []int
			for _, line := range slices.Collect(maps.Values(used())) {
				splits = append(splits, line.Experiment.Split)
			}
			slices.Sort(splits)
			if fmt.Sprint(splits) != fmt.Sprint(c.want) {
				t.Errorf("splits %v were used, want %v", splits, c.want)
			}
		})
	}
}
