package metrics

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"densityuncertainty/internal/must"
)

// crpsByIntegral is the definition, integral (F(x) - [x >= y])^2 dx, evaluated by quadrature.
func crpsByIntegral(y float64, mean, variance []float64) float64 {
	cdf := func(x float64) float64 {
		total := 0.0
		for m := range mean {
			total += distuv.Normal{Mu: mean[m], Sigma: math.Sqrt(variance[m])}.CDF(x) / float64(len(mean))
		}
		return total
	}
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
	rng := rand.New(rand.NewPCG(1, 2))
	for _, m := range []int{1, 2, 7} {
		target, mean, variance := mixtures(rng, m, 20)
		const std = 9.2
		each := must.Get(MonteCarloCRPSs(target, mean, variance, std))(t)
		want, total := make([]float64, len(target)), 0.0
		for i, y := range target {
			var means, variances []float64
			for k := range mean {
				means, variances = append(means, mean[k][i]), append(variances, variance[k][i])
			}
			want[i] = std * crpsByIntegral(y, means, variances)
			total += want[i] / float64(len(target))
		}
		near(t, fmt.Sprintf("CRPS of %d components", m), each, want)
		near(t, "mean CRPS", []float64{must.Get(MonteCarloCRPS(target, mean, variance, std))(t)}, []float64{total})
		if m == 1 {
			for i, v := range must.Get(GaussianCRPSs(target, mean[0], variance[0]))(t) {
				near(t, "Gaussian CRPS", []float64{std * v}, want[i:i+1])
			}
		}
	}
}

func TestCRPSProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	target, mean, variance := mixtures(rng, 5, 100)
	each := must.Get(MonteCarloCRPSs(target, mean, variance, 1))(t)
	for i, v := range each {
		if v < 0 {
			t.Errorf("CRPS %d is %v", i, v)
		}
	}
	// At the mean of N(m, s^2) it is s (sqrt 2 - 1)/sqrt pi.
	near(t, "at the mean", must.Get(GaussianCRPSs([]float64{3}, []float64{3}, []float64{4}))(t), []float64{2 * (math.Sqrt2 - 1) / math.Sqrt(math.Pi)})
	// Without spread it is the distance.
	tiny := make([]float64, len(target))
	distance := make([]float64, len(target))
	for i := range tiny {
		tiny[i], distance[i] = 1e-24, math.Abs(target[i]-mean[0][i])
	}
	near(t, "without spread", must.Get(GaussianCRPSs(target, mean[0], tiny))(t), distance)
	// Equal components are one component.
	near(t, "equal components", must.Get(MonteCarloCRPSs(target, [][]float64{mean[0], mean[0]}, [][]float64{variance[0], variance[0]}, 1))(t),
		must.Get(GaussianCRPSs(target, mean[0], variance[0]))(t))
	// Units: a target, mean and deviation of a hundredth give a hundredth.
	small := [3][]float64{}
	for i := range target {
		small[0], small[1], small[2] = append(small[0], target[i]/100), append(small[1], mean[0][i]/100), append(small[2], variance[0][i]/1e4)
	}
	near(t, "units", must.Get(MonteCarloCRPSs(small[0], [][]float64{small[1]}, [][]float64{small[2]}, 100))(t),
		must.Get(GaussianCRPSs(target, mean[0], variance[0]))(t))
}

func TestCentralIntervals(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	_, mean, variance := mixtures(rng, 6, 50)
	for _, level := range []float64{0.5, 0.9, 0.95, 0.999} {
		low, high, err := CentralIntervals(mean, variance, level)
		if err != nil {
			t.Fatal(err)
		}
		for i := range low {
			var below, above float64
			for m := range mean {
				normal := distuv.Normal{Mu: mean[m][i], Sigma: math.Sqrt(variance[m][i])}
				below += normal.CDF(low[i]) / float64(len(mean))
				above += normal.Survival(high[i]) / float64(len(mean))
			}
			near(t, fmt.Sprintf("tails outside of %v", level), []float64{below, above}, []float64{(1 - level) / 2, (1 - level) / 2})
		}
	}
	// One component has the textbook interval.
	low, high, err := CentralIntervals([][]float64{{3}}, [][]float64{{4}}, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "one component", []float64{low[0], high[0]}, []float64{3 - 2*1.959963984540054, 3 + 2*1.959963984540054})
}

