package cifar

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"densityuncertainty/dul"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

// A group is the results of experiments that differ in their seeds alone.
type group struct {
	experiment.Experiment                     // the first
	found                 []experiment.Result // those that did not diverge
	diverged              int
}

// groupOf is the group of experiments, with the results that there are.
func groupOf(x *tables.Index, all experiment.Experiments) group {
	var g group
	for _, e := range all {
		if r, has := x.Find(e); has {
			g.add(r)
		}
	}
	return g
}

// empty says whether there are no results.
func (g group) empty() bool { return len(g.found)+g.diverged == 0 }

func (g *group) add(r experiment.Result) {
	if g.empty() {
		g.Experiment = *r.Experiment
	}
	if r.Diverged {
		g.diverged++
	} else {
		g.found = append(g.found, r)
	}
}

// having is the group without the results that lack a metric.
func (g group) having(metric string) group {
	g.found = slices.DeleteFunc(slices.Clone(g.found), func(r experiment.Result) bool {
		_, has := r.Metrics[metric]
		return !has
	})
	return g
}

// runs says how many runs there are.
func (g group) runs() string {
	if g.diverged > 0 {
		return fmt.Sprintf("%d, %d diverged", len(g.found), g.diverged)
	}
	return fmt.Sprint(len(g.found))
}

// values are those of a metric, of the results that have it.
func (g group) values(metric string) []float64 {
	var values []float64
	for _, r := range g.having(metric).found {
		values = append(values, r.Metrics[metric])
	}
	return values
}

// mean is that of a metric; NaN if no result has it.
func (g group) mean(metric string) float64 { return meanOf(g.values(metric)) }

// number is the mean of a metric; a dash if no result has it.
func (g group) number(format, metric string) string { return numberText(format, g.mean(metric)) }

// meanOf is the mean of values; NaN for none.
func meanOf(values []float64) float64 {
	mean, _, err := metrics.MeanStd(values)
	if err != nil {
		return math.NaN()
	}
	return mean
}

func numberText(format string, value float64) string {
	if math.IsNaN(value) {
		return "–"
	}
	return fmt.Sprintf(format, value)
}

// cells are the means and standard deviations of several metrics over the results that have them, with their number if not
// all have.
func (g group) cells(measures ...measure) ([]report.Cell, error) {
	var cells []report.Cell
	for _, m := range measures {
		values := g.values(m.metric)
		if len(values) == 0 {
			cells = append(cells, report.TextCell("–"))
			continue
		}
		mean, std, err := metrics.MeanStd(values)
		if err != nil {
			return nil, fmt.Errorf("cifar: averaging %s of %v: %w", m.metric, g, err)
		}
		text := report.MeanStd(m.factor*mean, m.factor*std, m.decimals)
		if len(values) < len(g.found) {
			text += fmt.Sprintf(" (n=%d)", len(values))
		}
		cells = append(cells, report.TextCell(text))
	}
	return cells, nil
}

// timeCells are the time of an epoch on the device that most results are from, and that device.
func (g group) timeCells() []report.Cell {
	byDevice := map[string][]experiment.Result{}
	device := "–"
	for _, r := range g.found {
		byDevice[r.Device] = append(byDevice[r.Device], r)
		if len(byDevice[r.Device]) > len(byDevice[device]) {
			device = r.Device
		}
	}
	var seconds []float64
	for _, r := range byDevice[device] {
		if s := secondsPerEpoch(r); s > 0 {
			seconds = append(seconds, s)
		}
	}
	cells := report.TextCells(numberText("%.3g", meanOf(seconds)), device)
	if len(byDevice) > 1 {
		cells[1] = append(cells[1], report.CellLine{Text: fmt.Sprintf("and %d other", len(byDevice)-1)})
	}
	return cells
}

// secondsPerEpoch is the time of an epoch of all members; 0 if it is not known. Older results have it as a metric.
func secondsPerEpoch(r experiment.Result) float64 {
	d, is := r.Experiment.Task.Data.(Images)
	if s, has := r.Metrics[results.MetricSecondsPerEpoch]; has || r.ExamplesPerSecond == 0 || !is {
		return s
	}
	return float64(max(r.Experiment.Method.Members, 1)*d.trainN()) / r.ExamplesPerSecond
}

