package experiment_test

import (
	"context"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/floats/scalar"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/checkpoint"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
)

// constant is a metric that is always the same.
func constant(name string, value float64) experiment.Metric {
	return func(*experiment.Predictions) (map[string]float64, error) { return map[string]float64{name: value}, nil }
}

// with is an experiment with more metrics.
func with(e experiment.Experiment, more ...experiment.Metric) experiment.Experiment {
	e.Task.Metrics = slices.Concat(e.Task.Metrics, more)
	return e
}

// A metric or number of AfterTraining that is not finite is kept as it is, and Metric refuses it. The run counts.
func TestMetricThatIsNotFinite(t *testing.T) {
	folder, e := t.TempDir(), with(small(baselines.Deterministic{}), constant("skill", math.NaN()))
	e.Task.AfterTraining = func(context.Context, []*nets.Model, experiment.Data) (map[string]float64, map[string]map[string][]float64, error) {
		return map[string]float64{"norm": math.Inf(1)}, nil, nil
	}
	stored(t, folder, e)
	list := append(stored(t, folder, e), must.Get((&experiment.Store{Folder: folder}).Results())(t)[e.ID()])
	for _, r := range list {
		if _, err := r.Metric("skill"); !errors.Is(err, experiment.ErrNotFinite) || r.Diverged || len(r.NotFinite()) != 2 || r.Metrics["rmse"] == 0 {
			t.Errorf("diverged %t, metrics %v, error %v", r.Diverged, r.Metrics, err)
		}
	}
}

// A metric that changes numbers would spoil those that come after it, and the store.
func TestMetricThatChangesPredictions(t *testing.T) {
	e := adapted(t, dul.Density{})
	set, left := "test", 0
	e.Task.AfterTraining = func(_ context.Context, _ []*nets.Model, d experiment.Data) (map[string]float64, map[string]map[string][]float64, error) {
		return nil, map[string]map[string][]float64{set: {"mine": slices.Clone(d.Sets[0].Targets[left:])}}, nil
	}
	refused := func(e experiment.Experiment, change func(p *experiment.Predictions)) {
		e = with(e, func(p *experiment.Predictions) (map[string]float64, error) {
			change(p)
			return nil, nil
		})
		late := e
		late.Seed = 8
		r, err := experiment.Run(t.Context(), e, late)
		if must.Err(t, err, "a metric changed the predictions"); len(r) != 0 {
			t.Errorf("%d results", len(r))
		}
	}
	for _, change := range []func(p *experiment.Predictions){
		func(p *experiment.Predictions) { slices.Sort(p.Sets[0].Mean[0]) }, func(p *experiment.Predictions) { slices.Sort(p.Sets[0].Energies[1].Mean) },
		func(p *experiment.Predictions) { slices.Sort(p.Sets[0].PerExample["mine"]) },
		func(p *experiment.Predictions) { p.Metrics["rmse"] = 0 }, func(p *experiment.Predictions) { p.Unit *= 2 },
	} {
		refused(e, change)
	}
	left = 1
	must.GetErr(experiment.Run(t.Context(), e))(t, `Task.AfterTraining: 3 numbers "mine" for the set "test"`)
	set, left = "other", 0
	must.GetErr(experiment.Run(t.Context(), e))(t, `Task.AfterTraining: 4 numbers "mine" for the set "other"`)
	e.Task.AfterTraining = nil
	refused(e, func(p *experiment.Predictions) { slices.Sort(p.Sets[0].Targets) }) // which replicas share
}

