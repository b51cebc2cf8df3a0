package cifar

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strings"

	"densityuncertainty/figures/cifar/predictions"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/paper"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

//go:embed prose.md
var proseText string

var prose = report.ParseProse(proseText)

// Tables are the tables of the image study. Each shows the runs of further methods too, in rows below its own.
func Tables(further ...methods.Method) []report.NamedTable {
	var all []report.NamedTable
	for _, t := range classificationTables() {
		t.rows = append(t.rows, addedRows(further...)...)
		named := report.NamedTable{Name: t.name, Doc: t.what + ", ours beside the paper's", Make: t.make}
		if t.onProcessor() {
			named.Compare = ensembled(t.make)
		}
		all = append(all, named)
	}
	detection := func(lines []results.Result) (report.Table, error) { return detectionTable(lines, further) }
	all = append(all,
		report.NamedTable{
			Name: "ood-svhn", Doc: "out-of-distribution detection with ResNet-14, ours beside the paper's", Make: detection, Compare: ensembled(detection),
		},
		report.NamedTable{
			Name: "cifar-small", Doc: "small runs on real CIFAR images, with what each was made with",
			Make: func(lines []results.Result) (report.Table, error) { return smallTable(lines, further) },
		},
		report.NamedTable{
			Name: "cifar-grid", Doc: "the grid search, measured on held-out images",
			Make: func(lines []results.Result) (report.Table, error) { return papersGrid.make(lines, further) },
		},
		report.NamedTable{
			Name: "cifar-processor-grid", Doc: "the option of each method for the table cifar-processor that is chosen on held-out images",
			Make: func(lines []results.Result) (report.Table, error) { return processorsGrid.make(lines, further) },
		})
	for _, c := range comparisons {
		what := fmt.Sprintf(" in %d epochs of all training images", c.Epochs)
		runs := func(lines []results.Result) (report.Table, error) { return c.table(lines, further) }
		scores := func(lines []results.Result) (report.Table, error) { return c.detection(lines, further) }
		all = append(all,
			report.NamedTable{
				Name: "cifar-" + c.Scale, Doc: "methods with ResNet-14" + what + ", compared with each other",
				Make: runs, Compare: ensembled(runs),
			},
			report.NamedTable{
				Name: "cifar-" + c.Scale + "-differences", Doc: "what they say of each test image" + what + ", compared with density uncertainty",
				Compare: func(lines []results.Result, kept report.Predictions) (report.Table, error) {
					return c.differences(lines, further, kept)
				},
			},
			report.NamedTable{
				Name: "cifar-" + c.Scale + "-ood", Doc: "out-of-distribution detection by every score of every one of them, with the energies of each layer",
				Make: scores, Compare: ensembled(scores),
			})
	}
	return all
}

// ensembled makes a table of the deep ensembles, too, that predictions of single networks make.
func ensembled(table func([]results.Result) (report.Table, error)) func([]results.Result, report.Predictions) (report.Table, error) {
	return func(lines []results.Result, kept report.Predictions) (report.Table, error) {
		lines, err := withEnsembles(lines, kept)
		if err != nil {
			return report.Table{}, err
		}
		return table(lines)
	}
}

// NamedTable is one of Tables, by its name, of result lines; predictions are those that come with the checkout.
func NamedTable(name string, lines []results.Result, further ...methods.Method) (report.Table, error) {
	all := Tables(further...)
	i := slices.IndexFunc(all, func(t report.NamedTable) bool { return t.Name == name })
	if i < 0 {
		var names []string
		for _, t := range all {
			names = append(names, t.Name)
		}
		return report.Table{}, fmt.Errorf("cifar: there is no table %q; there are %s", name, strings.Join(names, ", "))
	}
	dir, err := results.DefaultDir()
	switch {
	case err == nil:
		return all[i].Of(lines, predictions.In(dir))
	case all[i].Make != nil: // needs no predictions, and so no checkout
		return all[i].Make(lines)
	}
	return report.Table{}, err
}

// A classificationTable is one of the paper's tables, with rows of our own.
type classificationTable struct {
	name      string
	published string // of package paper
	what      string // begins the caption
	protocol  Protocol
	rows      []row
}

// A row is a method with what its runs have beside the table's protocol, exactly that: what was run with other
// options is another row's.
type row struct {
	title  string
	method methods.Method
	paper  string // the paper's name of the row; "" where its table has none
	// change, if not nil, makes the row's protocol of the table's.
	change func(Protocol) Protocol
	// ending is that of the metrics' names, such as predictions.Scaled. Runs may lack a metric with one.
	ending string
}

