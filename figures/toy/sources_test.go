package toy

import (
	"context"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
)

// The gap's numbers, where they can be seen: a function that is a straight line at 0, with a spread of 3 in the gap and
// of 1 elsewhere, and x^3 inside its bands where |x^3| < 1.96 of the spread.
func TestGap(t *testing.T) {
	x := Grid()
	s := experiment.Prediction{Set: "grid"}
	s.Mean, s.Std, s.NoiseStd = [][]float64{make([]float64, len(x))}, [][]float64{nil}, [][]float64{slices.Repeat([]float64{0.5}, len(x))}
	for _, v := range x {
		spread := 1.0
		if math.Abs(v) < 2-1e-9 {
			spread = 3
		}
		s.Std[0] = append(s.Std[0], spread)
	}
	found := must.Get(gapMetrics(&experiment.Predictions{Unit: 1, Sets: []experiment.Prediction{s}}))(t)
	edge := math.Cbrt(1.959963984540054 * 3)
	inside, all := 0.0, 0.0
	for _, v := range x {
		if math.Abs(v) < 2 {
			all++
			if math.Abs(v) <= edge {
				inside++
			}
		}
	}
	if !scalar.EqualWithinAbs(found["gap_ratio"], 3, 1e-12) || found["noise_std"] != 0.5 || found["gap_coverage95"] != inside/all {
		t.Errorf("the metrics are %v, want a ratio of 3 and a coverage of %v", found, inside/all)
	}
	must.GetErr(gapMetrics(&experiment.Predictions{}))(t) // the gap was measured without predictions
}

// Entropy is 0 at the data and log 2 on the map, where the classes are equally likely.
func TestDistance(t *testing.T) {
	d := must.Get(Moons{Seeds: 2}.Load(context.Background(), 1))(t)
	s := experiment.Prediction{Set: d.Sets[0].Name, Labels: d.Sets[0].Labels, Prediction: predict.Prediction{Width: 2}}
	cells := len(s.Labels) - 2500
	for i, label := range s.Labels {
		p := 0.5
		if i >= cells {
			p = float64(label)
		}
		s.Probabilities = append(s.Probabilities, 1-p, p)
	}
	p := &experiment.Predictions{Split: 1, Sets: []experiment.Prediction{s}}
	found := must.Get(distanceMetrics(p))(t)
	if found["accuracy"] != 1 || found["entropy_data"] != 0 || !scalar.EqualWithinAbs(found["entropy_far"], math.Ln2, 1e-12) {
		t.Errorf("the metrics are %v", found)
	}
	// Only points well away from the half circles, in a frame around them, are between the moons.
	x := d.Sets[0].Inputs.(nets.Floats).Values
	points, _ := datasets.TwoMoons(500, 0.1, 1)
	scale := datasets.FitScaler(points, 2, datasets.Order(0, 0, 500))
	for i := range cells {
		x, y := x[2*i]*scale.Std[0]+scale.Mean[0], x[2*i+1]*scale.Std[1]+scale.Mean[1]
		if upper, lower := math.Abs(math.Hypot(x, y)-1), math.Abs(math.Hypot(x-1, y-0.5)-1); y > 0 && upper < 0.29 || y < 0.5 && lower < 0.29 || math.Abs(x-0.5) > 1.7 || math.Abs(y-0.25) > 0.95 {
			s.Probabilities[2*i], s.Probabilities[2*i+1] = 0, 1
		}
	}
	must.Near(t, must.Get(EntropyBetween(p))(t), math.Ln2, 1e-12, "the entropy between the moons")
}

// Splits have other data, and the same split the same.
func TestSplits(t *testing.T) {
	ctx := context.Background()
	for name, source := range map[string]experiment.Source{"cubic": Cubic{Seeds: 2}, "moons": Moons{Seeds: 2}} {
		a, b, again := must.Get(source.Load(ctx, 0))(t), must.Get(source.Load(ctx, 1))(t), must.Get(source.Load(ctx, 0))(t)
		sum := func(d experiment.Data) string { return experiment.Digest(experiment.Set{Name: "x", Dataset: d.Train}) }
		if source.Splits() != 2 || sum(a) == sum(b) || sum(a) != sum(again) {
			t.Errorf("%s: %d splits with the digests %s, %s and again %s", name, source.Splits(), sum(a), sum(b), sum(again))
		}
	}
	must.Err(t, (Cubic{}).Check()) // a cubic without seeds was taken
}
