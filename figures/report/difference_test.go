package report

import (
	"testing"

	"densityuncertainty/figures/results"
)

// Accuracy is better when higher.
func TestHigherIsBetter(t *testing.T) {
	theirs := Number{Mean: 92.2, Std: 0.3, Decimals: 1}
	for _, c := range []struct {
		mean float64
		want string
	}{{93, Better}, {91, Worse}, {92.25, Agrees}} {
		ours := results.Summary{Scale: results.Full, N: 3, Wanted: 3, Mean: c.mean, Std: 0.2}
		if inStd, verdict := Difference(ours, theirs); HigherIsBetter(verdict) != c.want || (inStd > 0) != (c.want == Better) {
			t.Errorf("%v against 92.2: %v sd, %s, want %s", c.mean, inStd, HigherIsBetter(verdict), c.want)
		}
	}
}
