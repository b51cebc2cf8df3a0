package cifar

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

// resultsOf are made-up results of experiments, all on one device.
func resultsOf(measure func(e experiment.Experiment) map[string]float64, lists ...experiment.Experiments) []experiment.Result {
	var all []experiment.Result
	for _, e := range slices.Concat(lists...) {
		all = append(all, experiment.Result{ID: e.ID(), Group: e.Group(), Seed: e.Seed, Metrics: measure(e), Device: "card"}.Of(e))
	}
	return all
}

// measuring makes metrics whose mean over 3 seeds is the given one, with the standard deviation sd.
func measuring(accuracy, ece, nll, sd float64) func(experiment.Experiment) map[string]float64 {
	return func(e experiment.Experiment) map[string]float64 {
		d := sd * (float64(e.Seed) - 1)
		return map[string]float64{
			experiment.MetricAccuracy: accuracy + d, experiment.MetricECE: ece + d, experiment.MetricNLL: nll + d, metricPosteriorStd: 1.2e-3,
		}
	}
}

func index(all ...experiment.Result) *tables.Index {
	byID := map[string]experiment.Result{}
	for _, r := range all {
		byID[r.ID] = r
	}
	return tables.NewIndex(byID)
}

// tableOf is a table of results.
func tableOf(t *testing.T, name string, all ...experiment.Result) report.Table {
	t.Helper()
	return must.Get(named(t, name).Table(index(all...)))(t)
}

func named(t *testing.T, name string) tables.Exhibit {
	t.Helper()
	return figtest.Exhibit(t, Exhibits(), name)
}

// lines are the rows of a table with their groups, names and cells.
func lines(table report.Table) []string {
	var all []string
	for _, row := range table.Rows {
		cells := []string{row.Name}
		if row.Group != "" {
			cells = []string{row.Group, row.Name}
		}
		for _, cell := range row.Cells {
			cells = append(cells, cmp.Or(figtest.Text(cell), "–"))
		}
		all = append(all, strings.Join(cells, " | "))
	}
	return all
}

// same compares lines.
func same(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// fails asks for an error with a text in it.
func fails(t *testing.T, what string, err error, want string) {
	t.Helper()
	must.Err(t, err, want)
}

func errorOf[T any](_ T, err error) error { return err }
