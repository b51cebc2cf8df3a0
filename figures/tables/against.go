package tables

import (
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/spec"
)

// Against is a table of results at hand, such as Engine.Run returns, with a column for each method. Below the mean ± standard
// deviation of each metric are the differences from the reference, which is the Key of a method or the Name of one without a Key, with 95% intervals. Differences are of
// pairs with equal split and seed. Seeds of one split share its data, and so their mean counts as one pair; if there is a
// single split, each seed is a pair. A star marks a difference that is significant at 5% among all of the table (Holm). If
// the source has a method TestTrain() float64, which says how many test examples its overlapping splits have for each training
// example, the test is corrected for that; see metrics.PairedDifference. If runs of one side diverged, there is no test.
func Against(list []experiment.Result, reference string, names ...string) (report.Table, error) {
	t := report.Table{Name: "against", Columns: []string{"Metric"},
		Caption: "Mean ± standard deviation of runs. Below: paired differences with 95% intervals and the number of pairs; * significant at 5% among all of the table."}
	if err := checkMetrics(list, names); err != nil {
		return t, err
	}
	groups, at, tasks := groupsOf(list), map[[2]string]*group{}, []string(nil)
	name, keys := "", []string(nil) // of the reference
	for _, g := range groups {
		task, method := g.first.Task, g.first.Method
		if at[[2]string{task, method}] != nil {
			return t, fmt.Errorf("tables: two experiments on %s are called %q and are not the same; give each Method.Name of its own", task, method)
		}
		at[[2]string{task, method}] = g
		if !slices.Contains(t.Columns[1:], method) {
			t.Columns = append(t.Columns, method)
			keys = append(keys, method)
			if e := g.first.Experiment; e != nil {
				keys[len(keys)-1] = e.Method.Called()
			}
			if keys[len(keys)-1] == reference {
				name = method
			}
		}
		if !slices.Contains(tasks, task) {
			tasks = append(tasks, task)
		}
	}
	if t.Title = "How do the methods compare with " + name + "?"; name == "" {
		return t, fmt.Errorf("tables: no result is of the method %q; there are %s", reference, strings.Join(keys, ", "))
	}
	var differences []metrics.Difference
	var cells []*report.Cell // of the differences
	for _, task := range tasks {
		of := at[[2]string{task, name}]
		for _, metric := range names {
			means, tests := report.Row{Name: metric}, report.Row{Name: metric + " − " + name, Cells: make([]report.Cell, len(t.Columns)-1)}
			if len(tasks) > 1 {
				means.Group, tests.Group = task, task
			}
			for i, method := range t.Columns[1:] {
				g, cell := at[[2]string{task, method}], &tests.Cells[i]
				mean, err := g.mean(metric)
				if err != nil {
					return t, err
				}
				means.Cells = append(means.Cells, report.Cell{Text: mean})
				if g == nil || of == nil || g == of {
					continue
				}
				a, b, testTrain, err := g.pairs(of, metric)
				switch {
				case err != nil:
					return t, err
				case g.diverged+of.diverged > 0:
					cell.Text = "no test: runs diverged"
				case len(a) == 1:
					cell.Text = "no test: 1 pair"
				case len(a) > 1:
					d := metrics.PairedDifference(a, b, testTrain, Confidence)
					cell.Text = fmt.Sprintf("%s, %d pairs", Test[string]{Difference: &d}.Text(), len(a))
					cell.Difference = &d
					differences, cells = append(differences, d), append(cells, cell)
				}
			}
			t.Rows = append(t.Rows, means, tests)
		}
	}
	for i, verdict := range Holm(differences, Confidence) {
		if verdict != report.NotSignificant {
			cells[i].Text += " *"
		}
	}
	return t, nil
}

// mean is the mean and standard deviation of a metric, with the number of runs that diverged.
func (g *group) mean(metric string) (string, error) {
	if g == nil {
		return "–", nil
	}
	text, err := g.text(metric)
	if g.diverged > 0 {
		text = fmt.Sprintf("%s (%d of %d diverged)", text, g.diverged, g.diverged+len(g.measured))
	}
	return text, err
}

// pairs are the values of a metric of two methods on a task, split by split or else seed by seed, and the ratio of test to
// training examples of overlapping splits.
func (g *group) pairs(other *group, metric string) (a, b []float64, testTrain float64, err error) {
	if e, o := g.first.Experiment, other.first.Experiment; e != nil && o != nil {
		differences, err := spec.Differences(*e, *o)
		if err != nil {
			return nil, nil, 0, fmt.Errorf("tables: %w", err)
		}
		if slices.ContainsFunc(differences, func(d spec.Difference) bool { return strings.HasPrefix(d.Path, "Task.Data") }) {
			return nil, nil, 0, fmt.Errorf("tables: %s and %s on %s have other data, so that their runs are no pairs; give each Task.Name of its own", g.first.Method, other.first.Method, g.first.Task)
		}
	}
	type unit struct {
		split int
		seed  uint64
	}
	reference := map[unit]float64{}
	for _, r := range other.measured {
		if v, has := r.Metrics[metric]; has {
			reference[unit{r.Split, r.Seed}] = v
		}
	}
	type pair struct{ a, b []float64 }
	bySplit := map[int]*pair{}
	var splits []int
	for _, r := range g.measured {
		v, has := r.Metrics[metric]
		w, paired := reference[unit{r.Split, r.Seed}]
		if !has || !paired {
			continue
		}
		p := bySplit[r.Split]
		if p == nil {
			p = &pair{}
			bySplit[r.Split], splits = p, append(splits, r.Split)
		}
		p.a, p.b = append(p.a, v), append(p.b, w)
	}
	if len(splits) == 1 {
		p := bySplit[splits[0]]
		return p.a, p.b, 0, nil
	}
	slices.Sort(splits)
	for _, split := range splits {
		p := bySplit[split]
		a, b = append(a, stat.Mean(p.a, nil)), append(b, stat.Mean(p.b, nil))
	}
	if e := g.first.Experiment; e != nil {
		if data, is := e.Task.Data.(interface{ TestTrain() float64 }); is {
			testTrain = data.TestTrain()
		}
	}
	return a, b, testTrain, nil
}
