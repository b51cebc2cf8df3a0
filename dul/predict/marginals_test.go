package predict_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
	"densityuncertainty/environment/must"
)

// sparse is an untrained regression whose head is DUE, with replicas if there
// are several seeds.
func sparse(t *testing.T, seeds ...uint64) *nets.Model {
	t.Helper()
	head := baselines.DUE{
		Start:      []baselines.Inducing{{Points: []float64{0, 1, 2, 2, 1, 0}, LengthScale: 1}},
		Likelihood: baselines.Gaussian,
	}
	network := nets.ResidualMLP{Layers: baselines.Deterministic{}, Head: head, Width: 2, Depth: 1}
	return newModel(t, network, likelihood.Gaussian{}, seeds...)
}

// Marginals and features of replicas are those of each alone, also where one has
// fewer inputs; before training f has the prior's moments.
func TestMarginals(t *testing.T) {
	ctx := context.Background()
	x := []nets.Inputs{nets.Rows([]float64{1, -1, 0.5}, 1), nets.Rows([]float64{2, 3}, 1)}
	headless := nets.ResidualMLP{Layers: baselines.Deterministic{}, Head: baselines.Headless{}, Width: 2, Depth: 1}
	joint := sparse(t, 1, 2)
	together := must.Get(predict.Marginals(ctx, joint, x...))(t)
	features := must.Get(predict.SampleReplicas(ctx, joint.With(headless), x, predict.Options{Samples: 1}))(t)
	for r, seed := range []uint64{1, 2} {
		single := sparse(t, seed)
		alone := must.Get(predict.Marginals(ctx, single, x[r]))(t)
		got, want := together[r], alone[0]
		if !slices.Equal(got.Mean[0], want.Mean[0]) || len(want.Std[0]) != x[r].Len() || want.NoiseStd[0][0] != 1 {
			t.Errorf("replica %d: %+v together, %+v alone", r, got, want)
		}
		for i, std := range want.Std[0] {
			// q(v) is the prior, so that the variance is k(h, h) = log 2 but for jitter.
			if math.Abs(std*std-math.Ln2) > 1e-5 || math.Abs(std-got.Std[0][i]) > 1e-12 {
				t.Errorf("replica %d, input %d: std %g, together %g", r, i, std, got.Std[0][i])
			}
		}
		own := sample(t, single.With(headless), x[r], predict.Options{Samples: 1})
		if own.Width != 2 || features[r].Width != 2 {
			t.Fatalf("features of width %d together and %d alone, want 2", features[r].Width, own.Width)
		}
		n := x[r].Len()
		fixtures.Compare(t, "features", fixtures.Matrix(n, 2, features[r].Outputs[0]...), fixtures.Matrix(n, 2, own.Outputs[0]...), 1e-12)
	}
}

func TestMarginalsAreRefused(t *testing.T) {
	plain, classes := sparse(t, 1), sparse(t, 1)
	plain.Network = nets.MLP{Layers: baselines.Deterministic{}}
	classes.Likelihood = likelihood.Categorical{Classes: 2}
	broken := sparse(t, 1)
	must.Get(predict.Marginals(context.Background(), broken, nets.Rows([]float64{1}, 1)))(t)
	noise := broken.Store.GetVariable("/model/" + likelihood.LogVariance)
	must.Do(t, noise.SetValue(params.FromFloat64(noise.Shape(), []float64{math.NaN()})))
	for _, c := range []struct {
		name, want string
		m          *nets.Model
	}{
		{"network", "no moments", plain}, {"likelihood", "likelihood.Gaussian is needed", classes}, {"replicas", "1 sets of inputs", sparse(t, 1, 2)},
		{"model", "there is no model", nil}, {"broken", "the noise's deviation at input 0 is NaN", broken},
	} {
		t.Run(c.name, func(t *testing.T) {
			must.GetErr(predict.Marginals(context.Background(), c.m, nets.Rows([]float64{1}, 1)))(t, c.want)
		})
	}
}
