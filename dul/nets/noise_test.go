package nets_test

import (
	"context"
	"slices"
	"strings"
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
		if err := m.SetNoiseState(state[1:]); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("in the graph %t: a state that is too short: %v", inGraph, err)
		}
		if again := draw(); !slices.Equal(again, second) {
			t.Errorf("in the graph %t: after a state that was refused %v, want %v", inGraph, again, second)
		}
	}
	empty := nets.Model{Store: newModel(t, nets.MLP{}, nil, 1).Store}
	must.Do(t, empty.Store.DeleteVariablesInScope("/"))
	for _, err := range []error{empty.SetNoiseState(nil), func() error { _, err := empty.NoiseState(); return err }()} {
		if err == nil || !strings.Contains(err.Error(), "no random state") {
			t.Errorf("a model without a source of noise: %v", err)
		}
	}
}
