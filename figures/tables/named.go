package tables

import (
	"slices"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/report"
)

// A Set is a named list of experiments: what one figure or table needs.
type Set struct {
	Name, Doc string
	Parts     []Part
	// Lacks says which experiments the set will have that cannot be listed yet, and what to do for it; "" for none.
	Lacks string
}

// A Part is the experiments of a set at one scale, such as results.Full or results.Quick.
type Part struct {
	Scale       string
	Experiments experiment.Experiments
}

// NewSet is a set of experiments at one scale.
func NewSet(scale, name, doc string, list experiment.Experiments) Set {
	return Set{Name: name, Doc: doc}.With(scale, list)
}

// With returns the set with experiments at one more scale.
func (s Set) With(scale string, list experiment.Experiments) Set {
	s.Parts = append(slices.Clip(s.Parts), Part{scale, list})
	return s
}

// At returns the experiments of a set at a scale; "" for all scales.
func (s Set) At(scale string) experiment.Experiments {
	var all experiment.Experiments
	for _, p := range s.Parts {
		if scale == "" || p.Scale == scale {
			all = append(all, p.Experiments...)
		}
	}
	return all
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
