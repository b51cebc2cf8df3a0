package tables

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/paper"
	"densityuncertainty/figures/predictions"
	"densityuncertainty/figures/results"
)

// An imageTable is one of the paper's classification tables, with rows of our own.
type imageTable struct {
	name      string
	sets      []string // of the catalogue, where the rows' experiments are; the first settings are the caption's
	dataset   string
	published string // of package paper
	what      string // begins the caption
	rows      []imageRow
}

// An imageRow is a method of an image table with its options, exactly these: what was run with others is
// another row's.
type imageRow struct {
	title   string
	method  string
	options map[string]string
	paper   string // the paper's name of the row; "" where its table has none
	// heldOut asks for the full runs with images held out, which have fewer to train on.
	heldOut bool
	// ending is that of the metrics' names, such as predictions.Scaled. Runs may lack a metric with one.
	ending string
}

// paperRow is a row that the paper has, with its settings.
func paperRow(name, method string) imageRow {
	return imageRow{title: name, paper: name, method: method}
}

var fiveRows = []imageRow{
	paperRow("MFVI", experiment.MFVI), paperRow("MCDropout", experiment.MCDropout), paperRow("VDropout", experiment.VDropout),
	paperRow("Rank-1 BNN", experiment.Rank1), paperRow("Density Uncertainty", experiment.Density),
}

// resnet14Rows are the paper's, the variational ones of these with weight decay on all parameters, and the
// methods that the paper leaves out.
func resnet14Rows() []imageRow {
	rows := slices.Clone(fiveRows)
	for _, row := range fiveRows {
		if row.method == experiment.MFVI || row.method == experiment.Rank1 || row.method == experiment.Density {
			row.options = map[string]string{experiment.OptionDecay: "all"}
			row.title += ", decay=all"
			rows = append(rows, row)
		}
	}
	return append(append(rows, singleRows()...), added(experiment.SNGP), added(experiment.DUE))
}

// added is a row that the paper's table does not have.
func added(method string) imageRow {
	return imageRow{title: Title(method) + notInPaper, method: method}
}

const notInPaper = " (not in the paper)"

// singleRows are a single network, the same with a temperature, and an ensemble.
func singleRows() []imageRow {
	temperature := added(experiment.Deterministic)
	temperature.title = Title(experiment.Deterministic) + ", temperature scaled" + notInPaper
	temperature.heldOut, temperature.ending = true, predictions.Scaled
	return []imageRow{added(experiment.Deterministic), temperature, added(experiment.Ensemble)}
}

// wrnRows are those of the WRN-28 tables.
func wrnRows() []imageRow {
	rows := append(slices.Clone(fiveRows[:4]), paperRow("SNGP", experiment.SNGP), paperRow("DUE", experiment.DUE), fullRankRow, mixtureRow("0.0125"))
	return append(rows, singleRows()...)
}

var fullRankRow = paperRow("Full-rank LDL", experiment.Density)

// mixtureRow is named as in the paper: "Rank-1 Mixture (1.25%)".
func mixtureRow(fraction string) imageRow {
	names := map[string]string{"0.0125": "1.25%", "0.025": "2.5%", "0.05": "5%", "0.1": "10%", "0.2": "20%"}
	row := paperRow(fmt.Sprintf("Rank-1 Mixture (%s)", names[fraction]), experiment.DensityRank1Mix)
	row.options = map[string]string{experiment.OptionMixtureFraction: fraction}
	return row
}

func ablationRows() []imageRow {
	var rows []imageRow
	for _, fraction := range experiment.AblationFractions() {
		rows = append(rows, mixtureRow(fraction))
	}
	return append(rows, fullRankRow)
}

// imageTables are the five classification tables of the paper, and two of the released settings.
func imageTables() []imageTable {
	ten, hundred := experiment.CIFAR10, experiment.CIFAR100
	return []imageTable{
		{"cifar10-resnet14", []string{"cifar10-resnet14", "cifar-gp"}, ten, paper.CIFAR10ResNet14, "CIFAR-10 with ResNet-14", resnet14Rows()},
		{"cifar100-resnet14", []string{"cifar100-resnet14", "cifar-gp"}, hundred, paper.CIFAR100ResNet14, "CIFAR-100 with ResNet-14", resnet14Rows()},
		{"cifar10-wrn", []string{"cifar10-wrn", "cifar-gp-wrn"}, ten, paper.CIFAR10WRN28, "CIFAR-10 with WRN-28-10", wrnRows()},
		{"cifar100-wrn", []string{"cifar100-wrn", "cifar-gp-wrn"}, hundred, paper.CIFAR100WRN28, "CIFAR-100 with WRN-28-10", wrnRows()},
		{"rank1-ablation", []string{"rank1-ablation"}, ten, paper.Rank1Ablation, "Number of rank-1 mixture components as a part of the layers' width, CIFAR-10 with WRN-28-10", ablationRows()},
		{"cifar10-released", []string{"cifar-released"}, ten, paper.CIFAR10ResNet14, "CIFAR-10 with the released settings, whose ResNet-14 has 20 layers", fiveRows},
		{"cifar100-released", []string{"cifar-released"}, hundred, paper.CIFAR100ResNet14, "CIFAR-100 with the released settings, whose ResNet-14 has 20 layers", fiveRows},
	}
}

