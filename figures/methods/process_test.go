package methods

import (
	"math"
	"testing"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
)

// The head of a regression is Gaussian, and that of images has orthogonal frequencies.
func TestHeadsOfSNGP(t *testing.T) {
	classes := baselines.SNGP{Examples: 100, RandomFeatures: randomFeatures, Plain: true, FeatureScale: math.Sqrt(randomFeatures / 2), LengthScale: 2} // the root of the number of inputs
	regression := classes
	regression.Likelihood = baselines.Gaussian
	table := train.Dataset{Inputs: nets.Rows(make([]float64, 400), 4)}
	images := train.Dataset{Inputs: nets.Pixels{Bytes: make([]byte, 400), Height: 2, Width: 2, Standardization: nets.Standardization{Mean: []float64{0}}}}
	for _, c := range []struct {
		task experiment.HeadTask
		want baselines.SNGP
	}{
		{experiment.HeadTask{Train: table, Likelihood: likelihood.Gaussian{}}, regression},
		{experiment.HeadTask{Train: images, Likelihood: likelihood.Categorical{Classes: 2}}, baselines.SNGP{Examples: 100, Orthogonal: true, LengthScale: 2}},
		{experiment.HeadTask{Train: table, Likelihood: likelihood.Categorical{Classes: 2}}, classes},
	} {
		if got := must.Get(SNGPProcess{}.Head(c.task))(t).Layers; got != nets.Layers(c.want) {
			t.Errorf("%+v: the head is %+v, want %+v", c.task, got, c.want)
		}
	}
}
