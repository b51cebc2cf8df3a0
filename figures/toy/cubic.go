package toy

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/spec"
)

// Cubic is y = x^3 + noise of deviation 3 at 100 inputs with a gap, the problem of the paper's Figure 1, as an
// experiment.Source. Each split has other data: those of the seed that is its number. The set "grid" is along Grid, and
// has no answers.
type Cubic struct {
	Seeds int // the number of splits
}

const (
	cubicExamples     = 100
	gridEnd, gridStep = 6.0, 0.05
)

// CubicNoise is the standard deviation of the noise of Cubic.
const CubicNoise = 3.0

// Identity implements spec.Identifier. How many splits there are changes none of them.
func (c Cubic) Identity() spec.Identity {
	return spec.Identity{Value: struct {
		Examples                 int
		Noise, GridEnd, GridStep float64
	}{cubicExamples, CubicNoise, gridEnd, gridStep}}
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

// cubicData is the data of a split, in their own units.
func cubicData(split int) *datasets.Regression {
	return datasets.ToyCubic(cubicExamples, CubicNoise, uint64(split))
}

// Load implements experiment.Source.
func (c Cubic) Load(_ context.Context, split int) (experiment.Data, error) {
	set := cubicData(split)
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

// A curve is what a network says of the function along Grid, in the data's own units.
type curve struct {
	mean, std []float64
	noise     float64                   // standard deviation of the observation noise
	quantile  func(q float64) []float64 // of the function, without the noise
}

func curveOf(p *experiment.Predictions) (curve, error) {
	s, err := p.Set(gridSet)
	if err != nil {
		return curve{}, err
	}
	target := scalerOf(p)
	mean, std := s.Moments()
	floats.Scale(p.Unit, std)
	return curve{
		mean: target.Inverse(mean), std: std, noise: s.NoiseDeviation() * p.Unit,
		quantile: func(q float64) []float64 { return target.Inverse(s.FunctionQuantile(q)) },
	}, nil
}

// scalerOf scales targets to the network's units.
func scalerOf(p *experiment.Predictions) datasets.Scaler {
	return datasets.Scaler{Mean: []float64{p.Zero}, Std: []float64{p.Unit}}
}

// gapRatio is the mean standard deviation of the function in the middle of the gap, x in [-1, 1], over that at the data.
// Above 1 the network is less certain where it has seen nothing.
func (c curve) gapRatio() float64 { return c.stdFrom(0, 1) / c.stdFrom(2, 4) }

// stdFrom is the mean standard deviation of the function at those x whose distance from 0 is from low to high. The data
// are from 2 to 4.
func (c curve) stdFrom(low, high float64) float64 {
	var inside []float64
	for i, x := range Grid() {
		if a := math.Abs(x); a >= low && a <= high {
			inside = append(inside, c.std[i])
		}
	}
	return stat.Mean(inside, nil)
}

// The metrics of gapMetrics.
const MetricGapRatio, metricGapCoverage = "gap_ratio", "gap_coverage95"

// gapMetrics measures what Figure 1 shows. "gap_ratio" is the mean standard deviation of the function in the middle of the gap,
// x in [-1, 1], over that where the data are, x in [-4, -2] and [2, 4]; a network without spread has none.
// "gap_coverage95" is the part of the gap, |x| < 2, where x^3 is inside the central 95% of the function's draws.
// "noise_std" is the standard deviation of the noise.
func gapMetrics(p *experiment.Predictions) (map[string]float64, error) {
	c, err := curveOf(p)
	if err != nil {
		return nil, err
	}
	low, high := c.quantile(0.025), c.quantile(0.975)
	inside, all := 0.0, 0.0
	for i, x := range Grid() {
		if math.Abs(x) >= 2 {
			continue
		}
		all++
		if cube := x * x * x; low[i] <= cube && cube <= high[i] {
			inside++
		}
	}
	found := map[string]float64{experiment.MetricNoiseStd: c.noise, metricGapCoverage: inside / all}
	if slices.Max(c.std) > 0 { // the function differs from draw to draw
		found[MetricGapRatio] = c.gapRatio()
	}
	return found, nil
}
