package results

import "math"

// Summary is what the runs of one table cell amount to.
type Summary struct {
	Scale    string // Full or Quick; "" when nothing was run
	N        int    // runs averaged
	Wanted   int    // runs that were asked for at this scale
	Diverged int    // runs that ended in NaN or an infinity, not in the average
	// Unmeasured are the runs without the metric, which is one that a run may lack; they are not in the average.
	Unmeasured int
	Epochs     int     // of each run
	Images     int     // that each run was trained on; 0 for all, and where there are none
	Mean       float64 // NaN when N is 0
	Std        float64 // sample standard deviation over the runs; NaN when N is below 2
}

// Complete reports whether every full-scale run is there and none diverged.
func (s Summary) Complete() bool {
	return s.Scale == Full && s.N == s.Wanted
}

// Times is the summary in another unit, of which one is factor of the present ones.
func (s Summary) Times(factor float64) Summary {
	s.Mean *= factor
	s.Std *= math.Abs(factor)
	return s
}

// Lowest is the place of the summary with the lowest mean, the first of equals, among those that are complete,
// and how many are; -1 where none is.
func Lowest(summaries []Summary) (lowest, complete int) {
	lowest = -1
	for i, s := range summaries {
		if !s.Complete() {
			continue
		}
		complete++
		if lowest < 0 || s.Mean < summaries[lowest].Mean {
			lowest = i
		}
	}
	return lowest, complete
}