// paperRow is a row that the paper has, with its settings.
func paperRow(m methods.Method) row {
	return row{title: m.Paper.Images, paper: m.Paper.Images, method: m}
}

func paperRows(list ...methods.Method) []row {
	rows := make([]row, len(list))
	for i, m := range list {
		rows[i] = paperRow(m)
	}
	return rows
}

const notInPaper = " (not in the paper)"

// addedRows are rows that the paper's table does not have.
func addedRows(list ...methods.Method) []row {
	rows := make([]row, len(list))
	for i, m := range list {
		rows[i] = row{title: m.Title + notInPaper, method: m}
	}
	return rows
}

// fullRankRow is the density layer in tables that have its rank-1 mixture too.
var fullRankRow = row{title: "Full-rank LDL", paper: "Full-rank LDL", method: methods.Density}

// mixtureRow is named as in the paper: "Rank-1 Mixture (1.25%)".
func mixtureRow(fraction float64) row {
	name := fmt.Sprintf("Rank-1 Mixture (%g%%)", 100*fraction)
	return row{title: name, paper: name, method: methods.DensityMixture, change: func(p Protocol) Protocol { return p.withFraction(fraction) }}
}

// decayRows are the paper's variational methods with weight decay on all parameters.
func decayRows() []row {
	rows := paperRows(variationals...)
	for i := range rows {
		rows[i].title += ", decay=all"
		rows[i].change = Protocol.withDecayAll
	}
	return rows
}

// singleRows are a single network, the same with a temperature, and an ensemble.
func singleRows() []row {
	temperature := row{
		title: methods.Deterministic.Title + ", temperature scaled" + notInPaper, method: methods.Deterministic,
		change: Protocol.WithHeldOut, ending: predictions.Scaled,
	}
	return slices.Concat(addedRows(methods.Deterministic), []row{temperature}, addedRows(methods.Ensemble))
}

func resnet14Rows() []row {
	return slices.Concat(paperRows(papersFive...), decayRows(), singleRows(), addedRows(processes...))
}

func wideRows() []row {
	return slices.Concat(paperRows(methods.MFVI, methods.MCDropout, methods.VDropout, methods.Rank1, methods.SNGP, methods.DUE),
		[]row{fullRankRow, mixtureRow(0.0125)}, singleRows())
}

func ablationRows() []row {
	var rows []row
	for _, fraction := range ablationFractions {
		rows = append(rows, mixtureRow(fraction))
	}
	return append(rows, fullRankRow)
}

// classificationTables are the five of the paper, and two of the released settings.
func classificationTables() []classificationTable {
	const released = " with the released settings, whose ResNet-14 has 20 layers"
	return []classificationTable{
		{"cifar10-resnet14", paper.CIFAR10ResNet14, "CIFAR-10 with ResNet-14", Paper(CIFAR10, ResNet14), resnet14Rows()},
		{"cifar100-resnet14", paper.CIFAR100ResNet14, "CIFAR-100 with ResNet-14", Paper(CIFAR100, ResNet14), resnet14Rows()},
		{"cifar10-wrn", paper.CIFAR10WRN28, "CIFAR-10 with WRN-28-10", Paper(CIFAR10, WRN28x10), wideRows()},
		{"cifar100-wrn", paper.CIFAR100WRN28, "CIFAR-100 with WRN-28-10", Paper(CIFAR100, WRN28x10), wideRows()},
		{
			"rank1-ablation", paper.Rank1Ablation, "Number of rank-1 mixture components as a part of the layers' width, CIFAR-10 with WRN-28-10",
			Paper(CIFAR10, WRN28x10), ablationRows(),
		},
		{"cifar10-released", paper.CIFAR10ResNet14, "CIFAR-10" + released, Released(CIFAR10, ResNet20), paperRows(papersFive...)},
		{"cifar100-released", paper.CIFAR100ResNet14, "CIFAR-100" + released, Released(CIFAR100, ResNet20), paperRows(papersFive...)},
	}
}

// wanted are the row's experiments: the full ones and, to stand in for them, the quick ones, which always hold images
// out.
func (r row) wanted(p Protocol) []results.Experiment {
	if r.change != nil {
		p = r.change(p)
	}
	return append(p.Experiments(r.method), p.Quick().Experiments(r.method)...)
}

