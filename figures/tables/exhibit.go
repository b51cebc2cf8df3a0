package tables

import (
	"fmt"
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
	Parts Exhibits // more tables and pictures of it, which come with it or alone by their own names
}

// Exhibits are a study's list of exhibits.
type Exhibits []Exhibit

// withParts lists each exhibit and its parts.
func (list Exhibits) withParts() (all Exhibits) {
	for _, e := range list {
		all = append(all, e)
		for _, part := range e.Parts {
			part.Doc = "a part of " + e.Name
			all = append(all, part)
		}
	}
	return all
}

// Tables are the exhibits and parts that have a table.
func (list Exhibits) Tables() Exhibits {
	return slices.DeleteFunc(list.withParts(), func(e Exhibit) bool { return e.Table == nil })
}

// Pictures are the exhibits and parts that have a picture.
func (list Exhibits) Pictures() Exhibits {
	return slices.DeleteFunc(list.withParts(), func(e Exhibit) bool { return e.Picture == nil })
}

// Named returns the exhibit or part with a name, and whether there is one.
func (list Exhibits) Named(name string) (Exhibit, bool) {
	all := list.withParts()
	i := slices.IndexFunc(all, func(e Exhibit) bool { return e.Name == name })
	if i < 0 {
		return Exhibit{}, false
	}
	return all[i], true
}

// Table makes the table of the exhibit or part with a name.
func (list Exhibits) Table(x *Index, name string) (report.Table, error) {
	if e, _ := list.Named(name); e.Table != nil {
		return e.Table(x)
	}
	return report.Table{}, fmt.Errorf("tables: unknown table %q; \"reproduce list\" shows the tables", name)
}

// Picture draws the picture of the exhibit or part with a name.
func (list Exhibits) Picture(x *Index, name string) (report.Figure, error) {
	if e, _ := list.Named(name); e.Picture != nil {
		return e.Picture(x)
	}
	return report.Figure{}, fmt.Errorf("tables: unknown figure %q; \"reproduce list\" shows the figures", name)
}

// Runs are the experiments that the exhibit and its parts are made of, each once.
func (e Exhibit) Runs() experiment.Experiments {
	var all experiment.Experiments
	for _, part := range (Exhibits{e}).withParts() {
		all = append(all, part.runs()...)
	}
	return Union(all)
}

func (e Exhibit) runs() experiment.Experiments {
	if e.Needs != nil {
		return e.Needs()
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

// AddDifferences returns t with a row for each field in which the experiment by the paper's text differs from the one by the
// authors' code, with both values.
func AddDifferences(t report.Table, text, code experiment.Experiment) (report.Table, error) {
	t.Columns = []string{"Field", "paper's text", "authors' code"}
	differences, err := spec.Differences(code, text)
	for _, d := range differences {
		t.Rows = append(t.Rows, report.Row{Name: d.Path, Cells: report.TextCells(d.Was, d.Is)})
	}
	return t, err
}
