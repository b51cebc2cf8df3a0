package methods

import (
	"math"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/datasets"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
)

// ran are the results of methods on y = sin x, or with two classes on whether sin x > 0.
func ran(t *testing.T, classes, epochs int, list ...experiment.Method) []experiment.Result {
	t.Helper()
	experiments := must.Get(sines(classes).Experiments(experiment.Adam(epochs, 20, 0.03), 1, list...))(t)
	return must.Get(experiment.Run(t.Context(), experiments...))(t)
}

// sines is the task of ran.
func sines(classes int) experiment.Task {
	set := &datasets.Regression{Name: "sines", D: 1, N: 60}
	for i := range set.N {
		x := float64(i) / 8
		y := math.Sin(x)
		if classes > 0 {
			y = map[bool]float64{true: 1}[y > 0]
		}
		set.X, set.Y = append(set.X, x), append(set.Y, y)
	}
	task := experiment.Task{Name: "sines", Data: experiment.Table{Set: set, Classes: classes, Count: 1}, Network: nets.MLP{Widths: []int{10}}, Likelihood: likelihood.Gaussian{}, Metrics: []experiment.Metric{experiment.Regression}}
	if classes > 0 {
		task.Likelihood, task.Metrics = likelihood.Categorical{Classes: classes}, []experiment.Metric{experiment.Classification}
	}
	return task
}

// changed is a method with another Program.
func changed(m experiment.Method, name string, sampler experiment.Program) experiment.Method {
	m.Key, m.Name, m.Program = name, name, sampler
	return m
}

// The function's mean is that of the deterministic network, and draws have the deviation of the closed form. By draws and by the
// approximation, probabilities are nearly the same if
// the prior is not wide: its variance is in all logits alike, which the softmax ignores and the approximation does not.
func TestLaplaceSampler(t *testing.T) {
	found := ran(t, 0, 50, Deterministic, Laplace, changed(Laplace, "tight", LaplaceSampler{PriorPrecision: 1e6}), changed(Laplace, "functions", LaplaceSampler{Draws: 2000}))
	must.Near(t, found[3].Metrics[experiment.MetricModelStd]/found[1].Metrics[experiment.MetricModelStd], 1, 4/math.Sqrt(2*2000), "the deviation of the draws over the closed form's")
	plain, laplace, tight := found[0].Metrics, found[1].Metrics, found[2].Metrics
	for _, name := range []string{experiment.MetricRMSE, experiment.MetricNoiseStd} {
		must.Near(t, plain[name]/laplace[name], 1, 1e-5, "%s of the deterministic network over that of Laplace", name)
	}
	if wide, narrow := laplace[experiment.MetricModelStd], tight[experiment.MetricModelStd]; !(wide > 10*narrow && narrow > 0) {
		t.Errorf("the deviation of the function is %g, with a tight prior %g", wide, narrow)
	}
	found = ran(t, 2, 50, Deterministic, changed(Laplace, "probit", LaplaceSampler{PriorPrecision: 30}), changed(Laplace, "draws", LaplaceSampler{PriorPrecision: 30, Draws: 2000}))
	plain, laplace, drawn := found[0].Metrics, found[1].Metrics, found[2].Metrics
	if d := math.Abs(laplace[experiment.MetricNLL] - drawn[experiment.MetricNLL]); !(d <= 0.01) || laplace[experiment.MetricAccuracy] != plain[experiment.MetricAccuracy] || laplace[experiment.MetricNLL] == plain[experiment.MetricNLL] {
		t.Errorf("the deterministic network has %v, Laplace %v, by draws %v", plain, laplace, drawn)
	}
	noisy := experiment.Experiment{Method: changed(MCDropout, "noisy", LaplaceSampler{}), Task: experiment.Task{Likelihood: likelihood.Gaussian{}}}
	must.Err(t, (LaplaceSampler{}).Check(noisy), "not for baselines.MCDropout with likelihood.Gaussian")
	process := must.Get(sines(0).Experiments(experiment.Adam(5, 20, 0.03), 1, experiment.Method{Name: "process", Layers: baselines.SNGP{}}))(t)[0]
	must.Err(t, (LaplaceSampler{}).Check(process), "not for baselines.SNGP")
	must.Err(t, (SWAGSampler{Start: 0.5, Rank: 2, Draws: 1}).Check(process), "a Gaussian process is finished once")
	short := experiment.Experiment{Method: SWAG, Task: experiment.Task{Network: nets.MLP{}, Likelihood: likelihood.Gaussian{}}}
	short.Recipe.Epochs = 3
	must.Err(t, (SWAGSampler{Start: 0.9, Rank: 2, Draws: 1}).Check(short), "1 epochs of Recipe.Epochs after Start 0.9")
	ordinary := experiment.Experiment{Method: Deterministic, Task: sines(0), Recipe: experiment.Adam(50, 20, 0.03)}
	for _, p := range []experiment.Program{LaplaceSampler{Draws: -1}, LaplaceSampler{PriorPrecision: math.NaN()}, SWAGSampler{Start: 1, Rank: 2, Draws: 1}, SWAGSampler{Rank: 1, Draws: 1}, SWAGSampler{Rank: 2}} {
		if p.Check(ordinary) == nil {
			t.Errorf("%+v has no error", p)
		}
	}
}

