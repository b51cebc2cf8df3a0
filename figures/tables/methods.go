package tables

import (
	"maps"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// A MethodTable compares methods: it has a column for each, and a row for each metric of some of their experiments.
// Methods are told apart by their names, and rows by group and name.
type MethodTable struct {
	Methods []experiment.Method
	Rows    []MethodRow
	// Decimals are those of means and standard deviations.
	Decimals int
	// TestTrain is the ratio of test to training examples; see Family.
	TestTrain float64
}

// A MethodRow is a row of a MethodTable. If it is tested, its metric is one that is better when lower.
type MethodRow struct {
	Group, Name, Metric string
	// Cell has the experiments of a method. A cell without any shows a dash.
	Cell func(m experiment.Method) Cell
	// Against has the experiments that a method's full experiments are tested against, split by split; none for a method
	// that is not tested. If Against is nil, the row has no tests.
	Against func(m experiment.Method) experiment.Experiments
	// Optional says that results may lack the metric. In a row without tests they always may.
	Optional bool

	bold bool // the lowest mean
}

// TestedAgainst returns the row with a test of every other method against the reference, and the lowest mean in bold.
func (r MethodRow) TestedAgainst(reference experiment.Method) MethodRow {
	r.bold = true
	r.Against = func(m experiment.Method) experiment.Experiments {
		if m.Name == reference.Name {
			return nil
		}
		return r.Cell(reference).Full
	}
	return r
}

// A Place is a cell of a table, by its row and the heading of its column.
type Place struct{ Group, Row, Column string }

func (r MethodRow) place(m experiment.Method) Place { return Place{r.Group, r.Name, m.Name} }

// Judge returns the verdicts of the table. Those with a difference are of paired tests and hold for all of them together.
func (t MethodTable) Judge(x *Index) (map[Place]Test[Place], error) {
	alone, family := map[Place]Test[Place]{}, Family[Place]{TestTrain: t.TestTrain}
	for _, r := range t.Rows {
		if r.Against == nil {
			continue
		}
		for _, m := range t.Methods {
			runs, reference := r.Cell(m).Full, r.Against(m)
			if verdict := x.DivergedAlone(runs, reference); verdict != "" {
				alone[r.place(m)] = Test[Place]{Of: r.place(m), Verdict: verdict}
			} else if err := family.Add(r.place(m), x.BySplit(runs, r.Metric), x.BySplit(reference, r.Metric), 0); err != nil {
				return nil, err
			}
		}
	}
	all, err := family.ByName()
	maps.Copy(all, alone)
	return all, err
}

// Fill returns a table with the columns and rows added to it. Cells have the verdicts of Judge. Rows and columns in
// which nothing was run are left out, and said to be.
func (t MethodTable) Fill(x *Index, table report.Table) (report.Table, error) {
	verdicts, err := t.Judge(x)
	if err != nil {
		return table, err
	}
	for _, m := range t.Methods {
		table.Columns = append(table.Columns, m.Name)
	}
	for _, r := range t.Rows {
		row := report.Row{Group: r.Group, Name: r.Name}
		var summaries []results.Summary
		for _, m := range t.Methods {
			cell := r.Cell(m)
			summarize := x.Summarize
			if r.Against == nil || r.Optional {
				summarize = x.SummarizeOptional
			}
			s, err := summarize(cell, r.Metric)
			if err != nil {
				return table, err
			}
			summaries = append(summaries, s)
			shown := report.SummaryCell(s, t.Decimals)
			if len(cell.Full)+len(cell.Quick) == 0 {
				shown = report.Cell{}
			}
			judged := verdicts[r.place(m)]
			shown.Verdict, shown.Difference = judged.Verdict, judged.Difference
			row.Cells = append(row.Cells, shown)
		}
		row.Align()
		if r.bold {
			row.BoldLowest(summaries)
		}
		table.Rows = append(table.Rows, row)
	}
	return table.WithoutNotRun(), nil
}
