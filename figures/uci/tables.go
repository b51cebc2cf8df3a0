package uci

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"densityuncertainty/datasets"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/paper"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

//go:embed prose.md
var proseText string

var prose = report.ParseProse(proseText)

// Tables are the tables of the study. Further methods, such as one's own, get columns in those that compare all
// methods.
func Tables(further ...methods.Method) []report.NamedTable {
	with := func(table func([]results.Result, ...methods.Method) (report.Table, error)) func([]results.Result) (report.Table, error) {
		return func(lines []results.Result) (report.Table, error) { return table(lines, further...) }
	}
	return []report.NamedTable{
		{Name: "uci-nll", Doc: "UCI negative log likelihood, ours beside the paper's", Make: with(NLL)},
		{Name: "uci-rmse", Doc: "UCI root mean squared error, ours beside the paper's", Make: with(RMSE)},
		{Name: "uci-density", Doc: "both metrics of the density layer on UCI, and which method is best in ours", Make: densityTable},
		{Name: "uci-short", Doc: "means of the density layer on UCI beside the paper's and the best of ours", Make: shortTable},
		{Name: "uci-datasets", Doc: "UCI data sets: size and dimension, measured beside the paper's", Make: DatasetsTable},
		{Name: "uci-agreement", Doc: "on how many UCI data sets each method's number agrees with the paper's", Make: Agreement},
		{Name: "uci-claims", Doc: "density uncertainty against each method of the paper's UCI tables, paired, in three settings", Make: ClaimsTable},
		{Name: "uci-released", Doc: "UCI with the released settings beside measurements of the authors' code", Make: ReleasedTable},
		{Name: "uci-energy", Doc: "does the energy matter: density layers with each energy model against constant energy, paired", Make: EnergyTable},
		{Name: "uci-place", Doc: "does it matter where the noise goes: density layers against the same with the mean energy, paired", Make: PlaceTable},
		{Name: "uci-spread", Doc: "why: spread, coverage, rank correlation and error with constant energy and with LDL", Make: SpreadTable},
		{Name: "uci-gap", Doc: "every method on gap splits: likelihood, coverage, and whether variance tells where errors are large", Make: with(GapTable)},
		{Name: "uci-tuned", Doc: "all methods on UCI with the settings that did best on held-out training examples", Make: with(TunedTable)},
		{Name: "uci-tuning", Doc: "which settings did best on held-out training examples", Make: TuningTable},
		{Name: "uci-scores", Doc: "continuous ranked probability score, coverage and sharpness of every method on UCI", Make: with(scoresTable)},
		{Name: "uci-samples", Doc: "UCI negative log likelihood with 1000 Monte Carlo samples beside 10", Make: SamplesTable},
		{Name: "uci-converged", Doc: "UCI negative log likelihood after 100, 400 and 4000 epochs", Make: ConvergedTable},
		{Name: "uci-options", Doc: "what each single option between the text and the released code does to density layers on UCI, paired", Make: optionsEffects},
		{Name: "uci-adam", Doc: "all methods on the smallest UCI data sets with Adam", Make: with(adamTable)},
	}
}

// metric is one of the two metrics of the paper's tables.
type metric struct {
	name      string // of results
	title     string
	what      string
	published string // table of package paper
}

// theMetrics are those of the paper's tables, in their order.
var theMetrics = []metric{
	{results.MetricNLL, "NLL", "negative log likelihood", paper.UCINLL},
	{results.MetricRMSE, "RMSE", "root mean squared error", paper.UCIRMSE},
}

var nll, rmse = theMetrics[0], theMetrics[1]

// tableDatasets are the rows: the paper's in its order, then the heating load.
func tableDatasets() []string {
	rows := slices.DeleteFunc(Datasets(), func(d string) bool { return d == "energy" })
	return append(rows, "energy")
}

// wanted are the experiments of the paper's protocol of one cell. What this project adds is run on the small sets.
func wanted(dataset string, m methods.Method) []results.Experiment {
	if _, added := addedMethods().Named(m.Name); added && !slices.Contains(smallDatasets(), dataset) {
		return nil
	}
	return atBothScales(Paper().On(dataset), methods.List{m})
}

// of is the paper's number for a method on a data set; its mean is NaN where it prints none.
func (x metric) of(dataset string, m methods.Method) report.Published {
	cell, ok := paper.Lookup(x.published, paperRows[dataset], m.Paper.UCI)
	if !ok {
		return report.Published{Mean: math.NaN(), Std: math.NaN()}
	}
	return report.Published{Mean: cell.Mean, Std: cell.Std, Decimals: cell.Decimals}
}

// comparison is one method's number on one data set.
type comparison struct {
	method methods.Method
	ours   results.Summary
	paper  report.Published
	wanted int // runs that are asked for at full scale
}