// ownScore is the ending of the score by which the authors of a method tell images out of distribution, besides the
// maximum probability, which all methods have; "" for none.
func ownScore(e experiment.Experiment) string {
	switch e.Method.Process.(type) {
	case experiment.SNGP:
		return ByDempsterShafer
	case experiment.DUE:
		return ByEntropy
	}
	switch {
	case e.Method.Members > 1:
		return ByMutualInformation
	case e.Recipe.LogLikelihoodScale > 0: // it has energy models
		return ByEnergy
	}
	return ""
}

// imagesOf are the data of the group, which are no Images in an experiment of one's own.
func (g group) imagesOf() Images {
	d, _ := g.Task.Data.(Images)
	return d
}

// trainedOn is the number of training images, without those held out where all others are used.
func (d Images) trainedOn() string {
	if d.TrainN == 0 && d.HeldOut == 0 && !d.Sample {
		return "all"
	}
	return grouped(d.trainN())
}

// testedOn is the number of test images, or of held-out images that are measured in their place.
func (d Images) testedOn() string {
	switch {
	case d.Choosing:
		return grouped(d.HeldOut) + " held out"
	case d.TestN == 0:
		return "all"
	}
	return grouped(d.TestN)
}

// otherAUROC is the metric of telling the images of the other CIFAR from the test images.
func (g group) otherAUROC() string { return detectionMetric(g.imagesOf().other(), "auroc") }

// Table compares results of any methods, presets and sizes, such as those of one's own layers: a row for each group of
// experiments that differ in the seed only, in the order of their first results, with mean ± standard deviation over the
// seeds. Diverged runs are counted and not averaged.
func Table(found []experiment.Result) (report.Table, error) {
	t := report.Table{Name: "runs", Columns: []string{"Variant", "Data set", "Network", "Training images", "Epochs", "Test images", "n",
		"Accuracy (%)", "NLL", "ECE", "AUROC, probability"}}
	t.Caption, _ = prose.Text(t.Name, nil)
	var groups []group
	at := map[string]int{}
	for _, r := range found {
		if _, has := at[r.Group]; !has {
			at[r.Group], groups = len(groups), append(groups, group{})
		}
		groups[at[r.Group]].add(r)
	}
	for _, g := range groups {
		d, is := g.Task.Data.(Images)
		if !is {
			return report.Table{}, fmt.Errorf("cifar: %v is no experiment on cifar.Images", g)
		}
		cells, err := g.cells(measure{metric: results.MetricAccuracy, factor: 100, decimals: 1}, measure{metric: results.MetricNLL, factor: 1, decimals: 3},
			measure{metric: results.MetricECE, factor: 1, decimals: 3}, measure{metric: g.otherAUROC(), factor: 1, decimals: 3})
		if err != nil {
			return report.Table{}, err
		}
		made := report.TextCells(titleOf(d.Name), networkTitle(g.Task.Network), d.trainedOn(), fmt.Sprint(g.Recipe.Epochs), d.testedOn(), g.runs())
		t.Rows = append(t.Rows, report.Row{Name: g.Method.Name, Cells: slices.Concat(made, cells)})
	}
	return t, nil
}

// scoreRow is a row with classification, calibration and detection: the accuracy with two decimals less than the other
// metrics, then NLL, ECE and more, and how well the other CIFAR is told by the maximum probability and by the method's own
// score. ending is that of the metrics' names. made and then are the cells before and after.
func (g group) scoreRow(decimals int, more []string, ending string, made, then []report.Cell) (report.Row, error) {
	measures := []measure{{metric: results.MetricAccuracy, factor: 100, decimals: decimals - 2}}
	for _, metric := range append([]string{results.MetricNLL, results.MetricECE}, more...) {
		measures = append(measures, measure{metric: metric, factor: 1, decimals: decimals})
	}
	own := "none"
	if score := ownScore(g.Experiment); score != "" {
		own = g.otherAUROC() + score
	}
	measures = append(measures, measure{metric: g.otherAUROC(), factor: 1, decimals: 3}, measure{metric: own, factor: 1, decimals: 3})
	for i := range measures {
		measures[i].metric += ending
	}
	cells, err := g.cells(measures...)
	return report.Row{Name: titleOf(g.imagesOf().Name), Cells: slices.Concat(made, cells, then)}, err
}

