package methods

import (
	"math"
	"testing"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/nets"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
)

// The head of a regression is Gaussian, and that of images has orthogonal frequencies.
func TestHeadsOfSNGP(t *testing.T) {
	classes := baselines.SNGP{Examples: 100, RandomFeatures: randomFeatures, Plain: true, FeatureScale: math.Sqrt(randomFeatures / 2), LengthScale: 2} // the root of the number of inputs
	regression := classes
	regression.Likelihood = baselines.Gaussian
	for _, c := range []struct {
		task experiment.HeadTask
		want baselines.SNGP
	}{
		{experiment.HeadTask{Examples: 100, Inputs: 4}, regression},
		{experiment.HeadTask{Examples: 100, Inputs: 4, Classes: 1, Images: true}, baselines.SNGP{Examples: 100, Orthogonal: true, LengthScale: 2}},
		{experiment.HeadTask{Examples: 100, Inputs: 4, Classes: 1}, classes},
	} {
		if got := must.Get(SNGPProcess{}.Head(c.task))(t).Layers; got != nets.Layers(c.want) {
			t.Errorf("%+v: the head is %+v, want %+v", c.task, got, c.want)
		}
	}
}
