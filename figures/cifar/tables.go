package cifar

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strings"

	"densityuncertainty/dul/nets"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	papers "densityuncertainty/figures/paper"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

//go:embed prose.md
var proseText string

var prose = report.ParseProse(proseText)

// Tables are the tables of the image study.
func Tables() []tables.Named {
	var all []tables.Named
	for _, t := range classificationTables() {
		named := tables.Named{Name: t.name, Doc: t.what + ", ours beside the paper's", Make: t.make}
		if t.onProcessor() {
			named.Make = ensembled(t.make)
		}
		all = append(all, named)
	}
	all = append(all,
		tables.Named{Name: "ood-svhn", Doc: "out-of-distribution detection with ResNet-14, ours beside the paper's", Make: ensembled(detectionTable)},
		tables.Named{Name: "cifar-small", Doc: "small runs on real CIFAR images, with what each was made with", Make: smallTable},
		tables.Named{Name: "cifar-grid", Doc: "the grid search, measured on held-out images", Make: papersGrid},
		tables.Named{Name: "cifar-processor-grid", Doc: "the option of each method for the table cifar-processor that is chosen on held-out images", Make: processorsGrid},
		tables.Named{Name: "cifar-fidelities", Doc: "density uncertainty by the paper's text and by the released code: what differs", Make: fidelitiesTable})
	for _, c := range comparisons {
		what := fmt.Sprintf(" in %d epochs of all training images", c.epochs)
		all = append(all,
			tables.Named{Name: "cifar-" + c.name, Doc: "methods with ResNet-14" + what + ", compared with each other", Make: ensembled(c.table)},
			tables.Named{Name: "cifar-" + c.name + "-differences", Doc: "what they say of each test image" + what + ", compared with density uncertainty", Make: c.differences},
			tables.Named{
				Name: "cifar-" + c.name + "-ood", Doc: "out-of-distribution detection by every score of every one of them, with the energies of each layer",
				Make: ensembled(c.detection),
			})
	}
	return all
}

// ensembled makes a table of the deep ensembles, too, that predictions of single networks make.
func ensembled(table func(x *tables.Index) (report.Table, error)) func(x *tables.Index) (report.Table, error) {
	return func(x *tables.Index) (report.Table, error) {
		x, err := withEnsembles(x)
		if err != nil {
			return report.Table{}, err
		}
		return table(x)
	}
}

// NamedTable is one of Tables, by its name.
func NamedTable(name string, x *tables.Index) (report.Table, error) {
	all := Tables()
	i := slices.IndexFunc(all, func(t tables.Named) bool { return t.Name == name })
	if i < 0 {
		var names []string
		for _, t := range all {
			names = append(names, t.Name)
		}
		return report.Table{}, fmt.Errorf("cifar: there is no table %q; there are %s", name, strings.Join(names, ", "))
	}
	return all[i].Make(x)
}

// A classificationTable is one of the paper's tables, with rows of our own.
type classificationTable struct {
	name      string
	published string // of package paper
	what      string // begins the caption
	images    Images
	settings  settings
	rows      []row
}

// A row is a method, and in what its runs differ from the table's settings.
type row struct {
	title    string
	method   experiment.Method
	paper    string // the paper's name of the row; "" where its table has none
	decayAll bool   // weight decay on all parameters
	heldOut  bool   // 5,000 images are held out
	// ending is that of the metrics' names, such as scaledEnding. Runs may lack a metric with one.
	ending string
}

// paperRows are rows that the paper has, by its names.
func paperRows(all ...experiment.Method) []row {
	var rows []row
	for _, m := range all {
		name := m.Name
		switch methods.NameOf(m) {
		case "mcdropout":
			name = "MCDropout"
		case "vdropout":
			name = "VDropout"
		}
		rows = append(rows, row{title: name, paper: name, method: m})
	}
	return rows
}

const notInPaper = " (not in the paper)"

// addedRows are rows that the paper's table does not have.
func addedRows(all ...experiment.Method) []row {
	var rows []row
	for _, m := range all {
		rows = append(rows, row{title: m.Name + notInPaper, method: m})
	}
	return rows
}

// fullRankRow is the density layer in tables that have its rank-1 mixture too.
var fullRankRow = row{title: "Full-rank LDL", paper: "Full-rank LDL", method: methods.Density}

// mixtureRow is named as in the paper: "Rank-1 Mixture (1.25%)".
func mixtureRow(fraction float64) row {
	name := fmt.Sprintf("Rank-1 Mixture (%g%%)", 100*fraction)
	return row{title: name, paper: name, method: mixture(fraction)}
}

