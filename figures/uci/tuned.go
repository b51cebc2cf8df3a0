package uci

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
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

// Tuned has the text's settings, but on each split the optimizer, SGD or Adam, and the strength of the noise at the start
// with the lowest negative log likelihood on held-out examples: a fifth of the split's training part, after training on the
// rest. Test examples have no part in it. DensityMean has the choices of Density. A split on which all pairs diverged is left
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
