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

// The hyperparameters of a method for one split.
type hyperparameters struct {
	optimizer string  // sgd or adam
	noise     float64 // how strong the method's noise is at the start; 0 for a method without noise
}

// String returns the text in tables, such as "adam 0.03".
func (c hyperparameters) String() string {
	if c.noise == 0 {
		return c.optimizer
	}
	return fmt.Sprintf("%s %v", c.optimizer, c.noise)
}

// tunedColumns are the columns of tuned.csv.
const tunedColumns = "dataset,splits,split,method,optimizer,noise_scale,held_out_nll"

// tunedRows are the rows of tuned.csv, by their first columns.
var tunedRows = sync.OnceValue(func() map[string]hyperparameters {
	all := map[string]hyperparameters{}
	for _, r := range tables.ReadCSV(tunedCSV, tunedColumns) {
		noise, err := strconv.ParseFloat(r[5], 64)
		if err != nil {
			panic(err)
		}
		all[strings.Join(r[:4], " ")] = hyperparameters{r[4], noise}
	}
	return all
})

// chosen returns the hyperparameters that tuned.csv has for a method, by its Key, on a split.
func chosen(d Data, split int, method string) (hyperparameters, bool) {
	h, has := tunedRows()[fmt.Sprintf("%s %v %d %s", d.Name, d.Kind, split, method)]
	return h, has
}

// Tuned has the text's settings, but each split has its own optimizer, SGD or Adam, and strength of the noise at the start:
// the pair with the lowest negative log likelihood on a fifth of the split's training part, after training on the rest.
// Test examples are not used. DensityMean has the pairs of Density. A split on which all pairs diverged is left out. A
// method or data without pairs is an error.
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
		h, has := chosen(d, split, name)
		if !has { // all values diverged
			continue
		}
		e, err := h.experiment(d, m)
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

// experiment is m's experiment on d with h.
func (h hyperparameters) experiment(d experiment.Source, m experiment.Method) (experiment.Experiment, error) {
	m = methods.Values(m)
	if h.noise != 0 {
		layers, is := methods.WithNoise(m.Layers, h.noise)
		if !is {
			return experiment.Experiment{}, fmt.Errorf("uci.Tuned: a choice was made for the noise of %s, which has none", m.Name)
		}
		m.Layers = layers
	}
	s := textSettings("uci.Tuned", d)
	s.optimizer = h.optimizer
	return s.experiment(d, defaults.Fill(m))
}

// noiseScales are the values to try: up to the text's standard deviation of 0.1, and rates and variances as many times
// smaller than the paper's.
var noiseScales = []float64{0.003, 0.01, 0.03, 0.1}

// searchSpace are the hyperparameters to try for a method on each split: the optimizers, each with the same learning rate and
// with all noise scales.
func searchSpace(m experiment.Method) (all []hyperparameters) {
	scales := noiseScales
	if _, noisy := methods.WithNoise(m.Layers, 1); !noisy {
		scales = []float64{0}
	}
	for _, optimizer := range []string{sgd, adam} {
		for _, scale := range scales {
			all = append(all, hyperparameters{optimizer, scale})
		}
	}
	return all
}

// tunedGrids are what the exhibit uci-tuning chooses hyperparameters for: every method on the small sets and on their gap
// splits; on the larger sets without Year, density layers and the methods that the paper compares them with (the table
// uci-claims).
var tunedGrids = []experiment.Grid{
	{Title: "random splits", Data: On(SmallDatasets()...), Methods: tunedMethods},
	{Title: "gap splits", Data: onGaps(SmallDatasets()...), Methods: tunedMethods},
	{Title: "random splits", Data: On("kin8nm", "naval", "protein"), Methods: slices.Concat(energyMethods, rivals)},
}

// heldOut are the experiments with h on held-out training examples, one on each split.
func (h hyperparameters) heldOut(d Data, m experiment.Method) experiment.Experiments {
	d.Validation = true
	return experiment.Grid{Preset: h.experiment}.Of(d, m)
}

// candidates are the experiments by which hyperparameters are chosen.
func candidates() (all []tables.Candidate) {
	for _, t := range tunedGrids {
		for _, source := range t.Data {
			d := source.(Data)
			for _, m := range t.Methods {
				for _, h := range searchSpace(m) {
					for split, e := range h.heldOut(d, m) {
						all = append(all, tables.Candidate{
							For: []string{d.Name, d.Kind.String(), strconv.Itoa(split), m.Key}, Hyperparameters: []string{h.optimizer, fmt.Sprint(h.noise)}, Experiment: e,
						})
					}
				}
			}
		}
	}
	return all
}

// tuningTable says which settings Tuned has: for each method how often each was chosen, over the splits of a data set. The
// results do not matter.
func tuningTable(x *tables.Index) (report.Table, error) {
	s := sheet("uci-tuning", "", tunedMethods)
	for _, tuned := range tunedGrids {
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
	slices.SortStableFunc(s.Rows, func(a, b tables.Row) int { return -strings.Compare(a.Group, b.Group) })
	return s.Make(x)
}

// mostChosen says which hyperparameters a method has on most splits of a data set, and on how many.
func mostChosen(d Data, method string) tables.Cell {
	count, n := make(map[hyperparameters]int), 0
	for split := range d.Splits() {
		if h, has := chosen(d, split, method); has {
			count[h]++
			n++
		}
	}
	if n == 0 {
		return tables.Done{NotRun: true}
	}
	most := slices.MinFunc(slices.Collect(maps.Keys(count)), func(a, b hyperparameters) int {
		return cmp.Or(count[b]-count[a], strings.Compare(a.optimizer, b.optimizer), cmp.Compare(a.noise, b.noise))
	})
	return tables.Words("%v (%d of %d)", most, count[most], n)
}
