package metrics

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// mixtureCDF is the distribution function of the equal mixture of Gaussians.
func mixtureCDF(mean, variance []float64) func(x float64) float64 {
	return func(x float64) float64 {
		total := 0.0
		for m := range mean {
			total += distuv.Normal{Mu: mean[m], Sigma: math.Sqrt(variance[m])}.CDF(x) / float64(len(mean))
		}
		return total
	}
}

// mixtureQuantile is its p-quantile, by bisection.
func mixtureQuantile(mean, variance []float64, p float64) float64 {
	cdf, low, high := mixtureCDF(mean, variance), -100.0, 100.0
	for range 80 {
		if middle := (low + high) / 2; cdf(middle) < p {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// crpsByIntegral is the definition, integral (F(x) - [x >= y])^2 dx, evaluated by quadrature.
func crpsByIntegral(y float64, mean, variance []float64) float64 {
	cdf := mixtureCDF(mean, variance)
	low, high := y, y
	for m := range mean {
		reach := 12 * math.Sqrt(variance[m])
		low, high = min(low, mean[m]-reach), max(high, mean[m]+reach)
	}
	below := quad.Fixed(func(x float64) float64 { return cdf(x) * cdf(x) }, low, y, 2000, quad.Legendre{}, 0)
	above := quad.Fixed(func(x float64) float64 { return (1 - cdf(x)) * (1 - cdf(x)) }, y, high, 2000, quad.Legendre{}, 0)
	return below + above
}

// mixtures are made-up predictions of m samples for n targets.
func mixtures(rng *rand.Rand, m, n int) (target []float64, mean, variance [][]float64) {
	for range n {
		target = append(target, 2*rng.NormFloat64())
	}
	for range m {
		var means, variances []float64
		for range n {
			means, variances = append(means, 2*rng.NormFloat64()), append(variances, 0.1+rng.ExpFloat64())
		}
		mean, variance = append(mean, means), append(variance, variances)
	}
	return target, mean, variance
}

func TestCRPSIsTheIntegral(t *testing.T) {
	rng, each := rand.New(rand.NewPCG(1, 2)), map[int][]float64{}
	for _, m := range []int{1, 2, 7} {
		target, mean, variance := mixtures(rng, m, 20)
		const std = 9.2
		for i, y := range target {
			var means, variances []float64
			var one, spread [][]float64 // of example i alone
			for k := range mean {
				means, variances = append(means, mean[k][i]), append(variances, variance[k][i])
				one, spread = append(one, mean[k][i:i+1]), append(spread, variance[k][i:i+1])
			}
			each[m] = append(each[m], MonteCarloCRPS(target[i:i+1], one, spread, std))
			near(t, fmt.Sprintf("CRPS of %d components", m), each[m][i:], []float64{std * crpsByIntegral(y, means, variances)})
		}
		near(t, "mean CRPS", []float64{MonteCarloCRPS(target, mean, variance, std)}, []float64{stat.Mean(each[m], nil)})
	}
}

// Without spread it is the CRPS of the draws themselves, and the interval is that of their quantiles.
func TestPointsInThePlaceOfGaussians(t *testing.T) {
	target, mean := []float64{1.5, 0, -1}, [][]float64{{0, 0, 0}, {1, 1, 1}, {2, 2, 2}, {3, 3, 3}}
	none := slices.Repeat([][]float64{make([]float64, 3)}, 4)
	near(t, "CRPS", []float64{MonteCarloCRPS(target, mean, none, 1)}, []float64{(0.375 + 0.875 + 1.875) / 3})
	near(t, "coverage", []float64{MonteCarloCoverage(target, mean, none, 0.9)}, []float64{2. / 3})
	if nll := MonteCarloNLL([]float64{1.5}, [][]float64{{0}}, [][]float64{{0}}, 1); !math.IsInf(nll, 1) {
		t.Errorf("the NLL is %v", nll)
	}
}

// Two draws of a mixture are as far apart by the series as by pairs, also where the deviations differ.
func TestSeriesOfCRPSIsThatOfPairs(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, ratio := range []float64{1, 3, 100} {
		for _, scale := range []float64{1e-6, 1, 1e6} {
			mean, std := make([]float64, 300), make([]float64, 300)
			for m := range mean {
				mean[m], std[m] = scale*(7+rng.NormFloat64()), scale*(1+(ratio-1)*rng.Float64())/math.Sqrt(ratio)
			}
			if got, want := apartBySeries(mean, std), apartByPairs(mean, std); !(math.Abs(got-want) <= 1e-11*want) {
				t.Errorf("ratio %v, scale %v: %v by the series, %v by pairs", ratio, scale, got, want)
			}
		}
	}
	// The cheaper one is taken: pairs for few draws, and where a deviation is 0.
	for _, c := range []struct {
		draws  int
		std    float64
		series bool
	}{{10, 1, false}, {1000, 1, true}, {1000, 0.001, false}, {1000, 0, false}} {
		mean, std := make([]float64, c.draws), slices.Repeat([]float64{1}, c.draws)
		if std[0] = c.std; bySeries(mean, std) != c.series {
			t.Errorf("%+v: %v terms", c, seriesTerms(mean, std))
		}
	}
}

// BenchmarkCRPS has the numbers of crps_peer.py.
func BenchmarkCRPS(b *testing.B) {
	for _, draws := range []int{50, 100, 1000} {
		for _, ratio := range []float64{1, 3, 100} {
			b.Run(fmt.Sprintf("draws=%d/deviations=1:%g", draws, ratio), func(b *testing.B) {
				const rows = 20
				target, mean, variance := mixtures(rand.New(rand.NewPCG(1, 2)), draws, rows)
				for m := range draws {
					for i := range rows {
						mean[m][i], variance[m][i] = mean[m][i]/4, math.Pow(ratio, -2*float64(m)/float64(draws-1))
					}
				}
				for b.Loop() {
					MonteCarloCRPS(target, mean, variance, 1)
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/rows, "us/row")
			})
		}
	}
}

// Targets drawn from the predicted mixture are inside as often as the level says.
func TestIntervalsCover(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	const n, level = 20000, 0.9
	target, mean, variance := mixtures(rng, 3, n)
	for i := range target {
		m := rng.IntN(len(mean))
		target[i] = mean[m][i] + math.Sqrt(variance[m][i])*rng.NormFloat64()
	}
	inside := 0.0
	for i, y := range target {
		means, variances := []float64{mean[0][i], mean[1][i], mean[2][i]}, []float64{variance[0][i], variance[1][i], variance[2][i]}
		if mixtureQuantile(means, variances, (1-level)/2) <= y && y <= mixtureQuantile(means, variances, (1+level)/2) {
			inside++
		}
	}
	got := inside / n
	if z := (got - level) / math.Sqrt(level*(1-level)/n); math.Abs(z) > 4 {
		t.Errorf("coverage %v of level %v, z = %.1f", got, level, z)
	}
	if same := MonteCarloCoverage(target, mean, variance, level); same != got {
		t.Errorf("coverage %v by the distribution function, %v by intervals", same, got)
	}
}
