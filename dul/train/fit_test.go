package train_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment"
	"densityuncertainty/environment/must"
)

// regression is a training run for linearSet.
func regression() train.Trainer {
	return train.Trainer{Settings: train.Settings{
		LogLikelihoodScale: 1,
		Groups: []train.Group{
			{Roles: []params.Role{params.Generative}, Optimizer: train.Adam{}},
			{Roles: []params.Role{params.Weight, params.Variational, params.Likelihood}, Optimizer: train.SGD{Momentum: 0.9, Decay: 1e-4}},
		},
		Schedule: train.Cosine{Start: 0.02}, Epochs: 5, BatchSize: 16,
	}}
}

// mlp is an untrained regression; with several seeds it has replicas.
func mlp(t testing.TB, layers nets.Layers, seeds ...uint64) *nets.Model {
	t.Helper()
	return newModel(t, nets.MLP{Layers: layers, Widths: []int{8}}, likelihood.Gaussian{}, dtypes.Float64, seeds...)
}

func fit(t testing.TB, run train.Trainer, m *nets.Model, data ...train.Dataset) {
	t.Helper()
	must.Do(t, run.Fit(context.Background(), m, data...))
}

func sample(t testing.TB, m *nets.Model, x nets.Inputs, samples int) *predict.Prediction {
	t.Helper()
	return must.Get(predict.Sample(context.Background(), m, x, predict.Options{Samples: samples}))(t)
}

// Training finds the function and the noise of a problem that it can solve, also
// where the noise depends on the input.
func TestRegressionLearns(t *testing.T) {
	for _, c := range []struct {
		name string
		l    likelihood.Likelihood
		std  func(x []float64) float64
	}{
		{"Gaussian", likelihood.Gaussian{}, func([]float64) float64 { return 0.3 }},
		{"heteroscedastic", likelihood.Heteroscedastic{}, func(x []float64) float64 { return 0.3 * math.Exp(x[0]) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			data, clean := linearSet(400, 1, 1), linearSet(400, 0, 1)
			values := data.Inputs.(nets.Floats).Values
			for i := range data.Targets { // noise of the wanted deviation
				x := values[2*i : 2*i+2]
				mean := x[0] - 2*x[1]
				data.Targets[i], clean.Targets[i] = mean+c.std(x)*(data.Targets[i]-mean), mean
			}
			m := newModel(t, nets.MLP{Layers: baselines.Deterministic{}, Widths: []int{8}}, c.l, dtypes.Float64, 3)
			run := regression()
			run.Epochs = 200
			fit(t, run, m, data)
			p := sample(t, m, data.Inputs, 1)
			squares, ratio := 0.0, 0.0
			for i, y := range clean.Targets {
				squares += math.Pow(p.Mean[0][i]-y, 2) / 400
				ratio += math.Log(p.NoiseStd[0][i]/c.std(values[2*i:2*i+2])) / 400
			}
			if rmse := math.Sqrt(squares); rmse > 0.25 {
				t.Errorf("root mean squared error against the noise-free targets is %.3f, want at most 0.25 (targets have standard deviation 2.2)", rmse)
			}
			must.Near(t, ratio, 0, 0.3, "the logarithm of the noise over that of the data")
			if low, high := slices.Min(p.NoiseStd[0]), slices.Max(p.NoiseStd[0]); (high > 5*low) != (c.name == "heteroscedastic") {
				t.Errorf("the noise goes from %.2f to %.2f", low, high)
			}
		})
	}
}

