package metrics

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// SplitRHat is the rank-normalised split R-hat of several chains of draws of one number, [chains][draws] (Vehtari,
// Gelman, Simpson, Carpenter and Bürkner 2021, "Rank-normalization, folding, and localization: an improved R-hat for
// assessing convergence of MCMC"). Each chain is split into halves; with W the mean variance within a half, V the mean of
// the draws' variance that also counts how the halves' means differ,
//
//	R-hat = sqrt(V / W),   V = (n-1)/n W + variance of the means of the halves.
//
// It is the larger of two: of the normal scores of the draws' ranks, and of those of their distances from the median,
// which tells chains of different widths. Near 1 the chains agree; the authors ask for less than 1.01. Of an odd number
// of draws the one in the middle counts nowhere. It is NaN if every draw within each half of a chain is the same, or as far
// from the median. It panics if chains have fewer than four draws, or different lengths.
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

// EffectiveSize is the number of independent draws that would tell the mean as well as the draws of several chains,
// [chains][draws]: the bulk effective sample size of Vehtari et al. (2021), of the normal scores of the ranks in split
// chains. With rho_t the autocorrelation at lag t, over all halves together,
//
//	size = draws / (1 + 2 sum_t rho_t),   rho_0 = 1,
//
// where the sum ends by Geyer's rule of the initial monotone sequence, and the even lag after it is counted once if it is
// positive, as Stan and ArviZ do. It can exceed the number of draws if neighbours are anticorrelated, and is at most
// draws log10(draws). It is NaN if every draw within each half of a chain is the same, and panics as SplitRHat does.
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
	draws, n := slices.Concat(all...), len(all[0])
	if floats.HasNaN(draws) {
		return halves{within: math.NaN(), total: math.NaN()}
	}
	scores := midranks(draws)
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
