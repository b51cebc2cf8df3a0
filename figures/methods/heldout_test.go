package methods

import (
	"math"
	"slices"
	"strings"
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
	"densityuncertainty/figures/results"
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

// Each experiment, with all its members, ends where its own held-out examples are predicted best: where they say
// what the training examples say after the last epoch, and where they say what networks say at first, after the first one.
func TestStoppedByItsOwnExamples(t *testing.T) {
	t.Setenv(environment.ConfigVariable, environment.GoSequential)
	backend, _ := must.Get2(environment.Open())(t)
	defer backend.Finalize()
	var x, far, near []float64
	for i := range 32 {
		x, far, near = append(x, float64(i)/16-1), append(far, 3), append(near, 0)
	}
	examples := func(targets []float64) train.Dataset { return train.Dataset{Inputs: nets.Rows(x, 1), Targets: targets} }
	for _, m := range []Method{Deterministic, Density, Ensemble} {
		t.Run(m.Name, func(t *testing.T) {
			o := m.Fill(Setting{Study: results.UCI, Fidelity: results.Paper}, PaperOptions(), Options{InitStd: 0.01})
			r := Regressions{Method: m, Network: m.Network(o, 8, 1), Trainer: train.Trainer{LogLikelihoodScale: 1, Epochs: 60, BatchSize: 16, Schedule: train.Steps(0.02, 1),
				Groups: []train.Group{{Roles: train.AllRoles(), Optimizer: train.Adam{}}}}}
			for split, heldOut := range [][]float64{far, near} {
				r.Experiments = append(r.Experiments, results.Experiment{Split: split, Seed: uint64(split), Samples: 8})
				r.Sets, r.Inputs, r.HeldOut = append(r.Sets, examples(far)), append(r.Inputs, nets.Rows([]float64{-0.5, 0.5}, 1)), append(r.HeldOut, examples(heldOut))
			}
			found := must.Get(r.Fit(t.Context(), backend))(t)
			for i, between := range [][2]float64{{2.2, 3.8}, {-1.7, 1.7}} {
				for _, mean := range slices.Concat(found[i].Mean...) {
					if mean < between[0] || mean > between[1] {
						t.Errorf("experiment %d: a network predicts %.2f, want between %v", i, mean, between)
					}
				}
			}
			r.HeldOut = r.HeldOut[:1]
			if _, err := r.Fit(t.Context(), backend); err == nil || !strings.Contains(err.Error(), "1 sets of held-out examples for 2 experiments") {
				t.Errorf("too few held-out examples: %v", err)
			}
		})
	}
}
