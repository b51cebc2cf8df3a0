package baselines_test

import (
	"math"
	"testing"

	_ "github.com/gomlx/compute/gobackend"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/layertest"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/environment/must"
)

// The output has mean x mu + b and variance x^2 sigma^2; a draw of the weights
// serves a whole batch.
func TestMFVI(t *testing.T) {
	checkFamilies(t, []variant{{
		name: "default", layers: baselines.MFVI{}, hasKL: true, checks: layertest.Checks{SharedNoise: true},
		moments: func(l linear, i int) (float64, float64) {
			return l.mean(i), l.apply(l.at["x"].Map(square), l.get("weights_log_variance").Map(math.Exp))[i]
		},
	}})
}

// MFVI starts with Kaiming-normal means, whose KL is that of their log-variances
// and mean^2 / (2 0.1^2) each, and with a bias of zero.
func TestMFVIConvStart(t *testing.T) {
	const filters, fanIn = 200, 2 * 9
	spec := conv.Spec{Filters: filters, Window: conv.Same(3, 1)}
	kl, store := start(t, baselines.MFVI{}, spec, fixtures.Zeros(2, 1, 3, 3))
	value := func(name string) []float64 {
		v := must.Get(store.GetVariable("/layer/" + name).Value())(t)
		return fixtures.FromTensor(t, v).Values
	}
	means := value("weights_mean")
	fixtures.CheckMoments(t, "means of the kernel", means, 0, 2.0/fanIn)
	want := filters * fanIn * (math.Log(100) + (1e-4-1)/2)
	for _, m := range means {
		want += m * m / (2 * 0.1 * 0.1)
	}
	if math.Abs(kl-want) > 1e-12*want {
		t.Errorf("the KL is %g, want %g", kl, want)
	}
	for _, b := range value("bias") {
		if b != 0 {
			t.Fatalf("the bias starts at %g, want 0", b)
		}
	}
}
