package cifar

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"

	"densityuncertainty/environment/must"
)

// drawn are n features of two classes, which lie apart along the first axis by 10 and vary with standard deviations
// 2 and 0.5; the third is always 0.
func drawn(n int, seed uint64) (features []float64, labels []int) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for i := range n {
		features = append(features, 10*float64(i%2)+2*rng.NormFloat64(), 3+0.5*rng.NormFloat64(), 0)
		labels = append(labels, i%2)
	}
	return features, labels
}

// Distances from the Gaussian that features were drawn of follow a chi-squared distribution, also from the nearest of
// two that are far apart; its mean is the number of dimensions that vary.
func TestDistancesFromGaussians(t *testing.T) {
	const n = 4000
	features, labels := drawn(n, 1)
	g := must.Get(fitGaussian(features, 3, labels, 2))(t)
	fresh, _ := drawn(n, 2)
	found := must.Get(g.distances(fresh))(t)
	// chi-squared with 2 degrees of freedom: mean 2, variance 4
	if mean := stat.Mean(found, nil); math.Abs(mean-2) > 4*2/math.Sqrt(n) {
		t.Errorf("mean squared distance %v, want 2", mean)
	}
	exact := must.Get(g.distances([]float64{0, 3, 0, 10, 4, 0, 5, 3, 0}))(t)
	for i, want := range []float64{0, 4, 6.25} { // (1/0.5)^2, (5/2)^2
		if math.Abs(exact[i]-want) > 0.4 {
			t.Errorf("distance %d is %v, want about %v", i, exact[i], want)
		}
	}
	one := must.Get(fitGaussian(features, 3, make([]int, n), 1))(t)
	if between, err := one.distances([]float64{5, 3, 0}); err != nil || between[0] > 0.1 {
		t.Errorf("half way between the classes a single Gaussian has the distance %v, want about 0 (%v)", between, err)
	}
}

func TestWrongFeatures(t *testing.T) {
	features, labels := drawn(10, 1)
	for _, c := range []struct {
		name     string
		features []float64
		labels   []int
	}{{"few", features[:15], labels[:5]}, {"of another width", features[:29], labels}} {
		if _, err := fitGaussian(c.features, 3, c.labels, 2); err == nil {
			t.Errorf("%s: no error", c.name)
		}
	}
	if _, err := fitGaussian(slices.Repeat([]float64{math.NaN()}, 30), 3, labels, 2); err == nil {
		t.Error("features that are no numbers: no error")
	}
}