// A measure is a column with a metric.
type measure struct {
	heading, metric, published string
	factor, sign               float64 // sign is -1 where higher is better
	decimals                   int
	judge                      func(results.Summary, report.Published) (float64, string)
}

var classificationMeasures = []measure{
	{"Accuracy (%)", results.MetricAccuracy, "Accuracy", 100, -1, 2, report.DifferenceUp},
	{"ECE", results.MetricECE, "ECE", 1, 1, 4, report.Difference},
	{"NLL", results.MetricNLL, "NLL", 1, 1, 4, report.Difference},
}

// make fills the table.
func (d classificationTable) make(lines []results.Result) (report.Table, error) {
	byID := results.ByID(lines)
	t := report.Table{Name: d.name, Columns: []string{"Method"}}
	t.Caption, t.Notes = d.prose()
	columns := make([][]results.Summary, len(classificationMeasures))
	for _, m := range classificationMeasures {
		t.Columns = append(t.Columns, m.heading)
	}
	if d.onProcessor() {
		t.Columns = append(t.Columns, processorHeading)
	}
	t.Columns = append(t.Columns, "Posterior std", "Parameters", "GFLOP", "s/epoch", "Device")
	for _, row := range d.rows {
		wanted := row.wanted(d.protocol)
		made := report.Row{Name: row.title}
		for i, m := range classificationMeasures {
			ours, err := row.summary(byID, wanted, m.metric)
			if err != nil {
				return report.Table{}, err
			}
			ours = ours.Times(m.factor)
			made.Cells = append(made.Cells, row.compared(ours, d.published, m))
			columns[i] = append(columns[i], ours.Times(m.sign))
		}
		if d.onProcessor() {
			cell, err := row.processorCell(byID, d.protocol, d.decayOf(row), classificationMeasures...)
			if err != nil {
				return report.Table{}, err
			}
			made.Cells = append(made.Cells, cell)
		}
		made.Cells = append(made.Cells, costCells(byID, wanted)...)
		t.Rows = append(t.Rows, made)
	}
	for i, summaries := range columns {
		t.BoldLowestInColumn(i, summaries)
	}
	return t, nil
}

// processorHeading is that of a column which is not compared with the paper's.
const processorHeading = "10 epochs on a processor"

// onProcessor says whether the table has a column of the protocol processor, as that has its network.
func (d classificationTable) onProcessor() bool { return d.protocol.Network == ResNet14 }

// decayOf is what the weight decay of a row's runs on a processor is on: all parameters, unless another row has that.
func (d classificationTable) decayOf(r row) methods.Decay {
	if r.change == nil && slices.ContainsFunc(d.rows, func(other row) bool {
		return other.method.Name == r.method.Name && other.change != nil && other.change(d.protocol).Decay == methods.DecayAll
	}) {
		return methods.DecayWeights
	}
	return methods.DecayAll
}

// processorCell has the means of metrics over the row's runs of the protocol processor, a line for each.
func (r row) processorCell(byID results.Index, p Protocol, decay methods.Decay, measures ...measure) (report.Cell, error) {
	p = p.Processor()
	p.Seeds, p.Decay = nil, decay
	for seed := range uint64(methods.EnsembleMembers) { // the most that there are
		p.Seeds = append(p.Seeds, seed)
	}
	if n, has := searchOf(r.method.Name); has {
		value, chosen := committedChoice()[r.method.Name]
		if !chosen {
			return report.TextCell("not run"), nil
		}
		p = n.with(p, value)
	}
	g := finished(byID, p.Experiments(r.method))
	if len(g.Lines) == 0 {
		return report.TextCell("not run"), nil
	}
	var cell report.Cell
	n := len(g.Lines)
	for _, m := range measures {
		m.metric += r.ending
		of := having(g, m.metric)
		n = min(n, len(of.Lines))
		if len(of.Lines) == 0 {
			return report.TextCell("not measured"), nil
		}
		values, err := groupCells(of, m)
		if err != nil {
			return nil, err
		}
		cell = append(cell, report.CellLine{Text: strings.TrimSpace(strings.TrimSuffix(m.heading, " (%)") + " " + values[0][0].Text)})
	}
	cell[len(cell)-1].Text += fmt.Sprintf(" (n=%d)", n)
	return cell, nil
}

// summary is that of a metric with the row's ending; without one, a run that lacks it is an error.
func (r row) summary(byID results.Index, wanted []results.Experiment, metric string) (results.Summary, error) {
	if r.ending == "" {
		return byID.Summarize(wanted, metric)
	}
	return byID.SummarizeOptional(wanted, metric+r.ending)
}

