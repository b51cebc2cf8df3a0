package uci

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"

	"densityuncertainty/datasets"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/paper"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

//go:embed prose.md
var proseText string

var prose = report.ParseProse(proseText)

// Tables are the tables of the study.
func Tables() []tables.Named {
	return []tables.Named{
		{Name: "uci-nll", Doc: "UCI negative log likelihood, ours and the paper's", Make: func(x *tables.Index) (report.Table, error) { return NLL(x) }},
		{Name: "uci-rmse", Doc: "UCI root mean squared error, ours and the paper's", Make: func(x *tables.Index) (report.Table, error) { return RMSE(x) }},
		{Name: "uci-density", Doc: "both metrics of the density layer on UCI beside the paper's, and which method is best in ours", Make: DensityTable},
		{Name: "uci-datasets", Doc: "UCI data sets: size and dimension, measured beside the paper's", Make: DatasetsTable},
		{Name: "uci-agreement", Doc: "on how many UCI data sets each method's number agrees with the paper's", Make: Agreement},
		{Name: "uci-claims", Doc: "each method of the paper's UCI tables against density uncertainty, paired, in three settings", Make: ClaimsTable},
		{Name: "uci-released", Doc: "UCI with the settings of the authors' code beside measurements of the authors' code", Make: ReleasedTable},
		{Name: "uci-energy", Doc: "does the energy matter: density layers with each energy model against constant energy, paired", Make: EnergyTable},
		{Name: "uci-place", Doc: "does it matter where the noise goes: density layers against the same with the mean energy, paired", Make: PlaceTable},
		{Name: "uci-spread", Doc: "why: spread, coverage, rank correlation and error with constant energy and with LDL", Make: SpreadTable},
		{Name: "uci-gap", Doc: "every method on gap splits: negative log likelihood", Make: GapTable},
		{Name: "uci-gap-coverage", Doc: "every method on gap splits: how many targets are inside 95 % intervals", Make: GapCoverageTable},
		{Name: "uci-gap-rank", Doc: "every method on gap splits: whether the variance tells where errors are large", Make: GapRankTable},
		{Name: "uci-tuned", Doc: "all methods on UCI with the settings that did best on held-out training examples", Make: TunedTable},
		{Name: "uci-tuning", Doc: "which settings did best on held-out training examples", Make: TuningTable},
		{Name: "uci-scores", Doc: "continuous ranked probability score, coverage and sharpness of every method on UCI", Make: scoresTable},
		{Name: "uci-samples", Doc: "UCI negative log likelihood with 1000 Monte Carlo samples and with 10", Make: SamplesTable},
		{Name: "uci-converged", Doc: "UCI negative log likelihood after 100, 400 and 4000 epochs", Make: ConvergedTable},
		{Name: "uci-options", Doc: "what each single option between the text and the authors' code does to density layers on UCI, paired", Make: OptionsTable},
		{Name: "uci-fidelities", Doc: "in which fields experiments of density layers on UCI differ between the text and the authors' code", Make: FidelitiesTable},
		{Name: "uci-adam", Doc: "all methods on the smallest UCI data sets with Adam", Make: adamTable},
	}
}

// begun is a table with its words, the heading of the row names, and what explains its marks.
func begun(name, heading, legend string) report.Table {
	t := prose.Table(name, nil)
	t.Columns, t.Legend = []string{heading}, legend
	return t
}

// metric is one of the two metrics of the paper's tables.
type metric struct {
	name      string // of results
	title     string
	what      string
	published string // table of package paper
}

// tableMetrics are the metrics of the paper's tables, in their order.
var tableMetrics = []metric{
	{results.MetricNLL, "NLL", "negative log likelihood", paper.UCINLL},
	{results.MetricRMSE, "RMSE", "root mean squared error", paper.UCIRMSE},
}

var nll, rmse = tableMetrics[0], tableMetrics[1]

// paperCell has the text's experiments of one cell. What this project adds is run on the small sets.
func paperCell(dataset string, m experiment.Method) tables.Cell {
	if has(addedMethods(), m) && !slices.Contains(SmallDatasets(), dataset) {
		return tables.Cell{}
	}
	return paperSetting(dataset).cellOrQuick(dataset, m)
}

