package toy

import (
	"slices"
	"testing"

	"densityuncertainty/environment"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/tables"
)

// passedOff trains experiments, which must be of one preset, for a few steps, and passes the results off as theirs.
func passedOff(t *testing.T, list experiment.Experiments) []experiment.Result {
	t.Helper()
	t.Setenv(environment.ConfigVariable, environment.GoSequential)
	short := list.Change(func(e *experiment.Experiment) {
		e.Recipe.Epochs, e.Recipe.PretrainEpochs, e.Recipe.Samples = 8, min(e.Recipe.PretrainEpochs, 4), min(e.Recipe.Samples, 6)
	})
	found := must.Get(experiment.Run(t.Context(), short...))(t)
	for i := range found {
		found[i].ID = list[i].ID()
		found[i] = found[i].Of(list[i])
	}
	return found
}

// drawn are the experiments that the figures of one seed need.
func drawn(seed int) experiment.Experiments {
	var all experiment.Experiments
	for _, row := range gapRows {
		all = append(all, grid.Of(Cubic{Seeds: drawnSeeds}, row.Method).OnSplits(seed)...)
	}
	for _, m := range distanceMethods {
		for _, data := range []experiment.Source{Cubic{Seeds: drawnSeeds}, Moons{Seeds: drawnSeeds}} {
			all = append(all, grid.Of(data, m).OnSplits(seed)...)
		}
	}
	return tables.Union(all)
}

// without are the results but those of a method.
func without(list []experiment.Result, name string) []experiment.Result {
	return slices.DeleteFunc(slices.Clone(list), func(r experiment.Result) bool { return r.Method == name })
}

// measured makes up results with metrics, which are nil for an experiment that was not run.
func measured(list experiment.Experiments, metrics func(e experiment.Experiment) map[string]float64) map[string]experiment.Result {
	all := map[string]experiment.Result{}
	for _, e := range list {
		if found := metrics(e); found != nil {
			all[e.ID()] = experiment.Result{ID: e.ID(), Metrics: found}
		}
	}
	return all
}
