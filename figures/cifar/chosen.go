package cifar

import (
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
	"densityuncertainty/figures/experiment/methods"
)

// chosenCSV are the hyperparameters of Chosen.
//
//go:embed chosen.csv
var chosenCSV string

// chosenHeading is the first line of chosen.csv.
const chosenHeading = "method,option,value,held_out_nll"

// A chosenValue is the value of a method's hyperparameter.
type chosenValue struct {
	option string
	value  float64
}

// chosen are the values of chosen.csv by methods.NameOf.
var chosen = sync.OnceValues(func() (map[string]chosenValue, error) {
	records, err := csv.NewReader(strings.NewReader(chosenCSV)).ReadAll()
	if err != nil || len(records) == 0 || strings.Join(records[0], ",") != chosenHeading {
		return nil, errors.Join(fmt.Errorf("cifar: the first line of chosen.csv is not %s", chosenHeading), err)
	}
	all := map[string]chosenValue{}
	for i, r := range records[1:] {
		value, err := strconv.ParseFloat(r[2], 64)
		if err != nil {
			return nil, fmt.Errorf("cifar: line %d of chosen.csv: %w", i+2, err)
		}
		all[r[0]] = chosenValue{r[1], value}
	}
	return all, nil
})

// Chosen is a preset, such as Processor, with the value of the hyperparameter that matters most to a method in a short
// training, which did best on held-out images (ProcessorGrid): how strong its noise is at the start, SNGP's length scale,
// or how fast DUE's process learns. A method without a choice is trained by the preset as it is.
func Chosen(preset experiment.Preset) experiment.Preset {
	return func(data experiment.Source, m experiment.Method) (experiment.Experiment, error) {
		all, err := chosen()
		if err != nil {
			return experiment.Experiment{}, err
		}
		c, has := all[methods.NameOf(m)]
		if !has {
			return preset(data, m)
		}
		rate := 1.0
		switch c.option {
		case "length_scale":
			m.Process = experiment.SNGP{LengthScale: c.value}
		case "process_rate":
			rate = c.value
		default:
			if m.Layers, has = methods.WithNoise(m.Layers, c.value); !has {
				return experiment.Experiment{}, fmt.Errorf("cifar: chosen.csv has the option %s of %s, which has none", c.option, m.Name)
			}
		}
		e, err := preset(data, m)
		for i, g := range e.Recipe.Groups {
			if rate != 1 && slices.Contains(g.Roles, params.Variational) {
				e.Recipe.Groups[i].Rate = rate
			}
		}
		return e, err
	}
}