// Targets drawn from the predicted mixture are inside as often as the level says, and their probability
// integral transforms are uniform.
func TestIntervalsCover(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	const n, level = 20000, 0.9
	target, mean, variance := mixtures(rng, 3, n)
	for i := range target {
		m := rng.IntN(len(mean))
		target[i] = mean[m][i] + math.Sqrt(variance[m][i])*rng.NormFloat64()
	}
	low, high, err := CentralIntervals(mean, variance, level)
	if err != nil {
		t.Fatal(err)
	}
	got := must.Get(IntervalCoverage(target, low, high))(t)
	if z := (got - level) / math.Sqrt(level*(1-level)/n); math.Abs(z) > 4 {
		t.Errorf("coverage %v of level %v, z = %.1f", got, level, z)
	}
	if same := must.Get(MonteCarloCoverage(target, mean, variance, level))(t); same != got {
		t.Errorf("coverage %v by the distribution function, %v by intervals", same, got)
	}
	pits := must.Get(MonteCarloPITs(target, mean, variance))(t)
	uniform := distuv.Uniform{Max: 1}
	center, spread := stat.MeanVariance(pits, nil)
	if z := (center - uniform.Mean()) / math.Sqrt(uniform.Variance()/n); math.Abs(z) > 4 {
		t.Errorf("mean of the transforms %v, z = %.1f", center, z)
	}
	if z := (spread - uniform.Variance()) / math.Sqrt(1.0/180/n); math.Abs(z) > 4 { // m4 - variance^2 = 1/80 - 1/144
		t.Errorf("variance of the transforms %v, z = %.1f", spread, z)
	}
}

// The transform and the deviation are integrals of the mixture's density.
func TestMixtureByQuadrature(t *testing.T) {
	target, mean, variance := mixtures(rand.New(rand.NewPCG(9, 10)), 4, 20)
	pits, stds := must.Get(MonteCarloPITs(target, mean, variance))(t), must.Get(MonteCarloStds(mean, variance))(t)
	for i, y := range target {
		density := func(x float64) float64 {
			total := 0.0
			for m := range mean {
				total += distuv.Normal{Mu: mean[m][i], Sigma: math.Sqrt(variance[m][i])}.Prob(x) / float64(len(mean))
			}
			return total
		}
		integral := func(f func(x float64) float64, low, high float64) float64 {
			return quad.Fixed(f, low, high, 2000, quad.Legendre{}, 0)
		}
		const far = 50
		near(t, "transform", pits[i:i+1], []float64{integral(density, -far, y)})
		center := integral(func(x float64) float64 { return x * density(x) }, -far, far)
		second := integral(func(x float64) float64 { return (x - center) * (x - center) * density(x) }, -far, far)
		near(t, "standard deviation", stds[i:i+1], []float64{math.Sqrt(second)})
	}
}

func TestIntervalsByHand(t *testing.T) {
	low, high := []float64{0, 1, 2, 3}, []float64{1, 3, 2, 7}
	if got := must.Get(IntervalCoverage([]float64{1, 0, 2, 7.5}, low, high))(t); got != 0.5 {
		t.Errorf("coverage %v", got)
	}
	if got := must.Get(MeanWidth(low, high))(t); got != 7.0/4 {
		t.Errorf("width %v", got)
	}
}

func ExampleCentralIntervals() {
	// Two samples that disagree; each has the standard deviation 0.1.
	low, high, err := CentralIntervals([][]float64{{0}, {1}}, [][]float64{{0.01}, {0.01}}, 0.95)
	fmt.Printf("%.3f to %.3f, %v\n", low[0], high[0], err)
	// Output: -0.164 to 1.164, <nil>
}
