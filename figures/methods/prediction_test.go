package methods

import (
	"math"
	"testing"

	"densityuncertainty/dul/predict"
)

// The mixture of two members: N(1, 2^2) and N(3, 4^2) of the target, points of the function.
func TestPredictionOfAnEnsemble(t *testing.T) {
	p := OfDraws(predict.Draws{Mean: [][]float64{{1}}, NoiseStd: 2}, predict.Draws{Mean: [][]float64{{3}}, NoiseStd: 4})
	mean, std := p.Moments()
	if mean[0] != 2 || std[0] != 1 {
		t.Errorf("moments %v, %v; want 2 and 1", mean[0], std[0])
	}
	if v := p.Variances(); v[0][0] != 4 || v[1][0] != 16 {
		t.Errorf("variances %v; want 4 and 16", v)
	}
	if got, want := p.NoiseStd(), math.Sqrt(10); math.Abs(got-want) > 1e-12 {
		t.Errorf("noise %v, want %v", got, want)
	}
	if q := p.Quantiles(map[string]float64{"low": 0, "high": 1}); q["low"][0] != 1 || q["high"][0] != 3 {
		t.Errorf("quantiles %v; want the members", q)
	}
}

// A Gaussian process has the quantiles of its Gaussian, and its variance is added to the noise's.
func TestPredictionOfAProcess(t *testing.T) {
	p := ofMarginals(predict.Marginals{Mean: []float64{1, 2}, Std: []float64{3, 4}, NoiseStd: 2})
	mean, std := p.Moments()
	if mean[1] != 2 || math.Abs(std[1]-4) > 1e-12 {
		t.Errorf("moments %v, %v", mean, std)
	}
	if v := p.Variances(); v[0][0] != 13 || v[0][1] != 20 {
		t.Errorf("variances %v; want 13 and 20", v)
	}
	if p.NoiseStd() != 2 {
		t.Errorf("noise %v, want 2", p.NoiseStd())
	}
	q := p.Quantiles(map[string]float64{"middle": 0.5, "high": 0.975})
	if math.Abs(q["middle"][1]-2) > 1e-12 || math.Abs(q["high"][1]-(2+4*1.959963985)) > 1e-7 {
		t.Errorf("quantiles %v", q)
	}
}

// A number that is not finite makes a prediction useless, wherever it is.
func TestFinite(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		name string
		p    Prediction
		want bool
	}{
		{"finite draws", OfDraws(predict.Draws{Mean: [][]float64{{1, 2}}, NoiseStd: 1}), true},
		{"a mean", OfDraws(predict.Draws{Mean: [][]float64{{1, nan}}, NoiseStd: 1}), false},
		{"a later mean", OfDraws(predict.Draws{Mean: [][]float64{{1, 2}, {inf, 0}}, NoiseStd: 1}), false},
		{"the noise", OfDraws(predict.Draws{Mean: [][]float64{{1}}, NoiseStd: nan}), false},
		{"the deviation", ofMarginals(predict.Marginals{Mean: []float64{1}, Std: []float64{nan}, NoiseStd: 1}), false},
		{"a finite process", ofMarginals(predict.Marginals{Mean: []float64{1}, Std: []float64{1}, NoiseStd: 1}), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.p.Finite(); got != c.want {
				t.Errorf("%+v: finite %t", c.p, got)
			}
		})
	}
}
