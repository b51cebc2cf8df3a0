package metrics

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// mostRanked is the most differences that SignedRank takes: beyond, its exact distribution takes long.
const mostRanked = 500

// SignedRank returns the two-sided p-value of Wilcoxon's signed-rank test (1945) that the differences are symmetric
// around 0. It uses the exact distribution of the sum of the ranks of |d_i| over the positive d_i. Equal |d_i| share
// their mean rank; differences of 0 are left out. If none is left, the result is 1. It panics if more than 500 are
// left.
func SignedRank(differences []float64) float64 {
	if floats.HasNaN(differences) {
		return math.NaN()
	}
	d := slices.DeleteFunc(slices.Clone(differences), func(v float64) bool { return v == 0 })
	switch {
	case len(d) == 0:
		return 1
	case len(d) > mostRanked:
		panic(fmt.Sprintf("metrics: %d differences, want at most %d", len(d), mostRanked))
	}
	sizes := make([]float64, len(d))
	for i, v := range d {
		sizes[i] = math.Abs(v)
	}
	ranks := Midranks(sizes)
	total, sum := len(d)*(len(d)+1), 0
	probability := make([]float64, total+1) // of each sum of ranks
	probability[0] = 1
	for i, v := range d {
		r := int(2 * ranks[i]) // ranks are halves at most
		if v > 0 {
			sum += r
		}
		for s := total; s >= 0; s-- {
			p := probability[s] / 2
			if s >= r {
				p += probability[s-r] / 2
			}
			probability[s] = p
		}
	}
	p := 0.0
	for _, v := range probability[:min(sum, total-sum)+1] {
		p += v
	}
	return min(1, 2*p)
}

// MedianInterval returns the median of independent values, and its percentile bootstrap interval at a level between 0
// and 1, from the given number of resamples drawn with replacement.
func MedianInterval(values []float64, level float64, replicates int, seed uint64) (median, low, high float64) {
	inUnit(level)
	if floats.HasNaN(values) {
		return math.NaN(), math.NaN(), math.NaN()
	}
	rng, drawn, medians := rand.New(rand.NewPCG(seed, 0)), make([]float64, len(values)), make([]float64, replicates)
	for r := range medians {
		for i := range drawn {
			drawn[i] = values[rng.IntN(len(values))]
		}
		medians[r] = medianOf(drawn)
	}
	slices.Sort(medians)
	tail := (1 - level) / 2
	return medianOf(slices.Clone(values)), stat.Quantile(tail, stat.Empirical, medians, nil), stat.Quantile(1-tail, stat.Empirical, medians, nil)
}

// medianOf sorts values and returns their median.
func medianOf(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return values[(n-1)/2]/2 + values[n/2]/2 // the sum may overflow
}
