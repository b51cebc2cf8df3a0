package uci

import (
	"fmt"
	"slices"
	"testing"

	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
)

// made are made-up lines of experiments.
func made(experiments []results.Experiment, measure func(results.Experiment) map[string]float64) []results.Result {
	var lines []results.Result
	for _, e := range experiments {
		lines = append(lines, results.Result{ID: e.ID(), Experiment: e, Metrics: measure(e)})
	}
	return lines
}

// spread makes metrics whose mean over the 20 splits is nll and rmse, and whose standard deviation is close to sd.
func spread(nll, rmse, sd float64) func(results.Experiment) map[string]float64 {
	return func(e results.Experiment) map[string]float64 {
		d := sd
		if e.Split%2 == 1 {
			d = -sd
		}
		return map[string]float64{results.MetricNLL: nll + d, results.MetricRMSE: rmse + d}
	}
}

// level is spread with one number for both metrics.
func level(v float64) func(results.Experiment) map[string]float64 { return spread(v, v, 0.1) }

// of are the runs of the paper's protocol of a method on a data set.
func of(m methods.Method, dataset string) []results.Experiment {
	return Paper().On(dataset).Experiments(m)
}

// quickOf are its quick runs.
func quickOf(m methods.Method, dataset string) []results.Experiment {
	return Paper().On(dataset).Quick().Experiments(m)
}

// set is a set of the catalogue.
func set(t *testing.T, name string) results.Set {
	t.Helper()
	i := slices.IndexFunc(Sets(), func(s results.Set) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("no set %s", name)
	}
	return Sets()[i]
}

func place(row, column string) string { return fmt.Sprintf("%s, %s", row, column) }
