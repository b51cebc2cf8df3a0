package baselines_test

import (
	"testing"

	"densityuncertainty/baselines"
)

// The output has mean x W + b and variance rate/(1-rate) x^2 W^2.
func TestMCDropout(t *testing.T) {
	dropped := func(rate float64) func(l linear, i int) (float64, float64) {
		return func(l linear, i int) (float64, float64) { return l.mean(i), rate / (1 - rate) * l.squares(i) }
	}
	checkFamilies(t, []variant{
		{name: "default", layers: baselines.MCDropout{}, moments: dropped(0.1)},
		{name: "0.4", layers: baselines.MCDropout{Rate: 0.4}, moments: dropped(0.4)},
	})
}