// Classifiers of images and of points learn, and the last progress says so.
func TestClassificationLearns(t *testing.T) {
	for _, c := range []struct {
		name    string
		network nets.Network
		data    train.Dataset
		classes int
	}{
		{"images", nets.ResNet{Layers: dul.Density{}, Blocks: []int{1, 1}, Widths: []int{2, 3}, Stem: 2}, colours(120), imageClasses},
		{"points", nets.MLP{Layers: dul.Density{}, Widths: []int{8}}, halves(120), 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := trials()[1].Trainer
			run.Epochs = 30
			var last train.Progress
			run.Progress = func(p train.Progress) { last = p }
			fit(t, run, newModel(t, c.network, likelihood.Categorical{Classes: c.classes}, dtypes.Float32, 5), c.data)
			if last.Step != last.Steps || last.Epoch != last.Epochs || last.ExamplesPerSecond <= 0 {
				t.Errorf("at the end the progress is %+v", last)
			}
			if last.Losses.Accuracy < 0.9 || last.Losses.NLL > 0.4 {
				t.Errorf("accuracy %.3f and cross-entropy %.3f on the training set; want at least 0.9 and at most 0.4", last.Losses.Accuracy, last.Losses.NLL)
			}
		})
	}
}

// With noise of the host a short run ends at the same numbers on every backend, up
// to rounding.
func TestBackendsAgree(t *testing.T) {
	backend := fixtures.Backend(t)
	if ops.IsGo(backend) {
		t.Skip("compares another backend with the pure Go backend; set GOMLX_BACKEND")
	}
	pureGo := must.Get(compute.NewWithConfig(environment.GoSequential))(t)
	run := regression()
	run.PretrainEpochs = 2
	set := linearSet(40, 0.3, 1)
	var found []*predict.Prediction
	for _, b := range []compute.Backend{backend, pureGo} {
		m := mlp(t, dul.Density{InitStd: 0.1}, 11)
		m.Backend, m.Host = b, stochastic.NewHostSampler(11)
		fit(t, run, m, set)
		found = append(found, sample(t, m, set.Inputs, 3))
	}
	for m, want := range found[1].Mean {
		fixtures.Compare(t, fmt.Sprintf("sample %d", m), fixtures.Matrix(1, 40, found[0].Mean[m]...), fixtures.Matrix(1, 40, want...), 1e-9)
	}
}

// A replica does not depend on which others it is trained with: initial values,
// order, noise and so the result equal those of the model trained alone. One whose
// batches are padded draws other noise, but without noise is the same as well.
func TestReplicaEqualsModelTrainedAlone(t *testing.T) {
	sets := []train.Dataset{linearSet(40, 0.3, 1), linearSet(40, 0.3, 2), linearSet(37, 0.3, 3)}
	seeds := []uint64{11, 12, 13}
	for _, c := range []struct {
		name   string
		layers nets.Layers
		equal  int // replicas
	}{
		{"deterministic", baselines.Deterministic{}, 3}, {"density", dul.Density{InitStd: 0.1}, 2}, {"mfvi", baselines.MFVI{InitStd: 0.1}, 2},
		{"mcdropout", baselines.MCDropout{}, 2}, {"vdropout", baselines.VDropout{}, 2}, {"rank1", baselines.Rank1{InitStd: 0.1}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name != "deterministic" && c.name != "density" {
				fixtures.SkipShortOffGo(t)
			}
			run := regression()
			if c.name == "density" {
				run.PretrainEpochs = 2
			}
			together := mlp(t, c.layers, seeds...)
			fit(t, run, together, sets...)
			var inputs []nets.Inputs
			for _, set := range sets {
				inputs = append(inputs, nets.Rows(set.Inputs.(nets.Floats).Values[:20], 2))
			}
			joint := must.Get(predict.SampleReplicas(context.Background(), together, inputs, predict.Options{Samples: 3}))(t)
			for r := range c.equal {
				alone := mlp(t, c.layers, seeds[r])
				alone.Host = stochastic.NewHostSampler(seeds[r])
				fit(t, run, alone, sets[r])
				want := sample(t, alone, inputs[r], 3)
				got := joint[r]
				fixtures.Compare(t, fmt.Sprintf("replica %d", r), fixtures.Matrix(3, 10, slices.Concat(got.Mean...)...), fixtures.Matrix(3, 10, slices.Concat(want.Mean...)...), 1e-9)
				must.Near(t, got.NoiseStd[0][0], want.NoiseStd[0][0], 1e-9, "replica %d: the noise in the batch, and alone", r)
			}
		})
	}
}