// A network whose outputs are not those of its layer "output" is refused before anything is trained.
func TestLastLayer(t *testing.T) {
	for name, build := range map[string]func(l nets.Layers, s *model.Scope, x *graph.Node, n int) *graph.Node{
		"no such layer": func(l nets.Layers, s *model.Scope, x *graph.Node, n int) *graph.Node {
			return l.Dense(s.In("last"), x, n)
		},
		"a function of it": func(l nets.Layers, s *model.Scope, x *graph.Node, n int) *graph.Node {
			return graph.Tanh(l.Dense(s.In("output"), x, n))
		},
		"a layer above": func(l nets.Layers, s *model.Scope, x *graph.Node, n int) *graph.Node {
			return l.Dense(s.In("last"), l.Dense(s.In("output"), x, 3), n)
		},
		"a factor that starts at 1": func(l nets.Layers, s *model.Scope, x *graph.Node, n int) *graph.Node {
			return graph.Mul(l.Dense(s.In("output"), x, n), params.New(s, x, "factor", params.Weight, params.Constant(1), 1, 1))
		},
		"a path that starts at 0": func(l nets.Layers, s *model.Scope, x *graph.Node, n int) *graph.Node {
			return graph.Add(l.Dense(s.In("output"), x, n), graph.Mul(graph.Sin(x), params.New(s, x, "factor", params.Weight, params.Constant(0), 1, 1)))
		},
	} {
		task := sines(0)
		task.Network = nets.Func{Name: name, Build: build}
		trained, err := experiment.Run(t.Context(), must.Get(task.Experiments(experiment.Adam(1, 20, 0.03), 1, Deterministic, Laplace))(t)...)
		if must.Err(t, err, `build its last layer by layers.Dense(s.In("output"), ...)`); trained != nil {
			t.Errorf("with %s, %d experiments were trained", name, len(trained))
		}
	}
	bounded := Laplace // the bound is larger than the weights before training
	bounded.Layers = baselines.SpectralNormed{Bound: 50}
	must.GetErr(experiment.Run(t.Context(), must.Get(sines(0).Experiments(experiment.Adam(1, 20, 0.03), 1, bounded))(t)...))(t, "do not bound its weights")
}

// The learning rate stays, the function differs from draw to draw, and a second run is equal.
func TestSWAGSampler(t *testing.T) {
	schedule := thenConstant{train.Cosine{Start: 1}, 0.5}
	for step, want := range map[int]float64{0: 1, 5: 0.5, 6: 0.5, 9: 0.5} {
		must.Near(t, schedule.Rate(step, 10), want, 1e-12, "step %d has the rate", step)
	}
	first, second := ran(t, 0, 50, SWAG)[0].Metrics, ran(t, 0, 50, SWAG)[0].Metrics
	if first[experiment.MetricModelStd] <= 0 || first[experiment.MetricNLL] != second[experiment.MetricNLL] || first[experiment.MetricRMSE] > 0.7 {
		t.Errorf("the runs have %v and %v", first, second)
	}
	bounded := changed(SWAG, "bounded", SWAG.Program) // has running statistics, which are not drawn
	bounded.Layers = baselines.SpectralNormed{}
	if found := ran(t, 0, 50, bounded)[0].Metrics; !(found[experiment.MetricRMSE] < 0.7) {
		t.Errorf("layers with a bound have %v", found)
	}
}

// onlyNLL is likelihood.Gaussian without its moments.
type onlyNLL struct{}