// addRows adds a row for a group, and one for those of its runs that have a temperature, with the ending of its metrics.
func (g group) addRows(t *report.Table, row func(g group, name, ending string) (report.Row, error)) error {
	made, err := row(g, "", "")
	t.Rows = append(t.Rows, made)
	if g = g.having(results.MetricNLL + scaledEnding); err == nil && len(g.found) > 0 {
		made, err = row(g, ", temperature scaled", scaledEnding)
		t.Rows = append(t.Rows, made)
	}
	return err
}

// smallTable shows small runs: real results on part of the data, for fewer epochs, each with what it was made with. They
// say nothing about the paper's numbers.
func smallTable(x *tables.Index) (report.Table, error) {
	t := report.Table{
		Name: "cifar-small",
		Columns: []string{"Data set", "Network", "Method", "Training images", "Epochs", "Test images", "n", "Accuracy (%)", "NLL", "ECE",
			"AUROC, probability", "AUROC, own score", "s/epoch", "Device"},
	}
	t.Caption, t.Notes = prose.Text(t.Name, nil)
	for _, d := range []Images{ten, hundred} {
		for _, m := range smallMethods {
			g := groupOf(x, list(Small, d, paperSeeds, m))
			if g.empty() {
				continue
			}
			err := g.addRows(&t, func(g group, name, ending string) (report.Row, error) {
				d := g.imagesOf()
				made := report.TextCells(networkTitle(g.Task.Network), m.Name+name, d.trainedOn(), fmt.Sprint(g.Recipe.Epochs), d.testedOn(), g.runs())
				return g.scoreRow(3, nil, ending, made, g.timeCells())
			})
			if err != nil {
				return report.Table{}, err
			}
		}
	}
	return t, nil
}

// A comparison is a preset whose runs are compared with each other and not with the paper.
type comparison struct {
	settings
	name     string    // after "cifar-", of its tables
	variants []variant // on each data set
	searched bool      // whether options are searched for it
}

// A variant is a preset of a comparison, with what its methods are called beside their names.
type variant struct {
	preset   experiment.Preset
	ending   string
	released bool
	// only, if not nil, are the methods with this variant. Others are not compared with them.
	only []experiment.Method
}

var comparisons = []comparison{
	{onProcessor, "processor", []variant{{preset: Chosen(Processor)}, {preset: Chosen(onProcessor.withDecay(false)), ending: ", decay on weights alone", only: []experiment.Method{methods.Density}}}, true},
	{onGPU, "gpu", []variant{{preset: GPU}, {preset: ReleasedGPU, ending: ", released", released: true}}, false},
}

// text is the caption of one of its tables, by the last part of the table's name.
func (c comparison) text(t *report.Table, table string) {
	t.Name = "cifar-" + c.name + table
	t.Caption, t.Notes = prose.Text("compared"+table, struct {
		Name, TestImages                                 string
		Epochs, Samples, HeldOut, JudgedBins, Replicates int
		Searched, Released                               bool
	}{c.name, grouped(testImages), c.epochs, c.samples, heldOut, judgedBins, replicates, c.searched, !c.searched})
}

// A compared is a group of a comparison.
type compared struct {
	group
	title, option string // its name, and the chosen option; "–" for none
	variant       variant
}

// isReference says whether others are compared with the group: density layers with weight decay on all parameters.
func (g compared) isReference() bool {
	l, is := g.Method.Layers.(dul.Density)
	_, full := l.Energy.(energy.LDL)
	return is && full && g.variant.only == nil
}

