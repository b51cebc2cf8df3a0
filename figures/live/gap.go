package live

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// An interval of inputs, from its low end to its high end.
type interval [2]float64

// gaps finds where the points x leave room: every interval between neighbouring points that is at least minGap wide. It
// also returns the interval from the lowest point to the highest. All ends are rounded to a tenth, so that the data of
// Figure 1 have the gap [-2, 2] in [-4, 4].
func gaps(x []float64) (found []interval, all interval) {
	const minGap = 0.8
	sorted := slices.Sorted(slices.Values(x))
	tenth := func(v float64) float64 { return math.Round(v*10) / 10 }
	for i := range len(sorted) - 1 {
		if sorted[i+1]-sorted[i] >= minGap {
			found = append(found, interval{tenth(sorted[i]), tenth(sorted[i+1])})
		}
	}
	return found, interval{tenth(sorted[0]), tenth(sorted[len(sorted)-1])}
}

// meanStd averages the standard deviations std, at the inputs grid, in two places: in the middle half of each gap, and
// where the data are, which is from the lowest point to the highest and in no gap. For the data of Figure 1 these are
// [-1, 1], and [-4, -2] and [2, 4]; the first over the second is the ratio of the project's table of gap ratios. A place
// without inputs has the mean 0.
func meanStd(grid, std []float64, found []interval, all interval) (inGaps, atData float64) {
	const rounding = 1e-9 // the grid's inputs are sums
	var gap, data []float64
	for i, x := range grid {
		inData := x >= all[0]-rounding && x <= all[1]+rounding
		for _, g := range found {
			center, half := (g[0]+g[1])/2, (g[1]-g[0])/2
			distance := math.Abs(x - center)
			if distance <= half/2+rounding {
				gap = append(gap, std[i])
			}
			if distance < half-rounding {
				inData = false
			}
		}
		if inData {
			data = append(data, std[i])
		}
	}
	return average(gap), average(data)
}

// average is the mean of values, 0 of none.
func average(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return stat.Mean(values, nil)
}
