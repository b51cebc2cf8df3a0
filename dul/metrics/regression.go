package metrics

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// RMSE returns the root mean squared error sqrt(1/N sum_i (prediction_i - target_i)^2), in the unit of the targets. For
// Monte Carlo predictions, prediction is the mean over the samples.
func RMSE(prediction, target []float64) float64 {
	return floats.Distance(prediction, target, 2) / math.Sqrt(float64(len(target)))
}

// MonteCarloNLL returns the negative log likelihood in nats, averaged over the examples, of the mixture with equal
// weights of the M Gaussians that M Monte Carlo samples predict,
//
//	-log 1/M sum_m N(y; mean_m, variance_m) + log targetStd.
//
// target [N], mean and variance [M][N] are in the unit of training, in which targets were divided by targetStd; pass 1
// if they were not. Adding log targetStd gives the NLL in the target's own unit. The result is finite for targets far
// from all samples.
func MonteCarloNLL(target []float64, mean, variance [][]float64, targetStd float64) float64 {
	checkSamples(target, mean, variance)
	each, logs := make([]float64, len(target)), make([]float64, len(mean))
	for i, y := range target {
		for m := range mean {
			logs[m] = logNormal(y, mean[m][i], variance[m][i])
		}
		each[i] = math.Log(float64(len(mean))) - floats.LogSumExp(logs) + math.Log(targetStd)
	}
	return stat.Mean(each, nil)
}

// logNormal is the log density of N(mean, variance) at y. Of variance 0 it is the limit, infinite.
func logNormal(y, mean, variance float64) float64 {
	d := y - mean
	switch {
	case variance == 0 && d == 0:
		return math.Inf(1)
	case variance == 0 && !math.IsNaN(d):
		return math.Inf(-1)
	}
	return -0.5 * (math.Log(2*math.Pi) + math.Log(variance) + d*d/variance)
}

// checkSamples panics if the samples do not fit the targets.
func checkSamples(target []float64, mean, variance [][]float64) {
	if len(mean) == 0 {
		panic("metrics: there are no samples")
	}
	same("variance", len(variance), "mean", len(mean))
	for m := range mean {
		same("a sample of means", len(mean[m]), "target", len(target))
		same("a sample of variances", len(variance[m]), "target", len(target))
	}
}

// MonteCarloCRPS returns the continuous ranked probability score, averaged over the examples,
//
//	integral (F(x) - [x >= y])^2 dx,
//
// where F is the distribution function of the mixture with equal weights of the M Gaussians that M Monte Carlo samples
// predict (Gneiting and Raftery 2007, section 4.2). The closed form (Grimit et al. 2006) is
//
//	targetStd (1/M sum_m A(y - mean_m, v_m) - 1/(2 M^2) sum_mn A(mean_m - mean_n, v_m + v_n)),
//
// where A(d, v) is the mean of |X| for X from N(d, v). It is in the target's own unit; smaller is better. As the
// variances go to 0 it becomes |y - mean|. Arguments are those of MonteCarloNLL. For many draws of similar variances
// the second sum is computed as a series, with a relative error below 1e-11.
func MonteCarloCRPS(target []float64, mean, variance [][]float64, targetStd float64) float64 {
	checkSamples(target, mean, variance)
	samples, each := len(mean), make([]float64, len(target))
	at, std := make([]float64, samples), make([]float64, samples) // of an example
	for i, y := range target {
		toTarget := 0.0
		for m := range mean {
			at[m], std[m] = mean[m][i], math.Sqrt(variance[m][i])
			toTarget += meanDistance(y-at[m], std[m])
		}
		apart := apartByPairs
		if bySeries(at, std) {
			apart = apartBySeries
		}
		each[i] = targetStd * (toTarget/float64(samples) - apart(at, std)/2)
	}
	return stat.Mean(each, nil)
}

// apartByPairs is the mean of |X - X'| for two draws of the equal mixture of N(mean_m, std_m^2).
func apartByPairs(mean, std []float64) float64 {
	total := 0.0
	for m, s := range std {
		total += meanDistance(0, math.Sqrt2*s)
		for n := range m {
			total += 2 * meanDistance(mean[m]-mean[n], math.Sqrt(s*s+std[n]*std[n]))
		}
	}
	return total / float64(len(mean)*len(mean))
}

// apartBySeries is apartByPairs by the Fourier series of |x| on [-L, L],
//
//	|x| = L/2 - 4 L/pi^2 sum_{k = 1, 3, 5, ...} cos(pi k x/L)/k^2,
//
// as the mean of cos(t (X - X')) is |1/M sum_m exp(i t mean_m - t^2 std_m^2/2)|^2.
func apartBySeries(mean, std []float64) float64 {
	length, sum := seriesLength(mean, std), 0.0
	turned, step := make([]complex128, len(mean)), make([]complex128, len(mean)) // exp(i t mean_m) and how it grows
	for m, at := range mean {
		sin, cos := math.Sincos(math.Pi / length * at)
		turned[m] = complex(cos, sin)
		step[m] = turned[m] * turned[m]
	}
	for k := 1; k <= 1+2*int(seriesTerms(mean, std)); k += 2 {
		t, total := math.Pi*float64(k)/length, complex(0, 0)
		for m, s := range std {
			total += turned[m] * complex(math.Exp(-t*t*s*s/2), 0)
			turned[m] *= step[m]
		}
		sum += (real(total)*real(total) + imag(total)*imag(total)) / float64(k*k)
	}
	return length/2 - 4*length/(math.Pi*math.Pi)*sum/float64(len(mean)*len(mean))
}