// compared are the numbers of the methods on a data set, ours and the paper's.
func (x metric) compared(lines results.Index, dataset string, list methods.List) ([]comparison, error) {
	var all []comparison
	for _, m := range list {
		runs := wanted(dataset, m)
		ours, err := lines.Summarize(runs, x.name)
		if err != nil {
			return nil, err
		}
		all = append(all, comparison{m, ours, x.of(dataset, m), len(results.Filter{Scale: results.Full}.Apply(runs))})
	}
	return all, nil
}

// lowest is that of the method with the lowest mean among those of which no run diverged; complete says whether every
// method was run.
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

// densityOf is the density layer's among all.
func densityOf(all []comparison) comparison {
	return all[slices.IndexFunc(all, func(c comparison) bool { return c.method.Name == methods.Density.Name })]
}

// NLL is the paper's table of UCI negative log likelihoods with our numbers beside it; further methods have columns
// of their own.
func NLL(lines []results.Result, further ...methods.Method) (report.Table, error) {
	return nll.table(lines, further)
}

// RMSE is the paper's table of UCI root mean squared errors with our numbers beside it; further methods have columns
// of their own.
func RMSE(lines []results.Result, further ...methods.Method) (report.Table, error) {
	return rmse.table(lines, further)
}

func (x metric) table(lines []results.Result, further []methods.Method) (report.Table, error) {
	t := report.Table{Name: "uci-" + x.name, Columns: []string{"Data set"}}
	t.Caption, _ = prose.Text(t.Name, Paper())
	_, t.Notes = prose.Text("metric notes", map[string]bool{"RMSE": x == rmse})
	inPaper := tableMethods()
	for _, m := range inPaper {
		t.Columns = append(t.Columns, m.Title)
	}
	others := append(addedMethods(), further...)
	for _, m := range others {
		t.Columns = append(t.Columns, m.Title+" (not in the paper)")
	}
	index := results.ByID(lines)
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

// titles lists the methods' titles in a sentence.
func titles(list methods.List) string {
	var names []string
	for _, m := range list {
		names = append(names, m.Title)
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// captionData is what captions that name their columns are made with.
type captionData struct {
	Protocol
	Columns string
}

// densityTable is the density layer's part of both UCI tables on one page: ours
// and the paper's numbers, and which method is best in ours.
func densityTable(lines []results.Result) (report.Table, error) {
	columns := []string{"Data set", "NLL", "best NLL of ours", "RMSE", "best RMSE of ours"}
	return aboutDensity("uci-density", columns, lines, func(density comparison, best *comparison) []report.Cell {
		winner := report.TextCell("–")
		if best != nil {
			winner = report.TextCell(best.method.Title, report.MeanStd(best.ours.Mean, math.NaN(), 3))
		}
		return []report.Cell{report.Compare(report.Difference, density.ours, density.paper, "paper", 3), winner}
	})
}

// shortTable is densityTable in means alone, for a page with little room.
func shortTable(lines []results.Result) (report.Table, error) {
	columns := []string{"Data set", "NLL", "paper's NLL", "lowest NLL of ours", "RMSE", "paper's RMSE", "lowest RMSE of ours"}
	return aboutDensity("uci-short", columns, lines, func(density comparison, best *comparison) []report.Cell {
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
			winner = fmt.Sprintf("%s %s", report.MeanStd(best.ours.Mean, math.NaN(), 3), best.method.Title)
		}
		return report.TextCells(mean, theirs, winner)
	})
}

// aboutDensity has a row for each data set, with the cells for each metric that are made of the density layer's numbers
// and the lowest of ours; nil where a method's runs are not complete.
func aboutDensity(name string, columns []string, lines []results.Result, cells func(density comparison, best *comparison) []report.Cell) (report.Table, error) {
	t := report.Table{Name: name, Columns: columns}
	t.Caption, t.Notes = prose.Text(name, captionData{Paper(), titles(tableMethods())})
	index := results.ByID(lines)
	for _, dataset := range tableDatasets() {
		row := report.Row{Name: DatasetTitle(dataset)}
		for _, x := range theMetrics {
			all, err := x.compared(index, dataset, tableMethods())
			if err != nil {
				return report.Table{}, err
			}
			var best *comparison
			if c, complete := lowest(all); complete {
				best = &c
			}
			row.Cells = append(row.Cells, cells(densityOf(all), best)...)
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}

// Agreement counts, for each method and each of the two metrics, on how many data sets our number is
// better than the paper's, agrees with it or is worse (see report.Difference), and on how many there is nothing
// to compare: no complete full-scale number of ours, or none of theirs.
func Agreement(lines []results.Result) (report.Table, error) {
	t := report.Table{Name: "uci-agreement", Columns: []string{"Method", "Metric", "Better", "Agrees", "Worse", "Nothing to compare"}}
	t.Caption, t.Notes = prose.Text(t.Name, nil)
	index := results.ByID(lines)
	for _, x := range theMetrics {
		for _, m := range PaperMethods() {
			counts := make(map[string]int)
			for _, dataset := range tableDatasets() {
				all, err := x.compared(index, dataset, methods.List{m})
				if err != nil {
					return report.Table{}, err
				}
				_, verdict := report.Difference(all[0].ours, all[0].paper)
				if !all[0].ours.Complete() {
					verdict = report.Unsettled
				}
				counts[verdict]++
			}
			t.Rows = append(t.Rows, report.Row{Name: m.Title, Cells: report.TextCells(x.title, fmt.Sprint(counts[report.Better]), fmt.Sprint(counts[report.Agrees]),
				fmt.Sprint(counts[report.Worse]), fmt.Sprint(counts[report.Unsettled]+counts[report.NoUnit]))})
		}
	}
	return t, nil
}

// DatasetsTable is the paper's table of the UCI data sets with the sizes measured from the data. The Year
// set, a download of 200 MB, is not fetched for a table. The result lines do not matter.
func DatasetsTable([]results.Result) (report.Table, error) {
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

// Table compares runs of any methods and protocols, such as those of an ablation or of one's own layers: a
// row for each group of lines that differ in split and seed only, in the order of their first lines, with
// mean ± standard deviation over the splits. Diverged runs are counted and not averaged. Fidelity, scale and samples are
// said where rows would be the same without.
func Table(lines []results.Result) (report.Table, error) {
	t := report.Table{Name: "runs", Columns: []string{"Variant", "Data set", "Epochs", "n", "NLL", "RMSE"}}
	t.Caption, _ = prose.Text(t.Name, nil)
	groups := results.Groups(lines)
	dataset := func(e results.Experiment) string {
		title := titleWithSplits(e.Dataset, e.Splits)
		if e.OnHeldOut() { // is no result to compare with one on test examples
			title += ", held-out training examples"
		}
		return title
	}
	epochs := func(e results.Experiment) string { return fmt.Sprint(e.Epochs) }
	titles := results.Titles(groups, results.Experiment.Variant, []func(results.Experiment) string{dataset, epochs},
		func(e results.Experiment) string { return e.Fidelity },
		func(e results.Experiment) string { return e.Scale },
		func(e results.Experiment) string { return fmt.Sprintf("%d samples", e.Samples) },
	)
	for i, g := range groups {
		count := fmt.Sprint(len(g.Lines))
		if g.Diverged > 0 {
			count += fmt.Sprintf(", %d diverged", g.Diverged)
		}
		row := report.Row{Name: titles[i], Cells: report.TextCells(dataset(g.First), epochs(g.First), count)}
		for _, x := range theMetrics {
			mean, std, n, err := g.MeanStd(x.name)
			switch {
			case err != nil:
				return report.Table{}, err
			case n < len(g.Lines):
				return report.Table{}, fmt.Errorf("uci: %d results of %v have no metric %q", len(g.Lines)-n, g.First, x.name)
			case n == 0:
				row.Cells = append(row.Cells, report.TextCell("diverged"))
			default:
				row.Cells = append(row.Cells, report.TextCell(report.MeanStd(mean, std, 3)))
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}

// bySplit is metricBySplit of the runs of a method of a table on a data set.
func (p Protocol) bySplit(index results.Index, dataset string, m methods.Method, metric string) map[int]float64 {
	return metricBySplit(index, p.On(dataset).Experiments(m), metric)
}

// complete says whether all of a method's runs on a data set are done.
func (p Protocol) complete(index results.Index, dataset string, m methods.Method) bool {
	return len(index.Missing(p.On(dataset).Experiments(m))) == 0
}

// diverged says on how many splits of a data set runs of a method diverged; "" if on none.
func (p Protocol) diverged(index results.Index, dataset string, m methods.Method) string {
	lost, n := 0, 0
	for _, e := range p.On(dataset).Experiments(m) {
		if line, done := index.Find(e); done {
			n++
			if line.Diverged {
				lost++
			}
		}
	}
	if lost == 0 {
		return ""
	}
	return fmt.Sprintf("%s diverged on %d of %d splits", m.Title, lost, n)
}

// divergedOn is diverged with the data set, as a sentence.
func (p Protocol) divergedOn(index results.Index, dataset string, m methods.Method) string {
	text := p.diverged(index, dataset, m)
	if text == "" {
		return ""
	}
	return fmt.Sprintf("%s of %s.", text, DatasetTitle(dataset))
}

// metricBySplit has a metric of the runs that are done, have it, and did not diverge.
func metricBySplit(index results.Index, runs []results.Experiment, metric string) map[int]float64 {
	values := make(map[int]float64)
	for _, e := range runs {
		if line, done := index.Find(e); done && !line.Diverged {
			if value, measured := line.Metrics[metric]; measured {
				values[e.Split] = value
			}
		}
	}
	return values
}