// of is the paper's number for a method on a data set; its mean is NaN where it prints none.
func (x metric) of(dataset string, m experiment.Method) report.Number {
	cell, ok := paper.Lookup(x.published, paperRows[dataset], paperColumns[m.Name])
	if !ok {
		return report.Number{Mean: math.NaN(), Std: math.NaN()}
	}
	return report.Number{Mean: cell.Mean, Std: cell.Std, Decimals: cell.Decimals}
}

// comparison is one method's number on one data set.
type comparison struct {
	method experiment.Method
	ours   results.Summary
	paper  report.Number
	wanted int // experiments that are asked for
}

// compared are the numbers of the methods on a data set, ours and the paper's.
func (x metric) compared(index *tables.Index, dataset string, list []experiment.Method) ([]comparison, error) {
	var all []comparison
	for _, m := range list {
		cell := paperCell(dataset, m)
		ours, err := index.Summarize(cell, x.name)
		if err != nil {
			return nil, err
		}
		all = append(all, comparison{m, ours, x.of(dataset, m), len(cell.Full)})
	}
	return all, nil
}

// lowest is the comparison with the lowest mean among the methods of which no run diverged. complete is false if runs of
// a method are missing.
func lowest(all []comparison) (best comparison, complete bool) {
	var summaries []results.Summary
	diverged := 0
	for _, c := range all {
		summaries = append(summaries, c.ours)
		if c.ours.Diverged > 0 && c.ours.N+c.ours.Diverged == c.ours.Wanted {
			diverged++
		}
	}
	at, n := results.Lowest(summaries)
	if at < 0 || n+diverged < len(all) {
		return comparison{}, false
	}
	return all[at], true
}

// NLL is the paper's table of UCI negative log likelihoods with our numbers beside it. Extra methods, such as one's own,
// have columns of their own.
func NLL(x *tables.Index, extra ...experiment.Method) (report.Table, error) {
	return nll.table(x, extra)
}

// RMSE is the paper's table of UCI root mean squared errors with our numbers beside it. Extra methods, such as one's own,
// have columns of their own.
func RMSE(x *tables.Index, extra ...experiment.Method) (report.Table, error) {
	return rmse.table(x, extra)
}

func (x metric) table(index *tables.Index, extra []experiment.Method) (report.Table, error) {
	t := begun("uci-"+x.name, "Data set", report.MarksPaper)
	for _, m := range extra {
		if _, err := Paper(Data{Name: "yacht"}, m); err != nil {
			return t, err
		}
	}
	list := append(everyMethod(), extra...)
	for _, m := range list {
		t.Columns = append(t.Columns, m.Name)
	}
	for _, dataset := range tableDatasets() {
		all, err := x.compared(index, dataset, list)
		if err != nil {
			return report.Table{}, err
		}
		ours, theirs := report.Row{Group: DatasetTitle(dataset), Name: "ours"}, report.Row{Group: DatasetTitle(dataset), Name: "paper"}
		var summaries []results.Summary
		run := false
		for _, c := range all {
			cell := report.Cell{}
			if c.wanted > 0 {
				cell = report.Compare(c.ours, c.paper, 3)
			}
			run = run || cell.Text != ""
			summaries = append(summaries, c.ours)
			ours.Cells, theirs.Cells = append(ours.Cells, cell), append(theirs.Cells, c.paper.Printed())
		}
		if !run {
			t.NotRun = append(t.NotRun, DatasetTitle(dataset))
			continue
		}
		ours.Align()
		ours.BoldLowest(summaries)
		t.Rows = append(t.Rows, ours)
		if paperRows[dataset] != "" {
			t.Rows = append(t.Rows, theirs)
		}
	}
	return t.WithoutNotRun(), nil
}

