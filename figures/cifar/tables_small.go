package cifar

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"densityuncertainty/figures/cifar/predictions"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// imageGroups collects the lines of image experiments of one scale that differ in the seed alone, in the order of
// data set, network, training images, epochs and method.
func imageGroups(lines []results.Result, scale string, list methods.List) []results.Group {
	groups := results.Groups(slices.DeleteFunc(slices.Clone(lines), func(line results.Result) bool {
		return line.Experiment.Study != results.Images || line.Experiment.Scale != scale
	}))
	at := func(names []string, name string) int { // unknown ones come last
		if i := slices.Index(names, name); i >= 0 {
			return i
		}
		return len(names)
	}
	key := func(g results.Group) []int {
		e := g.First
		return []int{at(Datasets(), e.Dataset), at(Networks(), e.Network), e.TrainN, e.Epochs, at(list.Names(), e.Method)}
	}
	slices.SortStableFunc(groups, func(a, b results.Group) int { return slices.Compare(key(a), key(b)) })
	return groups
}

// runCount says how many runs there are.
func runCount(g results.Group) string {
	if g.Diverged > 0 {
		return fmt.Sprintf("%d, %d diverged", len(g.Lines), g.Diverged)
	}
	return fmt.Sprint(len(g.Lines))
}

// groupCells are the means and standard deviations of several metrics over the lines that have them, with their number
// where not all have.
func groupCells(g results.Group, measures ...measure) ([]report.Cell, error) {
	var cells []report.Cell
	for _, m := range measures {
		mean, std, n, err := g.MeanStd(m.metric)
		if err != nil {
			return nil, err
		}
		text := report.MeanStd(m.factor*mean, m.factor*std, m.decimals)
		if n > 0 && n < len(g.Lines) {
			text += fmt.Sprintf(" (n=%d)", n)
		}
		cells = append(cells, report.TextCell(text))
	}
	return cells, nil
}

// trainedOn is the number of training images, without those held out where all others are used.
func trainedOn(e results.Experiment) string {
	p, err := ProtocolOf(e)
	if all, _ := p.available(); err == nil && e.TrainN == 0 && (e.HeldOut > 0 || p.Sample) {
		return grouped(all - e.HeldOut)
	}
	return orAll(e.TrainN)
}

// orAll prints a number of images, of which 0 are all.
func orAll(n int) string {
	if n == 0 {
		return "all"
	}
	return grouped(n)
}

// smallTable shows the runs of scale small: real results on part of the data, for fewer epochs or with other options,
// each with what it was made with. They say nothing about the paper's numbers.
func smallTable(lines []results.Result, further []methods.Method) (report.Table, error) {
	t := report.Table{
		Name: "cifar-small",
		Columns: []string{"Data set", "Network", "Method", "Training images", "Epochs", "Test images", "n", "Accuracy (%)", "NLL", "ECE",
			"AUROC, probability", "AUROC, own score", "s/epoch", "Device"},
	}
	t.Caption, t.Notes = prose.Text(t.Name, nil)
	list := append(methods.All(), further...)
	groups := imageGroups(lines, results.Small, list)
	titles := groupTitles(groups, list, trainedOn, columnEpochs, columnTest)
	err := addGroups(&t, groups, list, func(i int, g results.Group, m methods.Method, ending string) (report.Row, error) {
		return smallRow(g, m, titles[i], ending)
	})
	return t, err
}

// Table compares runs of any methods, protocols and scales, such as those of one's own layers: a row for each group of
// lines that differ in the seed only, in the order of their first lines, with mean ± standard deviation over the seeds.
// Diverged runs are counted and not averaged.
func Table(lines []results.Result) (report.Table, error) {
	t := report.Table{Name: "runs", Columns: []string{"Variant", "Data set", "Network", "Training images", "Epochs", "Test images", "n",
		"Accuracy (%)", "NLL", "ECE", "AUROC, probability"}}
	t.Caption, _ = prose.Text(t.Name, nil)
	groups := results.Groups(lines)
	titles := groupTitles(groups, nil, trainedOn, columnEpochs, columnTest)
	for i, g := range groups {
		e := g.First
		if e.Study != results.Images {
			return report.Table{}, fmt.Errorf("cifar: %v is no run on images", e)
		}
		cells, err := groupCells(g, measure{metric: results.MetricAccuracy, factor: 100, decimals: 1}, measure{metric: results.MetricNLL, factor: 1, decimals: 3},
			measure{metric: results.MetricECE, factor: 1, decimals: 3}, measure{metric: detectionMetric(otherDataset(e.Dataset), "auroc"), factor: 1, decimals: 3})
		if err != nil {
			return report.Table{}, err
		}
		made := report.TextCells(title(e.Dataset), title(e.Network), trainedOn(e), columnEpochs(e), columnTest(e), runCount(g))
		t.Rows = append(t.Rows, report.Row{Name: titles[i], Cells: slices.Concat(made, cells)})
	}
	return t, nil
}