// Each replica has the order of its own seed, and each seed noise of its own.
func TestSeedsOfOrdersAndNoise(t *testing.T) {
	asked, run := map[uint64]bool{}, regression()
	run.Order = ordering(func(seed uint64, epoch, n int) []int {
		asked[seed] = true
		return inOrder(seed, epoch, n)
	})
	fit(t, run, mlp(t, baselines.Deterministic{}, 11, 12), linearSet(40, 0.3, 1), linearSet(40, 0.3, 2))
	if len(asked) != 2 || !asked[11] || !asked[12] {
		t.Errorf("orders of the seeds %v", asked)
	}
	first, second := mlp(t, baselines.Deterministic{}, 11), mlp(t, baselines.Deterministic{}, 12)
	if first.Host != nil && bytes.Equal(must.Get(first.Host.State())(t), must.Get(second.Host.State())(t)) {
		t.Error("two seeds have the same noise")
	}
}

// Pretraining improves the energy models and moves nothing but them and running
// statistics, also where the schedule warms up. No buffer of noise is left over.
func TestPretrainingTrainsTheEnergyModelsAlone(t *testing.T) {
	eachTrial(t, func(t *testing.T, c trial) {
		c.Epochs, c.PretrainEpochs = 0, 1
		before, after := c.model(t, dtypes.Float64), c.model(t, dtypes.Float64)
		still := c
		still.Schedule = train.Constant{Start: 0}
		still.fit(t, before)
		var losses []float64
		c.PretrainEpochs = 60
		warm := c.Schedule
		c.Schedule = rates(func(t, total int) float64 {
			if t == 0 {
				return 1e-12
			}
			return warm.Rate(t, total)
		})
		c.Progress = func(p train.Progress) {
			if !p.Pretraining {
				t.Errorf("step %d is not reported as pretraining", p.Step)
			}
			if p.Step%4 == 0 {
				losses = append(losses, p.Losses.Total)
			}
		}
		c.fit(t, after)
		if first, last := losses[0], losses[len(losses)-1]; !(last < first-0.3) {
			t.Errorf("the objective of the energy models went from %.3f to %.3f, want a clear decrease", first, last)
		}
		now := parametersOf(t, after)
		for path, start := range parametersOf(t, before) {
			generative := params.RoleOf(after.Store.GetVariable(path), after.Store) == params.Generative
			if moved := !slices.Equal(start.Values, now[path].Values); moved && !generative || !moved && generative && len(start.Values) > 1 {
				t.Errorf("%s moved: %t", path, moved)
			}
		}
		for v := range after.Store.IterVariables() {
			if stochastic.IsNoiseBuffer(v) {
				t.Errorf("the buffer of noise %s is left over", v.Path())
			}
		}
	}, "replicas")
}

// An epoch is every image once, in whole batches and one with the rest, in pretraining and in training.
func TestEpochs(t *testing.T) {
	fixtures.SkipShortOffGo(t)
	type call struct{ epoch, image int }
	seen := map[call]int{}
	c := trials()[0]
	c.Augmentation = spy(func(epoch, image int) { seen[call{epoch, image}]++ })
	var steps, epochs []int
	var pretraining []bool
	c.Progress = func(p train.Progress) {
		steps, epochs, pretraining = append(steps, p.Step), append(epochs, p.Epoch), append(pretraining, p.Pretraining)
	}
	c.fit(t, c.model(t, dtypes.Float32))
	if want := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}; !slices.Equal(steps, want) {
		t.Errorf("heard of the steps %v, want %v", steps, want)
	}
	if want := []int{0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3}; !slices.Equal(epochs, want) {
		t.Errorf("finished epochs %v, want %v", epochs, want)
	}
	if !pretraining[3] || pretraining[4] {
		t.Errorf("pretraining: %v", pretraining)
	}
	if len(seen) != 3*trialN {
		t.Errorf("%d images in 3 epochs, want %d", len(seen), 3*trialN)
	}
	for c, n := range seen {
		if n != 1 {
			t.Errorf("image %d came %d times in epoch %d", c.image, n, c.epoch)
		}
	}
}

