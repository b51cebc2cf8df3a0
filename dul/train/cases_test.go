package train_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/must"
)

// linearSet draws n examples of y = x_1 - 2 x_2 + noise of the given deviation.
func linearSet(n int, noise float64, seed uint64) train.Dataset {
	rng := rand.New(rand.NewPCG(seed, 0))
	var x, y []float64
	for range n {
		a, b := rng.NormFloat64(), rng.NormFloat64()
		x, y = append(x, a, b), append(y, a-2*b+noise*rng.NormFloat64())
	}
	return train.Dataset{Inputs: nets.Rows(x, 2), Targets: y}
}

// halves are points of two classes, the signs of linearSet's targets.
func halves(n int) train.Dataset {
	data := linearSet(n, 0.1, 8)
	for _, y := range data.Targets {
		label := 0
		if y > 0 {
			label = 1
		}
		data.Labels = append(data.Labels, label)
	}
	data.Targets = nil
	return data
}

const imageClasses = 3

// noiseImages are n images of random pixels and labels.
func noiseImages(n, side, classes int) train.Dataset {
	rng := rand.New(rand.NewPCG(1, 1))
	images := nets.Pixels{Height: side, Width: side, Standardization: nets.Standardization{
		Mean: []float64{0.5, 0.5, 0.5}, Std: []float64{0.25, 0.25, 0.25},
	}}
	var labels []int
	for range n {
		labels = append(labels, rng.IntN(classes))
		for range 3 * side * side {
			images.Bytes = append(images.Bytes, byte(rng.Uint32()))
		}
	}
	return train.Dataset{Inputs: images, Labels: labels}
}

// colours are images whose class is the brightest of three channels.
func colours(n int) train.Dataset {
	data := noiseImages(n, 8, imageClasses)
	images := data.Inputs.(nets.Pixels)
	for i, label := range data.Labels {
		for k := range 64 {
			p := &images.Bytes[(i*3+label)*64+k]
			*p = byte(min(255, int(*p)+100))
		}
	}
	return data
}

// jitter is an augmentation of images padded by two pixels.
type jitter struct{}

func (jitter) Draw(seed uint64, epoch, image int) (top, left int, flip bool) {
	rng := rand.New(rand.NewPCG(seed+uint64(epoch), uint64(image)))
	return rng.IntN(5), rng.IntN(5), rng.IntN(2) == 1
}

// An ordering is an order that a function gives; shuffled is a random one for each seed and epoch, inOrder none.
type ordering func(seed uint64, epoch, n int) []int

func (o ordering) Of(seed uint64, epoch, n int) []int { return o(seed, epoch, n) }

// rates is a schedule that a function gives.
type rates func(t, total int) float64

func (r rates) Rate(t, total int) float64 { return r(t, total) }

func shuffled(seed uint64, epoch, n int) []int {
	return rand.New(rand.NewPCG(seed, uint64(epoch))).Perm(n)
}

