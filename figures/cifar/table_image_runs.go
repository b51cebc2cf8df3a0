package tables

import (
	"fmt"
	"math"
	"slices"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/predictions"
	"densityuncertainty/figures/results"
)

// An imageGroup is the lines of image experiments that differ in the seed alone.
type imageGroup struct {
	first    experiment.Experiment
	lines    []results.Result // that did not diverge
	diverged int
}

// imageGroups collects the lines of image experiments of one scale, in the order of data set, network,
// training images, epochs and method.
func imageGroups(lines []results.Result, scale string) []imageGroup {
	var groups []imageGroup
	at := make(map[string]int)
	for _, line := range lines {
		e := line.Experiment
		if e.Study != experiment.Images || e.Scale != scale {
			continue
		}
		i, seen := at[e.Group()]
		if !seen {
			i = len(groups)
			at[e.Group()] = i
			groups = append(groups, imageGroup{first: e})
		}
		if line.Diverged {
			groups[i].diverged++
		} else {
			groups[i].lines = append(groups[i].lines, line)
		}
	}
	key := func(g imageGroup) []int {
		e := g.first
		return []int{slices.Index(experiment.ImageDatasets(), e.Dataset), slices.Index(experiment.Networks(), e.Network), e.TrainN, e.Epochs,
			slices.Index(experiment.Methods(), e.Method)}
	}
	slices.SortStableFunc(groups, func(a, b imageGroup) int { return slices.Compare(key(a), key(b)) })
	return groups
}

// count says how many runs there are.
func (g imageGroup) count() string {
	if g.diverged > 0 {
		return fmt.Sprintf("%d, %d diverged", len(g.lines), g.diverged)
	}
	return fmt.Sprint(len(g.lines))
}

// number prints mean ± standard deviation of a metric over the lines that have it.
func (g imageGroup) number(metric string, factor float64, decimals int) (string, error) {
	var values []float64
	for _, line := range g.lines {
		if value, has := line.Metrics[metric]; has {
			values = append(values, factor*value)
		}
	}
	if len(values) == 0 {
		return "–", nil
	}
	mean, std, err := metrics.MeanStd(values)
	if err != nil {
		return "", fmt.Errorf("tables: averaging %s of %v: %w", metric, g.first, err)
	}
	return meanStd(mean, std, decimals), nil
}

// numbers are the cells of several metrics.
func (g imageGroup) numbers(columns ...numberColumn) ([]Cell, error) {
	var cells []Cell
	for _, c := range columns {
		printed, err := g.number(c.metric, c.factor, c.decimals)
		if err != nil {
			return nil, err
		}
		cells = append(cells, text(printed))
	}
	return cells, nil
}

type numberColumn struct {
	metric   string
	factor   float64
	decimals int
}

// imageTitles are the names of data sets and networks in tables.
var imageTitles = map[string]string{
	experiment.CIFAR10: "CIFAR-10", experiment.CIFAR100: "CIFAR-100",
	experiment.ResNet14: "ResNet-14", experiment.ResNet20: "ResNet-20", experiment.WRN28x10: "WRN-28-10",
}

// allOr prints a number of images, of which 0 are all.
func allOr(n int) string {
	if n == 0 {
		return "all"
	}
	return grouped(float64(n))
}

