package predict_test

import (
	"slices"
	"sync"
	"testing"

	"densityuncertainty/dul"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/environment/must"
)

// served is a small network with density layers.
func served(t testing.TB) *nets.Model {
	return must.Get(nets.New(fixtures.Backend(t), nets.MLP{Layers: dul.Density{InitStd: 0.1}, Widths: []int{50}}, likelihood.Gaussian{}, 1))(t)
}

// Eight goroutines ask one model, by one predictor, by predictors of their own and by Sample, for batches of several sizes. Every
// answer is that of a single goroutine.
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

// A predictor goes on in the model's stream of noise, sees parameters that have changed, and goes on after an error.
func TestPredictor(t *testing.T) {
	m, x := served(t), nets.Rows([]float64{1, 2}, 2)
	for _, wrong := range []predict.Options{{Samples: -1}, {Coherent: true}} {
		if _, err := predict.NewPredictor(m, wrong); err == nil {
			t.Errorf("%+v has no error", wrong)
		}
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
	if _, err := p.Predict(t.Context(), nets.Rows([]float64{1, 2, 3}, 3)); err == nil {
		t.Error("a network for two features takes three")
	}
	bias := m.Store.GetVariable("/model/network/output/bias")
	must.Do(t, bias.SetValue(fixtures.Tensor(m.DType, fixtures.Array{Dims: []int{1, 1}, Values: []float64{1000}})))
	if moved := must.Get(p.Predict(t.Context(), x))(t); moved.Mean[0][0] < 900 {
		t.Errorf("with another bias the mean is %v", moved.Mean[0])
	}
	must.Do(t, p.Close())
}
