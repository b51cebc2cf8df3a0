package experiment

import (
	"math"
	"reflect"
	"testing"

	"densityuncertainty/dul/predict"
	"densityuncertainty/environment/must"
)

// A file holds predictions as they are. Probabilities take half the room where their logarithms are those of float32, be it
// with the largest as what the others leave to 1.
func TestPredictionsAsTheyAre(t *testing.T) {
	const n, width = 500, 3
	rows := func(log func(v float64) float64, largest func(a, b float64) float64) []float64 {
		var all []float64
		for i := range n {
			a, b := math.Exp(log(-1-float64(i)/7)), math.Exp(log(-2-float64(i)/11))
			all = append(all, a, b, largest(a, b))
		}
		return all
	}
	narrow := func(v float64) float64 { return float64(float32(v)) }
	wide := func(v float64) float64 { return v }
	for _, c := range []struct {
		name          string
		probabilities []float64
		logs          bool
	}{
		{"logarithms of float32", rows(narrow, func(a, b float64) float64 { return math.Exp(narrow(math.Log(1 - a - b))) }), true},
		{"and what is left to 1", rows(narrow, func(a, b float64) float64 { return 1 - (a + b) }), true},
		{"means over draws", rows(wide, func(a, b float64) float64 { return 1 - (a + b) }), false},
	} {
		p := Predictions{Experiment: "x", Unit: 1, probed: true, Sets: []Prediction{{Set: "test", Extra: map[string][]float64{"entropy": {0.5}}}}}
		p.Sets[0].Prediction = predict.Prediction{Width: width, Probabilities: c.probabilities, LastConvolution: -1, Energies: []predict.LayerEnergy{{Layer: "stem", Mean: []float64{1, 2}}}}
		content := must.Get(p.encode())(t)
		if back := must.Get(decodePredictions(content))(t); !reflect.DeepEqual(*back, p) {
			t.Errorf("%s: the predictions that were read are %+v", c.name, back)
		}
		if _, is := logsOf(c.probabilities, width); is != c.logs {
			t.Errorf("%s: kept as logarithms: %t", c.name, is)
		}
	}
}
