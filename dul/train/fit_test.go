package train_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment"
)

// linearSet draws n examples of y = x_1 - 2 x_2 + noise of the given deviation.
func linearSet(n int, noise float64, seed uint64) train.Set {
	rng := rand.New(rand.NewPCG(seed, 0))
	set := train.Set{D: 2}
	for range n {
		a, b := rng.NormFloat64(), rng.NormFloat64()
		set.X = append(set.X, a, b)
		set.Y = append(set.Y, a-2*b+noise*rng.NormFloat64())
	}
	return set
}

func regression(layers nets.Layers, seeds ...uint64) train.Regression {
	return train.Regression{
		Network:            nets.MLP{Layers: layers, Widths: []int{8}},
		LogLikelihoodScale: 1,
		Groups: []train.Group{
			{Roles: []params.Role{params.Generative}, Optimizer: train.Adam{}},
			{Roles: []params.Role{params.Weight, params.Variational, params.Likelihood}, Optimizer: train.SGD{Momentum: 0.9, Decay: 1e-4}},
		},
		Schedule:  train.Cosine(0.02),
		Epochs:    5,
		BatchSize: 16,
		Seeds:     seeds,
		Float64:   true,
	}
}

// Training must find the function and the noise of a problem that it can solve.
func TestFitLearns(t *testing.T) {
	run := regression(baselines.Deterministic{}, 3)
	run.Epochs = 200
	fitted, err := run.Fit(context.Background(), fixtures.Backend(t), linearSet(400, 0.3, 1))
	if err != nil {
		t.Fatal(err)
	}
	test := linearSet(200, 0, 2)
	draws, err := predict.Regression(context.Background(), fitted, test.X, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for i, y := range test.Y {
		sum += (draws.Mean[0][i] - y) * (draws.Mean[0][i] - y)
	}
	if rmse := math.Sqrt(sum / 200); rmse > 0.2 {
		t.Errorf("root mean squared error against the noise-free targets is %.3f, want at most 0.2 (targets have standard deviation 2.2)", rmse)
	}
	if draws.NoiseStd < 0.22 || draws.NoiseStd > 0.38 {
		t.Errorf("trained noise standard deviation %.3f, data have 0.3", draws.NoiseStd)
	}
}

// A regression draws its noise on the host, so a short run ends at the same
// numbers on every backend, up to rounding.
func TestBackendsAgree(t *testing.T) {
	backend := fixtures.Backend(t)
	if ops.IsGo(backend) {
		t.Skip("compares another backend with the pure Go backend; set GOMLX_BACKEND")
	}
	pureGo, err := compute.NewWithConfig(environment.GoSequential)
	if err != nil {
		t.Fatal(err)
	}
	run := regression(dul.Density{InitStd: 0.1}, 11)
	run.PretrainEpochs = 2
	set := linearSet(40, 0.3, 1)
	var draws []predict.Draws
	for _, b := range []compute.Backend{backend, pureGo} {
		r, err := run.Fit(context.Background(), b, set)
		if err != nil {
			t.Fatal(err)
		}
		d, err := predict.Regression(context.Background(), r, set.X, 2, 3)
		if err != nil {
			t.Fatal(err)
		}
		draws = append(draws, d)
	}
	for m, want := range draws[1].Mean {
		fixtures.Compare(t, fmt.Sprintf("draw %d", m), fixtures.Matrix(1, 40, draws[0].Mean[m]...), fixtures.Matrix(1, 40, want...), 1e-9)
	}
}

// A replica must not depend on which others it is trained with: initial values,
// order, noise and so the result equal those of the model trained alone.
func TestReplicaEqualsModelTrainedAlone(t *testing.T) {
	families := map[string]nets.Layers{
		"density":   dul.Density{InitStd: 0.1},
		"mfvi":      baselines.MFVI{InitStd: 0.1},
		"mcdropout": baselines.MCDropout{},
		"vdropout":  baselines.VDropout{},
		"rank1":     baselines.Rank1{InitStd: 0.1},
	}
	sets := []train.Set{linearSet(40, 0.3, 1), linearSet(40, 0.3, 2), linearSet(37, 0.3, 3)}
	seeds := []uint64{11, 12, 13}
	inputs := [][]float64{sets[0].X[:20], sets[1].X[:20], sets[2].X[:20]}
	for name, layers := range families {
		t.Run(name, func(t *testing.T) {
			backend, ctx := fixtures.Backend(t), context.Background()
			run := regression(layers, seeds...)
			if name == "density" {
				run.PretrainEpochs = 2
			}
			together, err := run.FitReplicas(ctx, backend, sets)
			if err != nil {
				t.Fatal(err)
			}
			joint, err := predict.Replicas(ctx, together, inputs, 2, 3)
			if err != nil {
				t.Fatal(err)
			}
			for r := range sets[:2] { // the third is padded, so it draws other noise
				run.Seeds = seeds[r : r+1]
				alone, err := run.Fit(ctx, backend, sets[r])
				if err != nil {
					t.Fatal(err)
				}
				single, err := predict.Regression(ctx, alone, inputs[r], 2, 3)
				if err != nil {
					t.Fatal(err)
				}
				for m := range single.Mean {
					for i, want := range single.Mean[m] {
						if got := joint[r].Mean[m][i]; math.Abs(got-want) > 1e-9 {
							t.Fatalf("replica %d, draw %d, input %d: %v in the batch, %v alone", r, m, i, got, want)
						}
					}
				}
				if math.Abs(single.NoiseStd-joint[r].NoiseStd) > 1e-9 {
					t.Errorf("replica %d: noise %v in the batch, %v alone", r, joint[r].NoiseStd, single.NoiseStd)
				}
			}
		})
	}
}

// Padding rows have weight zero: a shorter replica of a deterministic network
// must end where it does alone.
func TestPaddingDoesNotChangeAReplica(t *testing.T) {
	sets := []train.Set{linearSet(48, 0.3, 1), linearSet(41, 0.3, 2)}
	backend, ctx := fixtures.Backend(t), context.Background()
	run := regression(baselines.Deterministic{}, 5, 6)
	together, err := run.FitReplicas(ctx, backend, sets)
	if err != nil {
		t.Fatal(err)
	}
	x := [][]float64{sets[0].X[:10], sets[1].X[:10]}
	joint, err := predict.Replicas(ctx, together, x, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	run.Seeds = []uint64{6}
	alone, err := run.Fit(ctx, backend, sets[1])
	if err != nil {
		t.Fatal(err)
	}
	single, err := predict.Regression(ctx, alone, x[1], 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range single.Mean[0] {
		if got := joint[1].Mean[0][i]; math.Abs(got-want) > 1e-9 {
			t.Fatalf("input %d: %v padded, %v alone", i, got, want)
		}
	}
}

func TestSameSeedSameModel(t *testing.T) {
	backend, ctx, set := fixtures.Backend(t), context.Background(), linearSet(40, 0.3, 1)
	predictions := func(seed uint64) []float64 {
		fitted, err := regression(dul.Density{InitStd: 0.1}, seed).Fit(ctx, backend, set)
		if err != nil {
			t.Fatal(err)
		}
		draws, err := predict.Regression(ctx, fitted, set.X, 2, 2)
		if err != nil {
			t.Fatal(err)
		}
		return slices.Concat(draws.Mean...)
	}
	first, again, other := predictions(1), predictions(1), predictions(2)
	if !slices.Equal(first, again) {
		t.Error("two runs of one seed differ")
	}
	if slices.Equal(first, other) {
		t.Error("runs of two seeds are equal")
	}
}

// Pretraining must improve the generative objective and leave all else alone.
func TestPretrainingTrainsTheEnergyModelsAlone(t *testing.T) {
	backend, ctx, set := fixtures.Backend(t), context.Background(), linearSet(64, 0.3, 1)
	run := regression(dul.Density{}, 4)
	run.Epochs, run.PretrainEpochs = 0, 1
	run.PretrainGroups = run.Groups[:1]
	before, err := run.Fit(ctx, backend, set)
	if err != nil {
		t.Fatal(err)
	}
	var losses []float64
	run.PretrainEpochs = 60
	run.Progress = func(p train.Progress) {
		if !p.Pretraining {
			t.Errorf("epoch %d is not reported as pretraining", p.Done)
		}
		losses = append(losses, p.Loss)
	}
	after, err := run.Fit(ctx, backend, set)
	if err != nil {
		t.Fatal(err)
	}
	if first, last := losses[0], losses[len(losses)-1]; !(last < first-0.5) {
		t.Errorf("negative log-likelihood of the energy models went from %.3f to %.3f, want a clear decrease", first, last)
	}
	for v := range before.Store.IterVariables() {
		role := params.RoleOf(v, before.Store)
		if role == "" {
			continue
		}
		same := v.MustValue().Equal(after.Store.GetVariable(v.Path()).MustValue())
		if generative := role == params.Generative; same == generative {
			t.Errorf("%s (%s): unchanged is %v", v.Path(), role, same)
		}
	}
}

func TestFitErrors(t *testing.T) {
	backend, ctx := fixtures.Backend(t), context.Background()
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	good := linearSet(40, 0.3, 1)
	tests := []struct {
		name   string
		change func(*train.Regression)
		sets   []train.Set
		ctx    context.Context
		want   string
	}{
		{"no network", func(r *train.Regression) { r.Network = nil }, []train.Set{good}, ctx, "Network"},
		{"negative epochs", func(r *train.Regression) { r.Epochs = -1 }, []train.Set{good}, ctx, "-1 epochs"},
		{"batch size", func(r *train.Regression) { r.BatchSize = 0 }, []train.Set{good}, ctx, "batch size is 0"},
		{"seeds", func(r *train.Regression) { r.Seeds = []uint64{1, 2} }, []train.Set{good}, ctx, "1 training sets and 2 seeds"},
		{"empty set", nil, []train.Set{{D: 2}}, ctx, "0 targets"},
		{"ragged set", nil, []train.Set{{D: 2, X: []float64{1, 2, 3}, Y: []float64{1, 2}}}, ctx, "3 inputs"},
		{"unequal epochs", func(r *train.Regression) { r.Seeds = []uint64{1, 2} }, []train.Set{good, linearSet(80, 0.3, 1)}, ctx, "train these apart"},
		{"no energy model", func(r *train.Regression) { r.PretrainEpochs = 1 }, []train.Set{good}, ctx, "no layer of the network has an energy model"},
		{"canceled", nil, []train.Set{good}, canceled, "stopped after 0 of 5 epochs"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			run := regression(baselines.Deterministic{}, 1)
			if test.change != nil {
				test.change(&run)
			}
			_, err := run.FitReplicas(test.ctx, backend, test.sets)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want one with %q", err, test.want)
			}
			if test.name == "canceled" && !errors.Is(err, context.Canceled) {
				t.Errorf("error %v does not wrap context.Canceled", err)
			}
		})
	}
}
