package cifar

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/environment/must"
)

func TestDetect(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var inside, outside []float64
	for i := range 600 {
		inside = append(inside, rng.NormFloat64())
		if i%2 == 0 {
			outside = append(outside, 1+rng.NormFloat64())
		}
	}
	auroc, auprc := must.Get2(Detect(inside, outside))(t)
	// Normal scores a distance of 1 apart: Phi(1/sqrt 2) = 0.760.
	if auroc.Low > 0.760 || auroc.High < 0.760 || auroc.Value < auroc.Low || auroc.Value > auroc.High || auroc.High-auroc.Low > 0.08 {
		t.Errorf("AUROC %v, want one about 0.760", auroc)
	}
	// A third are positive, which is what no score at all would get.
	if auprc.Low < 0.4 || auprc.High > 0.8 {
		t.Errorf("AUPRC %v", auprc)
	}
	if got := (Interval{Value: 0.5, Low: 0.25, High: 0.75}).String(); got != "0.500 [0.250, 0.750]" {
		t.Errorf("printed %q", got)
	}
	if _, _, err := Detect(inside, nil); err == nil {
		t.Error("no images outside, and no error")
	}
}

func TestDetectByLayer(t *testing.T) {
	// Energies about 5 in distribution; images out of distribution have too little in the first
	// layer and the same in the second.
	predicted := func(name string, first ...float64) Predictions {
		return Predictions{Images: &datasets.Images{Name: name},
			Prediction: predict.Prediction{Energies: []predict.LayerEnergy{{Layer: "a", Mean: first}, {Layer: "b", Mean: []float64{4, 5, 6}}}}}
	}
	table := must.Get(DetectByLayer(predicted("held out", 4, 5, 6), predicted("test", 4.5, 5, 5.5), predicted("dim", 1, 1.5, 2), predicted("alike", 4.5, 5, 5.5)))(t)
	if want := []string{"Input of the layer", "dim", "alike"}; !reflect.DeepEqual(table.Columns, want) {
		t.Errorf("columns %q, want %q", table.Columns, want)
	}
	for row, want := range [][]string{{"1.000 [1.000, 1.000]", "0.500"}, {"0.500", "0.500"}} {
		for column, cell := range table.Rows[row].Cells {
			if !strings.HasPrefix(cell.Text, want[column]) || cell.Bold != (row == 0) {
				t.Errorf("row %d, column %d: %+v, want %s, bold in the first row", row, column, cell, want[column])
			}
		}
	}
	none := predicted("none")
	none.Energies = nil
	must.GetErr(DetectByLayer(predicted("held out", 4), none, predicted("dim", 1)))(t, "layer a, dim: energies of 2, 0 and 2 layers")
	must.GetErr(DetectByLayer(none, none, none))(t, "no energies")
}

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
	must.Near(t, stat.Mean(found, nil), 2, 4*2/math.Sqrt(n), "the mean squared distance")
	exact := must.Get(g.distances([]float64{0, 3, 0, 10, 4, 0, 5, 3, 0}))(t)
	for i, want := range []float64{0, 4, 6.25} { // (1/0.5)^2, (5/2)^2
		must.Near(t, exact[i], want, 0.4, "distance %d", i)
	}
	one := must.Get(fitGaussian(features, 3, make([]int, n), 1))(t)
	if between, err := one.distances([]float64{5, 3, 0}); err != nil || between[0] > 0.1 {
		t.Errorf("half way between the classes a single Gaussian has the distance %v, want about 0 (%v)", between, err)
	}
}

// Features that are no numbers have no Gaussian.
func TestWrongFeatures(t *testing.T) {
	_, labels := drawn(10, 1)
	_, err := fitGaussian(slices.Repeat([]float64{math.NaN()}, 30), 3, labels, 2)
	must.Err(t, err, "not positive definite")
}
