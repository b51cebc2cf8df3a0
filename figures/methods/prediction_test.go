package methods_test

import (
	"math"
	"testing"

	"densityuncertainty/dul/predict"
	"densityuncertainty/figures/methods"
)

// of is the prediction of a mixture of components, each with its noise.
func of(components ...predict.Mixture) methods.Prediction {
	return methods.Prediction{Mixture: predict.Mix(components...)}
}

// component is a function at two inputs with the deviation of the noise there.
func component(a, b, noise float64) predict.Mixture {
	return predict.Mixture{Mean: [][]float64{{a, b}}, NoiseStd: [][]float64{{noise, noise}}}
}

// process is a Gaussian of the function at two inputs, with noise of deviation 2.
func process(mean, std [2]float64) predict.Mixture {
	m := component(mean[0], mean[1], 2)
	m.Std = [][]float64{std[:]}
	return m
}

// The mixture of two members: at the first input N(1, 2^2) and N(3, 4^2) of the target, points of the function.
func TestPredictionOfAnEnsemble(t *testing.T) {
	p := of(component(1, 5, 2), component(3, 5, 4))
	mean, std := p.Moments()
	if mean[0] != 2 || std[0] != 1 || mean[1] != 5 || std[1] != 0 {
		t.Errorf("moments %v, %v; want 2 and 1, 5 and 0", mean, std)
	}
	if v := p.Variances(); v[0][0] != 4 || v[1][0] != 16 {
		t.Errorf("variances %v; want 4 and 16", v)
	}
	if got, want := p.NoiseDeviation(), math.Sqrt(10); math.Abs(got-want) > 1e-12 {
		t.Errorf("noise %v, want %v", got, want)
	}
	if q := p.Quantiles(map[string]float64{"low": 0, "high": 1}); q["low"][0] != 1 || q["high"][0] != 3 {
		t.Errorf("quantiles %v; want the members", q)
	}
}

// A Gaussian process has the quantiles of its Gaussian, and its variance is added to the noise's.
func TestPredictionOfAProcess(t *testing.T) {
	p := of(process([2]float64{1, 2}, [2]float64{3, 4}))
	mean, std := p.Moments()
	if mean[1] != 2 || math.Abs(std[1]-4) > 1e-12 {
		t.Errorf("moments %v, %v", mean, std)
	}
	if v := p.Variances(); v[0][0] != 13 || v[0][1] != 20 {
		t.Errorf("variances %v; want 13 and 20", v)
	}
	if p.NoiseDeviation() != 2 {
		t.Errorf("noise %v, want 2", p.NoiseDeviation())
	}
	q := p.Quantiles(map[string]float64{"middle": 0.5, "high": 0.975})
	if math.Abs(q["middle"][1]-2) > 1e-12 || math.Abs(q["high"][1]-(2+4*1.959963985)) > 1e-7 {
		t.Errorf("quantiles %v", q)
	}
}

// A number that is not finite makes a prediction useless, wherever it is, and so does a training that diverged.
func TestFinite(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	diverged := of(component(1, 2, 1))
	diverged.Diverged = true
	for _, c := range []struct {
		name string
		p    methods.Prediction
		want bool
	}{
		{"finite draws", of(component(1, 2, 1)), true},
		{"a mean", of(component(1, nan, 1)), false},
		{"a later mean", of(component(1, 2, 1), component(inf, 0, 1)), false},
		{"the noise", of(component(1, 2, nan)), false},
		{"the noise, whose variance overflows", of(component(1, 2, 1e190)), false},
		{"the deviation", of(process([2]float64{1, 1}, [2]float64{1, nan})), false},
		{"a finite process", of(process([2]float64{1, 1}, [2]float64{1, 1})), true},
		{"diverged", diverged, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.p.Finite(); got != c.want {
				t.Errorf("%+v: finite %t", c.p, got)
			}
		})
	}
}