// inSets are the experiments of sets of the catalogue, each once.
func inSets(names ...string) ([]experiment.Experiment, error) {
	var sets []experiment.Set
	for _, name := range names {
		set, ok := experiment.SetByName(name)
		if !ok {
			return nil, fmt.Errorf("tables: the catalogue has no set %s", name)
		}
		sets = append(sets, set)
	}
	return experiment.Union(sets...), nil
}

// unitOfImageDifference explains Difference in the captions of the image tables.
const unitOfImageDifference = "Difference: (ours − theirs) in units of our standard deviation over the seeds, beyond the rounding of their number; " +
	"\"agrees\" within 1 sd. With 3 seeds that unit is itself uncertain by about half: the verdict is a rough one."

// make fills the table.
func (d imageTable) make(lines []results.Result) (Table, error) {
	experiments, err := inSets(d.sets...)
	if err != nil {
		return Table{}, err
	}
	experiments = experiment.Filter{Datasets: []string{d.dataset}}.Apply(experiments)
	byID := index(lines)
	t := Table{
		Name: d.name,
		Caption: fmt.Sprintf("%s, all 10,000 test images: accuracy in percent, expected calibration error (10 bins), negative log likelihood in nats. "+
			"Ours: mean ± standard deviation over n seeds; %s. Paper: its mean ± standard deviation over 3 seeds. %s Bold: best of ours in the column. "+
			"%s"+
			"Cost: trainable parameters with energy models, operations of a training step for one image, time of an epoch of a full run.",
			d.what, imageSettings(experiments[0]), unitOfImageDifference, posteriorRemark(experiments[0])),
		Columns: []string{"Method", "Accuracy (%)", "ECE", "NLL", "Posterior std", "Parameters", "GFLOP", "s/epoch", "Device"},
	}
	t.Notes = d.notes()
	best := make([]contest, 3)
	for _, row := range d.rows {
		wanted := row.among(experiments)
		r := Row{Name: row.title}
		for i, column := range []struct {
			metric, published string
			factor, sign      float64 // sign -1 where higher is better
			decimals          int
			judge             func(Summary, Published) (float64, string)
		}{
			{MetricAccuracy, "Accuracy", 100, -1, 2, DifferenceUp},
			{MetricECE, "ECE", 1, 1, 4, Difference},
			{MetricNLL, "NLL", 1, 1, 4, Difference},
		} {
			ours, err := byID.average(wanted, column.metric+row.ending, row.ending != "")
			if err != nil {
				return Table{}, err
			}
			cell := ours.scaled(column.factor).lines(column.decimals)
			if row.paper != "" {
				theirs, note := publishedIn(d.published, row.paper, column.published)
				cell = compareBy(column.judge, ours.scaled(column.factor), theirs, "paper", column.decimals)
				if note != "" {
					cell = append(cell, Line{Text: "(" + note + ")"})
				}
			}
			r.Cells = append(r.Cells, cell)
			if ours.Complete() {
				best[i].enter(len(t.Rows), ours.Mean*column.sign)
			}
		}
		r.Cells = append(r.Cells, byID.costs(wanted)...)
		t.Rows = append(t.Rows, r)
	}
	for i, c := range best {
		if c.entered > 1 {
			t.Rows[c.row].Cells[i][0].Bold = true
		}
	}
	return t, nil
}

// notes are the remarks on rows that need one.
func (d imageTable) notes() []string {
	has := func(method string) bool {
		return slices.ContainsFunc(d.rows, func(r imageRow) bool { return r.method == method })
	}
	var notes []string
	if has(experiment.Deterministic) {
		notes = append(notes,
			fmt.Sprintf("Deterministic is a single network without noise, Deep Ensemble the mixture of %d of them with equal weights; parameters, operations and time are those of all its members.", experiment.EnsembleMembers),
			"Temperature scaled: the logits are divided by the number that is best for the likelihood of 5,000 training images, which were held out for it, so that this network is trained on 45,000. No test image has a part in it. \"Not measured\" means that no temperature was best for them.")
	}
	if has(experiment.DUE) {
		notes = append(notes, "SNGP and DUE bound how far a layer stretches distances, and have a Gaussian process in the place of the last layer. They are trained with the settings of the DUE authors' code, "+
			"by which the paper ran them, which differ from those of the other rows (learning rate in steps, weight decay 5e-4, with the Wide ResNet a dropout of 0.3 in training), and take no Monte Carlo samples of the network: "+
			"SNGP divides its logits by what its variance asks for, DUE averages the probabilities over 32 draws of its last layer. The operations are those of the layers, without the Gaussian process.")
	}
	if slices.ContainsFunc(d.rows, func(r imageRow) bool { return r.options[experiment.OptionDecay] != "" }) {
		notes = append(notes, "Rows with decay=all put the weight decay on the variational parameters too, as the released code does; the text says nothing of it. They stand beside the paper's number of their method.")
	}
	return notes
}

