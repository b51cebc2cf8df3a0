package cifar

import (
	_ "embed"
	"slices"
	"strconv"
	"sync"

	"densityuncertainty/dul/params"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
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

// in is a preset with a choice.
func (c choice) in(preset experiment.Preset) experiment.Preset {
	return func(data experiment.Source, m experiment.Method) (experiment.Experiment, error) {
		m = methods.Values(m)
		switch c.option {
		case lengthScale:
			m.Process = methods.SNGPProcess{LengthScale: c.value}
		case processRate:
		default:
			m.Layers, _ = methods.WithNoise(m.Layers, c.value)
		}
		e, err := preset(data, m)
		for i, g := range e.Recipe.Groups {
			if c.option == processRate && slices.Contains(g.Roles, params.Variational) {
				e.Recipe.Groups[i].Rate = c.value
			}
		}
		return e, err
	}
}

// candidates are the experiments of ProcessorGrid with each value.
func (s search) candidates() experiment.Experiments {
	var all experiment.Experiments
	for _, value := range s.values {
		all = append(all, seeded(choice{s.option, value}.in(ProcessorGrid), 1).Of(ten, s.method)...)
	}
	return all
}

// chosenCSV is the table that tables.Choose makes from the committed results.
//
//go:embed chosen.csv
var chosenCSV []byte

// chosenColumns are those of chosen.csv.
const chosenColumns = "method,option,value,held_out_nll"

// A choice is an option of a method and its value.
type choice struct {
	option string
	value  float64
}

// chosen are the choices of chosen.csv by Method.Key.
var chosen = sync.OnceValue(func() map[string]choice {
	all := map[string]choice{}
	for _, r := range tables.ReadChoices(chosenCSV, chosenColumns) {
		value, err := strconv.ParseFloat(r[2], 64)
		if err != nil {
			panic(err)
		}
		all[r[0]] = choice{r[1], value}
	}
	return all
})

// Chosen is a preset, such as Processor, with the value of the hyperparameter that matters most to a method in a short
// training, which did best on held-out images (ProcessorGrid): how strong its noise is at the start, SNGP's length scale,
// or how fast DUE's process learns. A method without a choice is trained by the preset as it is.
func Chosen(preset experiment.Preset) experiment.Preset {
	return func(data experiment.Source, m experiment.Method) (experiment.Experiment, error) {
		if c, has := chosen()[m.Key]; has {
			return c.in(preset)(data, m)
		}
		return preset(data, m)
	}
}

// tunings are the searches of the exhibit cifar-processor-grid.
func tunings() (all []tables.Search) {
	for _, s := range searches {
		one := tables.Search{For: []string{s.method.Key}, Candidates: s.candidates()}
		for _, value := range s.values {
			one.Settings = append(one.Settings, []string{s.option, strconv.FormatFloat(value, 'g', -1, 64)})
		}
		all = append(all, one)
	}
	return all
}
