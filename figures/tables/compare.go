package tables

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/spec"
)

// A group is the results of experiments that differ in split and seed alone.
type group struct {
	first    experiment.Result
	measured []experiment.Result // those that did not diverge
	diverged int
}

// Compare is a table of runs of any tasks and methods, such as your own. It has a row for each group of results that
// differ in split and seed alone, in the order of their first results, with the mean ± standard deviation of the metrics,
// such as "nll" and "rmse". Runs that diverged are counted and not averaged. If rows have the same method and task, they
// say in which fields of their experiments they differ from the first of these rows. A dash means that no result of the
// row has the metric. If no result at all has it, or if only some results of a row have it, that is an error.
func Compare(list []experiment.Result, metrics ...string) (report.Table, error) {
	t := report.Table{Name: "runs", Columns: slices.Concat([]string{"Method", "Task", "n"}, metrics),
		Title: "How do the runs compare?", Caption: "Mean ± standard deviation over n runs (not the standard error of the mean)."}
	groups := groupsOf(list)
	for i, g := range groups {
		name, err := nameOf(groups, i)
		if err != nil {
			return report.Table{}, err
		}
		n := fmt.Sprint(len(g.measured))
		if g.diverged > 0 {
			n += fmt.Sprintf(", %d diverged", g.diverged)
		}
		row := report.Row{Name: name, Cells: report.TextCells(g.first.Task, n)}
		for _, metric := range metrics {
			text, err := g.text(metric)
			if err != nil {
				return report.Table{}, err
			}
			row.Cells = append(row.Cells, report.Cell{Text: text})
		}
		t.Rows = append(t.Rows, row)
	}
	return t, checkMetrics(list, metrics)
}

// groupsOf are the groups of results, in the order of their first results. One experiment under two names is in two groups,
// and a result that is in the list twice counts once.
func groupsOf(list []experiment.Result) (groups []*group) {
	type names struct {
		group, task, method string
		split               int
		seed                uint64
	}
	at, seen := map[names]*group{}, map[names]bool{}
	for _, r := range list {
		own := names{r.Group, r.Task, r.Method, r.Split, r.Seed}
		if seen[own] {
			continue
		}
		seen[own], own.split, own.seed = true, 0, 0
		g := at[own]
		if g == nil {
			g = &group{first: r}
			at[own] = g
			groups = append(groups, g)
		}
		if diverged(r) {
			g.diverged++
		} else {
			g.measured = append(g.measured, r)
		}
	}
	return groups
}

// text is the mean and standard deviation of a metric.
func (g *group) text(metric string) (string, error) {
	var values []float64
	for _, r := range g.measured {
		if v, has := r.Metrics[metric]; has {
			values = append(values, v)
		}
	}
	switch {
	case len(g.measured) == 0:
		return "diverged", nil
	case len(values) > 0 && len(values) < len(g.measured):
		return "", fmt.Errorf("tables: %d of %d results of %s on %s have no metric %q; Engine.Run computes it of kept predictions", len(g.measured)-len(values), len(g.measured), g.first.Method, g.first.Task, metric)
	}
	mean, std := metrics.MeanStd(values)
	return report.Number{Mean: mean, Std: std, Decimals: 3}.String(), nil
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
	for _, metric := range metrics {
		if !known[metric] {
			return fmt.Errorf("tables: no result has a metric %q; they have %s", metric, names)
		}
	}
	return nil
}

// nameOf is the first column of the row of a group.
func nameOf(groups []*group, i int) (string, error) {
	r := groups[i].first
	reference := groups[slices.IndexFunc(groups, func(g *group) bool { return g.first.Method == r.Method && g.first.Task == r.Task })].first
	if reference.Group == r.Group || r.Experiment == nil || reference.Experiment == nil {
		return r.Method, nil
	}
	is, was := *r.Experiment, *reference.Experiment
	is.Split, is.Seed = was.Split, was.Seed
	differences, err := spec.Differences(is, was)
	if err != nil {
		return "", fmt.Errorf("tables: %w", err)
	}
	parts := []string{r.Method}
	for _, d := range differences {
		if part := short(d); !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ", "), nil
}

// short is a difference as "field=value". Fields with the type of a value have the name of the value.
func short(d spec.Difference) string {
	path := strings.TrimSuffix(d.Path, ".type")
	value := strings.ReplaceAll(d.Is, `"`, "")
	if inner, is := strings.CutPrefix(value, "{type:"); is {
		value = strings.TrimSuffix(inner, "}")
	}
	if value == "null" {
		value = "none"
	}
	return path[strings.LastIndex(path, ".")+1:] + "=" + value
}
