package report

import (
	"testing"

	"densityuncertainty/figures/results"
)

// Accuracy is better when higher.
func TestDifferenceUp(t *testing.T) {
	theirs := Published{Mean: 92.2, Std: 0.3, Decimals: 1}
	for _, c := range []struct {
		mean float64
		want string
	}{{93, Better}, {91, Worse}, {92.25, Agrees}} {
		ours := results.Summary{Scale: results.Full, N: 3, Wanted: 3, Mean: c.mean, Std: 0.2}
		if inStd, verdict := DifferenceUp(ours, theirs); verdict != c.want || (inStd > 0) != (verdict == Better) {
			t.Errorf("%v against 92.2: %v sd, %s, want %s", c.mean, inStd, verdict, c.want)
		}
	}
}
