package uci

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

// noiseScales are the values to try: up to the text's standard deviation of 0.1, and rates and variances as many times
// smaller than the paper's.
var noiseScales = []float64{0.003, 0.01, 0.03, 0.1}

// grid are the choices to try for a method on each split: the optimizers, each with the same learning rate and with all
// noise scales.
func grid(m experiment.Method) (all []choice) {
	scales := noiseScales
	if _, noisy := methods.WithNoise(m.Layers, 1); !noisy {
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
var tunings = []setting{
	tunedSetting(Gal, SmallDatasets()...).only(tunedMethods...),
	tunedSetting(Gap, SmallDatasets()...).only(tunedMethods...),
	tunedSetting(Gal, "kin8nm", "naval", "protein").only(slices.Concat(energyMethods, rivals)...),
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

// searches are those of the exhibit uci-tuning.
func searches() (all []tables.Search) {
	for _, t := range tunings {
		for _, dataset := range t.datasets {
			for _, m := range t.methods {
				all = append(all, search(dataset, t.splits, m)...)
			}
		}
	}
	return all
}

// tried are the candidates of all searches.
func tried() (all experiment.Experiments) {
	for _, s := range searches() {
		all = append(all, s.Candidates...)
	}
	return all
}

// search is among the grid of a method on a data set, on each split.
func search(dataset string, splits Splits, m experiment.Method) []tables.Search {
	all := make([]tables.Search, Data{Name: dataset, Kind: splits}.Splits())
	for split := range all {
		all[split].For = []string{dataset, splits.String(), strconv.Itoa(split), m.Key}
	}
	for _, c := range grid(m) {
		for split, e := range c.tried(dataset, splits, m) {
			s := &all[split]
			s.Settings, s.Candidates = append(s.Settings, []string{c.optimizer, fmt.Sprint(c.noise)}), append(s.Candidates, e)
		}
	}
	return all
}

// TuningTable says which settings Tuned has: for each method how often each was chosen, over the splits of a data set. The
// results do not matter.
func TuningTable(x *tables.Index) (report.Table, error) {
	list := tunedMethods
	s := sheet("uci-tuning", "", list)
	for _, tuned := range tunings {
		for _, dataset := range tuned.datasets {
			var cells []tables.Mean
			for _, m := range list {
				cell := tables.Words("")
				if slices.ContainsFunc(tuned.methods, m.Equal) {
					cell = mostChosen(Data{Name: dataset, Kind: tuned.splits}, m.Key)
				}
				cells = append(cells, cell)
			}
			s.Add(map[Splits]string{Gal: "random splits", Gap: "gap splits"}[tuned.splits], DatasetTitle(dataset), cells...)
		}
	}
	slices.SortStableFunc(s.Lines, func(a, b tables.Line) int { return -strings.Compare(a.Group, b.Group) })
	return s.Make(x)
}

// mostChosen is the choice that was made for a method on most splits of a data set, and on how many.
func mostChosen(d Data, method string) tables.Mean {
	count, n := make(map[choice]int), 0
	for split := range d.Splits() {
		if c, has := choices()[chosenFor(d, split, method)]; has {
			count[c]++
			n++
		}
	}
	if n == 0 {
		return tables.Waits
	}
	most := slices.MinFunc(slices.Collect(maps.Keys(count)), func(a, b choice) int {
		return cmp.Or(count[b]-count[a], strings.Compare(a.optimizer, b.optimizer), cmp.Compare(a.noise, b.noise))
	})
	return tables.Words("%v (%d of %d)", most, count[most], n)
}
