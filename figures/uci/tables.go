package uci

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

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
		{Name: "uci-nll", Doc: "UCI negative log likelihood, ours beside the paper's", Make: func(x *tables.Index) (report.Table, error) { return NLL(x) }},
		{Name: "uci-rmse", Doc: "UCI root mean squared error, ours beside the paper's", Make: func(x *tables.Index) (report.Table, error) { return RMSE(x) }},
		{Name: "uci-density", Doc: "both metrics of the density layer on UCI, and which method is best in ours", Make: densityTable},
		{Name: "uci-short", Doc: "means of the density layer on UCI beside the paper's and the best of ours", Make: shortTable},
		{Name: "uci-datasets", Doc: "UCI data sets: size and dimension, measured beside the paper's", Make: DatasetsTable},
		{Name: "uci-agreement", Doc: "on how many UCI data sets each method's number agrees with the paper's", Make: Agreement},
		{Name: "uci-claims", Doc: "density uncertainty against each method of the paper's UCI tables, paired, in three settings", Make: ClaimsTable},
		{Name: "uci-released", Doc: "UCI with the released settings beside measurements of the authors' code", Make: ReleasedTable},
		{Name: "uci-energy", Doc: "does the energy matter: density layers with each energy model against constant energy, paired", Make: EnergyTable},
		{Name: "uci-place", Doc: "does it matter where the noise goes: density layers against the same with the mean energy, paired", Make: PlaceTable},
		{Name: "uci-spread", Doc: "why: spread, coverage, rank correlation and error with constant energy and with LDL", Make: SpreadTable},
		{Name: "uci-gap", Doc: "every method on gap splits: likelihood, coverage, and whether variance tells where errors are large", Make: GapTable},
		{Name: "uci-tuned", Doc: "all methods on UCI with the settings that did best on held-out training examples", Make: TunedTable},
		{Name: "uci-tuning", Doc: "which settings did best on held-out training examples", Make: TuningTable},
		{Name: "uci-scores", Doc: "continuous ranked probability score, coverage and sharpness of every method on UCI", Make: scoresTable},
		{Name: "uci-samples", Doc: "UCI negative log likelihood with 1000 Monte Carlo samples beside 10", Make: SamplesTable},
		{Name: "uci-converged", Doc: "UCI negative log likelihood after 100, 400 and 4000 epochs", Make: ConvergedTable},
		{Name: "uci-options", Doc: "what each single option between the text and the released code does to density layers on UCI, paired", Make: OptionsTable},
		{Name: "uci-fidelities", Doc: "in which fields experiments of density layers on UCI differ between the text and the released code", Make: FidelitiesTable},
		{Name: "uci-adam", Doc: "all methods on the smallest UCI data sets with Adam", Make: adamTable},
	}
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

// metricNamed is a metric of the paper's tables.
func metricNamed(name string) (metric, error) {
	i := slices.IndexFunc(tableMetrics, func(x metric) bool { return x.name == name })
	if i < 0 {
		return metric{}, fmt.Errorf("uci: the metric is %q, want %s or %s", name, nll.name, rmse.name)
	}
	return tableMetrics[i], nil
}

// paperCell has the text's experiments of one cell. What this project adds is run on the small sets.
func paperCell(dataset string, m experiment.Method) tables.Cell {
	if has(addedMethods(), m) && !slices.Contains(smallDatasets(), dataset) {
		return tables.Cell{}
	}
	return paperSetting(dataset).cellOrQuick(dataset, m)
}

// of is the paper's number for a method on a data set; its mean is NaN where it prints none.
func (x metric) of(dataset string, m experiment.Method) report.Published {
	cell, ok := paper.Lookup(x.published, paperRows[dataset], paperColumns[m.Name])
	if !ok {
		return report.Published{Mean: math.NaN(), Std: math.NaN()}
	}
	return report.Published{Mean: cell.Mean, Std: cell.Std, Decimals: cell.Decimals}
}

