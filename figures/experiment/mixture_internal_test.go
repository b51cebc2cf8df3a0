package experiment

import (
	"math"
	"slices"
	"testing"

	"densityuncertainty/dul/predict"
	"densityuncertainty/environment/must"
)

// The mutual information of an ensemble of noisy networks is that of all draws of all members.
func TestMutualInformationOfNoisyMembers(t *testing.T) {
	draws := [][]float64{{0.9, 0.1}, {0.4, 0.6}, {0.2, 0.8}, {0.5, 0.5}}
	want, information, err := predict.MixClasses(draws, 2)
	must.Do(t, err)
	var members []*Prediction
	for pair := range slices.Chunk(draws, 2) {
		p := &Prediction{Prediction: predict.Prediction{Width: 2}}
		p.Probabilities, p.MutualInformation, err = predict.MixClasses(pair, 2)
		must.Do(t, err)
		members = append(members, p)
	}
	all := must.Get(mixture(members))(t)
	if d := math.Abs(all.MutualInformation[0] - information[0]); d > 1e-15 || math.Abs(all.Probabilities[0]-want[0]) > 1e-15 {
		t.Errorf("the mutual information is %g, want %g; the probabilities are %v, want %v", all.MutualInformation[0], information[0], all.Probabilities, want)
	}
}