// groups are those with results: by data set, whether they are released, method and variant.
func (c comparison) groups(x *tables.Index) []compared {
	var all []compared
	for _, d := range []Images{ten, hundred} {
		for _, released := range []bool{false, true} {
			for _, m := range allMethods() {
				for _, v := range c.variants {
					if v.released != released || v.only != nil && !slices.ContainsFunc(v.only, m.Same) {
						continue
					}
					g := groupOf(x, list(v.preset, d, mostSeeds, m))
					if g.empty() {
						continue
					}
					made := compared{g, m.Name + v.ending, "–", v}
					if s := searchOf(m); s != nil && c.searched {
						choice, _ := chosen()
						made.option = fmt.Sprintf("%s = %g", s.option, choice[methods.NameOf(m)])
					}
					all = append(all, made)
				}
			}
		}
	}
	return all
}

// table shows the runs of a comparison.
func (c comparison) table(x *tables.Index) (report.Table, error) {
	t := report.Table{
		Columns: []string{"Data set", "Method", "Chosen option", "n", "Accuracy (%)", "NLL", "ECE", "Brier", "AURC", "AUROC, probability", "AUROC, own score",
			"Posterior std", "s/epoch", "Device"},
	}
	c.text(&t, "")
	for _, of := range c.groups(x) {
		err := of.addRows(&t, func(g group, name, ending string) (report.Row, error) {
			then := append(report.TextCells(g.number("%.2g", results.MetricPosteriorStd)), g.timeCells()...)
			return g.scoreRow(4, []string{"brier", "aurc"}, ending, report.TextCells(of.title+name, of.option, g.runs()), then)
		})
		if err != nil {
			return report.Table{}, err
		}
	}
	return t, nil
}