// addGroups adds a row for each group and, where runs have a temperature, one for these with the ending of its metrics.
func addGroups(t *report.Table, groups []results.Group, list methods.List, row func(i int, g results.Group, m methods.Method, ending string) (report.Row, error)) error {
	for i, g := range groups {
		m, _ := list.Named(g.First.Method)
		for _, ending := range []string{"", predictions.Scaled} {
			if ending != "" {
				if g = having(g, results.MetricNLL+ending); len(g.Lines) == 0 {
					continue
				}
			}
			made, err := row(i, g, m, ending)
			if err != nil {
				return err
			}
			t.Rows = append(t.Rows, made)
		}
	}
	return nil
}

// smallRow is the row of a group in the table of small runs, with the metrics of that ending.
func smallRow(g results.Group, m methods.Method, methodTitle, ending string) (report.Row, error) {
	e := g.First
	if ending == predictions.Scaled {
		methodTitle += ", temperature scaled"
	}
	row := report.Row{Name: title(e.Dataset), Cells: report.TextCells(title(e.Network), methodTitle, trainedOn(e), columnEpochs(e), columnTest(e), runCount(g))}
	auroc := detectionMetric(otherDataset(e.Dataset), "auroc")
	measures := []measure{
		{metric: results.MetricAccuracy + ending, factor: 100, decimals: 1}, {metric: results.MetricNLL + ending, factor: 1, decimals: 3},
		{metric: results.MetricECE + ending, factor: 1, decimals: 3}, {metric: auroc + ending, factor: 1, decimals: 3}, {factor: 1, decimals: 3},
	}
	if len(m.Detects) > 0 {
		measures[4].metric = auroc + m.Detects[0]
	}
	cells, err := groupCells(g, measures...)
	if err != nil {
		return report.Row{}, err
	}
	row.Cells = slices.Concat(row.Cells, cells, timeCells(g))
	return row, nil
}

// having is the group without the lines that lack a metric.
func having(g results.Group, metric string) results.Group {
	g.Lines = slices.DeleteFunc(slices.Clone(g.Lines), func(line results.Result) bool {
		_, has := line.Metrics[metric]
		return !has
	})
	return g
}

// groupTitles names the methods of groups with their options. Where groups are equal in method, data set, network and
// the table's further columns, the names say in what else they differ.
func groupTitles(groups []results.Group, list methods.List, columns ...func(results.Experiment) string) []string {
	title := func(e results.Experiment) string { return list.Title(e.Method) + e.Variant()[len(e.Method):] }
	columns = append(columns, func(e results.Experiment) string { return e.Dataset + " " + e.Network })
	return results.Titles(groups, title, columns,
		func(e results.Experiment) string { return e.Fidelity },
		func(e results.Experiment) string { return e.Scale },
		func(e results.Experiment) string { return grouped(e.HeldOut) + " held out" },
		func(e results.Experiment) string { return "measured on " + columnTest(e) },
		func(e results.Experiment) string { return fmt.Sprintf("%d samples", e.Samples) },
	)
}

// The columns of tables, besides trainedOn, by which groups of runs are told apart.
func columnEpochs(e results.Experiment) string { return fmt.Sprint(e.Epochs) }

// columnTest is the number of test images; of runs that are measured on training images that are held out, of these.
func columnTest(e results.Experiment) string {
	if e.OnHeldOut() {
		return grouped(e.HeldOut) + " held out"
	}
	return orAll(e.TestN)
}

// table shows the runs of a comparison.
func (c comparison) table(lines []results.Result, further []methods.Method) (report.Table, error) {
	t := report.Table{
		Columns: []string{"Data set", "Method", "Chosen option", "n", "Accuracy (%)", "NLL", "ECE", "Brier", "AURC", "AUROC, probability", "AUROC, own score",
			"Posterior std", "s/epoch", "Device"},
	}
	c.text(&t, "")
	list := append(methods.All(), further...)
	err := addGroups(&t, imageGroups(lines, c.Scale, list), list, func(_ int, g results.Group, m methods.Method, ending string) (report.Row, error) {
		return comparedRow(g, m, list, ending)
	})
	return t, err
}

