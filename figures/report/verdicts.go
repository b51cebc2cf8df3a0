package report

import (
	"fmt"

	"densityuncertainty/dul/metrics"
)

// Undecided is the verdict on a difference that other data of the same kind may well turn round.
const Undecided = "undecided"

// Verdicts are those, Better, Worse or Undecided, of differences of numbers that are better when lower, of all of them together: any wrong verdict
// is as rare as 1 - confidence (metrics.Holm).
func Verdicts(list []metrics.Difference, confidence float64) ([]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	p := make([]float64, len(list))
	for i, d := range list {
		p[i] = d.P
	}
	adjusted, err := metrics.Holm(p)
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	verdicts := make([]string, len(list))
	for i, p := range adjusted {
		switch {
		case p > 1-confidence:
			verdicts[i] = Undecided
		case list[i].Mean < 0:
			verdicts[i] = Better
		default:
			verdicts[i] = Worse
		}
	}
	return verdicts, nil
}
