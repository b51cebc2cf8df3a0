package predict

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"densityuncertainty/dul/likelihood"
	"densityuncertainty/environment/must"
)

func TestConformalIntervals(t *testing.T) {
	of := func(mean, std, noise []float64) *Prediction {
		return &Prediction{Mixture: Mixture{Mean: [][]float64{mean}, Std: [][]float64{std}, NoiseStd: [][]float64{noise}}}
	}
	seen := of([]float64{0, 1, 2, 3}, []float64{0, 3, 3, 3}, []float64{1, 4, 4, 4}) // deviations 1, 5, 5, 5
	targets := []float64{2, 11, -13, 4}                                             // scores 2, 2, 3, 0.2
	low, high, err := of([]float64{10, 20}, []float64{0, 0.6}, []float64{1, 0.8}).ConformalIntervals(seen, targets, 0.8)
	if err != nil || low[0] != 7 || high[0] != 13 || !scalar.EqualWithinAbs(low[1], 17, 1e-12) || !scalar.EqualWithinAbs(high[1], 23, 1e-12) {
		t.Errorf("the intervals go from %v to %v: %v", low, high, err)
	}
	if low, high, err = seen.ConformalIntervals(seen, targets, 0.9); err != nil || !math.IsInf(low[0], -1) || !math.IsInf(high[3], 1) {
		t.Errorf("four examples are too few for 0.9, and the intervals go from %v to %v: %v", low, high, err)
	}
	for want, fails := range map[string]func() error{
		"the level of conformal intervals is 1":   func() error { _, _, err := seen.ConformalIntervals(seen, targets, 1); return err },
		"3 targets to calibrate by":               func() error { _, _, err := seen.ConformalIntervals(seen, targets[:3], 0.5); return err },
		"the prediction does not know its Likeli": func() error { _, _, err := seen.ConformalIntervals(&Prediction{}, targets, 0.5); return err },
		"target at input 1 is 0;": func() error {
			_, _, err := of([]float64{1, 2}, []float64{1, 0}, []float64{1, 0}).ConformalIntervals(seen, targets, 0.5)
			return err
		},
		"target at input 0 is +Inf": func() error {
			heavy := &Prediction{Likelihood: likelihood.StudentT{Nu: 2}, Parameters: [][]float64{{0, 0}}, Width: 2}
			_, _, err := heavy.ConformalIntervals(heavy, targets[:1], 0.5)
			return err
		},
	} {
		must.Err(t, fails(), want)
	}
}
