package trained_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/floats"

	"densityuncertainty/baselines"
	"densityuncertainty/datasets"
	"densityuncertainty/dul/checkpoint"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/trained"
)

// A network that was trained without an experiment answers in the units of the data, too. A file for all replicas is refused.
func TestSave(t *testing.T) {
	file, network, backend := filepath.Join(t.TempDir(), "mine.safetensors"), nets.MLP{Layers: baselines.Deterministic{}, Widths: []int{4}}, must.Get(gobackend.New(""))(t)
	s := trained.Scale{Shape: []int{1}, Inputs: &datasets.Scaler{Mean: []float64{5}, Std: []float64{2}}, Unit: 10, Zero: 3}
	var m *nets.Model
	var o *trained.Opened
	for dtype, near := range map[dtypes.DType]float64{dtypes.Float32: 1e-5, dtypes.Float64: 1e-12} {
		m = must.Get(nets.New(backend, network, likelihood.Gaussian{}, 1))(t)
		m.DType = dtype
		want := must.Get(predict.Sample(t.Context(), m, nets.Rows([]float64{-1, 0, 1}, 1), predict.Options{Samples: 1}))(t).Mean[0]
		must.Do(t, trained.Save(file, m, likelihood.Gaussian{}, s, nil))
		o = must.Get(trained.Open(file, network, likelihood.Gaussian{}))(t)
		for i, a := range must.Get(o.PredictAll(t.Context(), [][]float64{{3}, {5}, {7}}))(t) {
			must.Near(t, a.Mean, 10*want[i]+3, near, "the answer")
		}
	}
	must.GetErr(o.PredictAll(t.Context(), append(slices.Repeat([][]float64{{3}}, 4098), []float64{math.NaN()})))(t, "counted from input 4096: input 2, feature 0 is NaN")
	for want, wrong := range map[string]trained.Scale{
		"the Unit is -1": {Unit: -1}, "for another number of inputs": {Shape: []int{2}, Inputs: s.Inputs}, "must be positive": {Shape: []int{0}},
		"Columns for another number":                             {Shape: []int{1}, Columns: datasets.Columns{{Name: "wood", Categories: []string{"ash", "oak"}}}},
		"the deviations [0]":                                     {Shape: []int{1}, Inputs: &datasets.Scaler{Mean: []float64{0}, Std: []float64{0}}},
		"weights has the shape [1 4] in the model, and [2 4] in": {Shape: []int{2}},
	} {
		must.Err(t, trained.Save(file, m, likelihood.Gaussian{}, wrong, nil), want)
	}
	named, metadata, err := checkpoint.ReadTensors(file)
	must.Do(t, err)
	metadata["scale"] = strings.Replace(metadata["scale"], `"Std":[2]`, `"Std":[0]`, 1)
	var damaged bytes.Buffer
	must.Do(t, checkpoint.EncodeTensors(&damaged, named, metadata))
	must.Do(t, os.WriteFile(file, damaged.Bytes(), 0o600))
	must.GetErr(trained.Open(file, network, likelihood.Gaussian{}))(t, "the file is damaged: the Scaler of the inputs has the deviations [0]")
	must.Err(t, trained.Save(file, m, likelihood.KnownNoise{Std: 1}, s, nil), "is not the model's")
	two := must.Get(nets.NewReplicas(backend, network, likelihood.Gaussian{}, 1, 2))(t)
	must.Err(t, trained.Save(file, two, likelihood.Gaussian{}, s, nil), "2 replicas; save each of Model.Replica")
}

// A Gaussian process that an experiment kept answers by its moments.
func TestProcess(t *testing.T) {
	folder, architecture := t.TempDir(), nets.MLP{Widths: []int{4}}
	var x, y []float64
	for i := range 20 {
		x, y = append(x, float64(i)/10-1), append(y, float64(i%3))
	}
	d := experiment.Arrays{Train: train.Dataset{Inputs: nets.Rows(x, 1), Targets: y}}
	d.Sets = []experiment.Set{{Name: "test", Dataset: d.Train}}
	for _, layers := range []nets.Layers{baselines.SNGP{RandomFeatures: 8}, baselines.DUE{Inducing: 4}} {
		e := must.Get(experiment.Task{Name: "process", Data: d, Network: architecture, Likelihood: likelihood.Gaussian{}}.Experiments(experiment.Adam(2, 16, 1e-2), 1, experiment.Method{Name: "process", Layers: layers}))(t)[0]
		p := must.Get(must.Get(experiment.Engine{Networks: folder}.Run(t.Context(), e))(t)[0].Predictions())(t).Sets[0]
		o := must.Get(trained.Open(filepath.Join(folder, e.NetworkFile(0)), must.Get(architecture.Over(layers))(t), likelihood.Gaussian{}))(t)
		o = must.Get(o.With(10000, 1))(t)
		for i, a := range must.Get(o.PredictAll(t.Context(), [][]float64{{x[0]}, {x[10]}}))(t) {
			std := math.Hypot(p.Std[0][10*i], p.NoiseStd[0][0])
			must.Near(t, (a.Mean-p.Mean[0][10*i])/std, 0, 0.05, "%T, input %d: the mean", layers, i)
			must.Near(t, (a.High-a.Low)/(2*1.96*std), 1, 0.03, "%T, input %d: the width", layers, i)
		}
	}
}

