package toy

import (
	"math"
	"math/rand/v2"

	"densityuncertainty/datasets"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
)

// made are made-up lines that look like real ones: on the cubic with a spread that has the shape the method is known
// for, on two moons with an entropy that grows with the distance from the middle, or for single networks from a line.
func made(experiments []results.Experiment) []results.Result {
	var lines []results.Result
	for _, e := range experiments {
		r := results.Result{ID: e.ID(), Experiment: e, Series: map[string][]float64{}}
		add := func(name string, v float64) { r.Series[name] = append(r.Series[name], v) }
		if e.Dataset == CubicName {
			r.Metrics = map[string]float64{results.MetricNoiseStd: 3, results.MetricGapRatio: 0.5, results.MetricGapCoverage: 0.5}
			madeCubic(e, add)
		} else {
			r.Metrics = map[string]float64{results.MetricEntropyData: 0.1, results.MetricEntropyFar: 0.5, results.MetricAccuracy: 1}
			madeMoons(e, add)
		}
		lines = append(lines, r)
	}
	return lines
}

func madeCubic(e results.Experiment, add func(string, float64)) {
	rng := rand.New(rand.NewPCG(e.Seed, 1))
	for i := range 100 {
		x := 2 + 2*rng.Float64()
		if i%2 == 0 {
			x = -x
		}
		add(results.SeriesTrainX, x)
		add(results.SeriesTrainY, x*x*x+3*rng.NormFloat64())
	}
	for i := range 241 {
		x := -6 + 0.05*float64(i)
		std := 3.0
		switch e.Method {
		case methods.Density.Name:
			std = 3 + 5*math.Exp(-x*x) + 6*max(0, math.Abs(x)-4)
			if e.Options == nil {
				std *= 1 + math.Exp(-x*x)
			}
		case methods.DensityMixture.Name:
			std = 3 + 2*max(0, math.Abs(x)-4)
		case methods.VDropout.Name:
			std = 1 + 3*math.Abs(x)
		default:
			std = 1 + math.Abs(x)
		}
		add(results.SeriesX, x)
		add(results.SeriesMean, x*x*x)
		add(results.SeriesStd, std)
		add(results.SeriesQ005, x*x*x-2.576*std)
		add(results.SeriesQ025, x*x*x-1.96*std)
		add(results.SeriesQ975, x*x*x+1.96*std)
		add(results.SeriesQ995, x*x*x+2.576*std)
	}
}

func madeMoons(e results.Experiment, add func(string, float64)) {
	const cells = 30
	place := func(low float64, i int) float64 { return low + moonsSide*float64(i)/(cells-1) }
	for i := range cells {
		add(results.SeriesX, place(moonsLeft, i))
		add(results.SeriesY, place(moonsLow, i))
	}
	for i := range cells * cells {
		x, y := place(moonsLeft, i%cells), place(moonsLow, i/cells)
		far := math.Hypot(x-0.5, y-0.25) / 2
		if e.Method == methods.Deterministic.Name || e.Method == methods.Ensemble.Name {
			far = math.Exp(-8 * math.Abs(y-x/2))
		}
		add(results.SeriesEntropy, math.Ln2*min(far, 1))
	}
	points, labels := datasets.TwoMoons(100, 0.1, e.Seed)
	for i, label := range labels {
		add(results.SeriesTrainX, points[2*i])
		add(results.SeriesTrainY, points[2*i+1])
		add(results.SeriesLabel, float64(label))
	}
}

// at are the lines of the catalogue at one scale, made up.
func at(scale string) []results.Result {
	return made(results.Filter{Scale: scale}.Apply(results.Union(Sets()...)))
}
