package metrics

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Bootstrap is the percentile interval of a number computed from n examples (Efron 1979): f is evaluated
// on replicates resamples of n of the indices 0 to n-1, drawn with replacement, and the interval holds the
// middle fraction level of its values. It says how much the number would change with another test set of
// the same size; it does not hold the spread over training runs. The same seed gives the same interval.
//
// The examples come from one or several test sets, sizes[0] of the first, sizes[1] of the second and so on: each set is
// resampled by itself, so that the numbers of examples in and out of distribution, on which AUPRC depends, stay what
// they are.
//
// f may keep nothing of indices, which are overwritten by the next resample, and its error ends the
// bootstrap. What does not depend on the resample belongs outside of f: sort with NewRanks, judge with
// NewOutcomes. To compare two methods let f be the difference of their numbers on the same indices.
//
// The bounds are the values of rank (1-level)/2 (replicates+1) from below and from above, interpolated
// linearly; with too few replicates for such a rank they are the smallest and the largest. 1000
// replicates are usual for a level of 0.95.
func Bootstrap(sizes []int, replicates int, seed uint64, level float64, f func(indices []int) (float64, error)) (low, high float64, err error) {
	if !(level > 0 && level < 1) {
		return 0, 0, fmt.Errorf("metrics: the level is %v, want one in (0, 1): %w", level, ErrValue)
	}
	drawn, err := Replicates(sizes, replicates, seed, func(indices []int) ([]float64, error) {
		value, err := f(indices)
		return []float64{value}, err
	})
	if err != nil {
		return 0, 0, err
	}
	values := make([]float64, replicates)
	for b := range values {
		values[b] = drawn[b][0]
	}
	slices.Sort(values)
	low = ranked(values, (1-level)/2)
	slices.Reverse(values)
	return low, ranked(values, (1-level)/2), nil
}

// Replicates are the values of several numbers on the same resamples, [replicates][numbers]: what Bootstrap makes its
// interval of. f returns as many numbers each time, which must be finite.
func Replicates(sizes []int, replicates int, seed uint64, f func(indices []int) ([]float64, error)) ([][]float64, error) {
	n := 0
	for _, size := range sizes {
		if size < 1 {
			return nil, fmt.Errorf("metrics: bootstrap of %d examples: %w", size, ErrEmpty)
		}
		n += size
	}
	switch {
	case n == 0:
		return nil, fmt.Errorf("metrics: bootstrap of no examples: %w", ErrEmpty)
	case replicates < 1:
		return nil, fmt.Errorf("metrics: %d bootstrap replicates, want at least 1: %w", replicates, ErrValue)
	}
	rng := rand.New(rand.NewPCG(seed, bootstrapStream))
	values, indices := make([][]float64, replicates), make([]int, n)
	for b := range values {
		first, k := 0, 0
		for _, size := range sizes {
			for range size {
				indices[k] = first + rng.IntN(size)
				k++
			}
			first += size
		}
		var err error
		if values[b], err = f(indices); err != nil {
			return nil, fmt.Errorf("metrics: bootstrap replicate %d: %w", b, err)
		}
		if len(values[b]) != len(values[0]) {
			return nil, fmt.Errorf("metrics: bootstrap replicate %d has %d numbers, the first has %d: %w", b, len(values[b]), len(values[0]), ErrLength)
		}
		for _, v := range values[b] {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, fmt.Errorf("metrics: bootstrap replicate %d is %v: %w", b, v, ErrValue)
			}
		}
	}
	return values, nil
}

// bootstrapStream keeps the draws apart from others made from the same seed.
const bootstrapStream = 0x626f6f74

// ranked is the value of rank p (n+1), counted from 1, interpolated between neighbours.
func ranked(values []float64, p float64) float64 {
	rank := p*float64(len(values)+1) - 1
	k := int(math.Floor(rank))
	switch {
	case k < 0:
		return values[0]
	case k >= len(values)-1:
		return values[len(values)-1]
	}
	share := rank - float64(k)
	return (1-share)*values[k] + share*values[k+1]
}

// MeanAt returns the function of indices that is the mean of the values there, for Bootstrap.
func MeanAt(values []float64) func(indices []int) (float64, error) {
	return func(indices []int) (float64, error) {
		if len(indices) == 0 {
			return 0, fmt.Errorf("metrics: the mean at no indices: %w", ErrEmpty)
		}
		total := 0.0
		for _, i := range indices {
			if i < 0 || i >= len(values) {
				return 0, fmt.Errorf("metrics: index %d of %d values: %w", i, len(values), ErrValue)
			}
			total += values[i]
		}
		return total / float64(len(indices)), nil
	}
}
