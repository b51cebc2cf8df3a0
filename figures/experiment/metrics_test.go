package experiment_test

import (
	"maps"
	"math"
	"slices"
	"testing"

	"densityuncertainty/dul/predict"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
)

// Two test examples by hand. The draws have the means 1 and 3, and 2 and 2, the noise variances 1 and 4, and the targets
// are 2 and 5, all in units of 10 about 100. In the target's own units the components are N(110, 10^2) and N(130, 20^2)
// for 120, and N(120, 10^2) and N(120, 20^2) for 150.
func TestRegression(t *testing.T) {
	s := experiment.Prediction{Set: "test", Targets: []float64{2, 5}}
	s.Mixture = predict.Mixture{Mean: [][]float64{{1, 2}, {3, 2}}, NoiseStd: [][]float64{{1, 1}, {2, 2}}}
	got := must.Get(experiment.Regression(&experiment.Predictions{Sets: []experiment.Prediction{s}, Unit: 10, Zero: 100}))(t)
	normal := func(y, mean, sd float64) float64 {
		return math.Exp(-(y-mean)*(y-mean)/(2*sd*sd)) / (sd * math.Sqrt(2*math.Pi))
	}
	first := (normal(120, 110, 10) + normal(120, 130, 20)) / 2
	second := (normal(150, 120, 10) + normal(150, 120, 20)) / 2
	// With A(m, s) = E|z| of z ~ N(m, s^2), the score of an equal mixture of two Gaussians for y is
	// (A(y-m1, s1) + A(y-m2, s2))/2 - (A(0, s1 root 2) + A(0, s2 root 2) + 2 A(m1-m2, root of s1^2+s2^2))/8.
	distance := func(m, s float64) float64 { return m*math.Erf(m/s/math.Sqrt2) + 2*s*s*normal(m, 0, s) }
	crps := func(y, m1, s1, m2, s2 float64) float64 {
		return (distance(y-m1, s1)+distance(y-m2, s2))/2 -
			(distance(0, s1*math.Sqrt2)+distance(0, s2*math.Sqrt2)+2*distance(m1-m2, math.Hypot(s1, s2)))/8
	}
	want := map[string]float64{
		experiment.MetricCRPS:      (crps(120, 110, 10, 130, 20) + crps(150, 120, 10, 120, 20)) / 2,
		experiment.MetricCoverage:  1,                           // the targets are at 0.575 and 0.966 of their distributions
		experiment.MetricSpearman:  -1,                          // the mean is uncertain where it is right
		experiment.MetricRMSE:      math.Sqrt((0 + 30*30) / 2.), // the means of the draws are 120 and 120
		experiment.MetricNLL:       -(math.Log(first) + math.Log(second)) / 2,
		experiment.MetricNoiseStd:  math.Sqrt((10*10 + 20*20) / 2.),
		experiment.MetricModelStd:  (10 + 0) / 2.,
		experiment.MetricSharpness: (math.Sqrt(10*10+250) + math.Sqrt(0+250)) / 2,
	}
	if !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want))) {
		t.Errorf("the metrics are %v, want %v", got, want)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		must.Near(t, got[name], want[name], 1e-9, "%s", name)
	}
}
