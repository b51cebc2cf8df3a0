package methods

import (
	"math"
	"testing"

	"densityuncertainty/dul"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment"
	"densityuncertainty/environment/must"
)

// Each replica is scored by its own held-out examples, and one whose predictions are no numbers by none.
func TestHeldOutNLL(t *testing.T) {
	t.Setenv(environment.ConfigVariable, environment.GoSequential)
	backend, _ := must.Get2(environment.Open())(t)
	defer backend.Finalize()
	m := must.Get(nets.NewReplicas(backend, nets.MLP{Layers: dul.Density{}, Widths: []int{5}}, likelihood.Gaussian{}, 1, 2))(t)
	examples := []train.Dataset{
		{Inputs: nets.Rows([]float64{0, 1, 2, 3}, 2), Targets: []float64{1, -1}},
		{Inputs: nets.Rows([]float64{1, 1, -2, 0, 5, 5}, 2), Targets: []float64{3, 0, 0.5}},
	}
	inputs := []nets.Floats{examples[0].Inputs.(nets.Floats), examples[1].Inputs.(nets.Floats)}
	must.Get(heldOutNLL(t.Context(), m, examples, 3))(t) // creates the parameters
	before := must.Get(m.Host.State())(t)
	got := must.Get(heldOutNLL(t.Context(), m, examples, 3))(t)
	must.Do(t, m.Host.SetState(before))
	drawn := must.Get(predict.SampleReplicas(t.Context(), m, inputs, predict.Options{Samples: 3}))(t)
	for i, p := range drawn {
		if want := must.Get(metrics.MonteCarloNLL(examples[i].Targets, p.Mean, p.Variances(), 1))(t); len(p.Mean) != 3 || got[i] != want {
			t.Errorf("replica %d: %v, want %v of three samples", i, got[i], want)
		}
	}
	bias := m.Store.GetVariable("/model/network/output/bias")
	must.Do(t, bias.SetValue(params.FromFloat64(bias.Shape(), []float64{math.NaN(), 0})))
	broken := must.Get(heldOutNLL(t.Context(), m, examples, 3))(t)
	if !math.IsNaN(broken[0]) || math.IsNaN(broken[1]) {
		t.Errorf("with a bias that is no number in the first replica: %v", broken)
	}
}
