package tables

import (
	"slices"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/spec"
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

// A NamedFigure can be asked for by name: it is a pure function of results and kept predictions.
type NamedFigure struct {
	Name, Doc string
	Make      func(x *Index) (report.Figure, error)
}

// Picture returns a function that draws a table as a forest, with the caption that prose has for the table's name and " picture".
func Picture(prose report.Prose, f report.Forest, table func(x *Index) (report.Table, error)) func(x *Index) (report.Figure, error) {
	return func(x *Index) (report.Figure, error) {
		t, err := table(x)
		if err != nil {
			return report.Figure{}, err
		}
		figure, err := f.Of(t)
		figure.Caption = prose.Caption(t.Name+" picture", nil)
		return figure, err
	}
}

// Fidelities adds a row for each field in which an experiment by the paper's text differs from one by the authors' code.
func Fidelities(t report.Table, text, code experiment.Experiment) (report.Table, error) {
	t.Columns = []string{"Field", "paper's text", "authors' code"}
	differences, err := spec.Differences(code, text)
	for _, d := range differences {
		t.Rows = append(t.Rows, report.Row{Name: d.Path, Cells: report.TextCells(d.Was, d.Is)})
	}
	return t, err
}
