package metrics

import (
	"math"
	"testing"

	"densityuncertainty/environment/must"

	"gonum.org/v1/gonum/stat/distuv"
)

// quantiles are n quantiles of N(mean, std^2), in the middles of n equal steps.
func quantiles(mean, std float64, n int) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = distuv.Normal{Mu: mean, Sigma: std}.Quantile((float64(i) + 0.5) / float64(n))
	}
	return all
}

// The distance of N(m, s^2) and N(m', s'^2) is |m - m'| for equal deviations, and |s - s'| sqrt(2/pi) for equal means.
func TestWasserstein(t *testing.T) {
	for _, c := range []struct {
		a, b []float64
		want float64
		near float64
	}{
		{quantiles(0, 1, 1000), quantiles(0.3, 1, 1000), 0.3, 1e-12},
		{quantiles(2, 1, 4000), quantiles(2, 3, 1000), 2 * math.Sqrt(2/math.Pi), 5e-3},
		{[]float64{1}, []float64{1, 3}, 1, 0},
		{[]float64{0, 1, 2}, []float64{2, 0, 1}, 0, 0},
		{[]float64{0, 0, 1}, []float64{0, 1, 1}, 1. / 3, 1e-15},
	} {
		must.Near(t, Wasserstein(c.a, c.b), c.want, c.near, "the distance")
		must.Near(t, Wasserstein(c.b, c.a), c.want, c.near, "the distance the other way round")
	}
}

// The total variation of N(m, s^2) and N(m', s^2) is erf(|m - m'| / (2 sqrt(2) s)). That of equal means with deviations s < s'
// is 2 (Phi(x/s) - Phi(x/s')) where the densities cross, at x^2 = 2 log(s'/s) / (1/s^2 - 1/s'^2).
func TestTotalVariation(t *testing.T) {
	crossing := math.Sqrt(2 * math.Log(2) / (1 - 0.25))
	phi := distuv.UnitNormal.CDF
	for _, c := range []struct {
		a, b []float64
		std  float64
		want float64
		near float64
	}{
		{[]float64{0}, []float64{1.5}, 0.5, math.Erf(1.5 / math.Sqrt2), 1e-3},
		{[]float64{7}, []float64{7, 7}, 0.1, 0, 1e-12},
		{[]float64{0}, []float64{100}, 1, 1, 1e-8},
		{[]float64{0}, quantiles(0, math.Sqrt(3), 4000), 1, 2 * (phi(crossing) - phi(crossing/2)), 2e-3},
	} {
		must.Near(t, TotalVariation(c.a, c.b, c.std), c.want, c.near, "the distance")
	}
}
