package tables

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/spec"
)

// Against is a table of results at hand, such as Engine.Run returns, with a column for each method. It has the mean ± standard
// deviation of each metric and, if there are several methods, below them the differences from the reference, which is the Key
// of a method or the Name of one without a Key, with 95% intervals. Differences are of pairs with equal split. Seeds of one
// split share its data, and so their mean counts as one; if there is a single split, each seed is a pair. A star marks a
// difference that is significant at 5% among all of the table (Holm). If the source has a method TestTrain(split int)
// float64, which says how many test examples an overlapping split has for each example that is trained on, the test is
// corrected for the mean over its splits; see metrics.PairedDifference. If runs of one side diverged, or are of other splits or seeds, or if all differences
// are equal, there is no test.
func Against(list []experiment.Result, reference string, names ...string) (report.Table, error) {
	t := report.Table{Name: "against", Columns: []string{"Metric"},
		Caption: fmt.Sprintf("Mean ± standard deviation of runs. Below: differences of n pairs with 95%% intervals; * significant at 5%% among all of the table. No test: runs diverged, splits or seeds differ, or all differences are equal. A run counts as diverged, too, if its RMSE is more than %d times that of predicting the mean target.", hopeless)}
	if len(list) == 0 {
		return t, errors.New("tables: there are no results")
	}
	if err := checkMetrics(list, names); err != nil {
		return t, err
	}
	type kind struct{ task, method string }
	runs := map[kind][]experiment.Result{}
	var tasks, keys []string
	for _, r := range list {
		if r.Experiment == nil {
			return t, fmt.Errorf("tables: the result %s does not know its experiment; find it with Index.Find", r.ID)
		}
		of := kind{r.Task, r.Method}
		if known := runs[of]; len(known) > 0 && known[0].Group != r.Group {
			return t, fmt.Errorf("tables: two experiments on %s are called %q and are not the same; give each Method.Name of its own", r.Task, r.Method)
		}
		if !slices.ContainsFunc(runs[of], func(known experiment.Result) bool { return known.ID == r.ID }) {
			runs[of] = append(runs[of], asIndexed(r))
		}
		if !slices.Contains(t.Columns[1:], r.Method) {
			t.Columns, keys = append(t.Columns, r.Method), append(keys, r.Experiment.Method.ID())
		}
		if !slices.Contains(tasks, r.Task) {
			tasks = append(tasks, r.Task)
		}
	}
	i := slices.Index(keys, reference)
	if i < 0 {
		return t, fmt.Errorf("tables: no result is of the method %q; there are %s", reference, strings.Join(keys, ", "))
	}
	name := t.Columns[1+i]
	t.Title = "How do the methods compare with " + name + "?"
	var family Family[*report.Cell]
	pairs := map[*report.Cell]int{}
	for _, task := range tasks {
		count := report.Row{Name: "runs"}
		for _, method := range t.Columns[1:] {
			count.Cells = append(count.Cells, report.Cell{Text: fmt.Sprint(len(runs[kind{task, method}]))})
		}
		for _, metric := range names {
			means, tests := report.Row{Name: metric}, report.Row{Name: metric + " − " + name, Cells: make([]report.Cell, len(keys))}
			if len(tasks) > 1 {
				means.Group, tests.Group, count.Group = task, task, task
			}
			theirs := runs[kind{task, name}]
			for k, method := range t.Columns[1:] {
				ours, cell := runs[kind{task, method}], &tests.Cells[k]
				m := Mean{Number: Number{Name: metric, Optional: true}}
				s, err := m.summarize(ours)
				if err != nil {
					return t, err
				}
				means.Cells = append(means.Cells, s.Cell(3))
				if method == name || len(ours) == 0 || len(theirs) == 0 {
					continue
				}
				if m.By, family.TestTrain, err = unitsOf(ours, theirs); err != nil {
					return t, err
				}
				if cell.Text = "no test"; paired(ours, theirs) {
					values := m.units(ours)
					pairs[cell] = len(values)
					family.Add(cell, values, m.units(theirs), 0)
				}
			}
			if t.Rows = append(t.Rows, means); len(keys) > 1 {
				t.Rows = append(t.Rows, tests)
			}
		}
		t.Rows = append(t.Rows, count)
	}
	for _, test := range family.Tests() {
		if test.Difference == nil {
			continue
		}
		test.Of.Text, test.Of.Difference = fmt.Sprintf("%s, n=%d", test.Text(), pairs[test.Of]), test.Difference
		if test.Verdict != report.NotSignificant {
			test.Of.Text += " *"
		}
	}
	return t, nil
}

// paired says whether runs are of the same splits and seeds, and none diverged.
func paired(ours, theirs []experiment.Result) bool {
	return len(ours) == len(theirs) && !slices.ContainsFunc(ours, func(r experiment.Result) bool {
		i := slices.IndexFunc(theirs, func(other experiment.Result) bool { return other.Split == r.Split && other.Seed == r.Seed })
		return i < 0 || r.Diverged || theirs[i].Diverged
	})
}

// unitsOf is what pairs of the runs of two methods on a task have in common, and the ratio of test to training examples of
// overlapping splits. That the runs have other data is an error.
func unitsOf(ours, theirs []experiment.Result) (by func(experiment.Experiment) int, ratio float64, err error) {
	e, other := ours[0].Experiment, theirs[0].Experiment
	differences, err := spec.Differences(e.Task, other.Task)
	if err != nil {
		return nil, 0, fmt.Errorf("tables: %w", err)
	}
	if slices.ContainsFunc(differences, func(d spec.Difference) bool { return strings.HasPrefix(d.Path, "Data") }) {
		return nil, 0, fmt.Errorf("tables: %s and %s on %s have other data, so that their runs are no pairs; give each Task.Name of its own", e.Method.Name, other.Method.Name, e.Task.Name)
	}
	if !slices.ContainsFunc(slices.Concat(ours, theirs), func(r experiment.Result) bool { return r.Split != ours[0].Split }) {
		return func(e experiment.Experiment) int { return int(e.Seed) }, 0, nil
	}
	var splits []int
	for _, r := range ours {
		splits = append(splits, r.Split)
	}
	return nil, testTrain(e.Task.Data, splits), nil
}

// checkMetrics refuses a metric that no result has.
func checkMetrics(list []experiment.Result, metrics []string) error {
	known := map[string]bool{}
	for _, r := range list {
		for name := range r.Metrics {
			known[name] = true
		}
	}
	if len(known) == 0 { // nothing was run, or all runs diverged
		return nil
	}
	names := strings.Join(slices.Sorted(maps.Keys(known)), ", ")
	if len(metrics) == 0 {
		return fmt.Errorf("tables: no metric was named; the results have %s", names)
	}
	for i, metric := range metrics {
		if slices.Index(metrics, metric) != i {
			return fmt.Errorf("tables: the metric %q is named twice", metric)
		}
		if !known[metric] {
			return fmt.Errorf("tables: no result has a metric %q; they have %s", metric, names)
		}
	}
	return nil
}