// compared is a cell with ours, beside the paper's where it has the row.
func (r row) compared(ours results.Summary, table string, m measure) report.Cell {
	if r.paper == "" {
		return report.SummaryCell(ours, m.decimals)
	}
	theirs, note := published(table, r.paper, m.published)
	cell := report.Compare(m.judge, ours, theirs, "paper", m.decimals)
	if note != "" {
		cell = append(cell, report.CellLine{Text: "(" + note + ")"})
	}
	return cell
}

// published is a number of the paper, and its remark where there is none.
func published(table, row, column string) (report.Published, string) {
	cell, ok := paper.Lookup(table, row, column)
	if !ok {
		return report.Published{Mean: math.NaN(), Std: math.NaN()}, ""
	}
	return report.Published{Mean: cell.Mean, Std: cell.Std, Decimals: cell.Decimals}, cell.Note
}

// prose is the caption, with notes on the rows that need one.
func (d classificationTable) prose() (caption string, notes []string) {
	has := func(of func(row) bool) bool { return slices.ContainsFunc(d.rows, of) }
	data := struct {
		What                          string
		Protocol                      Protocol
		Members                       int // of the ensemble, 0 without one
		Temperature, Processes, Decay bool
		Processor                     bool
	}{
		What: d.what, Protocol: d.protocol, Processor: d.onProcessor(),
		Temperature: has(func(r row) bool { return r.ending == predictions.Scaled }),
		Processes:   has(func(r row) bool { return r.method.Process != nil }),
		Decay:       has(func(r row) bool { return r.change != nil && r.change(d.protocol).Decay != d.protocol.Decay }),
	}
	if has(func(r row) bool { return r.method.Members > 1 }) {
		data.Members = methods.Ensemble.Networks()
	}
	return prose.Text("classification", data)
}

// costCells are the cells of the posterior that came out and of what the runs cost: parameters, operations, time of
// an epoch and device. Posterior, times and device are those of full runs, means over all of them and over those on
// the device that most ran on.
func costCells(byID results.Index, wanted []results.Experiment) []report.Cell {
	full, quick := finished(byID, results.Filter{Scale: results.Full}.Apply(wanted)), finished(byID, results.Filter{Scale: results.Quick}.Apply(wanted))
	cells := report.TextCells(number("%.2g", full, results.MetricPosteriorStd), "–", "–", "–", "–")
	if all := append(slices.Clip(full.Lines), quick.Lines...); len(all) > 0 {
		cells[1] = report.TextCell(grouped(int(all[0].Metrics[results.MetricParameters])))
		cells[2] = report.TextCell(fmt.Sprintf("%.3g", all[0].Metrics[results.MetricTrainingGFLOP]))
	}
	if len(full.Lines) > 0 {
		copy(cells[3:], timeCells(full))
	}
	return cells
}

// finished are the lines of the experiments that were run and did not diverge.
func finished(byID results.Index, list []results.Experiment) (g results.Group) {
	for _, e := range list {
		if line, done := byID.Find(e); done && !line.Diverged {
			g.Lines = append(g.Lines, line)
		}
	}
	return g
}

// timeCells are the time of an epoch on the device that most lines of a group are from, and that device.
func timeCells(g results.Group) []report.Cell {
	byDevice := make(map[string]results.Group)
	device := "–"
	for _, line := range g.Lines {
		of := byDevice[line.Device]
		of.Lines = append(of.Lines, line)
		byDevice[line.Device] = of
		if len(of.Lines) > len(byDevice[device].Lines) {
			device = line.Device
		}
	}
	cells := report.TextCells(number("%.3g", byDevice[device], results.MetricSecondsPerEpoch), device)
	if len(byDevice) > 1 {
		cells[1] = append(cells[1], report.CellLine{Text: fmt.Sprintf("and %d other", len(byDevice)-1)})
	}
	return cells
}

// meanOf is the mean of a metric over the runs that have it, NaN for none.
func meanOf(g results.Group, metric string) float64 {
	mean, _, _, err := g.MeanStd(metric)
	if err != nil {
		return math.NaN()
	}
	return mean
}

// number is the mean of a metric, a dash for none.
func number(format string, g results.Group, metric string) string {
	mean := meanOf(g, metric)
	if math.IsNaN(mean) {
		return "–"
	}
	return fmt.Sprintf(format, mean)
}

// grouped is a whole number with its thousands set apart: 175,178.
func grouped(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}
