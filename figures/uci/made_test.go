package uci

import (
	"testing"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/internal/figtest"
)

// made are made-up results of experiments.
func made(list experiment.Experiments, measure func(experiment.Experiment) map[string]float64) []experiment.Result {
	var found []experiment.Result
	for _, e := range list {
		found = append(found, experiment.Result{ID: e.ID(), Split: e.Split, Metrics: measure(e)}.Of(e))
	}
	return found
}

// uneven is close to 1. By it, differences of unequal numbers vary a little, as those that are all equal are not tested.
func uneven(e experiment.Experiment) float64 { return 1 + 1e-10*float64(e.Split) }

// spread makes metrics whose mean over the 20 splits is nll and rmse, and whose standard deviation is close to sd.
func spread(nll, rmse, sd float64) func(experiment.Experiment) map[string]float64 {
	return func(e experiment.Experiment) map[string]float64 {
		d := sd
		if e.Split%2 == 1 {
			d = -sd
		}
		return map[string]float64{experiment.MetricNLL: nll*uneven(e) + d, experiment.MetricRMSE: rmse*uneven(e) + d}
	}
}

// level is spread with one number for both metrics, of which the RMSE is in thousandths: no run of any data set blew up.
func level(v float64) func(experiment.Experiment) map[string]float64 {
	return func(e experiment.Experiment) map[string]float64 {
		found := spread(v, v, 0.1)(e)
		found[experiment.MetricRMSE] /= 1000
		return found
	}
}

// of are the text's experiments of a method on a data set.
func of(m experiment.Method, dataset string) experiment.Experiments {
	return paperGrid().Of(Data{Name: dataset}, m)
}

// runs has the experiments of an exhibit.
func runs(t *testing.T, name string) experiment.Experiments {
	t.Helper()
	return figtest.Exhibit(t, Exhibits(), name).Runs()
}

func place(row, column string) string { return row + ", " + column }
