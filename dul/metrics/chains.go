package metrics

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// SplitRHat returns the rank-normalised split R-hat of several chains of draws of one number, [chains][draws] (Vehtari,
// Gelman, Simpson, Carpenter and Bürkner 2021, "Rank-normalization, folding, and localization: an improved R-hat for
// assessing convergence of MCMC"). Each chain is split into halves of n draws; an odd draw in the middle is left out.
// With W the mean variance within a half,
//
//	R-hat = sqrt(V / W),   V = (n-1)/n W + variance of the means of the halves.
//
// The result is the larger of two values: R-hat of the normal scores of the draws' ranks, and R-hat of the scores of
// the draws' distances from the median, which detects chains of different widths. It is near 1 if the chains agree; the
// authors ask for less than 1.01. It is NaN if all draws within each half are equal, or equally far from the median. It
// panics if chains have fewer than four draws or different lengths.
func SplitRHat(chains [][]float64) float64 {
	all := splitChains(chains)
	bulk := newHalves(all)
	median := medianOf(slices.Concat(all...))
	for _, half := range all {
		for i, v := range half {
			half[i] = math.Abs(v - median)
		}
	}
	largest := math.Sqrt(bulk.total / bulk.within)
	if folded := newHalves(all); folded.total > 0 { // 0 if all draws are as far from the median
		largest = max(largest, math.Sqrt(folded.total/folded.within))
	}
	if math.IsInf(largest, 1) {
		return math.NaN()
	}
	return largest
}

// EffectiveSize returns the number of independent draws whose mean would be as precise as that of the given chains,
// [chains][draws]: the bulk effective sample size of Vehtari et al. (2021), from the normal scores of the ranks in
// split chains. With rho_t the autocorrelation at lag t over all halves,
//
//	size = draws / (1 + 2 sum_t rho_t),   t = 1, 2, ...
//
// The sum ends by Geyer's rule of the initial monotone sequence; the next even lag is added once if it is positive, as
// in Stan and ArviZ. If neighbouring draws are anticorrelated the size can exceed draws; it is at most draws
// log10(draws). It is NaN if all draws within each half are equal, and panics as SplitRHat does.
func EffectiveSize(chains [][]float64) float64 {
	h := newHalves(splitChains(chains))
	if !(h.within > 0) {
		return math.NaN()
	}
	length, draws := len(h.scores[0]), float64(len(h.scores)*len(h.scores[0]))
	even, odd := 1.0, h.autocorrelation(1)
	tau, least, lag := -1.0, math.Inf(1), 0
	for lag+4 < length && even+odd > 0 {
		least = min(least, even+odd)
		tau += 2 * least
		lag += 2
		even, odd = h.autocorrelation(lag), h.autocorrelation(lag+1)
	}
	if even > 0 || even+odd >= 0 {
		tau += even
	}
	return draws / max(tau, 1/math.Log10(draws))
}

// splitChains copies the halves of all chains. Of an odd number of draws the one in the middle is left out.
func splitChains(chains [][]float64) (all [][]float64) {
	for i, c := range chains {
		same(fmt.Sprintf("chain %d", i), len(c), "chain 0", len(chains[0]))
		all = append(all, slices.Clone(c[:len(c)/2]), slices.Clone(c[(len(c)+1)/2:]))
	}
	if len(all) == 0 || len(all[0]) < 2 {
		panic(fmt.Sprintf("metrics: %d chains; there must be one or more, of at least 4 draws", len(chains)))
	}
	return all
}

// halves are the normal scores of the draws of split chains.
type halves struct {
	scores        [][]float64
	within, total float64 // W and V of SplitRHat
}

// newHalves ranks the draws of all halves together. If one is NaN, so are W and V.
func newHalves(all [][]float64) halves {
	scores, n := Midranks(slices.Concat(all...)), len(all[0])
	for i, rank := range scores {
		scores[i] = distuv.UnitNormal.Quantile((rank - 0.375) / (float64(len(scores)) + 0.25))
	}
	h := halves{scores: slices.Collect(slices.Chunk(scores, n))}
	var means []float64
	for _, half := range h.scores {
		mean, variance := stat.MeanVariance(half, nil)
		if slices.Min(half) == slices.Max(half) {
			variance = 0 // and not the rounding of the mean
		}
		means, h.within = append(means, mean), h.within+variance/float64(len(h.scores))
	}
	h.total = h.within*float64(n-1)/float64(n) + stat.Variance(means, nil)
	return h
}

// autocorrelation is that at a lag, 1 - (W - mean autocovariance) / V.
func (h halves) autocorrelation(lag int) float64 {
	covariance, n := 0.0, float64(len(h.scores[0]))
	for _, half := range h.scores {
		mean := stat.Mean(half, nil)
		for i := range len(half) - lag {
			covariance += (half[i] - mean) * (half[i+lag] - mean) / n / float64(len(h.scores))
		}
	}
	return 1 - (h.within-covariance)/h.total
}