// comparison is one method's number on one data set.
type comparison struct {
	method experiment.Method
	ours   results.Summary
	paper  report.Published
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
	t := report.Table{Name: "uci-" + x.name, Columns: []string{"Data set"}}
	t.Caption, _ = prose.Text(t.Name, nil)
	_, t.Notes = prose.Text("metric notes", map[string]bool{"RMSE": x == rmse})
	for _, m := range extra {
		if _, err := Paper(Data{Name: "yacht"}, m); err != nil {
			return t, err
		}
	}
	inPaper := Methods()
	for _, m := range inPaper {
		t.Columns = append(t.Columns, m.Name)
	}
	others := append(addedMethods(), extra...)
	for _, m := range others {
		t.Columns = append(t.Columns, m.Name+" (not in the paper)")
	}
	for _, dataset := range tableDatasets() {
		row := report.Row{Name: DatasetTitle(dataset)}
		all, err := x.compared(index, dataset, slices.Concat(inPaper, others))
		if err != nil {
			return report.Table{}, err
		}
		var ours []results.Summary
		for i, c := range all {
			ours = append(ours, c.ours)
			switch {
			case i < len(inPaper):
				row.Cells = append(row.Cells, report.Compare(report.Difference, c.ours, c.paper, "paper", 3))
			case c.wanted == 0:
				row.Cells = append(row.Cells, report.TextCell("–"))
			default:
				row.Cells = append(row.Cells, report.SummaryCell(c.ours, 3))
			}
		}
		row.BoldLowest(ours)
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}

// names lists the methods' names in a sentence.
func names(list []experiment.Method) string {
	var names []string
	for _, m := range list {
		names = append(names, m.Name)
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// densityTable is the density layer's part of both UCI tables on one page: ours and the paper's numbers, and which
// method is best in ours.
func densityTable(x *tables.Index) (report.Table, error) {
	columns := []string{"Data set", "NLL", "best NLL of ours", "RMSE", "best RMSE of ours"}
	return aboutDensity("uci-density", columns, x, func(density comparison, best *comparison) []report.Cell {
		winner := report.TextCell("–")
		if best != nil {
			winner = report.TextCell(best.method.Name, report.MeanStd(best.ours.Mean, math.NaN(), 3))
		}
		return []report.Cell{report.Compare(report.Difference, density.ours, density.paper, "paper", 3), winner}
	})
}

// shortTable is densityTable in means alone, for a page with little room.
func shortTable(x *tables.Index) (report.Table, error) {
	columns := []string{"Data set", "NLL", "paper's NLL", "lowest NLL of ours", "RMSE", "paper's RMSE", "lowest RMSE of ours"}
	return aboutDensity("uci-short", columns, x, func(density comparison, best *comparison) []report.Cell {
		mean, theirs, winner := "not run", "–", "–"
		if !math.IsNaN(density.paper.Mean) {
			theirs = fmt.Sprintf("%.*f", density.paper.Decimals, density.paper.Mean)
		}
		switch {
		case density.ours.Complete():
			mean = report.MeanStd(density.ours.Mean, math.NaN(), 3)
		case density.ours.Diverged > 0:
			mean = fmt.Sprintf("%d of %d diverged", density.ours.Diverged, density.ours.Wanted)
		}
		if best != nil {
			winner = fmt.Sprintf("%s %s", report.MeanStd(best.ours.Mean, math.NaN(), 3), best.method.Name)
		}
		return report.TextCells(mean, theirs, winner)
	})
}

// aboutDensity has a row for each data set. Its cells for each metric are made of the density layer's numbers and the
// lowest of ours; best is nil if runs of a method are missing.
func aboutDensity(name string, columns []string, x *tables.Index, cells func(density comparison, best *comparison) []report.Cell) (report.Table, error) {
	t := report.Table{Name: name, Columns: columns}
	list := Methods()
	t.Caption, t.Notes = prose.Text(name, map[string]string{"Columns": names(list)})
	for _, dataset := range tableDatasets() {
		row := report.Row{Name: DatasetTitle(dataset)}
		for _, metric := range tableMetrics {
			all, err := metric.compared(x, dataset, list)
			if err != nil {
				return report.Table{}, err
			}
			var best *comparison
			if c, complete := lowest(all); complete {
				best = &c
			}
			row.Cells = append(row.Cells, cells(all[len(all)-1], best)...) // density is the last
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}

// Agreement counts, for each method and each of the two metrics, on how many data sets our number is better than the
// paper's, agrees with it or is worse (see report.Difference). On the other data sets there is nothing to compare: our
// runs are not complete, or the paper has no number.
func Agreement(x *tables.Index) (report.Table, error) {
	t := report.Table{Name: "uci-agreement", Columns: []string{"Method", "Metric", "Better", "Agrees", "Worse", "Nothing to compare"}}
	t.Caption, t.Notes = prose.Text(t.Name, nil)
	for _, metric := range tableMetrics {
		for _, m := range paperMethods() {
			counts := make(map[string]int)
			for _, dataset := range tableDatasets() {
				all, err := metric.compared(x, dataset, []experiment.Method{m})
				if err != nil {
					return report.Table{}, err
				}
				_, verdict := report.Difference(all[0].ours, all[0].paper)
				if !all[0].ours.Complete() {
					verdict = report.Unsettled
				}
				counts[verdict]++
			}
			t.Rows = append(t.Rows, report.Row{Name: m.Name, Cells: report.TextCells(metric.title, fmt.Sprint(counts[report.Better]), fmt.Sprint(counts[report.Agrees]),
				fmt.Sprint(counts[report.Worse]), fmt.Sprint(counts[report.Unsettled]+counts[report.NoUnit]))})
		}
	}
	return t, nil
}

// DatasetsTable is the paper's table of the UCI data sets with the sizes measured from the data. The Year set, a download
// of 200 MB, is not fetched for a table. The results do not matter.
func DatasetsTable(*tables.Index) (report.Table, error) {
	t := report.Table{Name: "uci-datasets", Columns: []string{"Data set", "Size", "Size (paper)", "Dimension", "Dimension (paper)"}}
	t.Caption, t.Notes = prose.Text(t.Name, nil)
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
	t := report.Table{Name: "uci-fidelities", Columns: []string{"Field", "paper", "released"}}
	t.Caption, t.Notes = prose.Text(t.Name, nil)
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
