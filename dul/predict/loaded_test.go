package predict_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/checkpoint"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/must"
)

// exported trains a model for one epoch, and returns what Export writes of it.
func exported(t *testing.T, m *nets.Model, data train.Dataset) map[string]*tensors.Tensor {
	t.Helper()
	fit := train.Trainer{Settings: train.Settings{Epochs: 1, BatchSize: 4, LogLikelihoodScale: 1, Groups: []train.Group{{Roles: train.AllRoles(), Optimizer: train.SGD{}}}, Schedule: train.Constant{Start: 1e-3}}}
	must.Do(t, fit.Fit(context.Background(), m, data))
	path := filepath.Join(t.TempDir(), "model.safetensors")
	must.Do(t, checkpoint.Export(m.Store, path, nil))
	named, _ := must.Get2(checkpoint.ReadTensors(path))(t)
	return named
}

// A trained model of any family is the same when a fresh one reads its file.
func TestLoadedModelsPredict(t *testing.T) {
	images := train.Dataset{Inputs: photos(4), Labels: []int{0, 1, 2, 1}}
	rows := train.Dataset{Inputs: nets.Rows([]float64{1, -1, 0.5, 2, 0, 3}, 2), Targets: []float64{1, 0, -1}}
	type entry struct {
		name  string
		fresh func() *nets.Model
		data  train.Dataset
	}
	var all []entry
	for _, f := range append(convFamilies, []struct {
		name   string
		layers nets.ConvLayers
	}{
		{"Density, mean energy", dul.Density{MeanEnergy: true}}, {"Density, diagonal", dul.Density{Energy: energy.Diagonal{}}},
		{"spectral norm", baselines.SpectralNormed{}},
	}...) {
		all = append(all, entry{f.name, func() *nets.Model {
			return newModel(t, nets.MLP{Layers: f.layers, Widths: []int{3}}, likelihood.Gaussian{}, 1)
		}, rows})
	}
	// Those with running statistics of their own, of images too, where all have those of batch normalisation.
	for name, layers := range map[string]nets.ConvLayers{"Density, mean energy": dul.Density{MeanEnergy: true}, "spectral norm": baselines.SpectralNormed{}} {
		all = append(all, entry{name + ", images", func() *nets.Model {
			return newModel(t, nets.ResNet{Layers: layers, Blocks: []int{1}, Widths: []int{2}, Stem: 2}, likelihood.Categorical{Classes: classes}, 1)
		}, images})
	}
	// Gaussian processes, whose covariance SNGP finds after the training.
	start := []baselines.Inducing{{Points: []float64{0.3, -1, 2, 0.5}, LengthScale: 1.5}} // of two features
	for name, layers := range map[string]nets.ConvLayers{"SNGP": baselines.SNGP{RandomFeatures: 5}, "DUE": baselines.DUE{Start: start}, "DUE, k-means": baselines.DUE{Inducing: 2}} {
		all = append(all, entry{name, func() *nets.Model {
			return newModel(t, must.Get(nets.MLP{Widths: []int{2}}.Over(layers))(t), likelihood.Gaussian{}, 1)
		}, rows}, entry{name + ", images", func() *nets.Model {
			return newModel(t, nets.ResNet{Layers: layers, Blocks: []int{1}, Widths: []int{2}, Stem: 2}, likelihood.Categorical{Classes: classes}, 1)
		}, images})
	}
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			if !slices.Contains([]string{"Density, mean energy, images", "SNGP", "DUE"}, c.name) {
				fixtures.SkipShortOffGo(t)
			}
			trained, fresh := c.fresh(), c.fresh()
			named := exported(t, trained, c.data)
			other := c.fresh()
			must.Do(t, checkpoint.SetTensors(other.Store, named))
			exported(t, other, c.data) // this training leaves the tensors as they are
			must.Do(t, checkpoint.SetTensors(fresh.Store, named))
			trained.Host, fresh.Host = nil, nil // their noise has moved on
			must.Do(t, trained.Store.SetRNGStateFromSeed(2))
			must.Do(t, fresh.Store.SetRNGStateFromSeed(2))
			options := predict.Options{Samples: 2}
			want, got := sample(t, trained, c.data.Inputs, options), sample(t, fresh, c.data.Inputs, options)
			if !slices.Equal(got.Probabilities, want.Probabilities) || !slices.EqualFunc(got.Mean, want.Mean, slices.Equal) || !slices.EqualFunc(got.NoiseStd, want.NoiseStd, slices.Equal) {
				t.Errorf("the loaded model predicts %v and %v, the trained one %v and %v", got.Probabilities, got.Mean, want.Probabilities, want.Mean)
			}
			// A graph that is kept sees what a file changes.
			other.Host = nil
			predictor := must.Get(predict.NewPredictor(other, options))(t)
			before := must.Get(predictor.Predict(context.Background(), c.data.Inputs))(t)
			must.Do(t, checkpoint.SetTensors(other.Store, named))
			must.Do(t, other.Store.SetRNGStateFromSeed(2))
			again := must.Get(predictor.Predict(context.Background(), c.data.Inputs))(t)
			if !slices.Equal(again.Probabilities, want.Probabilities) || !slices.EqualFunc(again.Mean, want.Mean, slices.Equal) ||
				fmt.Sprint(again.Probabilities, again.Mean) == fmt.Sprint(before.Probabilities, before.Mean) {
				t.Errorf("the graph of before predicts %v and %v, the trained model %v and %v", again.Probabilities, again.Mean, want.Probabilities, want.Mean)
			}
			must.Do(t, predictor.Close())
		})
	}
}

