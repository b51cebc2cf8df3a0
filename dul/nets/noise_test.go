package nets_test

import (
	"context"
	"slices"
	"testing"

	"densityuncertainty/dul"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/environment/must"
)

// After SetNoiseState the draws are those that followed NoiseState, from the host and in the graph.
func TestNoiseState(t *testing.T) {
	for _, inGraph := range []bool{false, true} {
		m := newModel(t, nets.MLP{Layers: dul.Density{}, Widths: []int{4}}, likelihood.Categorical{Classes: 2}, 1)
		if inGraph {
			m.Host = nil
		}
		draw := func() []float64 {
			return must.Get(predict.Sample(context.Background(), m, nets.Rows([]float64{1, -1, 2}, 1), predict.Options{Samples: 3}))(t).Probabilities
		}
		draw()
		state := must.Get(m.NoiseState())(t)
		first, second := draw(), draw()
		must.Do(t, m.SetNoiseState(state))
		if again := draw(); !slices.Equal(again, first) || slices.Equal(again, second) {
			t.Errorf("in the graph %t: %v, then %v; from the same state %v", inGraph, first, second, again)
		}
	}
}
