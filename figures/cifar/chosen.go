package cifar

import (
	"bytes"
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"densityuncertainty/dul/params"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

// The names of the options that are searched.
const (
	initStd     = "init_std"     // standard deviation of the posterior at the start
	dropoutRate = "dropout_rate" // of MC dropout
	alphaOption = "alpha"        // noise variance of variational dropout
	lengthScale = "length_scale" // of SNGP's kernel
	processRate = "process_rate" // factor of the learning rate of DUE's process
)

// A search is among values of an option of a method.
type search struct {
	method experiment.Method
	option string
	values []float64
}

// searches are for the option that matters most to a method in a short training, of as many values for every method: how
// much noise it has or, where a Gaussian process is the last layer, how fast that learns.
//
// The standard deviations are of weights, which He's initialisation gives one of 0.06 to 0.12. Those of Rank-1 BNN are
// of factors that are 1 in the mean. The least leaves networks without noise to speak of.
//
// With SNGP's length scale of 1 the kernel of two images is next to 0 until the network has brought them close together,
// since 128 normalised numbers are 16 apart where nothing is known of them. What is learned of one image then says nothing
// of others. Its authors' code has 20. A whitened process, such as DUE's, starts with a mean of 0, through which no gradient
// reaches the network, and its mean moves by kernel values below 1 where the mean of a dense layer moves by features. In a
// short training the network hardly learns then, unless the process learns faster.
var searches = []search{
	{methods.Density, initStd, []float64{0.001, 0.003, 0.01, 0.03}},
	{methods.DensityConstant, initStd, []float64{0.001, 0.003, 0.01, 0.03}},
	{methods.Rank1, initStd, []float64{0.001, 0.01, 0.1, 0.3}},
	{methods.MFVI, initStd, []float64{0.001, 0.003, 0.01, 0.03}},
	{methods.MCDropout, dropoutRate, []float64{0.05, 0.1, 0.2, 0.3}},
	{methods.VDropout, alphaOption, []float64{0.03, 0.1, 0.25, 0.5}},
	{methods.DensityMixture, initStd, []float64{0.001, 0.003, 0.01, 0.03}},
	{methods.DensityDiagonal, initStd, []float64{0.001, 0.003, 0.01, 0.03}},
	{methods.SNGP, lengthScale, []float64{1, 5, 20, 50}},
	{methods.DUE, processRate, []float64{1, 3, 10, 30}},
}

// with is a preset with a value of an option.
func with(preset experiment.Preset, option string, value float64) experiment.Preset {
	return func(data experiment.Source, m experiment.Method) (experiment.Experiment, error) {
		m = methods.Values(m)
		switch option {
		case lengthScale:
			m.Process = experiment.SNGP{LengthScale: value}
		case processRate:
		default:
			m.Layers, _ = methods.WithNoise(m.Layers, value)
		}
		e, err := preset(data, m)
		for i, g := range e.Recipe.Groups {
			if option == processRate && slices.Contains(g.Roles, params.Variational) {
				e.Recipe.Groups[i].Rate = value
			}
		}
		return e, err
	}
}

// candidates are the experiments of ProcessorGrid with each value.
func (s search) candidates() experiment.Experiments {
	var all experiment.Experiments
	for _, value := range s.values {
		all = append(all, list(with(ProcessorGrid, s.option, value), ten, 1, s.method)...)
	}
	return all
}

// searchOf is the search for a method; nil for none.
func searchOf(m experiment.Method) *search {
	name := methods.NameOf(m)
	i := slices.IndexFunc(searches, func(s search) bool { return methods.NameOf(s.method) == name })
	if name == "" || i < 0 {
		return nil
	}
	return &searches[i]
}

// A choice has the chosen values by methods.NameOf.
type choice map[string]float64

// chosenCSV is what Choose made of the committed results.
//
//go:embed chosen.csv
var chosenCSV []byte

// chosen is the embedded choice.
var chosen = sync.OnceValues(func() (choice, error) { return decodeChoice(chosenCSV) })

var chosenColumns = []string{"method", "option", "value", "held_out_nll"}

// decodeChoice reads what Choose writes.
func decodeChoice(text []byte) (choice, error) {
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("cifar: chosen.csv: %w", err)
	}
	if len(rows) == 0 || !slices.Equal(rows[0], chosenColumns) {
		return nil, fmt.Errorf("cifar: chosen.csv does not begin with the columns %s", strings.Join(chosenColumns, ","))
	}
	c := choice{}
	for _, row := range rows[1:] {
		value, err := strconv.ParseFloat(row[2], 64)
		i := slices.IndexFunc(searches, func(s search) bool { return methods.NameOf(s.method) == row[0] })
		if _, again := c[row[0]]; again || err != nil || i < 0 || searches[i].option != row[1] || !slices.Contains(searches[i].values, value) {
			return nil, fmt.Errorf("cifar: chosen.csv has the row %s, but %s=%s is not among the choices for %s, or there are two rows of it",
				strings.Join(row, ","), row[1], row[2], row[0])
		}
		c[row[0]] = value
	}
	return c, nil
}

