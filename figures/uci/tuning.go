package uci

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

// noiseScales are the values to try: up to the text's standard deviation of 0.1, and rates and variances as many times
// smaller than the paper's.
var noiseScales = []float64{0.003, 0.01, 0.03, 0.1}

// hasNoise says whether the noise of a method has a strength to choose.
func hasNoise(m experiment.Method) bool {
	_, is := methods.WithNoise(m.Layers, 1)
	return is
}

// grid are the choices to try for a method on each split: the optimizers, each with the same learning rate and with all
// noise scales.
func grid(m experiment.Method) (all []choice) {
	scales := noiseScales
	if !hasNoise(m) {
		scales = []float64{0}
	}
	for _, optimizer := range []string{sgd, adam} {
		for _, scale := range scales {
			all = append(all, choice{optimizer, scale})
		}
	}
	return all
}

// tunings are the settings whose hyperparameters are chosen by the set uci-tuning: every method on the small sets and on
// their gap splits, and on the larger ones, but for Year, the density layers and the methods that the paper compares them
// with there (the table uci-claims).
func tunings() []setting {
	return []setting{
		tunedSetting(Gal, SmallDatasets()...).only(tunedMethods()...),
		tunedSetting(Gap, SmallDatasets()...).only(tunedMethods()...),
		tunedSetting(Gal, "kin8nm", "naval", "protein").only(slices.Concat(energyMethods(), rivals())...),
	}
}

// tried are the experiments by a choice on held-out training examples, one on each split.
func (c choice) tried(dataset string, splits Splits, m experiment.Method) experiment.Experiments {
	s := setting{datasets: []string{dataset}, splits: splits, list: by(func(data experiment.Source, m experiment.Method) (experiment.Experiment, error) {
		d := data.(Data)
		d.Choosing = true
		return c.experiment(d, m)
	})}
	return s.runs(dataset, m)
}

// Choose makes the file tuned.csv from the results of the set uci-tuning. For each data set and method of which all of
// the grid was run, it has on every split the choice with the lowest negative log likelihood on the held-out training
// examples. A run that diverged is not chosen. missing names the data sets, splits and methods of which runs are missing.
func Choose(x *tables.Index) (file []byte, missing []string, err error) {
	all := [][]string{strings.Split(tunedHeading, ",")}
	for _, t := range tunings() {
		for _, dataset := range t.datasets {
			var without []string
			for _, m := range t.methods {
				rows, complete, err := choose(x, dataset, t.splits, m)
				if err != nil {
					return nil, nil, fmt.Errorf("uci: choosing: %w", err)
				}
				if !complete {
					without = append(without, methods.NameOf(m))
				}
				all = append(all, rows...)
			}
			if len(without) == len(t.methods) {
				without = []string{"all methods"}
			}
			if len(without) > 0 {
				missing = append(missing, fmt.Sprintf("%s on %s (%v splits)", strings.Join(without, ", "), dataset, t.splits))
			}
		}
	}
	var text bytes.Buffer
	w := csv.NewWriter(&text)
	if err := errors.Join(w.WriteAll(all), w.Error()); err != nil {
		return nil, nil, fmt.Errorf("uci: choosing: %w", err)
	}
	return text.Bytes(), missing, nil
}

// choose are the rows of the file for a method on a data set. If a run is missing, there are none, and complete is false.
func choose(x *tables.Index, dataset string, splits Splits, m experiment.Method) (rows [][]string, complete bool, err error) {
	choices := grid(m)
	var tried []experiment.Experiments
	for _, c := range choices {
		tried = append(tried, c.tried(dataset, splits, m))
	}
	for split := range tried[0] {
		candidates := make(experiment.Experiments, len(choices))
		for i := range choices {
			candidates[i] = tried[i][split]
		}
		best, nll, complete, err := x.Lowest(candidates, results.MetricNLL)
		if err != nil || !complete {
			return nil, false, err
		}
		if best < 0 {
			continue // all diverged
		}
		c := choices[best]
		rows = append(rows, []string{dataset, splits.String(), strconv.Itoa(split), methods.NameOf(m), c.optimizer, formatNoise(c.noise), strconv.FormatFloat(nll, 'f', 4, 64)})
	}
	return rows, true, nil
}

// TuningTable says which settings Tuned has: for each method how often each was chosen, over the splits of a data set. The
// results do not matter.
func TuningTable(*tables.Index) (report.Table, error) {
	t := begun("uci-tuning", "Data set", "")
	chosen, err := choices()
	if err != nil {
		return t, err
	}
	list := tunedMethods()
	for _, m := range list {
		t.Columns = append(t.Columns, m.Name)
	}
	for _, tuning := range tunings() {
		for _, dataset := range tuning.datasets {
			row := report.Row{Group: "random splits", Name: DatasetTitle(dataset)}
			if tuning.splits == Gap {
				row.Group = "gap splits"
			}
			for _, m := range list {
				cell := report.Cell{}
				if has(tuning.methods, m) {
					cell = mostChosen(chosen, dataset, tuning.splits, methods.NameOf(m))
				}
				row.Cells = append(row.Cells, cell)
			}
			t.Rows = append(t.Rows, row)
		}
	}
	slices.SortStableFunc(t.Rows, func(a, b report.Row) int { return -strings.Compare(a.Group, b.Group) })
	t.Measured = append(t.Measured, prose.Caption("choices at an end", atEnds(chosen, list)))
	return t.WithoutNotRun(), nil
}

// atEnds says of each method with noise how often the least or the largest scale was chosen. Better ones may lie beyond.
func atEnds(chosen map[chosenFor]choice, list []experiment.Method) string {
	var parts []string
	for _, m := range list {
		least, largest, n := 0, 0, 0
		name := methods.NameOf(m)
		for what, c := range chosen {
			if what.method != name || c.noise == 0 {
				continue
			}
			n++
			switch c.noise {
			case slices.Min(noiseScales):
				least++
			case slices.Max(noiseScales):
				largest++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d and %d of %d", m.Name, least, largest, n))
		}
	}
	return strings.Join(parts, "; ")
}

// mostChosen is the choice that was made for a method on most splits of a data set, and on how many.
func mostChosen(chosen map[chosenFor]choice, dataset string, splits Splits, name string) report.Cell {
	count, n := make(map[choice]int), 0
	for split := range (Data{Name: dataset, Kind: splits}).Splits() {
		if c, has := chosen[chosenFor{dataset, splits.String(), split, name}]; has {
			count[c]++
			n++
		}
	}
	if n == 0 {
		return report.Cell{NotRun: true}
	}
	most := slices.MinFunc(slices.Collect(maps.Keys(count)), func(a, b choice) int {
		return cmp.Or(count[b]-count[a], strings.Compare(a.optimizer, b.optimizer), cmp.Compare(a.noise, b.noise))
	})
	return report.Cell{Text: fmt.Sprintf("%v (%d of %d)", most, count[most], n)}
}