// bySeries says whether the series has so few terms that it takes less than a fifth of the time of the pairs.
func bySeries(mean, std []float64) bool { return seriesTerms(mean, std) < float64(len(mean))/4 }

// seriesLength is an L that |X - X'| exceeds by less than 1e-12 on average, beside the largest deviation.
func seriesLength(mean, std []float64) float64 {
	return slices.Max(mean) - slices.Min(mean) + 10*slices.Max(std)
}

// seriesTerms is after how many terms those left are below 1e-12.
func seriesTerms(mean, std []float64) float64 {
	return 5.3 / (2 * math.Pi) * seriesLength(mean, std) / slices.Min(std)
}

// meanDistance is the mean of |X| for X from N(d, s^2), 2 s phi(d/s) + d (2 Phi(d/s) - 1), and |d| for s = 0.
func meanDistance(d, s float64) float64 {
	if s == 0 {
		return math.Abs(d)
	}
	z := d / s
	return s*math.Sqrt(2/math.Pi)*math.Exp(-z*z/2) + d*math.Erf(z/math.Sqrt2)
}

// MonteCarloCoverage returns the fraction of targets inside the central interval of the given level, bounds included,
// of the mixture with equal weights of the M Gaussians that M Monte Carlo samples predict. A target y is inside if F(y)
// >= (1-level)/2 and P(Y < y) <= (1+level)/2, with
//
//	F(y) = P(Y <= y) = 1/M sum_m Phi((y - mean_m)/s_m).
//
// target [N], mean and variance [M][N] are in the same unit. It panics if level is not between 0 and 1.
func MonteCarloCoverage(target []float64, mean, variance [][]float64, level float64) float64 {
	inUnit(level)
	checkSamples(target, mean, variance)
	inside, tail := 0.0, (1-level)/2
	for i, y := range target {
		below, at := 0.0, 0.0 // probabilities
		for m := range mean {
			d, v := mean[m][i]-y, variance[m][i]
			if d == 0 && v == 0 {
				at += 1 / float64(len(mean))
			} else {
				below += math.Erfc(d/(math.Sqrt2*math.Sqrt(v))) / (2 * float64(len(mean)))
			}
		}
		switch {
		case math.IsNaN(below):
			return below
		case below+at >= tail && 1-below >= tail:
			inside++
		}
	}
	return inside / float64(len(target))
}

// ConformalQuantile is the ceil((n + 1) level)-th smallest of n scores, and +Inf if that is more than n: the bound that split
// conformal prediction gives to the score of a new example (Vovk et al. 2005). If all n + 1 scores are exchangeable, the new one is at
// most the bound with a probability of at least level, and of less than level + 1/(n + 1) if no two are equal. level is between 0 and
// 1. A score that is NaN counts as infinite.
func ConformalQuantile(scores []float64, level float64) float64 {
	inUnit(level)
	n := float64(len(scores))
	rank := int(math.Ceil((n+1)*level - 1e-12*(n+1))) // 100 times 0.07 is above 7 by rounding
	if rank > len(scores) {
		return math.Inf(1)
	}
	sorted := slices.Clone(scores)
	for i, s := range sorted {
		if math.IsNaN(s) {
			sorted[i] = math.Inf(1)
		}
	}
	slices.Sort(sorted)
	return sorted[max(rank, 1)-1]
}

// JointNLL returns the negative log likelihood of groups of targets under M functions, in nats for each target,
// averaged over the groups g (Osband et al. 2022, "The Neural Testbed"):
//
//	-1/|g| log 1/M sum_m prod_{i in g} N(y_i; mean_m(x_i), variance_m(x_i)) + log targetStd.
//
// A group lists indices of targets, which may repeat. Each sample m must be one function of the input. If samples are
// drawn for each input separately, the true joint likelihood is the product of the marginal ones, and its NLL is the
// mean of MonteCarloNLL over the groups' targets. Groups of one target give MonteCarloNLL too. With few samples the
// result is too high on average, by about half the relative variance of the mean likelihood divided by |g|. The other
// arguments are as in MonteCarloNLL.
func JointNLL(target []float64, mean, variance [][]float64, groups [][]int, targetStd float64) float64 {
	checkSamples(target, mean, variance)
	each, logs := make([]float64, len(groups)), make([]float64, len(mean))
	for k, group := range groups {
		clear(logs)
		for _, i := range group {
			for m := range mean {
				logs[m] += logNormal(target[i], mean[m][i], variance[m][i])
			}
		}
		each[k] = (math.Log(float64(len(mean)))-floats.LogSumExp(logs))/float64(len(group)) + math.Log(targetStd)
	}
	return stat.Mean(each, nil)
}

// dyadStream keeps dyads apart from other uses of a seed.
const dyadStream = 0x6479616473

// Dyads returns count groups of size indices below n, n >= 2, by dyadic sampling (Osband et al. 2022): each group draws
// two different indices, and then each of its entries at random from these two. Joint predictions of such groups differ
// from marginal ones even if few of the inputs are close to each other.
func Dyads(n, size, count int, seed uint64) [][]int {
	random := rand.New(rand.NewPCG(seed, dyadStream))
	groups := make([][]int, count)
	for k := range groups {
		anchors := [2]int{random.IntN(n), random.IntN(n - 1)}
		if anchors[1] >= anchors[0] {
			anchors[1]++
		}
		for range size {
			groups[k] = append(groups[k], anchors[random.IntN(2)])
		}
	}
	return groups
}