// A stored result gets the metrics that it lacks from its predictions.
func TestStoredResultIsMeasured(t *testing.T) {
	folder, e, ctx := t.TempDir(), small(baselines.Deterministic{}), context.Background()
	stored(t, folder, e)
	late := e
	late.Seed = 8
	other := untrained(t, folder)
	other.Notes = func(string) { stored(t, folder, late) } // as another process may, before this one trains
	if r := must.Get(other.Run(ctx, with(late, constant("mine", 7))))(t)[0]; r.Metrics["mine"] != 7 {
		t.Errorf("the metrics of a result that was stored meanwhile are %v", r.Metrics)
	}
	inspected := e
	inspected.Task.AfterTraining = nothingAfter
	stored(t, folder, inspected) // says nothing about the networks, but was asked
	must.Get(untrained(t, folder).Run(ctx, inspected))(t)

	var notes []string
	must.Do(t, os.RemoveAll(filepath.Join(folder, "predictions")))
	engine := untrained(t, folder)
	engine.Notes = func(text string) { notes = append(notes, text) }
	must.Get(engine.Run(ctx, with(e, constant("mine", 7))))(t)
	if len(notes) != 2 || !strings.Contains(notes[0], "1 of 1 results are from the store, of ") || !strings.Contains(notes[1], "1 stored results are without predictions") {
		t.Errorf("the notes are %q", notes)
	}
}

// An experiment that is listed twice has one result, and its metrics must be the same. A metric that fits nothing is refused before training.
func TestListedTwice(t *testing.T) {
	e, ctx := small(baselines.Deterministic{}), context.Background()
	if r := must.Get(experiment.Run(ctx, e, e))(t); len(r) != 1 || r[0].Metrics["rmse"] == 0 {
		t.Errorf("the results are %+v", r)
	}
	named := e
	named.Method.Name = "another"
	must.GetErr(experiment.Run(ctx, e, named))(t, "it is the same experiment as that of the method")
	must.GetErr(experiment.Run(ctx, e, with(e, constant("mine", 7))))(t, "listed twice, with other Task.Metrics")
	for want, metric := range map[string]experiment.Metric{
		`the metric fits none of the 1 sets ["test"]`: experiment.SetMetric(func(*experiment.Prediction) bool { return false }, nil),
		`two metrics have the name "`:                 experiment.Regression,
	} {
		must.GetErr(experiment.Run(ctx, with(e, metric)))(t, want)
	}
	late := with(e, experiment.Classification)
	late.Seed = 8
	r, err := experiment.Run(ctx, e, late)
	if must.Err(t, err, "that Task.Metrics[1] measures"); len(r) != 0 {
		t.Errorf("%d results", len(r))
	}
}

// nothingAfter is an AfterTraining that returns nothing.
func nothingAfter(context.Context, []*nets.Model, experiment.Data) (map[string]float64, map[string]map[string][]float64, error) {
	return nil, nil, nil
}

// Metrics by hand. Predicted deviations are ranked with the noise if it differs between inputs, and else without it,
// however small they are; the deviation of the noise is the root of the mean variance.
func TestMetrics(t *testing.T) {
	mixture := func(mean, noise []float64) predict.Prediction {
		m := predict.Mixture{Mean: [][]float64{make([]float64, len(mean)), mean}, NoiseStd: [][]float64{noise, noise}}
		return predict.Prediction{Mixture: m, Width: 1}
	}
	for _, c := range []struct {
		name       string
		likelihood likelihood.Likelihood
		metric     experiment.Metric
		set        experiment.Prediction
		want       map[string]float64
	}{
		{"noise that varies", likelihood.Heteroscedastic{}, experiment.Regression,
			experiment.Prediction{Targets: []float64{0.6, 1.5, 3}, Prediction: mixture([]float64{1, 1, 1}, []float64{1, 2, 3})},
			map[string]float64{"spearman": 1, "noise_std": 2 * math.Sqrt(14./3)}},
		{"large noise", likelihood.Gaussian{}, experiment.Regression,
			experiment.Prediction{Targets: []float64{1, 2, 3}, Prediction: mixture([]float64{1e-9, 2e-9, 3e-9}, []float64{1, 1, 1})},
			map[string]float64{"spearman": 1, "noise_std": 2}},
		{"quantiles", likelihood.Quantiles{Levels: []float64{0.25, 0.75}}, experiment.Regression,
			experiment.Prediction{Targets: []float64{1, 8}, Prediction: predict.Prediction{Outputs: [][]float64{{0, 2, 6, 4}}, Width: 2}},
			map[string]float64{"pinball": 2 * (0.25 + 0.25 + 1 + 1.5) / 2, "coverage": 0.5, "crossed": 0.5}},
		{"classes", likelihood.Categorical{Classes: 2}, experiment.Classification,
			experiment.Prediction{Labels: []int{1, 0}, Prediction: predict.Prediction{Probabilities: []float64{0.25, 0.75, 0.5, 0.5}, Width: 2}},
			map[string]float64{"nll": -math.Log(0.75*0.5) / 2}},
	} {
		e := small(baselines.Deterministic{})
		e.Task.Likelihood, c.set.Set = c.likelihood, "test"
		got := must.Get(e.Measure(&experiment.Predictions{Sets: []experiment.Prediction{c.set}, Unit: 2}, c.metric))(t)
		for name, want := range c.want {
			if v, has := got[name]; !has || !scalar.EqualWithinAbs(v, want, 1e-12) {
				t.Errorf("%s: %s is %v, want %v", c.name, name, v, want)
			}
		}
	}
}

