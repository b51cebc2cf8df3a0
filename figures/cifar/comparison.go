package cifar

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

// compared is a preset whose runs are compared with each other and not with the paper, with options that were searched for.
var compared = Chosen(Processor)

// comparedTable is one of the tables of the comparison without rows, by the last part of its name.
func comparedTable(part string) report.Table {
	t := prose.Table("compared"+part, struct {
		TestImages, TrainingImages                       string
		Epochs, Samples, HeldOut, JudgedBins, Replicates int
	}{
		grouped(onProcessor.sizes.testN()), grouped(onProcessor.sizes.trainN()),
		onProcessor.epochs, onProcessor.samples, heldOut, comparedBins, replicates,
	})
	t.Name = "cifar-processor" + part
	return t
}

// comparedRows are the methods with results: by data set and method. The index has the deep ensembles, too, that
// predictions of single networks make. Density uncertainty has a second row, with which others are not compared.
func comparedRows(x *tables.Index) ([]row, *tables.Index, error) {
	var rows []row
	var err error
	for _, d := range []Images{ten, hundred} {
		x, err = WithEnsemble(x, seeded(compared, 1).Of(d, methods.Ensemble)[0], seeded(compared, methods.Ensemble.Members).Of(d, methods.Deterministic))
		if err != nil {
			return nil, nil, err
		}
		add := func(preset experiment.Preset, m experiment.Method, ending string) {
			r := row{group: titleOf(d.Name), name: m.Name + ending, images: d, option: "–"}
			r.found, r.runs = found(x, seeded(preset, mostSeeds).Of(d, m))
			r.made = m.Members > 1 && len(r.found) == 1
			if len(r.runs) == 0 {
				return
			}
			r.reference = m.Equal(methods.Density) && ending == ""
			if c, has := chosen()[m.Key]; has {
				r.option = fmt.Sprintf("%s = %g", c.name, c.value)
			}
			rows = append(rows, r)
		}
		for _, m := range methods.All() {
			add(compared, m, "")
			if m.Equal(methods.Density) {
				add(Chosen(onProcessor.withDecay(false)), m, ", decay on weights alone")
			}
		}
	}
	return rows, x, nil
}

// found are the results of experiments that did not diverge, and all experiments that have a result.
func found(x *tables.Index, all experiment.Experiments) (finite []experiment.Result, run experiment.Experiments) {
	for _, e := range all {
		r, has := x.Find(e)
		if has {
			run = append(run, e)
		}
		if has && !r.Diverged {
			finite = append(finite, r)
		}
	}
	return finite, run
}

// diverged says whether a run of the row did.
func (r row) diverged() bool { return len(r.found) < len(r.runs) }

// has says whether a run has a metric.
func (r row) has(metric string) bool {
	return slices.ContainsFunc(r.found, func(found experiment.Result) bool {
		_, has := found.Metrics[metric]
		return has
	})
}

// words is a column of words.
func words(title string, of func(r row) string) column {
	return column{title, func(r row) tables.Cell { return tables.Words("%s", of(r)) }}
}

// runs is the column with the number of runs that did not diverge.
var runs = words("n", func(r row) string { return fmt.Sprint(len(r.found)) })

// number is a number with a format; a dash for none, which is NaN.
func number(format string, value float64) string {
	if math.IsNaN(value) {
		return "–"
	}
	return fmt.Sprintf(format, value)
}

// processorTable shows how well the methods classify and how well they are calibrated after 10 epochs.
func processorTable(x *tables.Index) (report.Table, error) {
	rows, x, err := comparedRows(x)
	if err != nil {
		return report.Table{}, err
	}
	columns := []column{runs, ranked(accuracy), ranked(nll), ranked(ece), plain(brier), plain(aurc), words("Posterior std", func(r row) string {
		var values []float64
		for _, f := range r.found {
			if v, has := f.Metrics[metricPosteriorStd]; has {
				values = append(values, v)
			}
		}
		return number("%.2g", stat.Mean(values, nil))
	})}
	columns = append(columns, words("Chosen option", func(r row) string { return r.option }))
	return fill(x, comparedTable(""), columns, rows)
}