func inOrder(_ uint64, _, n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

// A trial is a small run with everything that has a state: layers with noise,
// energy models, batch normalisation in images. An epoch has three whole batches
// and a smaller one; with one of pretraining and two of training there are 12
// steps.
type trial struct {
	name    string
	network func(density dul.Density) nets.Network
	like    likelihood.Likelihood
	seeds   []uint64 // of replicas; a single one is a model without
	data    []train.Dataset
	train.Trainer
}

const (
	trialN     = 29
	trialSteps = 12
)

func trials() []trial {
	resnet := func(d dul.Density) nets.Network {
		return nets.ResNet{Layers: d, Blocks: []int{1, 1}, Widths: []int{2, 3}, Stem: 2}
	}
	mlp := func(d dul.Density) nets.Network { return nets.MLP{Layers: d, Widths: []int{6}} }
	onFloats := bySGD(2, 8, 0.05)
	onImages := onFloats
	onImages.Order, onImages.Augmentation, onImages.Padding = ordering(shuffled), jitter{}, 2
	return []trial{
		{"images", resnet, likelihood.Categorical{Classes: imageClasses}, []uint64{5}, []train.Dataset{colours(trialN)}, onImages},
		{"regression", mlp, likelihood.Gaussian{}, []uint64{5}, []train.Dataset{linearSet(trialN, 0.3, 1)}, onFloats},
		{"points", mlp, likelihood.Categorical{Classes: 2}, []uint64{5}, []train.Dataset{halves(trialN)}, onFloats},
		{"heteroscedastic", mlp, likelihood.Heteroscedastic{}, []uint64{5}, []train.Dataset{linearSet(trialN, 0.3, 1)}, onFloats},
		{"replicas", mlp, likelihood.Gaussian{}, []uint64{5, 6}, []train.Dataset{linearSet(trialN, 0.3, 1), linearSet(trialN-2, 0.3, 2)}, onFloats},
		{"replicas of points", mlp, likelihood.Categorical{Classes: 2}, []uint64{5, 6}, []train.Dataset{halves(trialN), halves(trialN - 2)}, onFloats},
	}
}

// bySGD trains as the paper's image networks are trained: SGD with momentum along
// half a cosine, energy models by an Adam of their own, one epoch on them alone.
func bySGD(epochs, batch int, rate float64) train.Trainer {
	energies := train.Group{Roles: []params.Role{params.Generative}, Optimizer: train.Adam{Decay: 1e-5}, Rate: 0.01 / rate}
	return train.Trainer{Settings: train.Settings{
		Epochs: epochs, BatchSize: batch, PretrainEpochs: 1, Schedule: train.Cosine{Start: rate}, LogLikelihoodScale: 1,
		Groups: []train.Group{
			energies,
			{Roles: []params.Role{params.Weight}, Optimizer: train.SGD{Momentum: 0.9, Decay: 1e-4}},
			{Roles: []params.Role{params.Variational}, Optimizer: train.SGD{Momentum: 0.9}},
		},
		PretrainGroups: []train.Group{energies},
	}}
}

// eachTrial runs a subtest for every trial. Where trials are named compiled, fixtures.SkipShortOffGo skips the others.
func eachTrial(t *testing.T, test func(t *testing.T, c trial), compiled ...string) {
	t.Helper()
	each(t, trials(), func(t *testing.T, c trial) {
		if len(compiled) > 0 && !slices.Contains(compiled, c.name) {
			fixtures.SkipShortOffGo(t)
		}
		test(t, c)
	})
}

// each runs a subtest for every one of some trials.
func each(t *testing.T, some []trial, test func(t *testing.T, c trial)) {
	t.Helper()
	for _, c := range some {
		t.Run(c.name, func(t *testing.T) { test(t, c) })
	}
}

// named is the trial of a name.
func named(t testing.TB, name string) trial {
	t.Helper()
	all := trials()
	i := slices.IndexFunc(all, func(c trial) bool { return c.name == name })
	if i < 0 {
		t.Fatalf("there is no trial %q", name)
	}
	return all[i]
}

// model is an untrained model of the trial.
func (c trial) model(t testing.TB, dtype dtypes.DType) *nets.Model {
	t.Helper()
	return newModel(t, c.network(dul.Density{}), c.like, dtype, c.seeds...)
}

// newModel has replicas if there are several seeds.
func newModel(t testing.TB, network nets.Network, l likelihood.Likelihood, dtype dtypes.DType, seeds ...uint64) *nets.Model {
	t.Helper()
	m, err := nets.NewReplicas(fixtures.Backend(t), network, l, seeds...)
	if len(seeds) == 1 {
		m, err = nets.New(fixtures.Backend(t), network, l, seeds[0])
	}
	must.Do(t, err)
	m.DType = dtype
	return m
}

// fit runs the trial on a model.
func (c trial) fit(t testing.TB, m *nets.Model) {
	t.Helper()
	must.Do(t, c.Fit(context.Background(), m, c.data...))
}

// stateOf is the bytes of all variables but the buffers of noise.
func stateOf(t testing.TB, store *model.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	for v := range store.IterVariables() {
		if stochastic.IsNoiseBuffer(v) {
			continue
		}
		value := must.Get(v.Value())(t)
		must.Do(t, value.ConstBytes(func(data []byte) { all[v.Path()] = string(data) }))
	}
	return all
}

// sameState fails where two runs differ in a single bit.
func sameState(t testing.TB, got, want *nets.Model) {
	t.Helper()
	a, b := stateOf(t, got.Store), stateOf(t, want.Store)
	if len(a) != len(b) || len(b) < 20 {
		t.Errorf("%d variables, want %d", len(a), len(b))
	}
	for path, value := range b {
		if a[path] != value {
			t.Errorf("variable %s differs", path)
		}
	}
	if got.Host == nil && want.Host == nil {
		return // the state of noise that is drawn in the graph is a variable
	}
	gotNoise := must.Get(got.Host.State())(t)
	wantNoise := must.Get(want.Host.State())(t)
	if !slices.Equal(gotNoise, wantNoise) {
		t.Error("the streams of noise are at different positions")
	}
}

// parametersOf are the trained parameters by path, and running statistics too if they are wanted.
func parametersOf(t testing.TB, m *nets.Model, running ...params.Role) map[string]fixtures.Array {
	t.Helper()
	values := map[string]fixtures.Array{}
	for v := range m.Store.IterVariables() {
		if role := params.RoleOf(v, m.Store); role != "" && role != params.Running || slices.Contains(running, role) {
			values[v.Path()] = fixtures.FromTensor(t, must.Get(v.Value())(t))
		}
	}
	return values
}

// fitUntil trains, stops after a step, and returns the error of the stop.
func fitUntil(run train.Trainer, m *nets.Model, step int, data ...train.Dataset) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	progress := run.Progress
	run.Progress = func(p train.Progress) {
		if progress != nil {
			progress(p)
		}
		if p.Step == step {
			cancel()
		}
	}
	return run.Fit(ctx, m, data...)
}