// Layers of this project stand in a network of your own on sequences, and give energies by the names of its scopes. The file of
// the network names its experiment. Networks that cannot be kept are refused before training.
func TestNetworksAreKept(t *testing.T) {
	ctx, folder := context.Background(), t.TempDir()
	e := transformer(t, dul.Density{})
	engine := experiment.Engine{Networks: folder}
	r := must.Get(engine.Run(ctx, e))(t)[0]
	_, metadata := must.Get2(checkpoint.ReadTensors(filepath.Join(folder, e.NetworkFile(0))))(t)
	if metadata["version"] != r.Version || metadata["experiment"] != e.ID() {
		t.Errorf("the metadata are %q", metadata)
	}
	for _, name := range []string{"accuracy", "nll", "brier", "ece10", "shifted_accuracy", "shifted_nll"} {
		if _, has := r.Metrics[name]; !has {
			t.Errorf("there is no metric %q among %v", name, r.Metrics)
		}
	}
	var layers []string
	for _, layer := range setOf(t, r, "shifted").Energies {
		if layers = append(layers, layer.Layer); len(layer.Mean) != 6 {
			t.Errorf("layer %s has %d energies", layer.Layer, len(layer.Mean))
		}
	}
	if !slices.Equal(layers, []string{"query", "key", "value", "output"}) {
		t.Errorf("energies of %v", layers)
	}
}

// Kept networks predict more draws, in other batches, and another set, without training, as networks do that are trained for it.
func TestPredictedAgain(t *testing.T) {
	folder, e := t.TempDir(), adapted(t, baselines.MFVI{})
	set := smallTable("mine")
	data := func(more bool) experiment.Source {
		d := must.Get(experiment.Table{Set: set}.Load(t.Context(), 0))(t)
		if more {
			d.Sets = append(d.Sets, experiment.Set{Name: "other", Dataset: d.Train})
		}
		return experiment.Arrays(d)
	}
	e.Task.Data, e.Method.Members = data(false), 2
	must.Get(experiment.Engine{Networks: folder}.Run(t.Context(), e))(t)
	notes := ""
	engine := experiment.Engine{Networks: folder, Notes: func(text string) { notes += text }, Progress: func(_ float64, note string) {
		if strings.Contains(note, "epoch") {
			t.Errorf("it is trained: %s", note)
		}
	}}
	for _, change := range []func(e *experiment.Experiment){
		func(e *experiment.Experiment) { e.Recipe.Samples = 20 }, func(e *experiment.Experiment) { e.Recipe.PredictBatch = 3 },
		func(e *experiment.Experiment) { e.Task.Data = data(true) },
	} {
		changed := e
		change(&changed)
		again, anew := must.Get(engine.Run(t.Context(), changed))(t)[0], must.Get(experiment.Run(t.Context(), changed))(t)[0]
		for name, v := range anew.Metrics {
			must.Near(t, again.Metrics[name], v, 1e-5*math.Abs(v), "%s, beside networks trained anew", name)
		}
		if again.ID == e.ID() {
			t.Error("a change of the prediction keeps the experiment's identity")
		}
	}
	if n := strings.Count(notes, "predicted by networks that were trained before"); n != 3 {
		t.Errorf("%d notes: %s", n, notes)
	}
	for _, change := range []func(e *experiment.Experiment){
		func(e *experiment.Experiment) { e.Recipe.Epochs++ }, func(e *experiment.Experiment) { e.Seed++ }, func(e *experiment.Experiment) { e.Task.Data = experiment.Table{Set: set, HeldOut: 0.2} },
		func(e *experiment.Experiment) { e.Recipe.SharedNoise = true }, func(e *experiment.Experiment) { e.Method.Members = 3 },
	} {
		changed, trained := e, false
		change(&changed)
		engine.Progress = func(_ float64, note string) { trained = trained || strings.Contains(note, "epoch") }
		if must.Get(engine.Run(t.Context(), changed))(t); !trained {
			t.Errorf("%+v was not trained", changed.Recipe)
		}
	}
}