// Chosen is a preset, such as Processor, with the value of the hyperparameter that matters most to a method in a short
// training, which did best on held-out images (ProcessorGrid): how strong its noise is at the start, SNGP's length scale,
// or how fast DUE's process learns. A method without a choice is trained by the preset as it is.
func Chosen(preset experiment.Preset) experiment.Preset {
	return func(data experiment.Source, m experiment.Method) (experiment.Experiment, error) {
		c, err := chosen()
		if err != nil {
			return experiment.Experiment{}, err
		}
		return c.preset(preset)(data, m)
	}
}

// preset is Chosen with this choice.
func (c choice) preset(preset experiment.Preset) experiment.Preset {
	return func(data experiment.Source, m experiment.Method) (experiment.Experiment, error) {
		if value, has := c[methods.NameOf(m)]; has {
			return with(preset, searchOf(m).option, value)(data, m)
		}
		return preset(data, m)
	}
}

// list lists the experiments of methods with the values that are chosen for them. A method that has a search and no choice
// is left out.
func (c choice) list(preset experiment.Preset, d Images, seeds int, all ...experiment.Method) experiment.Experiments {
	return list(c.preset(preset), d, seeds, slices.DeleteFunc(slices.Clone(all), c.lacks)...)
}

// lacks says whether the option of a method is not chosen yet.
func (c choice) lacks(m experiment.Method) bool {
	_, has := c[methods.NameOf(m)]
	return searchOf(m) != nil && !has
}

// lacking names methods whose options are not chosen yet, and says what to do; "" for none.
func (c choice) lacking(all ...experiment.Method) string {
	var names []string
	for _, s := range searches {
		if c.lacks(s.method) && slices.ContainsFunc(all, s.method.Same) {
			names = append(names, methods.NameOf(s.method))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("the options of %s are not chosen yet: run the set processor-grid, write figures/cifar/chosen.csv with \"go test ./figures/cifar -run Choice -update\", and build this program again",
		strings.Join(names, ", "))
}

// Choose makes the file chosen.csv of results: for each method whose experiments of the set processor-grid are all there,
// the value with the lowest negative log-likelihood on held-out images, the smaller of equals. A run that diverged is
// never chosen. missing names the methods whose results are not all there.
func Choose(x *tables.Index) (file []byte, missing []string, err error) {
	rows := [][]string{chosenColumns}
	for _, s := range searches {
		name := methods.NameOf(s.method)
		best, lowest, complete, err := x.Lowest(s.candidates(), results.MetricNLL)
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("cifar: choosing the option of %s: %w", name, err)
		case !complete:
			missing = append(missing, name)
		case best < 0:
			return nil, nil, fmt.Errorf("cifar: all runs of %s in the set processor-grid diverged, so none of their values can be chosen", name)
		default:
			rows = append(rows, []string{name, s.option, strconv.FormatFloat(s.values[best], 'g', -1, 64), strconv.FormatFloat(lowest, 'g', 6, 64)})
		}
	}
	var text bytes.Buffer
	w := csv.NewWriter(&text)
	if err := errors.Join(w.WriteAll(rows), w.Error()); err != nil {
		return nil, nil, fmt.Errorf("cifar: writing the chosen options: %w", err)
	}
	return text.Bytes(), missing, nil
}
