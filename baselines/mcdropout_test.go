package baselines_test

import (
	"testing"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/layertest/fixtures"
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

func TestMCDropoutMatchesTheReleasedLayer(t *testing.T) {
	eachRecorded(t, []string{"mcdropout_linear_*", "mcdropout_conv_*"}, func(t *testing.T, c fixtures.Case) {
		bias := "linear__bias"
		paths := map[string]string{"linear__weight": "/layer/weights"}
		if isConv(c) {
			bias, paths = "conv__bias", map[string]string{"conv__weight": "/layer/weights"}
		}
		// Recorded as 0 or 1; the mask that is drawn is scaled.
		c.CheckLayer(t, "", recorded(t, c, baselines.MCDropout{Rate: 0.3}, bias, paths, draws(c, "mask").Scale(1/0.7)))
	})
}