// spy is an augmentation that tells what it is asked.
type spy func(epoch, image int)

func (f spy) Draw(_ uint64, epoch, image int) (top, left int, flip bool) {
	f(epoch, image)
	return 2, 2, false
}

// ownClasses is a classification that is not likelihood.Categorical.
type ownClasses struct{ likelihood.Classification }

// A generative objective times 0 is an error where it is what trains an energy model,
// and only there.
func TestNoScaleOfTheGenerativeObjective(t *testing.T) {
	energies, others := []params.Role{params.Generative}, []params.Role{params.Weight, params.Variational, params.Likelihood}
	sgd := train.SGD{}
	for _, c := range []struct {
		name       string
		layers     nets.Layers
		pretrain   int
		groups     []train.Group
		pretrained []train.Group
		refused    bool
	}{
		{"all roles", dul.Density{}, 0, []train.Group{{Roles: train.AllRoles(), Optimizer: sgd}}, nil, true},
		{"a group of their own", dul.Density{}, 0, []train.Group{{Roles: others, Optimizer: sgd}, {Roles: energies, Optimizer: sgd}}, nil, true},
		{"pretraining", dul.Density{}, 1, []train.Group{{Roles: others, Optimizer: sgd}}, []train.Group{{Roles: energies, Optimizer: sgd}}, true},
		{"left as they are", dul.Density{}, 0, []train.Group{{Roles: others, Optimizer: sgd}}, nil, false},
		{"without optimizer", dul.Density{}, 0, []train.Group{{Roles: energies}, {Roles: train.AllRoles(), Optimizer: sgd}}, nil, false},
		{"not fitted", dul.Density{Energy: energy.Constant{}}, 0, []train.Group{{Roles: train.AllRoles(), Optimizer: sgd}}, nil, false},
		{"no energy model", baselines.MFVI{}, 0, []train.Group{{Roles: train.AllRoles(), Optimizer: sgd}}, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := regression()
			run.LogLikelihoodScale, run.PretrainEpochs, run.Epochs, run.Groups, run.PretrainGroups = 0, c.pretrain, 1, c.groups, c.pretrained
			err := run.Fit(context.Background(), mlp(t, c.layers, 3), linearSet(16, 0.1, 2))
			if refused := err != nil && strings.Contains(err.Error(), "LogLikelihoodScale is 0"); refused != c.refused || !refused && err != nil {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestFitErrors(t *testing.T) {
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	must.Err(t, regression().Fit(canceled, nil, linearSet(4, 0.1, 1)), "there is no model")
	good, all := linearSet(40, 0.3, 1), trials()
	floats, images := all[1].Trainer, all[0].Trainer
	pixels := func(change func(p *nets.Pixels, labels *[]int)) []train.Dataset {
		data := colours(trialN)
		p := data.Inputs.(nets.Pixels)
		change(&p, &data.Labels)
		data.Inputs = p
		return []train.Dataset{data}
	}
	set := func(data ...train.Dataset) []train.Dataset { return data }
	scoring := func(scores []float64, err error) func(*train.Trainer) {
		return func(r *train.Trainer) {
			r.PretrainEpochs, r.KeepBest.Score = 0, func(context.Context, *nets.Model) ([]float64, error) { return scores, err }
		}
	}
	for _, c := range []struct {
		name     string
		of       train.Trainer
		change   func(*train.Trainer)
		replicas int
		like     likelihood.Likelihood
		data     []train.Dataset
		ctx      context.Context
		want     string
	}{
		{name: "negative epochs between scores", of: floats, change: func(r *train.Trainer) { r.KeepBest.Every = -1 }, data: set(good), want: "KeepBest.Every -1"},
		{name: "batch size", of: floats, change: func(r *train.Trainer) { r.BatchSize = 0 }, data: set(good), want: "train.Settings: BatchSize is 0"},
		{name: "no roles", of: floats, change: func(r *train.Trainer) { r.PretrainEpochs, r.Groups = 0, []train.Group{{Optimizer: train.Adam{}}} }, data: set(good), want: "nothing is trained"},
		{name: "rate that is none", of: floats, change: func(r *train.Trainer) { r.PretrainEpochs, r.Schedule = 0, train.Constant{Start: math.NaN()} }, data: set(good), want: "the Schedule gives step 1 the learning rate NaN; it must be finite"},
		{name: "time of checkpoints", of: images, change: func(r *train.Trainer) { r.Checkpoints.Every = -1 }, data: set(good), want: "Every -1ns"},
		{name: "number of sets", of: floats, data: set(good, good), want: "2 training sets for a model with 0 replicas"},
		{name: "no inputs", of: floats, data: set(train.Dataset{}), want: "no Inputs"},
		{name: "NaN", of: floats, data: set(train.Dataset{Inputs: nets.Rows([]float64{1, 2, 3, math.NaN()}, 2), Targets: []float64{1, 2}}), want: "training set: input 1, feature 1 is NaN"},
		{name: "infinite target", of: floats, data: set(train.Dataset{Inputs: nets.Rows([]float64{1, 2}, 1), Targets: []float64{1, math.Inf(1)}}), want: "target of example 1 is +Inf"},
		{name: "no targets", of: floats, data: set(train.Dataset{Inputs: good.Inputs}), want: "neither Targets nor Labels"},
		{name: "targets of classes", of: floats, like: likelihood.Categorical{Classes: 2}, data: set(good), want: "needs Labels"},
		{name: "labels of a regression", of: floats, data: set(train.Dataset{Inputs: good.Inputs, Labels: make([]int, 40)}), want: "there are Labels where likelihood.Gaussian needs Targets"},
		{name: "a negative count", of: floats, like: likelihood.Poisson{}, data: set(train.Dataset{Inputs: nets.Rows([]float64{1, 2}, 1), Targets: []float64{1, -1}}), want: "the target of example 1: likelihood.Poisson is of counts"},
		{name: "two targets", of: floats, data: set(train.Dataset{Inputs: good.Inputs, Targets: make([]float64, 80)}), want: "want one target for each input"},
		{name: "label of a likelihood of your own", of: floats, like: ownClasses{likelihood.Categorical{Classes: 3}}, data: set(train.Dataset{Inputs: nets.Rows([]float64{1, 2}, 1), Labels: []int{1, -1}}), want: "example 1 has label -1; classes are numbered from 0"},
		{name: "label", of: images, like: likelihood.Categorical{Classes: 3}, data: pixels(func(_ *nets.Pixels, l *[]int) { (*l)[5] = 3 }), want: "has label 3"},
		{name: "unequal epochs", of: floats, replicas: 2, data: set(good, linearSet(80, 0.3, 1)), want: "replica 1: 80 examples, where replica 0 has 40"},
		{name: "unequal features", of: floats, replicas: 2, data: set(good, train.Dataset{Inputs: nets.Rows(make([]float64, 40), 1), Targets: make([]float64, 40)}), want: "replica 1: training set: an input is nets.Floats of shape [1], where others are nets.Floats of shape [2]"},
		{name: "images of replicas", of: images, replicas: 2, like: likelihood.Categorical{Classes: 3}, data: set(colours(8), colours(8)), want: "give nets.Rows(values, features)"},
		{name: "augmented points", of: images, data: set(good), want: "which is for images"},
		{name: "no permutation", of: floats, change: func(r *train.Trainer) { r.Order = ordering(func(_ uint64, _, n int) []int { return make([]int, n) }) }, data: set(good), want: "the order of epoch 0"},
		{name: "window", of: images, like: likelihood.Categorical{Classes: 3}, change: func(r *train.Trainer) { r.Padding = 1 }, data: set(colours(8)), want: "both must be from 0 to 2"},
		{name: "no energy model", of: floats, data: set(good), want: "no layer of the network has an energy model"},
		{name: "weighted energies without an energy model", of: floats, like: likelihood.Categorical{Classes: 2}, change: func(r *train.Trainer) { r.WeightEnergies, r.PretrainEpochs = true, 0 }, data: set(halves(trialN)), want: "in which no layer has one"},
		{name: "too few scores", of: floats, replicas: 2, change: scoring([]float64{1}, nil), data: all[4].data, want: "1 scores for a model with 2 replicas"},
		{name: "failing scores", of: floats, replicas: 2, change: scoring(nil, errors.New("no such examples")), data: all[4].data, want: "scoring the model after step 4: no such examples"},
		{name: "canceled", of: floats, data: set(good), ctx: canceled, want: "stopped after 0 of 15 steps"},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := c.of
			if c.change != nil {
				c.change(&run)
			}
			if c.like == nil {
				c.like = likelihood.Gaussian{}
			}
			if c.ctx == nil {
				c.ctx = context.Background()
			}
			seeds := make([]uint64, max(c.replicas, 1))
			var network nets.Network = nets.MLP{Layers: baselines.Deterministic{}}
			if _, is := c.data[0].Inputs.(nets.Pixels); is && c.replicas == 0 {
				network = nets.ResNet{Layers: baselines.Deterministic{}, Blocks: []int{1}, Widths: []int{2}, Stem: 2}
			}
			err := run.Fit(c.ctx, newModel(t, network, c.like, dtypes.Float32, seeds...), c.data...)
			must.Err(t, err, c.want)
			if c.ctx.Err() != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("error %v does not wrap context.Canceled", err)
			}
		})
	}
}

// Settings that cannot be are said all at once, by the names of their fields.
func TestCheckSettings(t *testing.T) {
	wrong := train.Settings{Epochs: -1, PretrainEpochs: math.MaxInt, LogLikelihoodScale: -1, ClipNorm: math.NaN(), WeightEnergies: true, Padding: -1, Schedule: train.Cosine{},
		Groups: []train.Group{{Rate: -1}, {Optimizer: train.Adam{Beta2: 2}}}, PretrainGroups: []train.Group{{Optimizer: train.SGD{Momentum: 1}}}}
	err := wrong.Check(likelihood.Gaussian{})
	must.Err(t, err, "Epochs is -1", "PretrainEpochs is 92", "BatchSize is 0", "starts at 0", "Groups[0]: its Rate is -1", "Groups[1]: train.Adam has Beta2 2",
		"PretrainGroups[0]: train.SGD has Momentum 1", "LogLikelihoodScale is -1", "ClipNorm is NaN", "WeightEnergies weighs", "Padding is -1")
	wrong = train.Settings{BatchSize: 1, Padding: 1}
	must.Err(t, wrong.Check(nil), "Groups is empty", "Schedule is nil", "there is no Augmentation")
	must.Err(t, (train.Steps{Start: 1, At: []float64{60}}).Check(), "At has 60")
}

// A model of a type that parameters cannot have is neither trained nor asked, and nothing is made of it.
func TestModelsOfOtherTypes(t *testing.T) {
	for _, dtype := range []dtypes.DType{dtypes.Float16, dtypes.BFloat16, dtypes.Int32, dtypes.Complex64, dtypes.InvalidDType} {
		t.Run(fmt.Sprint(dtype), func(t *testing.T) {
			c := trials()[1]
			m := c.model(t, dtype)
			want := fmt.Sprintf("nets.Model.DType: the type is %s; it must be Float32 or Float64", dtype)
			if err := c.Fit(t.Context(), m, c.data...); err == nil || err.Error() != want {
				t.Errorf("Fit: error %v, want %q", err, want)
			}
			if _, err := predict.Sample(t.Context(), m, c.data[0].Inputs, predict.Options{}); err == nil || err.Error() != want {
				t.Errorf("predict.Sample: error %v, want %q", err, want)
			}
			if n := m.Store.NumVariables(); n > 1 { // the random state
				t.Errorf("the store has %d variables", n)
			}
		})
	}
}