// comparedRow is the row of a group in the table of a comparison, with the metrics of that ending.
func comparedRow(g results.Group, m methods.Method, list methods.List, ending string) (report.Row, error) {
	name, option := comparedTitle(g.First, list)
	if ending == predictions.Scaled {
		name += ", temperature scaled"
	}
	row := report.Row{Name: title(g.First.Dataset), Cells: report.TextCells(name, option, runCount(g))}
	auroc := detectionMetric(otherDataset(g.First.Dataset), "auroc")
	measures := []measure{
		{metric: results.MetricAccuracy + ending, factor: 100, decimals: 2}, {metric: results.MetricNLL + ending, factor: 1, decimals: 4},
		{metric: results.MetricECE + ending, factor: 1, decimals: 4}, {metric: metricBrier + ending, factor: 1, decimals: 4},
		{metric: metricAURC + ending, factor: 1, decimals: 4}, {metric: auroc + ending, factor: 1, decimals: 3}, {factor: 1, decimals: 3},
	}
	if len(m.Detects) > 0 {
		measures[6].metric = auroc + m.Detects[0] + ending
	}
	cells, err := groupCells(g, measures...)
	if err != nil {
		return report.Row{}, err
	}
	row.Cells = append(append(row.Cells, cells...), report.TextCell(number("%.2g", g, results.MetricPosteriorStd)))
	row.Cells = append(row.Cells, timeCells(g)...)
	return row, nil
}

// The metrics of package predictions that only this study has.
const metricBrier, metricAURC = "brier", "aurc"

// detection shows how well each score of the methods of a comparison tells other images.
func (c comparison) detection(lines []results.Result, further []methods.Method) (report.Table, error) {
	t := report.Table{Columns: []string{"Data set", "Method", "Score", "n"}}
	c.text(&t, "-ood")
	list := append(methods.All(), further...)
	groups := imageGroups(lines, c.Scale, list)
	// The sets that runs are shown, in that order; for all of them the other CIFAR is one, be it 10 or 100.
	var others []func(results.Experiment) string
	for _, other := range []func(results.Experiment) string{
		func(e results.Experiment) string { return otherDataset(e.Dataset) },
		func(results.Experiment) string { return svhnTest },
		func(results.Experiment) string { return svhnExcerpt },
	} {
		var names []string
		for _, g := range groups {
			if name := other(g.First); len(having(g, detectionMetric(name, "auroc")).Lines) > 0 && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			heading := otherTitle(names[0])
			if len(names) > 1 {
				heading = "Other CIFAR"
			}
			others = append(others, other)
			t.Columns = append(t.Columns, heading+" AUROC", heading+" AUPRC")
		}
	}
	type best struct {
		row   int
		value float64
	}
	largest := make(map[string]best) // by data set and column
	for _, g := range groups {
		name, _ := comparedTitle(g.First, list)
		m, _ := list.Named(g.First.Method)
		var shown []string
		for _, other := range others {
			shown = append(shown, other(g.First))
		}
		for _, by := range scoresOf(g, m, shown) {
			row := report.Row{Name: title(g.First.Dataset), Cells: report.TextCells(name, scoreTitle(by), runCount(g))}
			for _, other := range shown {
				for _, metric := range []string{"auroc", "auprc"} {
					m := measure{metric: detectionMetric(other, metric) + by, factor: 1, decimals: 3}
					cells, err := groupCells(g, m)
					if err != nil {
						return report.Table{}, err
					}
					at := fmt.Sprint(g.First.Dataset, len(row.Cells))
					if mean := meanOf(g, m.metric); mean > largest[at].value {
						largest[at] = best{len(t.Rows), mean}
					}
					row.Cells = append(row.Cells, cells[0])
				}
			}
			t.Rows = append(t.Rows, row)
		}
	}
	for column := 3; column < 3+2*len(others); column++ {
		for _, dataset := range Datasets() {
			if b, has := largest[fmt.Sprint(dataset, column)]; has {
				t.Rows[b.row].Cells[column][0].Bold = true
			}
		}
	}
	return t, nil
}

// otherTitle is the name of a set out of distribution in tables.
func otherTitle(name string) string {
	switch name {
	case svhnTest:
		return "SVHN"
	case svhnExcerpt:
		return "SVHN (1,083)"
	}
	return title(name)
}