// A network that was trained as one of several replicas answers, from its file alone, in the units of the data what it predicted
// in training.
func TestOpened(t *testing.T) {
	folder, set := t.TempDir(), &datasets.Regression{Name: "mine", N: 40, D: 2}
	for i := range set.N {
		a, b := float64(i%7)-3, float64(i%5)-2
		set.X, set.Y = append(set.X, a, b), append(set.Y, a+b*b/2+float64(i%3)/4)
	}
	task := experiment.Task{Name: "table", Data: experiment.Table{Set: set, Count: 3}, Network: nets.MLP{Widths: []int{4}}, Likelihood: likelihood.Gaussian{}}
	list := must.Get(task.Experiments(experiment.Adam(2, 16, 1e-2), 1, experiment.Method{Name: "plain", Layers: baselines.Deterministic{}, Members: 2}))(t)
	found := must.Get(experiment.Engine{Networks: folder}.Run(t.Context(), list...))(t)
	if found[1].Batched != 3 {
		t.Fatalf("%d experiments were trained together", found[1].Batched)
	}
	e, d, said := list[1], must.Get(task.Data.Load(t.Context(), 1))(t), must.Get(must.Get(found[1].Predictions())(t).Set("test"))(t)
	network := nets.MLP{Layers: baselines.Deterministic{}, Widths: []int{4}}
	for member := range 2 {
		file := filepath.Join(folder, e.NetworkFile(member))
		o := must.Get(trained.Open(file, network, likelihood.Gaussian{}))(t)
		for i, row := range datasets.RandomSplits(set.N, 2)[1].Test {
			a := must.Get(o.Predict(t.Context(), set.X[2*row:][:2]))(t)
			mean := said.Mean[member][i]*d.Unit + d.Zero
			reach := 1.959963985 * said.NoiseStd[member][i] * d.Unit
			for k, want := range []float64{mean, mean - reach, mean + reach} {
				must.Near(t, []float64{a.Mean, a.Low, a.High}[k], want, 1e-5, "member %d, row %d: number %d of the answer", member, row, k)
			}
		}
		must.GetErr(o.Predict(t.Context(), []float64{1}))(t, "the input has 1 numbers; the network takes 2")
		must.GetErr(trained.Open(file, nets.MLP{Layers: baselines.Deterministic{}, Widths: []int{5}}, likelihood.Gaussian{}))(t, "variable /model/network/hidden_0/")
	}
	kept := filepath.Join(folder, e.NetworkFile(0))
	tanh := nets.Func{Build: func(l nets.Layers, s *model.Scope, x *graph.Node, outputs int) *graph.Node {
		return l.Dense(s.In("output"), graph.Tanh(l.Dense(s.In("hidden_0"), x, 4)), outputs)
	}}
	for _, other := range []nets.Network{must.Get(tanh.Over(baselines.Deterministic{}))(t), nets.MLP{Layers: baselines.MCDropout{Rate: 0.1}, Widths: []int{4}}} {
		t.Run(fmt.Sprintf("%T", other), func(t *testing.T) {
			must.GetErr(trained.Open(kept, other, likelihood.Gaussian{}))(t, "the network computes something else")
		})
	}
	must.GetErr(trained.Open(kept, network, likelihood.KnownNoise{Std: 1}))(t, "it was trained with the likelihood")
	other := filepath.Join(folder, "other")
	must.Do(t, os.WriteFile(other, []byte("x"), 0o600))
	must.GetErr(trained.Open(other, network, likelihood.Gaussian{}))(t, "opening the network "+other)
}

// Other programs are given what PredictAll answers; what is neither a mean and a variance nor probabilities is refused.
func TestExec(t *testing.T) {
	x, rows, network := nets.Rows([]float64{-1, 0, 1, 2}, 1), [][]float64{{0.5}, {3}}, nets.MLP{Layers: baselines.Deterministic{}, Widths: []int{4}}
	backend := must.Get(gobackend.New(""))(t)
	for _, c := range []struct {
		l likelihood.Likelihood
		d train.Dataset
	}{
		{likelihood.KnownNoise{Std: 2}, train.Dataset{Inputs: x, Targets: []float64{1, 2, 3, 5}}},
		{likelihood.StudentT{Nu: 4}, train.Dataset{Inputs: x, Targets: []float64{1, 2, 3, 5}}},
		{likelihood.Categorical{Classes: 3}, train.Dataset{Inputs: x, Labels: []int{0, 1, 2, 2}}},
	} {
		task := experiment.Task{Name: "own", Data: experiment.Arrays{Train: c.d, Sets: []experiment.Set{{Name: "test", Dataset: c.d}}}, Network: nets.MLP{Widths: network.Widths}, Likelihood: c.l}
		list := must.Get(task.Experiments(experiment.Adam(20, 4, 0.1), 1, experiment.Method{Name: "plain", Layers: network.Layers}))(t)
		folder := t.TempDir()
		must.Get(experiment.Engine{Networks: folder}.Run(t.Context(), list...))(t)
		o := must.Get(trained.Open(filepath.Join(folder, list[0].NetworkFile(0)), network, c.l))(t)
		program, _, err := o.Exec(backend)
		if _, refused := c.l.(likelihood.StudentT); refused {
			must.Err(t, err, "neither a mean and a variance nor probabilities")
			continue
		}
		must.Do(t, err)
		var got []float64
		for _, output := range must.Get(program.Exec(rows))(t) {
			got = append(got, tensors.MustCopyFlatData[float64](output)...)
		}
		answers := must.Get(o.PredictAll(t.Context(), rows))(t)
		want := append(answers[0].Probabilities, answers[1].Probabilities...)
		if len(want) == 0 {
			want = []float64{answers[0].Mean, answers[1].Mean, 4, 4}
		}
		if !floats.EqualApprox(got, want, 1e-5) {
			t.Errorf("%T: got %v, want %v", c.l, got, want)
		}
	}
}
