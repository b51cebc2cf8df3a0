package runner

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"densityuncertainty/dul/predict"
)

// A prediction is the predictive distribution at N inputs, a mixture of M
// Gaussians with equal weights: of the function, N(mean_m, std_m^2), and with
// noise_m^2 added of the target.
type prediction struct {
	mean, std [][]float64 // [M][N]; std is nil where each component is a single function
	noise     []float64   // [M]
	diverged  bool        // whether training did
	failed    error       // why it is of no use, of a Gaussian process without a Cholesky factor
}

// ofDraws are the draws of all models whose mixture is the prediction.
func ofDraws(models ...predict.Mixture) prediction {
	var p prediction
	for _, d := range models {
		p.mean = append(p.mean, d.Mean...)
		for _, noise := range d.NoiseStd {
			p.noise = append(p.noise, noise[0])
		}
	}
	return p
}

// ofMarginals is the prediction of a Gaussian process.
func ofMarginals(m predict.Mixture) prediction {
	return prediction{mean: m.Mean, std: m.Std, noise: []float64{m.NoiseStd[0][0]}}
}

// moments are the mean and the standard deviation of the function, [N].
func (p prediction) moments() (mean, std []float64) {
	return predict.Mixture{Mean: p.mean, Std: p.std}.Moments()
}

// variances are those of the target in each component, [M][N].
func (p prediction) variances() [][]float64 {
	all := make([][]float64, len(p.mean))
	for m, mean := range p.mean {
		all[m] = slices.Repeat([]float64{p.noise[m] * p.noise[m]}, len(mean))
		if p.std != nil {
			floats.Add(all[m], product(p.std[m], p.std[m]))
		}
	}
	return all
}

func product(a, b []float64) []float64 { return floats.MulTo(make([]float64, len(a)), a, b) }

// noiseStd is the root of the components' mean noise variance.
func (p prediction) noiseStd() float64 {
	return floats.Norm(p.noise, 2) / math.Sqrt(float64(len(p.noise)))
}

// quantiles are those of the function at each input, by name: of the Gaussian where
// there is only one, otherwise of the M functions.
func (p prediction) quantiles(wanted map[string]float64) map[string][]float64 {
	curves := make(map[string][]float64, len(wanted))
	column := make([]float64, len(p.mean))
	for i := range p.mean[0] {
		for m := range p.mean {
			column[m] = p.mean[m][i]
		}
		slices.Sort(column)
		for name, q := range wanted {
			var value float64
			if p.std != nil {
				value = distuv.Normal{Mu: p.mean[0][i], Sigma: p.std[0][i]}.Quantile(q)
			} else {
				value = stat.Quantile(q, stat.LinInterp, column, nil)
			}
			curves[name] = append(curves[name], value)
		}
	}
	return curves
}

// finite says whether training converged and no number of the prediction is a NaN
// or an infinity.
func (p prediction) finite() bool {
	if p.diverged {
		return false
	}
	infinite := func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }
	for _, values := range slices.Concat(p.mean, p.std, [][]float64{p.noise}) {
		if slices.ContainsFunc(values, infinite) {
			return false
		}
	}
	return true
}