// DensityTable has both metrics of density uncertainty beside the paper's, and the lowest mean among Methods in ours, if all
// of their runs are there.
func DensityTable(x *tables.Index) (report.Table, error) {
	t := begun("uci-density", "Data set", report.MarksPaper)
	t.Columns = append(t.Columns, methods.Density.Name, "paper", "lowest mean of ours", "method")
	for _, metric := range tableMetrics {
		for _, dataset := range tableDatasets() {
			all, err := metric.compared(x, dataset, Methods())
			if err != nil {
				return report.Table{}, err
			}
			density := all[len(all)-1]
			cell := report.Compare(density.ours, density.paper, 3)
			winner := report.TextCells("–", "–")
			if best, complete := lowest(all); complete {
				winner = []report.Cell{report.SummaryCell(best.ours, 3), {Text: best.method.Name}}
			}
			report.Align(&cell, &winner[0])
			t.Rows = append(t.Rows, report.Row{Group: metric.title, Name: DatasetTitle(dataset), Cells: append([]report.Cell{cell, density.paper.Printed()}, winner...)})
		}
	}
	return t.WithoutNotRun(), nil
}

// Agreement counts, for each method and each of the two metrics, on how many data sets our number is better than the
// paper's, agrees with it or is worse (see report.Difference). On the other data sets there is nothing to compare: our
// runs are not complete, or the paper has no number.
func Agreement(x *tables.Index) (report.Table, error) {
	t := begun("uci-agreement", "Method", "")
	t.Columns = append(t.Columns, "better", "agrees", "worse", "nothing to compare")
	for _, metric := range tableMetrics {
		for _, m := range paperMethods() {
			counts := make(map[string]int)
			for _, dataset := range tableDatasets() {
				ours, err := x.Summarize(paperCell(dataset, m), metric.name)
				if err != nil {
					return report.Table{}, err
				}
				_, verdict := report.Difference(ours, metric.of(dataset, m))
				if !ours.Complete() {
					verdict = report.Unsettled
				}
				counts[verdict]++
			}
			t.Rows = append(t.Rows, report.Row{Group: metric.title, Name: m.Name, Cells: report.TextCells(fmt.Sprint(counts[report.Better]), fmt.Sprint(counts[report.Agrees]),
				fmt.Sprint(counts[report.Worse]), fmt.Sprint(counts[report.Unsettled]+counts[report.NoUnit]))})
		}
	}
	return t, nil
}

// DatasetsTable is the paper's table of the UCI data sets with the sizes measured from the data. The Year set, a download
// of 200 MB, is not fetched for a table. The results do not matter.
func DatasetsTable(*tables.Index) (report.Table, error) {
	t := begun("uci-datasets", "Data set", "")
	t.Columns = append(t.Columns, "Size", "Size (paper)", "Dimension", "Dimension (paper)")
	printed := func(dataset, column string) string {
		cell, found := paper.Lookup(paper.UCIDatasets, paperRows[dataset], column)
		if !found {
			return "–"
		}
		return strconv.Itoa(int(cell.Mean))
	}
	for _, dataset := range tableDatasets() {
		size, dimension := "not measured", "not measured"
		if dataset != Year {
			data, err := datasets.UCI(dataset)
			if err != nil {
				return report.Table{}, fmt.Errorf("uci: measuring %s: %w", dataset, err)
			}
			size, dimension = strconv.Itoa(data.N), strconv.Itoa(data.D)
		}
		t.Rows = append(t.Rows, report.Row{Name: DatasetTitle(dataset), Cells: report.TextCells(size, printed(dataset, "Size"), dimension, printed(dataset, "Dimension"))})
	}
	return t, nil
}

// FidelitiesTable lists the fields in which experiments of density layers differ between Paper and Released. The results
// do not matter.
func FidelitiesTable(*tables.Index) (report.Table, error) {
	t := begun("uci-fidelities", "Field", "")
	t.Columns = append(t.Columns, "paper's text", "authors' code")
	yacht := Data{Name: "yacht"}
	paper, err := Paper(yacht, methods.Density)
	if err != nil {
		return t, err
	}
	released, err := Released(yacht, methods.Density)
	if err != nil {
		return t, err
	}
	differences, err := experiment.Differences(released, paper)
	for _, d := range differences {
		t.Rows = append(t.Rows, report.Row{Name: d.Path, Cells: report.TextCells(d.Was, d.Is)})
	}
	return t, err
}