// shown are rows once for each set of images out of distribution that their runs were shown, in groups of their own.
func shown(rows []row) []row {
	var all []row
	for _, d := range []Images{ten, hundred} {
		for _, other := range []string{d.other(), SVHN, SVHNExcerpt} {
			for _, r := range rows {
				if r.images.Name == d.Name && r.has(detectionMetric(other, "auroc")) {
					r.other, r.group = other, r.group+", shown "+titleOf(other)
					all = append(all, r)
				}
			}
		}
	}
	return all
}

// detection shows how well each score separates out-of-distribution images, by the area under the ROC curve, auroc, or
// the precision-recall curve, auprc.
func detection(part, metric string) func(x *tables.Index) (report.Table, error) {
	return func(x *tables.Index) (report.Table, error) {
		rows, x, err := comparedRows(x)
		if err != nil {
			return report.Table{}, err
		}
		rows = shown(rows)
		columns := []column{runs}
		for _, by := range scores {
			of := func(r row) tables.Number { return detected(r.other, metric, by.ending) }
			if slices.ContainsFunc(rows, func(r row) bool { return r.has(of(r).Name) }) {
				columns = append(columns, column{by.words, func(r row) tables.Cell { return r.cell(of(r), metric, "") }})
			}
		}
		return fill(x, comparedTable(part), columns, rows)
	}
}

// processorLayers shows how well the energy of each layer separates out-of-distribution images, for the methods that have energies.
func processorLayers(x *tables.Index) (report.Table, error) {
	rows, x, err := comparedRows(x)
	if err != nil {
		return report.Table{}, err
	}
	var columns []column
	var lines []row
	for _, r := range shown(rows) {
		layers := r.layers()
		if len(layers) == 0 {
			continue
		}
		if !slices.ContainsFunc(columns, func(c column) bool { return c.title == r.name }) {
			columns = append(columns, column{r.name, func(line row) tables.Cell {
				i := slices.IndexFunc(rows, func(of row) bool { return of.name == r.name && strings.HasPrefix(line.group, of.group+", shown ") })
				if i < 0 {
					return tables.Printed{}.Theirs()
				}
				return rows[i].cell(detected(line.other, "auroc", byLayer(line.name)), "auroc", "")
			}})
		}
		for _, layer := range layers {
			if !slices.ContainsFunc(lines, func(line row) bool { return line.name == layer && line.group == r.group }) {
				lines = append(lines, row{group: r.group, name: layer, other: r.other})
			}
		}
	}
	t := comparedTable("-layers")
	t.Columns = []string{"Input of the layer"}
	return fill(x, t, columns, lines)
}

// layers are the layers whose energies are scores of out-of-distribution images, in the order in which the network applies them.
func (r row) layers() []string {
	var layers []string
	for _, found := range r.found {
		for name := range found.Metrics {
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
	return layers
}

// ownScore is the ending of the score by which the authors of a method tell images out of distribution; byMaxProbability,
// which all methods have, where they have no other.
func ownScore(e experiment.Experiment) string {
	switch {
	case e.Method.Equal(methods.SNGP):
		return byDempsterShafer
	case e.Method.Equal(methods.DUE):
		return byEntropy
	case e.Method.Members > 1:
		return byMutualInformation
	case e.Recipe.LogLikelihoodScale > 0: // it has energy models
		return ByEnergy
	}
	return byMaxProbability
}

// scoreTitle is a score in words.
func scoreTitle(ending string) string {
	return scores[slices.IndexFunc(scores, func(s score) bool { return s.ending == ending })].words
}

// processorsGrid shows the search for Processor: the values of an option, measured on held-out images.
func processorsGrid(x *tables.Index) (report.Table, error) {
	var rows []row
	for _, s := range searchSpaces {
		for i, e := range s.experiments() {
			r := row{group: s.method.Name + ": " + s.name, name: fmt.Sprint(s.values[i]), runs: experiment.Experiments{e}}
			if s.values[i] == chosen()[s.method.Key].value {
				r.name += ", chosen"
			}
			rows = append(rows, r)
		}
	}
	t := prose.Table("cifar-processor-grid", nil)
	t.Columns = []string{"Value"}
	return fill(x, t, []column{ranked(nll), plain(accuracy), plain(ece)}, rows)
}
