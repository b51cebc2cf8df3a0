package methods

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"densityuncertainty/dul/predict"
)

// A Prediction is the predictive distribution of a regression at N inputs, of a model or an ensemble.
type Prediction struct {
	predict.Mixture
	// Diverged says whether training did.
	Diverged bool
	// Failed is why the prediction is of no use, of a Gaussian process without a Cholesky factor.
	Failed error
}

// NoiseDeviation is the root of the components' mean noise variance, at the first input: the noise is the same at all.
func (p Prediction) NoiseDeviation() float64 {
	var noise []float64
	for _, component := range p.NoiseStd {
		noise = append(noise, component[0])
	}
	return floats.Norm(noise, 2) / math.Sqrt(float64(len(noise)))
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

// Finite says whether training converged and no mean or variance of the prediction is a NaN or an infinity.
func (p Prediction) Finite() bool {
	infinite := func(v float64) bool { return math.IsNaN(v) || math.IsInf(v*v, 0) }
	for _, values := range slices.Concat(p.Mean, p.Std, p.NoiseStd) {
		if slices.ContainsFunc(values, infinite) {
			return false
		}
	}
	return !p.Diverged
}
