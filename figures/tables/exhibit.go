package tables

import (
	"slices"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/spec"
)

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

// An Exhibit is a table, its picture, and the runs that both are made of, under one name. Table and picture are pure functions of
// results and kept predictions.
type Exhibit struct {
	Name, Doc string
	Table     func(x *Index) (report.Table, error)  // nil for a picture alone
	Picture   func(x *Index) (report.Figure, error) // nil for none
	// Needs are the runs, where they are not all that table and picture look for: some show whatever was run, up to a number of
	// seeds, and some runs have neither table nor picture. Nil otherwise.
	Needs func() experiment.Experiments
}

// Named returns the exhibit of a list with a name, and whether there is one.
func Named(list []Exhibit, name string) (Exhibit, bool) {
	i := slices.IndexFunc(list, func(e Exhibit) bool { return e.Name == name })
	if i < 0 {
		return Exhibit{}, false
	}
	return list[i], true
}

// Runs are the experiments that the exhibit is made of, each once.
func (e Exhibit) Runs() experiment.Experiments {
	if e.Needs != nil {
		return Union(e.Needs())
	}
	x := Of(nil)
	if e.Table != nil {
		_, _ = e.Table(x) // an error says what is missing
	}
	if e.Picture != nil {
		_, _ = e.Picture(x)
	}
	return x.Asked()
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