// CIFARSmall shows the runs of scale small: real results on part of the data, for fewer epochs or with
// other options, each with what it was made with. They say nothing about the paper's numbers.
func CIFARSmall(lines []results.Result) (Table, error) {
	t := Table{
		Name: "cifar-small",
		Caption: "Small runs on real CIFAR images, each with its number of training images and epochs: mean ± standard deviation over n seeds of accuracy in percent, " +
			"negative log likelihood in nats and expected calibration error (10 bins) on the given number of test images, and area under the ROC curve of telling the other CIFAR's test images from these, " +
			"by maximum probability and by the method's own score: the energy statistic, the Dempster-Shafer uncertainty of SNGP's logits, the entropy of DUE's predictions, " +
			"or the mutual information of label and member of an ensemble. Of an ensemble the time of an epoch is that of all its members. They are not comparable with the paper, whose models see 50,000 images for 200 epochs.",
		Columns: []string{"Data set", "Network", "Method", "Training images", "Epochs", "Test images", "n", "Accuracy (%)", "NLL", "ECE", "AUROC, probability", "AUROC, own score", "s/epoch", "Device"},
	}
	groups := imageGroups(lines, experiment.Small)
	methods := methodTitles(groups, func(e experiment.Experiment) []int { return []int{e.TrainN, e.Epochs, e.TestN} })
	for i, g := range groups {
		row, err := g.smallRow(methods[i], "")
		if err != nil {
			return Table{}, err
		}
		t.Rows = append(t.Rows, row)
		if scaled := g.having(MetricNLL + predictions.Scaled); len(scaled.lines) > 0 {
			if row, err = scaled.smallRow(methods[i]+", temperature scaled", predictions.Scaled); err != nil {
				return Table{}, err
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t, nil
}

// ownScores are the scores by which methods tell images out of distribution besides the maximum
// probability, as endings of the metrics' names.
var ownScores = map[string]string{
	experiment.Density: predictions.ByEnergy, experiment.DensityRank1Mix: predictions.ByEnergy,
	experiment.Ensemble: predictions.ByMutualInformation, experiment.SNGP: predictions.ByDempsterShafer, experiment.DUE: predictions.ByEntropy,
}

// smallRow is the row of a group in CIFARSmall, with the metrics of that ending.
func (g imageGroup) smallRow(title, ending string) (Row, error) {
	e := g.first
	row := Row{Name: imageTitles[e.Dataset], Cells: []Cell{text(imageTitles[e.Network]), text(title), text(allOr(e.TrainN)),
		text(fmt.Sprint(e.Epochs)), text(allOr(e.TestN)), text(g.count())}}
	other := experiment.CIFAR100
	if e.Dataset == other {
		other = experiment.CIFAR10
	}
	detection := "ood_" + other + "_auroc"
	columns := []numberColumn{{MetricAccuracy + ending, 100, 1}, {MetricNLL + ending, 1, 3}, {MetricECE + ending, 1, 3}, {detection + ending, 1, 3}, {"", 1, 3}}
	if own, has := ownScores[e.Method]; has {
		columns[4].metric = detection + own
	}
	cells, err := g.numbers(columns...)
	if err != nil {
		return Row{}, err
	}
	row.Cells = append(append(row.Cells, cells...), g.timeAndDevice()...)
	return row, nil
}

// having is the group without the lines that lack a metric.
func (g imageGroup) having(metric string) imageGroup {
	g.lines = slices.DeleteFunc(slices.Clone(g.lines), func(line results.Result) bool {
		_, has := line.Metrics[metric]
		return !has
	})
	return g
}

// timeAndDevice are the time of an epoch and where it was taken.
func (g imageGroup) timeAndDevice() []Cell {
	if len(g.lines) == 0 {
		return []Cell{text("–"), text("–")}
	}
	return []Cell{text(epochTime(g.lines)), text(g.lines[0].Device)}
}

// methodTitle names a method with its options.
func methodTitle(e experiment.Experiment) string {
	variant := experiment.Experiment{Method: e.Method, Options: e.Options}.Variant()
	return Title(e.Method) + variant[len(e.Method):]
}

// methodTitles names the methods of groups. Where groups are equal in method, data set, network and the
// table's further columns, the names say in what else they differ.
func methodTitles(groups []imageGroup, columns func(experiment.Experiment) []int) []string {
	hidden := []func(experiment.Experiment) string{
		func(e experiment.Experiment) string { return e.Fidelity },
		func(e experiment.Experiment) string { return grouped(float64(e.HeldOut)) + " held out" },
		func(e experiment.Experiment) string { return allOr(e.TestN) + " test images" },
		func(e experiment.Experiment) string { return fmt.Sprintf("%d samples", e.Samples) },
	}
	titles := make([]string, len(groups))
	for i, g := range groups {
		titles[i] = methodTitle(g.first)
		for _, field := range hidden {
			if slices.ContainsFunc(groups, func(other imageGroup) bool {
				a, b := g.first, other.first
				return methodTitle(a) == methodTitle(b) && a.Dataset == b.Dataset && a.Network == b.Network &&
					slices.Equal(columns(a), columns(b)) && field(a) != field(b)
			}) {
				titles[i] += ", " + field(g.first)
			}
		}
	}
	return titles
}

// chosenByPaper is what the paper's grid search chose, of the options that gridSearch varies.
var chosenByPaper = map[string][2]string{
	experiment.MCDropout: {experiment.OptionDropoutRate, "0.1"},
	experiment.VDropout:  {experiment.OptionAlpha, "0.1"},
	experiment.Rank1:     {experiment.OptionPriorStd, "0.1"},
	experiment.Density:   {experiment.OptionPriorStd, "1"},
}

// CIFARGrid shows the grid search: for each method the choices, measured on held-out training images, the
// one with the lowest NLL in bold, and the one that the paper chose.
func CIFARGrid(lines []results.Result) (Table, error) {
	t := Table{
		Name: "cifar-grid",
		Caption: "Grid search over the hyperparameters that the paper searches: NLL in nats, accuracy in percent and expected calibration error (10 bins) on training images that were held out. " +
			"The test images have no part in it. Bold: the lowest NLL of a method with the same training.",
		Columns: []string{"Method", "Data set", "Network", "Training images", "Epochs", "Held out", "n", "NLL", "Accuracy (%)", "ECE", "Paper"},
	}
	best := make(map[string]*contest)
	groups := imageGroups(lines, experiment.Grid)
	methods := methodTitles(groups, func(e experiment.Experiment) []int { return []int{e.TrainN, e.Epochs, e.HeldOut} })
	for i, g := range groups {
		e := g.first
		row := Row{Name: methods[i], Cells: []Cell{text(imageTitles[e.Dataset]), text(imageTitles[e.Network]), text(allOr(e.TrainN)),
			text(fmt.Sprint(e.Epochs)), text(grouped(float64(e.HeldOut))), text(g.count())}}
		cells, err := g.numbers(numberColumn{MetricNLL, 1, 4}, numberColumn{MetricAccuracy, 100, 2}, numberColumn{MetricECE, 1, 4})
		if err != nil {
			return Table{}, err
		}
		choice := chosenByPaper[e.Method]
		chosen := "–"
		if choice[0] != "" && e.Options[choice[0]] == choice[1] {
			chosen = "chosen"
		}
		row.Cells = append(append(row.Cells, cells...), text(chosen))
		t.Rows = append(t.Rows, row)

		without := e
		without.Options = nil
		if nll := meanOf(g.lines, MetricNLL); !math.IsNaN(nll) {
			if best[without.Group()] == nil {
				best[without.Group()] = new(contest)
			}
			best[without.Group()].enter(len(t.Rows)-1, nll)
		}
	}
	const nllCell = 6
	for _, winner := range best {
		if winner.entered > 1 {
			t.Rows[winner.row].Cells[nllCell][0].Bold = true
		}
	}
	return t, nil
}