// scoresOf are the scores with which runs of a method tell images: those of all methods, and the energies of each layer
// in the order in which the network applies the layers. Mutual information is nothing where there is a single network
// without noise.
func scoresOf(g results.Group, m methods.Method, others []string) []string {
	single := m.Networks() == 1 && m.SamplesOf(2) == 1
	var all []string
	for _, by := range new(predictions.Predictions).Scores() {
		if by == methods.ByMutualInformation && single {
			continue
		}
		if slices.ContainsFunc(others, func(other string) bool { return len(having(g, detectionMetric(other, "auroc")+by).Lines) > 0 }) {
			all = append(all, by)
		}
	}
	var layers []string
	for _, line := range g.Lines {
		for name := range line.Metrics {
			if _, layer, is := strings.Cut(name, predictions.ByLayer("")); is && !slices.Contains(layers, layer) {
				layers = append(layers, layer)
			}
		}
	}
	slices.SortFunc(layers, func(a, b string) int { return cmp.Or(cmp.Compare(depth(a), depth(b)), cmp.Compare(a, b)) })
	for _, layer := range layers {
		all = append(all, predictions.ByLayer(layer))
	}
	return all
}

// depth orders the names of a ResNet's layers as the network applies them.
func depth(layer string) int {
	switch {
	case layer == "stem":
		return 0
	case strings.HasPrefix(layer, "stage_"):
		return 1
	}
	return 2
}

// scoreTitle is a score in words.
func scoreTitle(by string) string {
	if layer, is := strings.CutPrefix(by, predictions.ByLayer("")); is {
		return "energy, " + layer
	}
	return scoreWords[by]
}

// A gridKind is a search for hyperparameters.
type gridKind struct {
	table, scale string
	chose        string // heads the column of the choice
	chosen       func(results.Experiment) bool
}

var (
	papersGrid     = gridKind{"cifar-grid", results.Grid, "Paper", chosenByPaper}
	processorsGrid = gridKind{"cifar-processor-grid", results.ProcessorGrid, "Chosen", isChosen}
)

// make shows the grid search: for each method the choices, measured on held-out training images, the one with the
// lowest NLL in bold, and the one that was chosen.
func (k gridKind) make(lines []results.Result, further []methods.Method) (report.Table, error) {
	t := report.Table{
		Name:    k.table,
		Columns: []string{"Method", "Data set", "Network", "Training images", "Epochs", "Held out", "n", "NLL", "Accuracy (%)", "ECE", k.chose},
	}
	t.Caption, t.Notes = prose.Text(t.Name, nil)
	list := append(methods.All(), further...)
	groups := imageGroups(lines, k.scale, list)
	titles := groupTitles(groups, list, trainedOn, columnEpochs, func(e results.Experiment) string { return grouped(e.HeldOut) })
	rivals := make(map[string][]int) // the rows of a method with the same training
	for i, g := range groups {
		e := g.First
		row := report.Row{Name: titles[i], Cells: report.TextCells(title(e.Dataset), title(e.Network), trainedOn(e), fmt.Sprint(e.Epochs), grouped(e.HeldOut), runCount(g))}
		cells, err := groupCells(g, measure{metric: results.MetricNLL, factor: 1, decimals: 4}, measure{metric: results.MetricAccuracy, factor: 100, decimals: 2},
			measure{metric: results.MetricECE, factor: 1, decimals: 4})
		if err != nil {
			return report.Table{}, err
		}
		chosen := "–"
		if k.chosen(e) {
			chosen = "chosen"
		}
		row.Cells = append(append(row.Cells, cells...), report.TextCell(chosen))
		t.Rows = append(t.Rows, row)
		if !math.IsNaN(meanOf(g, results.MetricNLL)) {
			e.Options = nil
			rivals[e.Group()] = append(rivals[e.Group()], i)
		}
	}
	const nllCell = 6
	for _, rows := range rivals {
		if len(rows) > 1 {
			best := slices.MinFunc(rows, func(a, b int) int {
				return cmp.Compare(meanOf(groups[a], results.MetricNLL), meanOf(groups[b], results.MetricNLL))
			})
			t.Rows[best].Cells[nllCell][0].Bold = true
		}
	}
	return t, nil
}

// chosenByPaper says whether an experiment has the choice of the paper's grid search for its method.
func chosenByPaper(e results.Experiment) bool {
	return slices.ContainsFunc(papersSearches, func(s papersSearch) bool {
		return s.method.Name == e.Method && e.Options[s.option] == s.chosen
	})
}
