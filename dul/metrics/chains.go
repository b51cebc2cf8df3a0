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
// which tells chains of different widths. Near 1 the chains agree; the authors ask for less than 1.01. Draws that are
// all equal, and chains of fewer than four draws or of different lengths, are an error.
func SplitRHat(chains [][]float64) (float64, error) {
	all, err := joinedChains(chains)
	if err != nil {
		return 0, err
	}
	bulk := newHalves(all, len(chains))
	median := stat.Quantile(0.5, stat.LinInterp, slices.Sorted(slices.Values(all)), nil)
	for i, v := range all {
		all[i] = math.Abs(v - median)
	}
	rHat := func(h halves) float64 { return math.Sqrt(h.total / h.within) }
	return finite("split R-hat", max(rHat(bulk), rHat(newHalves(all, len(chains)))))
}

// EffectiveSize is the number of independent draws that would tell the mean as well as the draws of several chains,
// [chains][draws]: the bulk effective sample size of Vehtari et al. (2021), of the normal scores of the ranks in split
// chains. With rho_t the autocorrelation at lag t, over all halves together,
//
//	size = draws / (1 + 2 sum_t rho_t),
//
// where the sum ends by Geyer's rule of the initial monotone sequence. It can exceed the number of draws if neighbours are
// anticorrelated, and is at most draws log10(draws). Errors are those of SplitRHat.
func EffectiveSize(chains [][]float64) (float64, error) {
	all, err := joinedChains(chains)
	if err != nil {
		return 0, err
	}
	h, draws := newHalves(all, len(chains)), float64(len(all))
	tau, least := -1.0, math.Inf(1)
	for lag := 0; lag+1 < len(h.scores[0]); lag += 2 {
		pair := h.autocorrelation(lag) + h.autocorrelation(lag+1)
		if pair < 0 {
			break
		}
		least = min(least, pair)
		tau += 2 * least
	}
	return finite("effective sample size", draws/max(tau, 1/math.Log10(draws)))
}

// joinedChains are the draws of all chains, one chain after the other.
func joinedChains(chains [][]float64) ([]float64, error) {
	if len(chains) == 0 || len(chains[0]) < 4 {
		return nil, fmt.Errorf("metrics: %d chains; there must be one or more, of at least 4 draws: %w", len(chains), ErrEmpty)
	}
	var all []float64
	for i, c := range chains {
		if err := checkLength(fmt.Sprintf("chain %d", i), len(c), "chain 0", len(chains[0])); err != nil {
			return nil, err
		}
		all = append(all, c...)
	}
	if err := checkFinite("chains", all); err != nil {
		return nil, err
	}
	if stat.Variance(all, nil) == 0 {
		return nil, fmt.Errorf("metrics: all draws of the chains are %v: %w", all[0], ErrValue)
	}
	return all, nil
}

// halves are the normal scores of the draws of split chains.
type halves struct {
	scores        [][]float64
	within, total float64 // W and V of SplitRHat
}

// newHalves splits the draws of so many chains. Of an odd number of draws the one in the middle is left out.
func newHalves(all []float64, chains int) halves {
	scores, length := midranks(all), len(all)/chains
	for i, rank := range scores {
		scores[i] = distuv.UnitNormal.Quantile((rank - 0.375) / (float64(len(all)) + 0.25))
	}
	h, n := halves{}, length/2
	var means []float64
	for c := range chains {
		chain := scores[c*length : (c+1)*length]
		h.scores = append(h.scores, chain[:n], chain[length-n:])
	}
	for _, half := range h.scores {
		mean, variance := stat.MeanVariance(half, nil)
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