// decayRows are the paper's variational methods with weight decay on all parameters.
func decayRows() []row {
	rows := paperRows(variationals...)
	for i := range rows {
		rows[i].title += ", decay=all"
		rows[i].decayAll = true
	}
	return rows
}

// singleRows are a single network, the same with a temperature, and an ensemble.
func singleRows() []row {
	rows := addedRows(methods.Deterministic, methods.Deterministic, methods.Ensemble)
	rows[1].title, rows[1].heldOut, rows[1].ending = methods.Deterministic.Name+", temperature scaled"+notInPaper, true, scaledEnding
	return rows
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
	const what = " with the released settings, whose ResNet-14 has 20 layers"
	return []classificationTable{
		{"cifar10-resnet14", papers.CIFAR10ResNet14, "CIFAR-10 with ResNet-14", ten, paper, resnet14Rows()},
		{"cifar100-resnet14", papers.CIFAR100ResNet14, "CIFAR-100 with ResNet-14", hundred, paper, resnet14Rows()},
		{"cifar10-wrn", papers.CIFAR10WRN28, "CIFAR-10 with WRN-28-10", ten, onWide, wideRows()},
		{"cifar100-wrn", papers.CIFAR100WRN28, "CIFAR-100 with WRN-28-10", hundred, onWide, wideRows()},
		{
			"rank1-ablation", papers.Rank1Ablation, "Number of rank-1 mixture components as a part of the layers' width, CIFAR-10 with WRN-28-10",
			ten, onWide, ablationRows(),
		},
		{"cifar10-released", papers.CIFAR10ResNet14, "CIFAR-10" + what, ten, released, paperRows(papersFive...)},
		{"cifar100-released", papers.CIFAR100ResNet14, "CIFAR-100" + what, hundred, released, paperRows(papersFive...)},
	}
}

// onProcessor says whether the table has a column of Processor, which has its network.
func (t classificationTable) onProcessor() bool { return t.settings.isPaper() }

// isPaper says whether the settings are those of Paper.
func (s settings) isPaper() bool { return s.preset == paper.preset && !s.wide() }

