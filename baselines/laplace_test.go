package baselines_test

import (
	"math"
	"slices"
	"testing"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/environment/must"
)

// matches compares numbers with those that recorded.py has computed with NumPy.
func matches(t *testing.T, what string, got []float64, want fixtures.Array) {
	t.Helper()
	fixtures.Compare(t, what, fixtures.Array{Values: got, Dims: want.Dims}, want, 1e-10)
}

func TestLaplaceMatchesNumPy(t *testing.T) {
	fixtures.Each(t, "last_layer_laplace_*", func(t *testing.T, c fixtures.Case) {
		train, test, w := c.Array("train"), c.Array("test"), c.Array("w")
		width, outputs := train.Dims[1], w.Dims[1]
		for _, label := range []string{"fixed", "best"} {
			tau := c.Array(label + "_tau").Values[0]
			l := baselines.Laplace{}
			if label == "fixed" {
				l.PriorPrecision = tau
			}
			var last *baselines.LastLayer
			var err error
			if noise := c.Array("noise").Values[0]; noise > 0 {
				last, err = l.Regression(train.Values, width, w.Values, noise)
			} else {
				last, err = l.Classification(train.Values, width, w.Values, outputs)
			}
			must.Do(t, err)
			mean, covariance := last.Moments(test.Values)
			matches(t, "tau", []float64{last.PriorPrecision}, c.Array(label+"_tau"))
			matches(t, "log marginal likelihood", []float64{last.LogMarginal}, c.Array(label+"_marginal"))
			matches(t, "mean", mean, c.Array("mean"))
			matches(t, "covariance", covariance, c.Array(label+"_covariance"))
			matches(t, "probabilities", last.Probit(test.Values), c.Array(label+"_probit"))

			// Draws along each of the axes of N(0, I) have the covariance as the sum of their squares.
			sum := make([]float64, len(covariance))
			for axis := range w.Values {
				at := -1
				drawn := last.Draw(test.Values, func() float64 {
					at++
					return map[bool]float64{true: 1}[at == axis]
				})
				for i, f := range drawn {
					for j := range outputs {
						sum[i*outputs+j] += (f - mean[i]) * (drawn[i-i%outputs+j] - mean[i-i%outputs+j])
					}
				}
			}
			matches(t, "covariance of draws", sum, c.Array(label+"_covariance"))
		}
	})
}

func TestLaplaceRefuses(t *testing.T) {
	x, nan := []float64{1, 2, 3, 4}, []float64{1, math.NaN(), 3, 4}
	must.GetErr(baselines.Laplace{}.Regression(x, 2, x[:3], -1))(t, "the noise variance is -1")
	must.GetErr(baselines.Laplace{PriorPrecision: -1}.Regression(x, 2, x[:3], 1))(t, "PriorPrecision is -1")
	must.GetErr(baselines.Laplace{}.Regression(x, 2, x[:2], 1))(t, "and 2 weights for 1 outputs")
	must.GetErr(baselines.Laplace{}.Regression(nan, 2, x[:3], 1))(t, "are not finite")
	must.GetErr(baselines.Laplace{}.Regression(x, 2, make([]float64, 3), 1))(t, "set PriorPrecision")
	w := slices.Clone(x[:3])
	last := must.Get(baselines.Laplace{}.Regression(x, 2, w, 1))(t)
	w[0] = 100 // is the caller's
	if mean, _ := last.Moments(x[:2]); mean[0] != 8 {
		t.Errorf("the mean is %g", mean[0])
	}
	must.Panic(t, func() { last.Probit(x[:3]) }, "3 features of width 2")
}

func TestSWAGMatchesNumPy(t *testing.T) {
	fixtures.Each(t, "swag_*", func(t *testing.T, c fixtures.Case) {
		var s baselines.SWAG // whose Rank is the recorded one
		w := c.Array("w")
		for first := 0; first < len(w.Values); first += w.Dims[1] {
			s.Add(w.Values[first : first+w.Dims[1]])
		}
		z := c.Array("z").Values
		drawn := must.Get(s.Draw(func() (next float64) {
			next, z = z[0], z[1:]
			return next
		}))(t)
		matches(t, "mean", s.Mean(), c.Array("mean_w"))
		matches(t, "draw", drawn, c.Array("draw"))
		if len(z) > 0 {
			t.Errorf("%d draws are left", len(z))
		}
	})
	var one baselines.SWAG
	one.Add([]float64{1})
	must.GetErr(one.Draw(nil))(t, "needs at least 2")
	one.Add([]float64{math.Inf(1)})
	must.GetErr(one.Draw(func() float64 { return 0 }))(t, "parameter 0 of a draw is ")
	must.Panic(t, func() { one.Add(nil) }, "0 parameters, and before there were 1")
}
