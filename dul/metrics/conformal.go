package metrics

import (
	"math"
	"slices"
)

// ConformalQuantile is the ceil((n + 1) level)-th smallest of n scores, and +Inf if that is more than n: the bound that split
// conformal prediction gives to the score of a new example (Vovk et al. 2005). If its score and these are exchangeable, it is at most
// the bound with a probability of at least level, and of less than level + 1/(n + 1) if no two are equal. level is between 0 and 1. A
// score that is NaN counts as infinite.
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
