package tables

import (
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// A MethodTable compares methods: it has a column for each, and a row for each metric of some of their experiments.
// Methods are told apart by their names, and rows too.
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
	Name, Metric string
	// Cell has the experiments of a method. A cell without any shows a dash.
	Cell func(m experiment.Method) Cell
	// Against has the experiments that those of a method are tested against, split by split; none for a method that is
	// not tested. Only full experiments are tested. If Against is nil, the row has no tests.
	Against func(m experiment.Method) Cell
	// Bold marks the lowest mean.
	Bold bool
	// Optional says that results may lack the metric. In a row without tests they always may.
	Optional bool
}

// TestedAgainst returns the row with a test of every other method against the reference.
func (r MethodRow) TestedAgainst(reference experiment.Method) MethodRow {
	r.Against = func(m experiment.Method) Cell {
		if m.Name == reference.Name {
			return Cell{}
		}
		return r.Cell(reference)
	}
	return r
}

// A Place is a cell of a table, by the name of its row and the heading of its column.
type Place struct{ Row, Column string }

// Tests are the paired tests of the table.
func (t MethodTable) Tests(x *Index) (*Family[Place], error) {
	family := &Family[Place]{TestTrain: t.TestTrain}
	for _, r := range t.Rows {
		if r.Against == nil {
			continue
		}
		for _, m := range t.Methods {
			if err := family.Add(Place{r.Name, m.Name}, x.BySplit(r.Cell(m).Full, r.Metric), x.BySplit(r.Against(m).Full, r.Metric), 0); err != nil {
				return nil, err
			}
		}
	}
	return family, nil
}

// Fill returns a table with the columns and rows added to it. A cell that was tested has the difference below its mean.
func (t MethodTable) Fill(x *Index, table report.Table) (report.Table, error) {
	family, err := t.Tests(x)
	if err != nil {
		return table, err
	}
	tests, err := family.ByName()
	if err != nil {
		return table, err
	}
	for _, m := range t.Methods {
		table.Columns = append(table.Columns, m.Name)
	}
	for _, r := range t.Rows {
		row := report.Row{Name: r.Name}
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
				shown = report.TextCell("–")
			}
			if test, has := tests[Place{r.Name, m.Name}]; has {
				shown = append(shown, test.Line())
			}
			row.Cells = append(row.Cells, shown)
		}
		if r.Bold {
			row.BoldLowest(summaries)
		}
		table.Rows = append(table.Rows, row)
	}
	return table, nil
}