// Half precision is refused before training where it has no use.
func TestHalfPrecisionOnTheGoBackend(t *testing.T) {
	t.Setenv(environment.ConfigVariable, environment.GoSequential)
	e := small(baselines.Deterministic{})
	e.Recipe.BFloat16 = true
	engine := experiment.Engine{Progress: func(_ float64, note string) { t.Errorf("it is trained: %s", note) }}
	must.GetErr(engine.Run(context.Background(), e))(t, "Recipe.BFloat16 is set")
}

// denseOnly has an energy model in its dense layers alone, and counts them.
type denseOnly struct{ baselines.Deterministic }

var denseLayers int

// Dense implements nets.Layers.
func (p denseOnly) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	denseLayers++
	return dul.Density{}.Dense(s, x, units)
}

// A family with energies in some of its layers is trained and predicted. A second set of images takes the graph of the first.
func TestEnergiesOfSomeLayers(t *testing.T) {
	pixels := func(n int) train.Dataset {
		d := train.Dataset{Inputs: nets.Pixels{Bytes: make([]byte, n*3*8*8), Height: 8, Width: 8, Standardization: nets.Standardization{Mean: []float64{0.5, 0.5, 0.5}, Std: []float64{1, 1, 1}}}}
		for i := range n {
			d.Labels = append(d.Labels, i%2)
		}
		return d
	}
	e := adapted(t, denseOnly{})
	e.Task = experiment.Task{
		Name: "images", Data: experiment.Arrays{Train: pixels(8), Sets: []experiment.Set{{Name: "test", Dataset: pixels(4)}}},
		Network: nets.ResNet14(nil), Likelihood: likelihood.Categorical{Classes: 2}, Metrics: []experiment.Metric{experiment.Classification},
	}
	e.Recipe.BatchSize = 4
	r := must.Get(experiment.Run(context.Background(), e))(t)[0]
	var built []int
	for _, more := range [][]experiment.Set{{{Name: "b", Dataset: pixels(4)}}, {{Name: "c", Dataset: pixels(4)}, {Name: "d", Dataset: pixels(4)}}} {
		before, other := denseLayers, e
		other.Task.Data = experiment.Arrays{Train: pixels(8), Sets: append([]experiment.Set{{Name: "test", Dataset: pixels(4)}}, more...)}
		must.Get(experiment.Run(context.Background(), other))(t)
		built = append(built, denseLayers-before)
	}
	if built[0] != built[1] {
		t.Errorf("%d dense layers were built for two sets, and %d for three", built[0], built[1])
	}
	if set := setOf(t, r, "test"); len(set.Energies) != 1 || len(set.Energies[0].Mean) != 4 || set.LastConvolution != -1 {
		t.Errorf("energies of %d layers, the last convolution is %d", len(set.Energies), set.LastConvolution)
	}
}