// A fresh model that was given the file of another says which variable differs, at
// its first use and at all further ones.
func TestLoadedFilesOfOtherModels(t *testing.T) {
	data := train.Dataset{Inputs: nets.Rows([]float64{1, -1, 0.5}, 1), Targets: []float64{1, 0, -1}}
	of := func(layers nets.Layers, l likelihood.Likelihood, widths ...int) *nets.Model {
		return newModel(t, nets.MLP{Layers: layers, Widths: widths}, l, 1)
	}
	named := exported(t, of(dul.Density{}, likelihood.Gaussian{}, 20), data)
	for want, m := range map[string]*nets.Model{
		"the model has variable /model/network/hidden_0/weights_mean, the file": of(baselines.MFVI{}, likelihood.Gaussian{}, 20),
		"/model/network/hidden_0/weights is (Float64)[1, 20] in the model":      of(dul.Density{}, likelihood.Gaussian{}, 30),
		"the file that the model was loaded from has variable /model/network/":  of(baselines.Deterministic{}, likelihood.Gaussian{}, 20),
	} {
		t.Run(want, func(t *testing.T) {
			must.Do(t, checkpoint.SetTensors(m.Store, named))
			for range 2 {
				_, err := predict.Sample(context.Background(), m, data.Inputs, predict.Options{})
				if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "graphFn") {
					t.Errorf("predicting: the error is %v, want one with %q", err, want)
				}
			}
			fit := train.Trainer{Settings: train.Settings{Epochs: 1, BatchSize: 4, Groups: []train.Group{{Roles: []params.Role{params.Weight}, Optimizer: train.SGD{}}}, Schedule: train.Constant{Start: 1e-3}}}
			if err := fit.Fit(context.Background(), m, data); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "graphFn") {
				t.Errorf("training: the error is %v, want one with %q", err, want)
			}
			other := map[string]*tensors.Tensor{"model/network/other": named["model/network/output/bias"]}
			must.Err(t, checkpoint.SetTensors(m.Store, other), "the file has not")
		})
	}
}

// served is a small network with density layers.
func served(t testing.TB) *nets.Model {
	return must.Get(nets.New(fixtures.Backend(t), nets.MLP{Layers: dul.Density{InitStd: 0.1}, Widths: []int{50}}, likelihood.Gaussian{}, 1))(t)
}

// Eight goroutines ask one model, by one predictor, by predictors of their own and by Sample, for batches of several sizes. Every
// answer is the same as without goroutines.
func TestGoroutines(t *testing.T) {
	m, o := served(t), predict.Options{Samples: 5, Seed: new(uint64)}
	shared := must.Get(predict.NewPredictor(m, o))(t)
	var inputs []nets.Inputs
	var want []*predict.Prediction
	for n := range 34 { // more sizes than GoMLX keeps programs of
		x := nets.Rows(make([]float64, 2*(n+1)), 2)
		for i := range x.Values {
			x.Values[i] = float64(i*(n+1)) / 100
		}
		inputs, want = append(inputs, x), append(want, must.Get(predict.Sample(t.Context(), m, x, o))(t))
	}
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			own := must.Get(predict.NewPredictor(m, o))(t)
			for i := range 40 {
				k := (i*7 + worker) % len(inputs)
				var got *predict.Prediction
				switch (i + worker) % 3 {
				case 0:
					got = must.Get(shared.Predict(t.Context(), inputs[k]))(t)
				case 1:
					got = must.Get(own.Predict(t.Context(), inputs[k]))(t)
				default:
					got = must.Get(predict.Sample(t.Context(), m, inputs[k], o))(t)
				}
				if !slices.EqualFunc(got.Mean, want[k].Mean, slices.Equal) {
					t.Errorf("worker %d got other draws of inputs %d", worker, k)
				}
			}
			must.Do(t, own.Close())
		})
	}
	all.Wait()
	must.Do(t, shared.Close())
	for v := range m.Store.IterVariables() {
		if v.Scope() == "/noise" {
			t.Errorf("%s is left", v.Path())
		}
	}
}

// A predictor continues the model's stream of noise, sees parameters that have changed, and works after an error.
func TestPredictor(t *testing.T) {
	m, x := served(t), nets.Rows([]float64{1, 2}, 2)
	for _, wrong := range []predict.Options{{Samples: -1}, {Coherent: true}} {
		t.Run(fmt.Sprintf("%+v", wrong), func(t *testing.T) { must.GetErr(predict.NewPredictor(m, wrong))(t) })
	}
	p := must.Get(predict.NewPredictor(m, predict.Options{Samples: 3}))(t)
	first, second := must.Get(p.Predict(t.Context(), x))(t), must.Get(p.Predict(t.Context(), x))(t)
	if slices.Equal(first.Mean[0], second.Mean[0]) {
		t.Error("two predictions have the same draws")
	}
	other := served(t)
	must.Get(predict.Sample(t.Context(), other, x, predict.Options{Samples: 3}))(t)
	if again := must.Get(predict.Sample(t.Context(), other, x, predict.Options{Samples: 3}))(t); !slices.EqualFunc(again.Mean, second.Mean, slices.Equal) {
		t.Errorf("the second prediction is %v, and by Sample %v", second.Mean, again.Mean)
	}
	must.GetErr(p.Predict(t.Context(), nets.Rows([]float64{1, 2, 3}, 3)))(t) // a network for two features takes three
	bias := m.Store.GetVariable("/model/network/output/bias")
	must.Do(t, bias.SetValue(fixtures.Tensor(m.DType, fixtures.Array{Dims: []int{1, 1}, Values: []float64{1000}})))
	if moved := must.Get(p.Predict(t.Context(), x))(t); moved.Mean[0][0] < 900 {
		t.Errorf("with another bias the mean is %v", moved.Mean[0])
	}
	must.Do(t, p.Close())
}
