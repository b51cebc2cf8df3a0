package predict_test

import (
	"fmt"
	"slices"
	"testing"

	gomlx "github.com/gomlx/gomlx/ml/model"

	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/floats"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/environment/must"
)

// seededFamilies are all kinds of noise: for each example and unit, of weights, of
// positions, shared by positions, and several draws for each example.
func seededFamilies() map[string]nets.ConvLayers {
	families := map[string]nets.ConvLayers{
		"Density, shared":  dul.Density{InitStd: 0.3, SharedNoise: true},
		"Density, uniform": dul.Density{InitStd: 0.3, Noise: stochastic.Uniform01()},
		"Density, t":       dul.Density{InitStd: 0.3, Noise: stochastic.StudentT{Nu: 5}},
		"Rank1, tied":      baselines.Rank1{InitStd: 0.3, Tied: true},
		"DUE":              baselines.DUE{Start: []baselines.Inducing{{Points: []float64{0, 1, 2, 2, 1, 0, 3, 3}, LengthScale: 1}}},
	}
	for _, f := range convFamilies {
		families[f.name] = f.layers
	}
	return families
}

// The same seed gives the same predictions whatever came before, in whatever batches
// and executions, and wherever noise is drawn else; another seed and another sample
// give others.
func TestSeed(t *testing.T) {
	images := photos(7)
	batches := []int{2, 7}
	if testing.Short() && !ops.IsGo(fixtures.Backend(t)) {
		batches = batches[:1] // XLA's compiler takes a second for each
	}
	for name, layers := range seededFamilies() {
		t.Run(name, func(t *testing.T) {
			if name != "Density, shared" && name != "Rank1" {
				fixtures.SkipShortOffGo(t)
			}
			m := classifier(t, layers)
			of := func(o predict.Options) *predict.Prediction {
				t.Helper()
				o.Samples, o.KeepOutputs = 6, true
				return sample(t, m, images, o)
			}
			want := of(predict.Options{Seed: new(uint64(5))})
			if !slices.Equal(want.Probabilities, metrics.MeanProbabilities(want.Outputs, classes)) || !slices.Equal(want.MutualInformation, metrics.MutualInformation(want.Outputs, classes)) {
				t.Errorf("%v and %v, from the logits %v", want.Probabilities, want.MutualInformation, want.Outputs)
			}
			if noisy := name != "Deterministic"; slices.Equal(want.Outputs[0], want.Outputs[1]) == noisy {
				t.Errorf("the samples are %v", want.Outputs)
			} else if other := of(predict.Options{Seed: new(uint64(6))}); slices.Equal(want.Outputs[0], other.Outputs[0]) == noisy {
				t.Error("another seed gives the same samples")
			}
			for _, batch := range batches {
				for _, host := range []bool{true, false} {
					of(predict.Options{}) // goes on in the stream
					before := m.Host
					if !host {
						m.Host = nil
					}
					got := of(predict.Options{Seed: new(uint64(5)), BatchSize: batch})
					m.Host = before
					for k := range want.Outputs {
						if !floats.EqualApprox(got.Outputs[k], want.Outputs[k], 1e-10) {
							t.Fatalf("batches of %d, host %t: sample %d is %v, want %v", batch, host, k, got.Outputs[k], want.Outputs[k])
						}
					}
				}
			}
		})
	}
}

// A seeded call leaves the stream of noise, and the model, as they were.
func TestSeedLeavesTheStream(t *testing.T) {
	x := nets.Rows([]float64{0.5, -1, 2, 0.3}, 2)
	plain, asked := mlp(t, dul.Density{InitStd: 0.3}, 1), mlp(t, dul.Density{InitStd: 0.3}, 1)
	want := [][][]float64{sample(t, plain, x, predict.Options{Samples: 3}).Mean, sample(t, plain, x, predict.Options{Samples: 3}).Mean}
	for i := range want {
		sample(t, asked, x, predict.Options{Samples: 2, Seed: new(uint64(i))})
		if got := sample(t, asked, x, predict.Options{Samples: 3}).Mean; fmt.Sprint(got) != fmt.Sprint(want[i]) {
			t.Errorf("call %d: %v, without seeded calls before it %v", i, got, want[i])
		}
	}
	for v := range asked.Store.IterVariables() {
		if stochastic.IsNoiseBuffer(v) {
			t.Errorf("%s is still there", v.Path())
		}
	}
}

// Replicas draw as each does alone, also where they have fewer inputs. Seed 0 is a seed.
func TestSeedOfReplicas(t *testing.T) {
	x := []nets.Inputs{nets.Rows([]float64{0.5, -1, 2, 0.3, 1, 1}, 2), nets.Rows([]float64{2, 0.3}, 2)}
	for name, layers := range map[string]nets.Layers{"Density": dul.Density{InitStd: 0.3}, "MFVI": baselines.MFVI{InitStd: 0.3}} {
		t.Run(name, func(t *testing.T) {
			for _, o := range []predict.Options{{Samples: 4, Seed: new(uint64(0))}, {Samples: 4, Seed: new(uint64(0)), BatchSize: 2}, {Samples: 4, Seed: new(uint64(0)), Coherent: true}} {
				joint := must.Get(predict.SampleReplicas(t.Context(), mlp(t, layers, 8, 9), x, o))(t)
				for r, seed := range []uint64{8, 9} {
					alone := sample(t, mlp(t, layers, seed), x[r], predict.Options{Samples: 4, Seed: o.Seed, Coherent: o.Coherent})
					for k := range alone.Mean {
						if !floats.EqualApprox(joint[r].Mean[k], alone.Mean[k], 1e-12) {
							t.Errorf("replica %d, sample %d: %v, alone %v", r, k, joint[r].Mean[k], alone.Mean[k])
						}
					}
				}
			}
		})
	}
}

// squares is a family whose noise has a row and a column for each example.
type squares struct{}

func (squares) Dense(s *gomlx.Scope, x *graph.Node, units int) *graph.Node {
	n := x.Shape().Dim(-2)
	noise := stochastic.Draw(s, x, stochastic.Gaussian(), n, n)
	return graph.Add(baselines.Deterministic{}.Dense(s, x, units), graph.ReduceAndKeep(noise, graph.ReduceMean, -1))
}

// Noise of which nobody can tell what belongs to an example is refused.
func TestSeedOfOtherNoise(t *testing.T) {
	m := newModel(t, nets.MLP{Layers: squares{}}, likelihood.Gaussian{}, 1)
	x := nets.Rows([]float64{1, 2, 3}, 1)
	must.GetErr(predict.Sample(t.Context(), m, x, predict.Options{Seed: new(uint64(1))}))(t, "what belongs to an example cannot be told")
	sample(t, m, x, predict.Options{})
}
