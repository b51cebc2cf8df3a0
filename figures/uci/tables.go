package uci

import (
	_ "embed"
	"fmt"
	"math"
	"slices"

	"densityuncertainty/datasets"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/paper"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

//go:embed prose.md
var proseText string

var prose = report.ParseProse(proseText)

// Exhibits are the tables and pictures of the study.
func Exhibits() tables.Exhibits {
	return tables.Exhibits{
		{Name: "uci-nll", Doc: "UCI negative log likelihood, ours and the paper's", Table: nllTable, Parts: tables.Exhibits{{Name: "uci-paired", Table: pairedTable}}},
		{Name: "uci-rmse", Doc: "UCI root mean squared error, ours and the paper's", Table: rmseTable},
		{Name: "uci-density", Doc: "NLL and RMSE of density layers on UCI beside the paper's, and the method with the lowest mean of ours", Table: densityTable},
		{Name: "uci-datasets", Doc: "UCI data sets: size and dimension, measured beside the paper's", Table: datasetsTable},
		{Name: "uci-agreement", Doc: "on how many UCI data sets each method's number agrees with the paper's", Table: agreementTable},
		{Name: "uci-claims", Doc: "each method of the paper's UCI tables against density uncertainty, paired, in three settings", Table: claimsTable, Picture: perDataset(0, claimsTable)},
		{Name: "uci-released", Doc: "UCI with the settings of the authors' code beside measurements of the authors' code, and a picture of how far our numbers are from the paper's", Table: releasedTable, Parts: tables.Exhibits{{Name: "uci-reproduction", Picture: reproductionFigure}}},
		{Name: "uci-energy", Doc: "does the energy matter: density layers with each energy model against constant energy, paired", Table: energyTable, Picture: tables.Picture(prose, report.Forest{Axis: nllAxis}, energyTable)},
		{Name: "uci-place", Doc: "does it matter where the noise goes: density layers against the same with the mean energy, paired", Table: placeTable, Picture: tables.Picture(prose, report.Forest{Axis: nllAxis}, placeTable)},
		{Name: "uci-spread", Doc: "spread, coverage, rank correlation and error with constant energy and with LDL", Table: spreadTable},
		{Name: "uci-gap", Doc: "every method on gap splits: negative log likelihood, how many targets are inside 95% intervals, and whether the variance tells where errors are large", Table: gapTable, Picture: perDataset(2, gapTable), Parts: tables.Exhibits{
			{Name: "uci-gap-coverage", Table: gapCoverageTable}, {Name: "uci-gap-rank", Table: gapRankTable},
		}},
		{Name: "uci-tuned", Doc: "all methods on UCI with the settings that did best on held-out training examples", Table: tunedTable, Picture: perDataset(0, tunedTable)},
		{Name: "uci-tuning", Doc: "which settings did best on held-out training examples", Table: tuningTable, Needs: func() (all experiment.Experiments) {
			for _, c := range candidates() {
				all = append(all, c.Experiment)
			}
			return all
		}},
		{Name: "uci-scores", Doc: "continuous ranked probability score, coverage and sharpness of every method on UCI", Table: scoresTable},
		{Name: "uci-conformal", Doc: "how many targets are inside conformal intervals of 95%, on random splits and in holes", Table: conformalTable},
		{Name: "uci-samples", Doc: "UCI negative log likelihood with 1000 Monte Carlo samples and with 10", Table: samplesTable},
		{Name: "uci-converged", Doc: "UCI negative log likelihood after 100, 400 and 4000 epochs", Table: convergedTable, Picture: convergedFigure},
		{Name: "uci-options", Doc: "what each single option between the text and the authors' code does to density layers on UCI, paired, and all fields that differ", Table: optionsTable, Picture: tables.Picture(prose, report.Forest{Axis: nllAxis, Columns: perRow}, optionsTable), Parts: tables.Exhibits{{Name: "uci-fidelities", Table: fidelitiesTable}}},
		{Name: "uci-adam", Doc: "all methods on the smallest UCI data sets with Adam", Table: adamTable},
	}
}

// newTable is a table with its words, the heading of the row names, and its legend.
func newTable(name, heading, legend string) report.Table {
	t := prose.Table(name, nil)
	t.Columns, t.Legend = []string{heading}, legend
	return t
}

// densityFirst are methods with density uncertainty before the others, since a narrow screen shows few columns.
func densityFirst(list []experiment.Method) []experiment.Method {
	return append([]experiment.Method{methods.Density}, slices.DeleteFunc(slices.Clone(list), methods.Density.Equal)...)
}

// sheet is a table with a column for each method, and with rows of settings.
func sheet(name, legend string, list []experiment.Method, all ...[]tables.Row) tables.Sheet {
	s := tables.Sheet{Table: newTable(name, "Data set", legend), Rows: slices.Concat(all...)}
	for _, m := range list {
		s.Columns = append(s.Columns, m.Name)
	}
	return s
}

// The numbers of the paper's tables, in their order.
var (
	nll          = tables.Number{Name: experiment.MetricNLL, Title: "NLL", Decimals: 3}
	rmse         = tables.Number{Name: experiment.MetricRMSE, Title: "RMSE", Decimals: 3}
	tableNumbers = []tables.Number{nll, rmse}
)

// printed is the mean of a method on a data set beside the paper's number, if it prints one.
func printed(n tables.Number, dataset string, m experiment.Method, g experiment.Grid) tables.Printed {
	p := tables.Printed{Mean: n.Over(g.Of(Data{Name: dataset}, m))}
	table := map[string]string{nll.Name: paper.UCINLL, rmse.Name: paper.UCIRMSE}[n.Name]
	if cell, has := paper.Lookup(table, paperRows[dataset], paperColumns[m.Name]); has {
		p.Paper = &cell.Value
	}
	return p
}

// nllTable is the paper's table of UCI negative log likelihoods with our numbers beside it.
func nllTable(x *tables.Index) (report.Table, error) { return paperTable(x, nll) }

// rmseTable is the paper's table of UCI root mean squared errors with our numbers beside it.
func rmseTable(x *tables.Index) (report.Table, error) { return paperTable(x, rmse) }

func paperTable(x *tables.Index, n tables.Number) (report.Table, error) {
	list := densityFirst(everyMethod)
	s := sheet("uci-"+n.Name, report.LegendPaper, list)
	for _, dataset := range tableDatasets() {
		ours := tables.Row{Group: DatasetTitle(dataset), Name: "ours"}
		theirs := tables.Row{Group: ours.Group, Name: "paper", Theirs: true}
		for _, m := range list {
			cell := printed(n, dataset, m, allData())
			cell.Best = "lowest"
			ours.Cells, theirs.Cells = append(ours.Cells, cell), append(theirs.Cells, cell.Theirs())
		}
		s.Rows = append(s.Rows, ours)
		if paperRows[dataset] != "" {
			s.Rows = append(s.Rows, theirs)
		}
	}
	return s.Make(x)
}

// lowest is the lowest mean among Methods on a data set, and the name of its method. Methods with a diverged run do not count. If
// runs of any method are missing, both cells are dashes.
func lowest(x *tables.Index, n tables.Number, dataset string) (lowest, method tables.Cell, err error) {
	none, least, missing := tables.Words("–"), math.Inf(1), false
	lowest, method = none, none
	for _, m := range Methods() {
		mean := n.Over(allData().Of(Data{Name: dataset}, m))
		s, err := x.Summarize(mean)
		if err != nil {
			return none, none, err
		}
		missing = missing || s.N+s.Diverged < s.Wanted
		if s.Complete() && s.Mean < least {
			least, lowest, method = s.Mean, mean, tables.Words("%s", m.Name)
		}
	}
	if missing {
		return none, none, nil
	}
	return lowest, method, nil
}

// densityTable has both metrics of density uncertainty with the text's settings and with those of the authors' code beside the paper's,
// and the lowest mean among Methods in ours with the text's, if all of their runs are there.
func densityTable(x *tables.Index) (report.Table, error) {
	s := tables.Sheet{Table: newTable("uci-density", "Data set", report.LegendPaper)}
	s.Columns = append(s.Columns, "authors' code", "paper", "paper's text", "lowest mean with the text's", "method")
	for _, of := range tableNumbers {
		for _, dataset := range tableDatasets() {
			density := printed(of, dataset, methods.Density, allData())
			lowest, method, err := lowest(x, of, dataset)
			if err != nil {
				return s.Table, err
			}
			s.Add(of.Title, DatasetTitle(dataset), printed(of, dataset, methods.Density, releasedGrid()), density.Theirs(), density, lowest, method)
		}
	}
	return s.Make(x)
}

// agreementTable counts, for each method and each of the two metrics, on how many data sets our number is better than the
// paper's, agrees with it or is worse (see tables.Printed.Away). On the other data sets there is nothing to compare: our
// runs are not complete, or the paper has no number.
func agreementTable(x *tables.Index) (report.Table, error) {
	s := tables.Sheet{Table: newTable("uci-agreement", "Method", "")}
	s.Columns = append(s.Columns, "better", "agrees", "worse", "nothing to compare")
	for _, of := range tableNumbers {
		for _, m := range paperMethods {
			n, all := map[string]int{}, tableDatasets()
			for _, dataset := range all {
				mean := printed(of, dataset, m, allData())
				ours, err := x.Summarize(mean.Mean)
				if err != nil {
					return s.Table, err
				}
				if ours.Complete() {
					_, verdict := mean.Away(ours)
					n[verdict]++
				}
			}
			better, agrees, worse := n[report.Better], n[report.Agrees], n[report.Worse]
			s.Add(of.Title, m.Name, tables.Words("%d", better), tables.Words("%d", agrees), tables.Words("%d", worse), tables.Words("%d", len(all)-better-agrees-worse))
		}
	}
	return s.Make(x)
}

// datasetsTable is the paper's table of the UCI data sets with the sizes measured from the data. The Year set, a download
// of 200 MB, is not fetched for a table. The results do not matter.
func datasetsTable(x *tables.Index) (report.Table, error) {
	s := tables.Sheet{Table: newTable("uci-datasets", "Data set", "")}
	s.Columns = append(s.Columns, "Size", "Size (paper)", "Dimension", "Dimension (paper)")
	printed := func(dataset, column string) tables.Cell {
		cell, found := paper.Lookup(paper.UCIDatasets, paperRows[dataset], column)
		if !found {
			return tables.Words("–")
		}
		return tables.Words("%.0f", cell.Mean)
	}
	for _, dataset := range tableDatasets() {
		size, dimension := tables.Words("not measured"), tables.Words("not measured")
		if dataset != year {
			data, err := datasets.UCI(dataset)
			if err != nil {
				return s.Table, fmt.Errorf("uci: measuring %s: %w", dataset, err)
			}
			size, dimension = tables.Words("%d", data.N), tables.Words("%d", data.D)
		}
		s.Add("", DatasetTitle(dataset), size, printed(dataset, "Size"), dimension, printed(dataset, "Dimension"))
	}
	return s.Make(x)
}

// fidelitiesTable lists the fields in which experiments of density layers differ between Paper and Released. The results
// do not matter.
func fidelitiesTable(*tables.Index) (report.Table, error) {
	of := func(g experiment.Grid) experiment.Experiment { return g.Of(Data{Name: "yacht"}, methods.Density)[0] }
	return tables.AddDifferences(prose.Table("uci-fidelities", nil), of(paperGrid()), of(releasedGrid()))
}
