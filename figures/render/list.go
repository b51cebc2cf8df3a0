package render

import (
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

// Named is a figure that can be asked for by name.
type Named struct {
	Name, Doc string
	Make      func(lines []results.Result, seed uint64) (Figure, error)
}

// List is every figure there is. Only those of the toy study depend on the seed.
func List() []Named {
	uci := func(metric string) func([]results.Result, uint64) (Figure, error) {
		return func(lines []results.Result, _ uint64) (Figure, error) { return UCIComparison(lines, metric) }
	}
	return []Named{
		{"figure1", "the paper's Figure 1, four panels in a row", func(lines []results.Result, seed uint64) (Figure, error) {
			return Figure1(lines, seed, Wide)
		}},
		{"figure1-square", "Figure 1, two rows of two", func(lines []results.Result, seed uint64) (Figure, error) {
			f, err := Figure1(lines, seed, Square)
			f.Name = "figure1-square"
			return f, err
		}},
		{"figure1-energies", "the density layer with each of its energy models", Figure1Energies},
		{"distance-toy", "six methods on one-dimensional regression: are they less certain where there are no data?", DistanceToy},
		{"distance-moons", "six methods on two moons: are they uncertain far away from the data?", DistanceMoons},
		{"uci-nll", "UCI negative log likelihood, ours beside the paper's", uci(tables.MetricNLL)},
		{"uci-rmse", "UCI root mean squared error, ours beside the paper's", uci(tables.MetricRMSE)},
	}
}
