package baselines_test

import (
	"math"
	"testing"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/layertest/fixtures"
)

// With m = (mu_r x) W + b and v the variance of (r x) W, the output has mean
// mu_s m and variance mu_s^2 v + sigma_s^2 m^2 + sigma_s^2 v. v is sigma_r^2 x^2
// W^2 where each pixel has a draw of its own, and sum_c (sigma_rc x_c W)^2 where
// all pixels of channel c share one.
func TestRank1(t *testing.T) {
	variance := func(l linear, name string) fixtures.Array { return l.get(name + "_factor_log_variance").Map(math.Exp) }
	perPixel := func(l linear, i int) float64 {
		sigma2 := variance(l, "input")
		of := l.scaled(func(c int) float64 { return math.Sqrt(sigma2.Values[c]) })
		return l.apply(of.Map(square), l.weights().Map(square))[i]
	}
	tied := func(l linear, i int) float64 {
		total := 0.0
		for channel, sigma2 := range variance(l, "input").Values {
			total += sigma2 * square(l.apply(l.scaled(func(c int) float64 {
				if c == channel {
					return 1
				}
				return 0
			}), l.weights())[i])
		}
		return total
	}
	moments := func(ofProduct func(l linear, i int) float64) func(l linear, i int) (float64, float64) {
		return func(l linear, i int) (float64, float64) {
			j, mu := l.unit(i), l.get("input_factor_mean").Values
			m := l.apply(l.scaled(func(c int) float64 { return mu[c] }), l.weights())[i] + l.get("bias").Values[j]
			v, sigma2, s := ofProduct(l, i), variance(l, "output").Values[j], l.get("output_factor_mean").Values[j]
			return s * m, s*s*v + sigma2*m*m + sigma2*v
		}
	}
	checkFamilies(t, []variant{
		{name: "default", layers: baselines.Rank1{}, hasKL: true, moments: moments(perPixel)},
		{name: "tied", layers: baselines.Rank1{Tied: true}, hasKL: true, moments: moments(tied)},
	})
}

// firstPixels are the first pixels of a batch of images, [channels, batch].
func firstPixels(a fixtures.Array) fixtures.Array {
	channels, batch := a.Dims[0], a.Dims[1]
	return fixtures.Matrix(channels, batch, fixtures.Matrix(channels*batch, a.Dims[2]*a.Dims[3], a.Values...).Column(0)...)
}

func TestRank1StartKL(t *testing.T) {
	each := math.Log(100) + (1e-4-1)/2 // of one variable with std 1e-3 from N(mean, 0.1^2)
	checkStartKL(t, []startKL{
		{"at the prior", baselines.Rank1{InitStd: 0.2, PriorStd: 0.2}, 0},
		{"default", baselines.Rank1{}, (2 + 4) * each},
		{"tied", baselines.Rank1{Tied: true}, (2 + 4) * each},
	})
}