// The error of a metric that panics names the line, and has no stack.
func TestMetricThatPanics(t *testing.T) {
	_, err := experiment.Run(t.Context(), with(small(baselines.Deterministic{}), func(p *experiment.Predictions) (map[string]float64, error) {
		return map[string]float64{"last": p.Sets[1].Targets[0]}, nil
	}))
	if err == nil || !strings.Contains(err.Error(), "index out of range [1] with length 1, at ") || !strings.Contains(err.Error(), "measure_test.go:") || strings.Contains(err.Error(), "\n") {
		t.Errorf("the error is %v", err)
	}
	task := small(nil).Task
	task.Likelihood = nil
	must.GetErr(task.Experiments(experiment.Adam(1, 1, 1), 1, experiment.Method{Layers: baselines.Deterministic{}}))(t, "Task.Likelihood is nil")
}

// Two test examples by hand. The draws have the means 1 and 3, and 2 and 2, the noise variances 1 and 4, and the targets
// are 2 and 5, all in units of 10 about 100. In the target's own units the components are N(110, 10^2) and N(130, 20^2)
// for 120, and N(120, 10^2) and N(120, 20^2) for 150.
func TestRegression(t *testing.T) {
	s := experiment.Prediction{Set: "test", Targets: []float64{2, 5}}
	s.Mixture = predict.Mixture{Mean: [][]float64{{1, 2}, {3, 2}}, NoiseStd: [][]float64{{1, 1}, {2, 2}}}
	got := must.Get(experiment.Regression(&experiment.Predictions{Sets: []experiment.Prediction{s}, Unit: 10, Zero: 100}))(t)
	normal := func(y, mean, sd float64) float64 {
		return math.Exp(-(y-mean)*(y-mean)/(2*sd*sd)) / (sd * math.Sqrt(2*math.Pi))
	}
	first := (normal(120, 110, 10) + normal(120, 130, 20)) / 2
	second := (normal(150, 120, 10) + normal(150, 120, 20)) / 2
	// With A(m, s) = E|z| of z ~ N(m, s^2), the score of an equal mixture of two Gaussians for y is
	// (A(y-m1, s1) + A(y-m2, s2))/2 - (A(0, s1 root 2) + A(0, s2 root 2) + 2 A(m1-m2, root of s1^2+s2^2))/8.
	distance := func(m, s float64) float64 { return m*math.Erf(m/s/math.Sqrt2) + 2*s*s*normal(m, 0, s) }
	crps := func(y, m1, s1, m2, s2 float64) float64 {
		return (distance(y-m1, s1)+distance(y-m2, s2))/2 -
			(distance(0, s1*math.Sqrt2)+distance(0, s2*math.Sqrt2)+2*distance(m1-m2, math.Hypot(s1, s2)))/8
	}
	want := map[string]float64{
		experiment.MetricCRPS:      (crps(120, 110, 10, 130, 20) + crps(150, 120, 10, 120, 20)) / 2,
		experiment.MetricCoverage:  1,                           // the targets are at 0.575 and 0.966 of their distributions
		experiment.MetricSpearman:  -1,                          // the mean is uncertain where it is right
		experiment.MetricRMSE:      math.Sqrt((0 + 30*30) / 2.), // the means of the draws are 120 and 120
		experiment.MetricNLL:       -(math.Log(first) + math.Log(second)) / 2,
		experiment.MetricNoiseStd:  math.Sqrt((10*10 + 20*20) / 2.),
		experiment.MetricModelStd:  (10 + 0) / 2.,
		experiment.MetricSharpness: (math.Sqrt(10*10+250) + math.Sqrt(0+250)) / 2,
	}
	if !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want))) {
		t.Errorf("the metrics are %v, want %v", got, want)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		must.Near(t, got[name], want[name], 1e-9, "%s", name)
	}
}
