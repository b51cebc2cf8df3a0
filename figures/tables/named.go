package tables

import (
	"slices"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/report"
)

// A Set is a named list of experiments: what one figure or table needs.
type Set struct {
	Name, Doc   string
	Experiments experiment.Experiments
}

// Union lists experiments in their order, each once.
func Union(lists ...experiment.Experiments) experiment.Experiments {
	var union experiment.Experiments
	seen := map[string]bool{}
	all := slices.Concat(lists...)
	for i, id := range all.IDs() {
		if !seen[id] {
			seen[id] = true
			union = append(union, all[i])
		}
	}
	return union
}

// A Named table can be asked for by name: it is a pure function of results and kept predictions.
type Named struct {
	Name, Doc string
	Make      func(x *Index) (report.Table, error)
}

// A NamedFigure can be asked for by name: it is a pure function of results and kept predictions and, if it shows a single
// run, of that run's seed.
type NamedFigure struct {
	Name, Doc string
	Make      func(x *Index, seed uint64) (report.Figure, error)
}

// AnySeed makes a figure that is the same for every seed, as a NamedFigure has it.
func AnySeed(make func(*Index) (report.Figure, error)) func(*Index, uint64) (report.Figure, error) {
	return func(x *Index, _ uint64) (report.Figure, error) { return make(x) }
}
