package methods

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"densityuncertainty/dul/predict"
)

// A Prediction is the predictive distribution at N inputs, a mixture of M
// Gaussians with equal weights: of the function, N(Mean_m, Std_m^2), and with
// Noise_m^2 added of the target.
type Prediction struct {
	Mean, Std [][]float64 // [M][N]; Std is nil where each component is a single function
	Noise     []float64   // [M]
	Failed    error       // why it is of no use, of a Gaussian process without a Cholesky factor
}

// OfDraws are the draws of all models whose mixture is the prediction.
func OfDraws(models ...predict.Draws) Prediction {
	var p Prediction
	for _, d := range models {
		p.Mean = append(p.Mean, d.Mean...)
		p.Noise = append(p.Noise, slices.Repeat([]float64{d.NoiseStd}, len(d.Mean))...)
	}
	return p
}

// ofMarginals is the prediction of a Gaussian process.
func ofMarginals(m predict.Marginals) Prediction {
	return Prediction{Mean: [][]float64{m.Mean}, Std: [][]float64{m.Std}, Noise: []float64{m.NoiseStd}}
}

// Moments are the mean and the standard deviation of the function, [N].
func (p Prediction) Moments() (mean, std []float64) {
	mean, std = predict.Draws{Mean: p.Mean}.Moments()
	for _, within := range p.Std {
		for i, s := range within {
			std[i] = math.Sqrt(std[i]*std[i] + s*s/float64(len(p.Std)))
		}
	}
	return mean, std
}

// Variances are those of the target in each component, [M][N].
func (p Prediction) Variances() [][]float64 {
	all := make([][]float64, len(p.Mean))
	for m, mean := range p.Mean {
		all[m] = slices.Repeat([]float64{p.Noise[m] * p.Noise[m]}, len(mean))
		if p.Std != nil {
			floats.Add(all[m], product(p.Std[m], p.Std[m]))
		}
	}
	return all
}

func product(a, b []float64) []float64 { return floats.MulTo(make([]float64, len(a)), a, b) }

// NoiseStd is the root of the components' mean noise variance.
func (p Prediction) NoiseStd() float64 {
	return floats.Norm(p.Noise, 2) / math.Sqrt(float64(len(p.Noise)))
}

// Quantiles are those of the function at each input, by name: of the Gaussian where
// there is only one, otherwise of the M functions.
func (p Prediction) Quantiles(wanted map[string]float64) map[string][]float64 {
	curves := make(map[string][]float64, len(wanted))
	column := make([]float64, len(p.Mean))
	for i := range p.Mean[0] {
		for m := range p.Mean {
			column[m] = p.Mean[m][i]
		}
		slices.Sort(column)
		for name, q := range wanted {
			var value float64
			if p.Std != nil {
				value = distuv.Normal{Mu: p.Mean[0][i], Sigma: p.Std[0][i]}.Quantile(q)
			} else {
				value = stat.Quantile(q, stat.LinInterp, column, nil)
			}
			curves[name] = append(curves[name], value)
		}
	}
	return curves
}

// Finite says whether no number of the prediction is a NaN or an infinity.
func (p Prediction) Finite() bool {
	infinite := func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }
	for _, values := range slices.Concat(p.Mean, p.Std, [][]float64{p.Noise}) {
		if slices.ContainsFunc(values, infinite) {
			return false
		}
	}
	return true
}