func (onlyNLL) Outputs() int { return 1 }

func (onlyNLL) NLL(s *model.Scope, outputs, targets *graph.Node) *graph.Node {
	return likelihood.Gaussian{}.NLL(s, outputs, targets)
}

// Each draw has its own parameters of a likelihood that has only an NLL, and a store keeps its densities.
func TestSWAGOfOwnLikelihood(t *testing.T) {
	want, task, store := ran(t, 0, 50, SWAG)[0].Metrics[experiment.MetricNLL], sines(0), &experiment.Store{Folder: t.TempDir()}
	task.Likelihood = onlyNLL{}
	for range 2 {
		task.Metrics = []experiment.Metric{func(p *experiment.Predictions) (map[string]float64, error) {
			nll, err := p.Sets[0].NLL(p.Unit)
			return map[string]float64{"nll": nll}, err
		}}
		list := must.Get(task.Experiments(experiment.Adam(50, 20, 0.03), 1, SWAG))(t)
		must.Near(t, must.Get(experiment.Engine{Store: store}.Run(t.Context(), list...))(t)[0].Metrics["nll"], want, 1e-6, "the NLL")
	}
}

// With noisy layers each of Recipe.Samples is one function of the input if Coherent is set, and no function otherwise.
func TestSWAGOfNoise(t *testing.T) {
	task := sines(0)
	data := task.Data.(experiment.Table)
	data.Set.X[1], data.Set.Y[1] = data.Set.X[0], data.Set.Y[0]
	data.Count, data.Parts = 0, []datasets.Split{{Test: []int{0, 1}}}
	for i := 2; i < data.Set.N; i++ {
		data.Parts[0].Train = append(data.Parts[0].Train, i)
	}
	task.Data, task.Metrics = data, []experiment.Metric{func(p *experiment.Predictions) (map[string]float64, error) {
		apart := 0.0
		for _, f := range p.Sets[0].Mean {
			apart = max(apart, math.Abs(f[0]-f[1]))
		}
		return map[string]float64{"apart": apart, "functions": float64(len(p.Sets[0].Mean))}, nil
	}}
	e := experiment.Experiment{Task: task, Method: changed(MCDropout, "noisy", SWAGSampler{Rank: 2, Draws: 3}), Recipe: experiment.Adam(4, 20, 0.03)}
	e.Recipe.Samples = 2
	for _, e.Recipe.Coherent = range []bool{true, false} {
		found := must.Get(experiment.Run(t.Context(), e))(t)[0].Metrics
		if found["functions"] != 6 || (found["apart"] < 1e-6) != e.Recipe.Coherent {
			t.Errorf("coherent %t: %v", e.Recipe.Coherent, found)
		}
	}
}

// Running statistics are made anew, also where a training set has few batches.
func TestRemakeStatistics(t *testing.T) {
	network := nets.ResNet{Layers: baselines.Deterministic{}, Widths: []int{2}, Blocks: []int{1}}
	m := must.Get(nets.New(fixtures.Backend(t), network, likelihood.Categorical{Classes: 2}, 1))(t)
	x := nets.Pixels{Bytes: make([]byte, 6*3*4*4), Height: 4, Width: 4, Standardization: nets.Standardization{Mean: []float64{0, 0, 0}, Std: []float64{1, 1, 1}}}
	for i := range x.Bytes {
		x.Bytes[i] = byte(37 * i)
	}
	must.Get(predict.Sample(t.Context(), m, x, predict.Options{Samples: 1, Training: true}))(t)
	statistics := func(change bool) (all []float64) {
		for v := range m.Store.IterVariables() {
			if params.RoleOf(v, m.Store) == params.Running {
				values, shape, err := params.Values(m.Store, v.Path())
				must.Do(t, err)
				if all = append(all, values...); change {
					must.Do(t, params.SetStatistic(m.Store, v.Path(), params.FromFloat64(shape, slices.Repeat([]float64{100}, len(values)))))
				}
			}
		}
		return all
	}
	must.Do(t, remakeStatistics(t.Context(), m, x, 6))
	want := statistics(true)
	must.Do(t, remakeStatistics(t.Context(), m, x, 6))
	for i, got := range statistics(false) {
		must.Near(t, got, want[i], 0.01, "statistic %d", i)
	}
	if len(want) == 0 {
		t.Error("the network has no statistics")
	}
}
