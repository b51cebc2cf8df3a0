package toy

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/results"
)

// Cubic is y = x^3 + noise of deviation 3 at 100 inputs with a gap, the problem of the paper's Figure 1, as an
// experiment.Source. Each split has other data: those of the seed that is its number. The set "grid" is along Grid, and
// has no answers.
type Cubic struct {
	Seeds int // the number of splits
}

const (
	cubicExamples, cubicNoise = 100, 3.0
	gridEnd, gridStep         = 6.0, 0.05
)

// Identity implements experiment.Identifier. How many splits there are changes none of them.
func (c Cubic) Identity() experiment.Identity {
	return experiment.Identity{Value: struct {
		Examples                 int
		Noise, GridEnd, GridStep float64
	}{cubicExamples, cubicNoise, gridEnd, gridStep}}
}

// Check says what cannot be.
func (c Cubic) Check() error { return checkSeeds("toy.Cubic", c.Seeds) }

func checkSeeds(what string, seeds int) error {
	if seeds < 1 {
		return fmt.Errorf("%s has %d Seeds; give at least 1", what, seeds)
	}
	return nil
}

// Splits implements experiment.Source.
func (c Cubic) Splits() int { return c.Seeds }

// gridSet is the name of the set along Grid.
const gridSet = "grid"

// Grid is the inputs at which the cubic is predicted, in the data's own units: from -6 to 6.
func Grid() []float64 {
	var x []float64
	for i := range int(2*gridEnd/gridStep) + 1 {
		x = append(x, -gridEnd+gridStep*float64(i))
	}
	return x
}

// Load implements experiment.Source.
func (c Cubic) Load(_ context.Context, split int) (experiment.Data, error) {
	set := datasets.ToyCubic(cubicExamples, cubicNoise, uint64(split))
	rows := make([]int, set.N)
	for i := range rows {
		rows[i] = i
	}
	inputs, target := datasets.FitScaler(set.X, 1, rows), datasets.FitScaler(set.Y, 1, rows)
	return experiment.Data{
		Train: train.Dataset{Inputs: nets.Rows(inputs.Transform(set.X), 1), Targets: target.Transform(set.Y)},
		Sets:  []experiment.Set{{Name: gridSet, Dataset: train.Dataset{Inputs: nets.Rows(inputs.Transform(Grid()), 1)}}},
		Unit:  target.Std[0], Zero: target.Mean[0],
	}, nil
}

// Gap measures what Figure 1 shows. "gap_ratio" is the mean standard deviation of the function in the middle of the gap,
// x in [-1, 1], over that where the data are, x in [-4, -2] and [2, 4]: above 1 the network is less certain where it has
// seen nothing. "gap_coverage95" is the part of the gap, |x| < 2, where x^3 is inside the central 95 % of the function's
// draws. "noise_std" is the deviation of the noise. A network without spread has no ratio.
func Gap(p *experiment.Predictions) (map[string]float64, error) {
	s, err := p.Set(gridSet)
	if err != nil {
		return nil, err
	}
	x := Grid()
	_, std := s.Moments()
	for i := range std {
		std[i] *= p.Unit
	}
	scaler := datasets.Scaler{Mean: []float64{p.Zero}, Std: []float64{p.Unit}}
	low, high := scaler.Inverse(s.FunctionQuantile(0.025)), scaler.Inverse(s.FunctionQuantile(0.975))
	inside, all := 0.0, 0.0
	for i, v := range x {
		if math.Abs(v) >= 2 {
			continue
		}
		all++
		if cube := v * v * v; low[i] <= cube && cube <= high[i] {
			inside++
		}
	}
	found := map[string]float64{results.MetricNoiseStd: s.NoiseDeviation() * p.Unit, results.MetricGapCoverage: inside / all}
	if slices.Max(std) > 0 {
		found[results.MetricGapRatio] = meanWhere(x, std, 0, 1) / meanWhere(x, std, 2, 4)
	}
	return found, nil
}

// meanWhere is the mean of the values at those x whose distance from 0 is from low to high.
func meanWhere(x, values []float64, low, high float64) float64 {
	var inside []float64
	for i, v := range x {
		if a := math.Abs(v); a >= low && a <= high {
			inside = append(inside, values[i])
		}
	}
	return stat.Mean(inside, nil)
}
