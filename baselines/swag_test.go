package baselines_test

import (
	"testing"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/environment/must"
)

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
}