// A contest finds the row with the lowest number.
type contest struct {
	entered, row int
	lowest       float64
}

func (c *contest) enter(row int, value float64) {
	if c.entered == 0 || value < c.lowest {
		c.row, c.lowest = row, value
	}
	c.entered++
}

// among returns the experiments of a row. Quick ones always hold images out.
func (r imageRow) among(all []experiment.Experiment) []experiment.Experiment {
	var wanted []experiment.Experiment
	for _, e := range all {
		if e.Method == r.method && maps.Equal(e.Options, r.options) && (e.Scale != experiment.Full || (e.HeldOut > 0) == r.heldOut) {
			wanted = append(wanted, e)
		}
	}
	return wanted
}

// imageSettings says with what an image experiment was run, for captions.
func imageSettings(e experiment.Experiment) string {
	fidelity := map[string]string{
		experiment.Paper:    "the paper's text with our choices where it is silent or does not work (SGD for ADAM, one epoch of generative pretraining)",
		experiment.Released: "settings of the authors' released code",
	}[e.Fidelity]
	return fmt.Sprintf("%s, %d epochs of all 50,000 training images, %d Monte Carlo samples", fidelity, e.Epochs, e.Samples)
}

// posteriorRemark says, for captions, what decides how much noise the trained networks have.
func posteriorRemark(e experiment.Experiment) string {
	remark := "Posterior std: geometric mean of the posterior standard deviations after training. "
	if e.Fidelity == experiment.Paper {
		remark += "Without weight decay on log-variances those of MFVI, Rank-1 BNN and density hardly leave their start of 0.001, since the KL divergence moves them by little, " +
			"so these networks have little noise; the option decay=all, as in the released code, is the other choice. "
	}
	return remark
}

// publishedIn is a number of the paper, and its remark where there is none.
func publishedIn(table, row, column string) (Published, string) {
	cell, ok := paper.Lookup(table, row, column)
	if !ok {
		return Published{Mean: math.NaN(), Std: math.NaN()}, ""
	}
	return Published{cell.Mean, cell.Std, cell.Decimals}, cell.Note
}

// scaled is the summary in another unit.
func (s Summary) scaled(factor float64) Summary {
	s.Mean *= factor
	s.Std *= factor
	return s
}

// costs are the cells of the posterior that came out and of what the runs cost: parameters, operations,
// time of an epoch and device. Posterior, times and device are those of full runs, means over all of them
// and over those on the device that most ran on.
func (l lookup) costs(wanted []experiment.Experiment) []Cell {
	finished := func(scale string) []results.Result {
		var lines []results.Result
		for _, e := range (experiment.Filter{Scale: scale}).Apply(wanted) {
			if line, done := l[e.ID()]; done && !line.Diverged {
				lines = append(lines, line)
			}
		}
		return lines
	}
	full := finished(experiment.Full)
	cells := []Cell{text(orDash("%.2g", meanOf(full, MetricPosteriorStd))), text("–"), text("–"), text("–"), text("–")}
	if all := append(slices.Clip(full), finished(experiment.Quick)...); len(all) > 0 {
		cells[1] = text(grouped(all[0].Metrics[MetricParameters]))
		cells[2] = text(fmt.Sprintf("%.3g", all[0].Metrics[MetricTrainingGFLOP]))
	}
	byDevice := make(map[string][]results.Result)
	device := ""
	for _, line := range full {
		byDevice[line.Device] = append(byDevice[line.Device], line)
		if len(byDevice[line.Device]) > len(byDevice[device]) {
			device = line.Device
		}
	}
	if len(full) > 0 {
		cells[3], cells[4] = text(epochTime(byDevice[device])), text(device)
	}
	if len(byDevice) > 1 {
		cells[4] = append(cells[4], Line{Text: fmt.Sprintf("and %d other", len(byDevice)-1)})
	}
	return cells
}

// meanOf is the mean of a metric over the runs that have it, NaN for none.
func meanOf(runs []results.Result, metric string) float64 {
	sum, n := 0.0, 0
	for _, line := range runs {
		if value, has := line.Metrics[metric]; has {
			sum += value
			n++
		}
	}
	if n == 0 {
		return math.NaN()
	}
	return sum / float64(n)
}

// epochTime prints the mean time of an epoch in seconds.
func epochTime(runs []results.Result) string {
	return orDash("%.3g", meanOf(runs, MetricSecondsPerEpoch))
}

// orDash is a number, or a dash for none.
func orDash(format string, value float64) string {
	if math.IsNaN(value) {
		return "–"
	}
	return fmt.Sprintf(format, value)
}

// grouped is a whole number with its thousands set apart: 175,178.
func grouped(value float64) string {
	digits := fmt.Sprintf("%.0f", value)
	var parts []string
	for ; len(digits) > 3; digits = digits[:len(digits)-3] {
		parts = append(parts, digits[len(digits)-3:])
	}
	parts = append(parts, digits)
	slices.Reverse(parts)
	return strings.Join(parts, ",")
}
