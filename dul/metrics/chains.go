package metrics

import (
	"fmt"
	"math"
	"slices"

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
// of draws the one in the middle counts nowhere. Draws that are all equal, chains that do not move and chains of fewer
// than four draws are an error; it panics if chains have different lengths.
func SplitRHat(chains [][]float64) (float64, error) {
	all, err := splitChains(chains)
	if err != nil {
		return 0, err
	}
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
	if bulk.within == 0 || math.IsInf(largest, 1) {
		return 0, errStuck
	}
	return largest, nil
}

// EffectiveSize is the number of independent draws that would tell the mean as well as the draws of several chains,
// [chains][draws]: the bulk effective sample size of Vehtari et al. (2021), of the normal scores of the ranks in split
// chains. With rho_t the autocorrelation at lag t, over all halves together,
//
//	size = draws / (1 + 2 sum_t rho_t),   rho_0 = 1,
//
// where the sum ends by Geyer's rule of the initial monotone sequence, and the even lag after it is counted once if it is
// positive, as Stan and ArviZ do. It can exceed the number of draws if neighbours are anticorrelated, and is at most
// draws log10(draws). Errors are those of SplitRHat.
func EffectiveSize(chains [][]float64) (float64, error) {
	all, err := splitChains(chains)
	if err != nil {
		return 0, err
	}
	h := newHalves(all)
	if h.within == 0 {
		return 0, errStuck
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
	return draws / max(tau, 1/math.Log10(draws)), nil
}

// errStuck is of chains whose halves repeat one draw each.
var errStuck = fmt.Errorf("metrics: the chains do not move: every draw within a half of a chain is the same, or as far from the median: %w", ErrValue)

// splitChains copies the halves of all chains. Of an odd number of draws the one in the middle is left out.
func splitChains(chains [][]float64) ([][]float64, error) {
	if len(chains) == 0 || len(chains[0]) < 4 {
		return nil, fmt.Errorf("metrics: %d chains; there must be one or more, of at least 4 draws", len(chains))
	}
	var all [][]float64
	least, largest := math.Inf(1), math.Inf(-1)
	for i, c := range chains {
		same(fmt.Sprintf("chain %d", i), len(c), "chain 0", len(chains[0]))
		if err := checkFinite(fmt.Sprintf("chain %d", i), c); err != nil {
			return nil, err
		}
		all = append(all, slices.Clone(c[:len(c)/2]), slices.Clone(c[(len(c)+1)/2:]))
		least, largest = min(least, slices.Min(c)), max(largest, slices.Max(c))
	}
	if least == largest {
		return nil, fmt.Errorf("metrics: all draws of the chains are %v: %w", least, ErrValue)
	}
	return all, nil
}

// halves are the normal scores of the draws of split chains.
type halves struct {
	scores        [][]float64
	within, total float64 // W and V of SplitRHat
}

// newHalves ranks the draws of all halves together.
func newHalves(all [][]float64) halves {
	scores, n := midranks(slices.Concat(all...)), len(all[0])
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
