package metrics

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"densityuncertainty/environment/must"
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
	must.Z(t, (got-level)/math.Sqrt(level*(1-level)/n), "coverage %v of level %v", got, level)
	if same := MonteCarloCoverage(target, mean, variance, level); same != got {
		t.Errorf("coverage %v by the distribution function, %v by intervals", same, got)
	}
}

// The ranks are as with exact fractions. Scores 1 to n in a random order are their own ranks.
func TestConformalQuantile(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 0))
	for _, c := range []struct {
		n     int
		level float64
		want  float64
	}{
		{9, 0.8, 8}, {9, 0.9, 9}, {9, 0.95, math.Inf(1)}, {19, 0.8, 16}, {19, 0.9, 18}, {19, 0.95, 19}, {99, 0.8, 80}, {99, 0.9, 90}, {99, 0.95, 95},
		{99, 0.07, 7}, {18, 0.95, math.Inf(1)}, {0, 0.5, math.Inf(1)}, {3, 0.01, 1},
	} {
		var scores []float64
		for _, i := range rng.Perm(c.n) {
			scores = append(scores, float64(i+1))
		}
		if got := ConformalQuantile(scores, c.level); got != c.want {
			t.Errorf("%d scores at %g: %g, want %g", c.n, c.level, got, c.want)
		}
	}
	if got := ConformalQuantile([]float64{math.NaN(), 1, 2}, 0.7); !math.IsInf(got, 1) {
		t.Errorf("with a NaN: %g", got)
	}

	// A new score of the same distribution is within the bound with probability rank/(n + 1).
	const trials = 20000
	inside := 0.0
	for range trials {
		scores := make([]float64, 19)
		for i := range scores {
			scores[i] = rng.ExpFloat64()
		}
		if rng.ExpFloat64() <= ConformalQuantile(scores, 0.87) {
			inside++
		}
	}
	must.Z(t, (inside/trials-18.0/20)/math.Sqrt(0.9*0.1/trials), "%g of the new scores are within the bound", inside/trials)
}

// Functions a + b x with a from N(0, 1/4) and b from N(0, 1) have joint predictions in closed form: Gaussians of
// covariance 1/4 + x x' and the noise. The mean likelihood of M draws is within z standard errors.
func TestJointNLLOfLines(t *testing.T) {
	const draws, noise = 20000, 0.5
	x, y := []float64{-1, 0.3, 0.3, 2}, []float64{0.4, 0.2, -0.5, 1}
	random := rand.New(rand.NewPCG(1, 1))
	mean, variance := make([][]float64, draws), make([][]float64, draws)
	for m := range mean {
		a, b := random.NormFloat64()/2, random.NormFloat64()
		for _, at := range x {
			mean[m], variance[m] = append(mean[m], a+b*at), append(variance[m], noise*noise)
		}
	}
	for _, group := range [][]int{{0}, {0, 3}, {1, 2}, {0, 1, 2, 3}, {3, 3, 0}} {
		n := len(group)
		covariance, targets := mat.NewSymDense(n, nil), make([]float64, n)
		for i, a := range group {
			targets[i] = y[a]
			for j, b := range group {
				covariance.SetSym(i, j, 0.25+x[a]*x[b])
			}
			covariance.SetSym(i, i, covariance.At(i, i)+noise*noise)
		}
		root, solved := &mat.Cholesky{}, &mat.VecDense{}
		if !root.Factorize(covariance) {
			t.Fatal("the covariance has no root")
		}
		must.Do(t, root.SolveVecTo(solved, mat.NewVecDense(n, targets)))
		distance := mat.Dot(solved, mat.NewVecDense(n, targets))
		want := math.Exp(-0.5 * (float64(n)*math.Log(2*math.Pi) + root.LogDet() + distance))
		// The draws' own likelihoods have the standard error.
		second := 0.0
		for m := range mean {
			l := 0.0
			for _, i := range group {
				l += logNormal(y[i], mean[m][i], variance[m][i])
			}
			second += math.Exp(2*l) / draws
		}
		got := math.Exp(-float64(n) * JointNLL(y, mean, variance, [][]int{group}, 1))
		must.Z(t, (got-want)/math.Sqrt((second-got*got)/draws), "group %v: likelihood %v, want %v", group, got, want)
	}
}

// Groups of one target, and a single function, have the marginal likelihood. Groups count alike. Units are the target's.
func TestJointNLLOfMarginals(t *testing.T) {
	y := []float64{0.3, -1, 2}
	mean, variance := [][]float64{{0, -1, 1}, {1, 0.5, 2}}, [][]float64{{1, 2, 3}, {0.5, 1, 1}}
	marginal := MonteCarloNLL(y, mean, variance, 3)
	must.Near(t, JointNLL(y, mean, variance, [][]int{{0}, {1}, {2}}, 3), marginal, 1e-12, "groups of one target")
	single := MonteCarloNLL(y, mean[:1], variance[:1], 3)
	must.Near(t, JointNLL(y, mean[:1], variance[:1], [][]int{{2, 0, 1}}, 3), single, 1e-12, "a single function")
	a, b := JointNLL(y, mean, variance, [][]int{{0, 1}}, 1), JointNLL(y, mean, variance, [][]int{{2}}, 1)
	must.Near(t, JointNLL(y, mean, variance, [][]int{{0, 1}, {2}}, 1), (a+b)/2, 1e-12, "two groups")
}

// A dyad has two anchors, each pair equally often, and each of its examples is either with probability 1/2.
func TestDyads(t *testing.T) {
	const n, size, count = 3, 5, 6000
	groups := Dyads(n, size, count, 1)
	pairs, first := map[[2]int]int{}, 0
	for _, g := range groups {
		low, high := slices.Min(g), slices.Max(g)
		for _, i := range g {
			if i != low && i != high {
				t.Fatalf("%v has more than two anchors", g)
			}
			if i == low {
				first++
			}
		}
		if len(g) != size {
			t.Fatalf("%v has %d examples", g, len(g))
		}
		pairs[[2]int{low, high}]++
	}
	// One in 2^(size-1) groups has only one anchor; the others are of three pairs.
	for _, pair := range [][2]int{{0, 1}, {0, 2}, {1, 2}} {
		const p = (1 - 1./16) / 3
		must.Z(t, (float64(pairs[pair])-count*p)/math.Sqrt(count*p*(1-p)), "pair %v in %d groups", pair, pairs[pair])
	}
	// An example is its group's lower anchor with probability 1/2, and always if the group has only one.
	same := 0
	for i := range n {
		same += pairs[[2]int{i, i}]
	}
	both := float64(count-same) * size
	must.Z(t, (float64(first-same*size)-both/2)/math.Sqrt(both/4), "%d of %v examples are the lower anchor", first-same*size, both)
	if again := Dyads(n, size, count, 1); !slices.EqualFunc(groups, again, slices.Equal) {
		t.Error("the same seed gives other dyads")
	}
}
