package cifar

import (
	"slices"
	"strings"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
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
			results.MetricAccuracy: accuracy + d, results.MetricECE: ece + d, results.MetricNLL: nll + d, results.MetricPosteriorStd: 1.2e-3,
			results.MetricParameters: 341266, results.MetricTrainingGFLOP: 0.2756, results.MetricSecondsPerEpoch: 10 + float64(e.Seed),
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

func tableOf(t *testing.T, name string, all ...experiment.Result) report.Table {
	t.Helper()
	return must.Get(NamedTable(name, index(all...)))(t)
}

// texts are the first lines of the cells of a row, after its name.
func texts(row report.Row) []string {
	cells := []string{row.Name}
	for _, cell := range row.Cells {
		cells = append(cells, cell[0].Text)
	}
	return cells
}

// fails asks for an error with a text in it.
func fails(t *testing.T, what string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: the error is %v, want %q in it", what, err, want)
	}
}

func errorOf[T any](_ T, err error) error { return err }
