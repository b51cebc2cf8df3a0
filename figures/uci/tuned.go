package uci

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

// tunedCSV are the hyperparameters of Tuned.
//
//go:embed tuned.csv
var tunedCSV []byte

// A choice is the hyperparameters of a method for one split.
type choice struct {
	optimizer string  // sgd or adam
	noise     float64 // how strong the method's noise is at the start; 0 for a method without noise
}

// String is the choice as tables show it, such as "adam 0.03".
func (c choice) String() string {
	if c.noise == 0 {
		return c.optimizer
	}
	return fmt.Sprintf("%s %v", c.optimizer, c.noise)
}

// chosenFor is what a choice is for: the first columns of tuned.csv. The method is by its Key.
func chosenFor(d Data, split int, method string) string {
	return fmt.Sprintf("%s %v %d %s", d.Name, d.Kind, split, method)
}

// tunedColumns are those of tuned.csv.
const tunedColumns = "dataset,splits,split,method,optimizer,noise_scale,held_out_nll"

// choices are those of tuned.csv.
var choices = sync.OnceValue(func() map[string]choice {
	all := map[string]choice{}
	for _, r := range tables.ReadChoices(tunedCSV, tunedColumns) {
		noise, err := strconv.ParseFloat(r[5], 64)
		if err != nil {
			panic(err)
		}
		all[strings.Join(r[:4], " ")] = choice{r[4], noise}
	}
	return all
})

// Tuned has the text's settings, but each split has its own optimizer, SGD or Adam, and strength of the noise at the start.
// They have the lowest negative log likelihood on a fifth of the split's training part, after training on the rest. Test
// examples have no part in it. DensityMean has the choices of Density. A split on which all pairs diverged is left
// out. A method or data without any choice is an error.
func Tuned(data ...experiment.Source) experiment.Grid {
	return experiment.Grid{Title: "tuned", List: tuned, Data: data}
}

func tuned(data experiment.Source, m experiment.Method) (all experiment.Experiments, err error) {
	d, is := data.(Data)
	if !is {
		return nil, fmt.Errorf("uci.Tuned is for uci.Data, not for %T", data)
	}
	name := m.Key
	if m.Equal(methods.DensityMean) {
		name = methods.Density.Key
	}
	for split := range d.Splits() {
		c, has := choices()[chosenFor(d, split, name)]
		if !has { // all values diverged
			continue
		}
		e, err := c.experiment(d, m)
		if err != nil {
			return nil, err
		}
		e.Split, e.Seed = split, uint64(split)
		all = append(all, e)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("uci.Tuned: no choice was made for %s on %s with %v splits; use uci.Paper, and set what you like", m.Name, d.Name, d.Kind)
	}
	return all, nil
}

// experiment is the experiment by a choice.
func (c choice) experiment(d experiment.Source, m experiment.Method) (experiment.Experiment, error) {
	m = methods.Values(m)
	if c.noise != 0 {
		layers, is := methods.WithNoise(m.Layers, c.noise)
		if !is {
			return experiment.Experiment{}, fmt.Errorf("uci.Tuned: a choice was made for the noise of %s, which has none", m.Name)
		}
		m.Layers = layers
	}
	s := textSettings("uci.Tuned", d)
	s.optimizer = c.optimizer
	return s.experiment(d, defaults.Fill(m))
}

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

// tunings are the settings whose hyperparameters the exhibit uci-tuning chooses: for every method on the small sets and on
// their gap splits. On the larger sets but Year it chooses for density layers and the methods that the paper compares them
// with (the table uci-claims).
var tunings = []experiment.Grid{
	{Title: "random splits", Data: On(SmallDatasets()...), Methods: tunedMethods},
	{Title: "gap splits", Data: onGaps(SmallDatasets()...), Methods: tunedMethods},
	{Title: "random splits", Data: On("kin8nm", "naval", "protein"), Methods: slices.Concat(energyMethods, rivals)},
}

// tried are the experiments by a choice on held-out training examples, one on each split.
func (c choice) tried(d Data, m experiment.Method) experiment.Experiments {
	d.Choosing = true
	return experiment.Grid{Preset: c.experiment}.Of(d, m)
}

// searches are the searches of the exhibit uci-tuning.
func searches() (all []tables.Search) {
	for _, t := range tunings {
		for _, d := range t.Data {
			for _, m := range t.Methods {
				all = append(all, search(d.(Data), m)...)
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
func search(d Data, m experiment.Method) []tables.Search {
	all := make([]tables.Search, d.Splits())
	for split := range all {
		all[split].For = []string{d.Name, d.Kind.String(), strconv.Itoa(split), m.Key}
	}
	for _, c := range grid(m) {
		for split, e := range c.tried(d, m) {
			s := &all[split]
			s.Settings, s.Candidates = append(s.Settings, []string{c.optimizer, fmt.Sprint(c.noise)}), append(s.Candidates, e)
		}
	}
	return all
}

// tuningTable says which settings Tuned has: for each method how often each was chosen, over the splits of a data set. The
// results do not matter.
func tuningTable(x *tables.Index) (report.Table, error) {
	s := sheet("uci-tuning", "", tunedMethods)
	for _, tuned := range tunings {
		for _, d := range tuned.Data {
			var cells []tables.Cell
			for _, m := range tunedMethods {
				cell := tables.Words("")
				if slices.ContainsFunc(tuned.Methods, m.Equal) {
					cell = mostChosen(d.(Data), m.Key)
				}
				cells = append(cells, cell)
			}
			s.Add(tuned.Title, title(d), cells...)
		}
	}
	slices.SortStableFunc(s.Lines, func(a, b tables.Line) int { return -strings.Compare(a.Group, b.Group) })
	return s.Make(x)
}

// mostChosen is the choice that was made for a method on most splits of a data set, and on how many.
func mostChosen(d Data, method string) tables.Cell {
	count, n := make(map[choice]int), 0
	for split := range d.Splits() {
		if c, has := choices()[chosenFor(d, split, method)]; has {
			count[c]++
			n++
		}
	}
	if n == 0 {
		return tables.Done{NotRun: true}
	}
	most := slices.MinFunc(slices.Collect(maps.Keys(count)), func(a, b choice) int {
		return cmp.Or(count[b]-count[a], strings.Compare(a.optimizer, b.optimizer), cmp.Compare(a.noise, b.noise))
	})
	return tables.Words("%v (%d of %d)", most, count[most], n)
}
