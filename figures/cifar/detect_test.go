package cifar

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

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
			if !strings.HasPrefix(cell[0].Text, want[column]) || cell[0].Bold != (row == 0) {
				t.Errorf("row %d, column %d: %+v, want %s, bold in the first row", row, column, cell[0], want[column])
			}
		}
	}
	none := predicted("none")
	none.Energies = nil
	err := errorOf(DetectByLayer(predicted("held out", 4), none, predicted("dim", 1)))
	fails(t, "predictions of different models", err, "layer a, dim: energies of 2, 0 and 2 layers")
	fails(t, "predictions without energies", errorOf(DetectByLayer(none, none, none)), "no energies")
}