// cell is the experiments of a row: the full ones and, of ResNet-14, quick ones, which hold images out.
func (r row) cell(s settings, d Images) tables.Cell {
	if r.heldOut {
		d = withHeldOut(d)
	}
	c := tables.Cell{Full: list(s.withDecay(r.decayAll), d, paperSeeds, r.method)}
	if s.isPaper() {
		d.HeldOut = 0
		c.Quick, c.Images = list(quick.withDecay(r.decayAll), d, 1, r.method), quick.sizes.TrainN
	}
	return c
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
func (t classificationTable) make(x *tables.Index) (report.Table, error) {
	made := report.Table{Name: t.name, Columns: []string{"Method"}}
	made.Caption, made.Notes = t.prose()
	columns := make([][]results.Summary, len(classificationMeasures))
	for _, m := range classificationMeasures {
		made.Columns = append(made.Columns, m.heading)
	}
	if t.onProcessor() {
		made.Columns = append(made.Columns, processorHeading)
	}
	made.Columns = append(made.Columns, "Posterior std", "Parameters", "GFLOP", "s/epoch", "Device")
	for _, r := range t.rows {
		c := r.cell(t.settings, t.images)
		line := report.Row{Name: r.title}
		for i, m := range classificationMeasures {
			ours, err := r.summary(x, c, m.metric)
			if err != nil {
				return report.Table{}, err
			}
			ours = ours.Times(m.factor)
			line.Cells = append(line.Cells, r.compared(ours, t.published, m))
			columns[i] = append(columns[i], ours.Times(m.sign))
		}
		if t.onProcessor() {
			cell, err := r.processorCell(x, t.images, r.decayAll || !t.hasDecayRow(r), classificationMeasures...)
			if err != nil {
				return report.Table{}, err
			}
			line.Cells = append(line.Cells, cell)
		}
		line.Cells = append(line.Cells, costCells(x, c)...)
		made.Rows = append(made.Rows, line)
	}
	for i, summaries := range columns {
		made.BoldLowestInColumn(i, summaries)
	}
	return made, nil
}

// processorHeading is that of a column which is not compared with the paper's.
const processorHeading = "10 epochs on a processor"

// hasDecayRow says whether another row has the row's method with weight decay on all parameters.
func (t classificationTable) hasDecayRow(r row) bool {
	return slices.ContainsFunc(t.rows, func(other row) bool { return other.decayAll && other.method.Same(r.method) })
}

// processorCell has the means of metrics over the row's runs of Processor, a line for each.
func (r row) processorCell(x *tables.Index, d Images, decayAll bool, measures ...measure) (report.Cell, error) {
	g := groupOf(x, list(Chosen(onProcessor.withDecay(decayAll)), d, mostSeeds, r.method))
	if len(g.found) == 0 {
		return report.TextCell("not run"), nil
	}
	var cell report.Cell
	n := len(g.found)
	for _, m := range measures {
		m.metric += r.ending
		of := g.having(m.metric)
		n = min(n, len(of.found))
		if len(of.found) == 0 {
			return report.TextCell("not measured"), nil
		}
		values, err := of.cells(m)
		if err != nil {
			return nil, err
		}
		cell = append(cell, report.CellLine{Text: strings.TrimSpace(strings.TrimSuffix(m.heading, " (%)") + " " + values[0][0].Text)})
	}
	cell[len(cell)-1].Text += fmt.Sprintf(" (n=%d)", n)
	return cell, nil
}

// summary is that of a metric with the row's ending. Without an ending, a run that lacks the metric is an error.
func (r row) summary(x *tables.Index, c tables.Cell, metric string) (results.Summary, error) {
	if r.ending == "" {
		return x.Summarize(c, metric)
	}
	return x.SummarizeOptional(c, metric+r.ending)
}

// compared is a cell with ours, beside the paper's where it has the row.
func (r row) compared(ours results.Summary, table string, m measure) report.Cell {
	if r.paper == "" {
		return report.SummaryCell(ours, m.decimals)
	}
	theirs, has := papers.Lookup(table, r.paper, m.published)
	published := report.Published{Mean: theirs.Mean, Std: theirs.Std, Decimals: theirs.Decimals}
	if !has {
		published = report.Published{Mean: math.NaN(), Std: math.NaN()}
	}
	cell := report.Compare(m.judge, ours, published, "paper", m.decimals)
	if theirs.Note != "" {
		cell = append(cell, report.CellLine{Text: "(" + theirs.Note + ")"})
	}
	return cell
}

// settingsProse is what captions say of settings.
type settingsProse struct {
	Released        bool
	Epochs, Samples int
}

func (s settings) prose() settingsProse {
	return settingsProse{s.released, s.epochs, s.samples}
}

// prose is the caption, with notes on the rows that need one.
func (t classificationTable) prose() (caption string, notes []string) {
	has := func(of func(row) bool) bool { return slices.ContainsFunc(t.rows, of) }
	data := struct {
		What                          string
		Settings                      settingsProse
		Members                       int // of the ensemble, 0 without one
		Temperature, Processes, Decay bool
		Processor                     bool
	}{
		What: t.what, Settings: t.settings.prose(), Processor: t.onProcessor(),
		Temperature: has(func(r row) bool { return r.ending == scaledEnding }),
		Processes:   has(func(r row) bool { return r.method.Process != nil }),
		Decay:       has(func(r row) bool { return r.decayAll }),
	}
	if has(func(r row) bool { return r.method.Members > 1 }) {
		data.Members = methods.EnsembleMembers
	}
	return prose.Text("classification", data)
}

// costCells are the cells of the posterior that came out and of what the runs cost: parameters, operations, time of an
// epoch and device. Posterior, times and device are those of full runs. Times are means over the runs on the device that
// most ran on.
func costCells(x *tables.Index, c tables.Cell) []report.Cell {
	full, quick := groupOf(x, c.Full), groupOf(x, c.Quick)
	cells := report.TextCells(full.number("%.2g", results.MetricPosteriorStd), "–", "–", "–", "–")
	if all := slices.Concat(full.found, quick.found); len(all) > 0 {
		cells[1] = report.TextCell(grouped(int(all[0].Metrics[results.MetricParameters])))
		cells[2] = report.TextCell(fmt.Sprintf("%.3g", all[0].Metrics[results.MetricTrainingGFLOP]))
	}
	if len(full.found) > 0 {
		copy(cells[3:], full.timeCells())
	}
	return cells
}

// A detectionColumn is what one metric says of a classifier trained on a data set and shown images of another.
type detectionColumn struct {
	images        Images
	other, metric string
	published     string // the paper's name of the column; "" where it has none
	heading       string
}

var detectionColumns = []detectionColumn{
	{ten, SVHN, "auprc", "CIFAR-10->SVHN AUPRC", "CIFAR-10 → SVHN AUPRC"},
	{ten, SVHN, "auroc", "CIFAR-10->SVHN AUROC", "CIFAR-10 → SVHN AUROC"},
	{hundred, SVHN, "auprc", "CIFAR-100->SVHN AUPRC", "CIFAR-100 → SVHN AUPRC"},
	{hundred, SVHN, "auroc", "CIFAR-100->SVHN AUROC", "CIFAR-100 → SVHN AUROC"},
	{ten, CIFAR100, "auroc", "", "CIFAR-10 → CIFAR-100 AUROC"},
	{hundred, CIFAR10, "auroc", "", "CIFAR-100 → CIFAR-10 AUROC"},
	{ten, SVHNExcerpt, "auroc", "", "CIFAR-10 → first 1083 of SVHN train, AUROC"},
	{hundred, SVHNExcerpt, "auroc", "", "CIFAR-100 → first 1083 of SVHN train, AUROC"},
}

// processorColumns are of Processor, and not compared with the paper's.
var processorColumns = []detectionColumn{
	{ten, CIFAR100, "auroc", "", "CIFAR-10 → CIFAR-100 AUROC, " + processorHeading},
	{ten, SVHNExcerpt, "auroc", "", "CIFAR-10 → first 1083 of SVHN train, AUROC, " + processorHeading},
}

// detectionTable is the paper's table of out-of-distribution detection with our numbers beside it, columns of our own for
// sets that the paper does not use, and rows of further methods.
func detectionTable(x *tables.Index) (report.Table, error) {
	t := report.Table{Name: "ood-svhn", Columns: []string{"Method", "Score"}}
	t.Caption, t.Notes = prose.Text(t.Name, paper.prose())
	for _, c := range slices.Concat(detectionColumns, processorColumns) {
		t.Columns = append(t.Columns, c.heading)
	}
	for _, r := range detectionRows() {
		made := report.Row{Name: r.title, Cells: report.TextCells(scoreTitle(r.ending))}
		for _, c := range detectionColumns {
			ours, err := x.SummarizeOptional(r.cell(paper, c.images), detectionMetric(c.other, c.metric)+r.ending)
			if err != nil {
				return report.Table{}, err
			}
			if c.published == "" {
				r.paper = ""
			}
			made.Cells = append(made.Cells, r.compared(ours, papers.OODSVHN, measure{published: c.published, decimals: 3, judge: report.DifferenceUp}))
		}
		for _, c := range processorColumns {
			cell, err := r.processorCell(x, c.images, true, measure{metric: detectionMetric(c.other, c.metric), factor: 1, decimals: 3})
			if err != nil {
				return report.Table{}, err
			}
			made.Cells = append(made.Cells, cell)
		}
		t.Rows = append(t.Rows, made)
	}
	return t, nil
}

// detectionRows are the paper's, its method scored as the others too, and those of methods that the paper leaves out: by
// the maximum probability and by their own scores. The ending of a row names its score.
func detectionRows() []row {
	rows := paperRows(methods.MFVI, methods.MCDropout, methods.VDropout, methods.Rank1, methods.Density)
	byEnergy := &rows[len(rows)-1]
	byEnergy.heldOut, byEnergy.ending = true, ByEnergy // the statistic's reference
	rows = append(rows, row{title: "Density, as the baselines", method: methods.Density})
	for _, m := range slices.Concat(singleNetworks, processes) {
		rows = append(rows, addedRows(m)...)
		if own := ownScore(list(Paper, ten, 1, m)[0]); own != "" {
			rows = append(rows, addedRows(m)...)
			rows[len(rows)-1].ending = own
		}
	}
	return rows
}

// fidelitiesTable lists in what the released code differs from the paper's text, for density uncertainty.
func fidelitiesTable(*tables.Index) (report.Table, error) {
	differences, err := experiment.Differences(list(Released, ten, 1, methods.Density)[0], list(Paper, ten, 1, methods.Density)[0])
	if err != nil {
		return report.Table{}, err
	}
	var rows [][]string
	for _, d := range differences {
		rows = append(rows, []string{d.Path, d.Was, d.Is})
	}
	caption, _ := prose.Text("cifar-fidelities", nil)
	return report.PlainTable("cifar-fidelities", caption, []string{"Field", "`cifar.Paper`", "`cifar.Released`"}, rows), nil
}

// titleOf is the name of a set of images in tables; unknown ones keep theirs.
func titleOf(name string) string {
	switch name {
	case CIFAR10:
		return "CIFAR-10"
	case CIFAR100:
		return "CIFAR-100"
	case SVHN:
		return "SVHN"
	case SVHNExcerpt:
		return "SVHN (1,083)"
	}
	return name
}

// networkTitle is the name of a network in tables.
func networkTitle(a nets.Architecture) string {
	n, is := a.(nets.ResNet)
	if !is || len(n.Blocks) == 0 {
		return fmt.Sprintf("%T", a)
	}
	if slices.Equal(n.Widths, nets.WideResNet28x10(nil).Widths) {
		return "WRN-28-10"
	}
	depth := 2
	for _, blocks := range n.Blocks {
		depth += 2 * blocks
	}
	return fmt.Sprintf("ResNet-%d", depth)
}

// grouped is a whole number with its thousands set apart: 175,178.
func grouped(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}