// detection shows how well each score of the methods of a comparison tells other images.
func (c comparison) detection(x *tables.Index) (report.Table, error) {
	t := report.Table{Columns: []string{"Data set", "Method", "Score", "n"}}
	c.text(&t, "-ood")
	groups := c.groups(x)
	// The sets that runs are shown, in that order. For all of them the other CIFAR is one, be it 10 or 100.
	var others []func(d Images) string
	for _, other := range []func(d Images) string{Images.other, func(Images) string { return SVHN }, func(Images) string { return SVHNExcerpt }} {
		var names []string
		for _, g := range groups {
			if name := other(g.imagesOf()); len(g.values(detectionMetric(name, "auroc"))) > 0 && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			heading := titleOf(names[0])
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
	largest := map[string]best{} // by data set and column
	for _, g := range groups {
		d := g.imagesOf()
		var shown []string
		for _, other := range others {
			shown = append(shown, other(d))
		}
		for _, by := range g.scores(shown) {
			row := report.Row{Name: titleOf(d.Name), Cells: report.TextCells(g.title, scoreTitle(by), g.runs())}
			for _, other := range shown {
				for _, metric := range []string{"auroc", "auprc"} {
					m := measure{metric: detectionMetric(other, metric) + by, factor: 1, decimals: 3}
					cells, err := g.cells(m)
					if err != nil {
						return report.Table{}, err
					}
					at := fmt.Sprint(d.Name, len(row.Cells))
					if mean := g.mean(m.metric); mean > largest[at].value {
						largest[at] = best{len(t.Rows), mean}
					}
					row.Cells = append(row.Cells, cells[0])
				}
			}
			t.Rows = append(t.Rows, row)
		}
	}
	for column := 3; column < 3+2*len(others); column++ {
		for _, dataset := range []string{CIFAR10, CIFAR100} {
			if b, has := largest[fmt.Sprint(dataset, column)]; has {
				t.Rows[b.row].Cells[column][0].Bold = true
			}
		}
	}
	return t, nil
}

// scores are the endings of the scores by which the runs tell images of some sets: those of all methods, and the energies
// of each layer in the order in which the network applies the layers.
func (g group) scores(others []string) []string {
	var all, layers []string
	for _, by := range scores {
		if slices.ContainsFunc(others, func(other string) bool { return len(g.values(detectionMetric(other, "auroc")+by.ending)) > 0 }) {
			all = append(all, by.ending)
		}
	}
	for _, r := range g.found {
		for name := range r.Metrics {
			if _, layer, is := strings.Cut(name, byLayer("")); is && !slices.Contains(layers, layer) {
				layers = append(layers, layer)
			}
		}
	}
	depth := func(layer string) int {
		switch {
		case layer == "stem":
			return 0
		case strings.HasPrefix(layer, "stage_"):
			return 1
		}
		return 2
	}
	slices.SortFunc(layers, func(a, b string) int { return cmp.Or(cmp.Compare(depth(a), depth(b)), cmp.Compare(a, b)) })
	for _, layer := range layers {
		all = append(all, byLayer(layer))
	}
	return all
}

// scoreTitle is a score in words.
func scoreTitle(ending string) string {
	if layer, is := strings.CutPrefix(ending, byLayer("")); is {
		return "energy, " + layer
	}
	return scores[slices.IndexFunc(scores, func(s score) bool { return s.ending == ending })].words
}

// papersGrid shows the paper's search.
func papersGrid(x *tables.Index) (report.Table, error) {
	t := gridTable{table: report.Table{Name: "cifar-grid"}, chose: "Paper"}
	for _, m := range allMethods() {
		for _, s := range papersSearches {
			if s.method.Same(m) {
				t.add(x, s.search, s.candidates(), s.chosen, "")
			}
		}
	}
	return t.made()
}

// processorsGrid shows the search for Processor.
func processorsGrid(x *tables.Index) (report.Table, error) {
	choice, err := chosen()
	if err != nil {
		return report.Table{}, err
	}
	t := gridTable{table: report.Table{Name: "cifar-processor-grid"}, chose: "Chosen"}
	for _, m := range allMethods() {
		if s := searchOf(m); s != nil {
			t.add(x, *s, s.candidates(), choice[methods.NameOf(m)], "decay=all")
		}
	}
	return t.made()
}

// A gridTable shows for each method the values of an option, measured on held-out training images, the one with the lowest
// NLL in bold, and the one that was chosen.
type gridTable struct {
	table report.Table
	chose string // heads the column of the choice
	err   error
}

// add adds rows for the candidates of a search. also is another option that they have.
func (t *gridTable) add(x *tables.Index, s search, candidates experiment.Experiments, chosen float64, also string) {
	best, lowest, rows := -1, math.Inf(1), 0
	for i, e := range candidates {
		g := groupOf(x, experiment.Experiments{e})
		if g.empty() {
			continue
		}
		cells, err := g.cells(measure{metric: results.MetricNLL, factor: 1, decimals: 4}, measure{metric: results.MetricAccuracy, factor: 100, decimals: 2},
			measure{metric: results.MetricECE, factor: 1, decimals: 4})
		t.err = errors.Join(t.err, err)
		if len(g.found) > 0 {
			if rows++; g.mean(results.MetricNLL) < lowest {
				best, lowest = len(t.table.Rows), g.mean(results.MetricNLL)
			}
		}
		choice := "–"
		if s.values[i] == chosen {
			choice = "chosen"
		}
		words := []string{also, fmt.Sprintf("%s=%g", s.option, s.values[i])}
		slices.Sort(words)
		d := g.imagesOf()
		made := report.TextCells(titleOf(d.Name), networkTitle(g.Task.Network), d.trainedOn(), fmt.Sprint(g.Recipe.Epochs), grouped(d.HeldOut), g.runs())
		name := strings.Join(strings.Fields(s.method.Name+" "+strings.Join(words, " ")), " ")
		t.table.Rows = append(t.table.Rows, report.Row{Name: name, Cells: slices.Concat(made, cells, report.TextCells(choice))})
	}
	if rows > 1 {
		const nllCell = 6
		t.table.Rows[best].Cells[nllCell][0].Bold = true
	}
}

// made is the table with its caption.
func (t *gridTable) made() (report.Table, error) {
	t.table.Columns = []string{"Method", "Data set", "Network", "Training images", "Epochs", "Held out", "n", "NLL", "Accuracy (%)", "ECE", t.chose}
	t.table.Caption, t.table.Notes = prose.Text(t.table.Name, nil)
	return t.table, t.err
}
