package experiment_test

import (
	"context"
	"errors"
	"fmt"
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
	"gonum.org/v1/gonum/stat/distuv"

	"densityuncertainty/baselines"
	"densityuncertainty/datasets"
	"densityuncertainty/dul"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/linalg"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/trained"
)

// allSplits are the experiments of all splits.
func allSplits(e experiment.Experiment) experiment.Experiments {
	var all experiment.Experiments
	for split := range e.Task.Data.Splits() {
		e.Split, e.Seed = split, uint64(split)
		all = append(all, e)
	}
	return all
}

// setOf is the prediction of a set.
func setOf(t *testing.T, r experiment.Result, name string) *experiment.Prediction {
	t.Helper()
	return must.Get(must.Get(r.Predictions())(t).Set(name))(t)
}

// adapted is the small experiment of a family, with the recipe for it.
func adapted(t *testing.T, layers nets.Layers) experiment.Experiment {
	t.Helper()
	e := small(layers)
	e.Recipe = must.Get(e.Recipe.For(e.Method, e.Task.Likelihood, 3))(t)
	return e
}

// sequences are examples [N, 3 positions, 2 features] of two classes.
func sequences(n int) train.Dataset {
	var d train.Dataset
	var values []float64
	for i := range n {
		label := i % 2
		d.Labels = append(d.Labels, label)
		for k := range 6 {
			values = append(values, math.Sin(float64(7*i+k))+float64(label)*float64(k%3))
		}
	}
	d.Inputs = nets.Floats{Values: values, Shape: []int{3, 2}}
	return d
}

// attention is a network of your own on sequences.
func attention(layers nets.Layers, s *model.Scope, x *graph.Node, classes int) *graph.Node {
	q, k, v := layers.Dense(s.In("query"), x, 4), layers.Dense(s.In("key"), x, 4), layers.Dense(s.In("value"), x, 4)
	scores := graph.MulScalar(graph.Einsum("bqd,bkd->bqk", q, k), 0.5)
	h := graph.Einsum("bqk,bkd->bqd", graph.Softmax(scores, -1), v)
	return layers.Dense(s.In("output"), graph.ReduceMean(h, 1), classes)
}

// transformer is an experiment with attention on sequences with a second, shifted set.
func transformer(t *testing.T, layers nets.Layers) experiment.Experiment {
	e := adapted(t, layers)
	e.Task = experiment.Task{
		Name: "sequences", Data: experiment.Arrays{Train: sequences(30), Sets: []experiment.Set{{Name: "test", Dataset: sequences(8)}, {Name: "shifted", Dataset: sequences(6)}}},
		Network: nets.Func{Name: "attention-1", Build: attention}, Likelihood: likelihood.Categorical{Classes: 2}, Metrics: []experiment.Metric{experiment.Classification},
	}
	return e
}

// Results do not depend on which other experiments are carried out with them: a network alone is that of a batch.
func TestAloneAndTogether(t *testing.T) {
	ctx := context.Background()
	own := adapted(t, baselines.MFVI{})
	own.Task.Likelihood, own.Recipe.EarlyStopping = fitted{}, true
	table := own.Task.Data.(experiment.Table)
	table.HeldOut = 0.2
	own.Task.Data = table
	uneven, parts := adapted(t, dul.Density{}), []datasets.Split(nil)
	for _, n := range []int{30, 32, 32} {
		rows := datasets.RandomSplits(40, 1)[0]
		all := slices.Concat(rows.Train, rows.Test)
		parts = append(parts, datasets.Split{Train: all[:n], Test: all[n:]})
	}
	uneven.Task.Data = experiment.Table{Set: smallTable("mine"), Parts: parts}
	for name, e := range map[string]experiment.Experiment{"density": adapted(t, dul.Density{}), "mfvi": adapted(t, baselines.MFVI{}), "own likelihood": own, "other sizes": uneven} {
		t.Run(name, func(t *testing.T) {
			list := allSplits(e)
			together := must.Get(experiment.Run(ctx, append(slices.Clone(list), list[0])...))(t)
			if len(together) != len(list) {
				t.Fatalf("%d results of %d experiments, one of which was asked for twice", len(together), len(list))
			}
			for i, one := range list {
				if together[i].ID != one.ID() || together[i].Batched != len(list) && name != "other sizes" {
					t.Errorf("result %d is %s, batched %d", i, together[i].ID, together[i].Batched)
				}
			}
			alone := must.Get(experiment.Run(ctx, list[0]))(t)
			for metric, want := range alone[0].Metrics {
				must.Near(t, together[0].Metrics[metric], want, 1e-6*math.Abs(want), "%s together, and alone", metric)
			}
		})
	}
}

// An experiment that fails after training does not keep the others from their results.
func TestFailureOfOne(t *testing.T) {
	good, bad := small(baselines.Deterministic{}), small(baselines.Deterministic{})
	bad.Recipe.Epochs = 3
	bad.Task.Metrics = []experiment.Metric{func(*experiment.Predictions) (map[string]float64, error) {
		return nil, errors.New("it cannot be measured")
	}}
	found, err := experiment.Run(context.Background(), bad, good)
	must.Err(t, err, "it cannot be measured")
	if len(found) != 1 || found[0].ID != good.ID() {
		t.Errorf("the results are %v", found)
	}
}

// A training that diverges is a result, without metrics, and does not spoil its neighbours. So are predictions that are
// not finite.
func TestDiverged(t *testing.T) {
	e := small(baselines.Deterministic{})
	e.Recipe.Schedule = train.Constant{Start: 1e30}
	e.Recipe.Groups = []train.Group{{Roles: train.AllRoles(), Optimizer: train.SGD{}, Rate: 1}}
	overflowing, far := transformer(t, baselines.Deterministic{}), sequences(2)
	far.Inputs = nets.Floats{Values: slices.Repeat([]float64{1e38}, 12), Shape: []int{3, 2}}
	overflowing.Task.Data = experiment.Arrays{Train: sequences(30), Sets: []experiment.Set{{Name: "test", Dataset: far}}}
	var notes []string
	engine := experiment.Engine{Store: &experiment.Store{Folder: t.TempDir()}, Notes: func(text string) {
		if !strings.HasPrefix(text, "backend ") {
			notes = append(notes, text)
		}
	}}
	found := must.Get(engine.Run(t.Context(), append(allSplits(e), overflowing)...))(t)
	for _, r := range found {
		v, err := r.Metric("nll")
		if !r.Diverged || r.Metrics != nil || !math.IsNaN(v) || !errors.Is(err, train.ErrDiverged) || !strings.Contains(err.Error(), r.Reason) {
			t.Errorf("diverged %t with metrics %v, NLL %v, error %v", r.Diverged, r.Metrics, v, err)
		}
	}
	if a, b := found[0].Reason, found[3].Reason; !strings.HasPrefix(a, "step 2 of training: ") || !strings.Contains(b, `the set "test"`) || !strings.Contains(b, "at input 0 is NaN: the training diverged, or the input is too far from the training data") {
		t.Errorf("the reasons are %q and %q", a, b)
	}
	if len(notes) != 4 || !strings.Contains(strings.Join(notes, "\n"), "plain on sequences, split 0, seed 0 diverged, and has no metrics: ") {
		t.Errorf("the notes are %q", notes)
	}
	notes = nil
	again := must.Get(engine.Run(t.Context(), append(allSplits(e), overflowing)...))(t)
	if again[3].Reason != found[3].Reason || len(notes) != 1 || !strings.HasSuffix(notes[0], "; 4 of them diverged") {
		t.Errorf("from the store the reason is %q, and the notes are %q", again[3].Reason, notes)
	}
	must.GetErr(must.Get(experiment.Run(t.Context(), small(baselines.Deterministic{})))(t)[0].Metric("nil"))(t, `has no metric "nil": it has coverage95, `)
}

// A Gaussian process takes the place of the layer at the scope "output" of a network of your own and learns, and is refused
// where there is none.
func TestProcessInOwnNetwork(t *testing.T) {
	ctx := context.Background()
	e := transformer(t, baselines.Deterministic{})
	for name, process := range map[string]nets.Layers{"SNGP": baselines.SNGP{}, "DUE, from all examples": baselines.DUE{Inducing: 30}} {
		list := must.Get(e.Task.Experiments(experiment.Adam(100, 16, 1e-2), 4, experiment.Method{Name: name, Layers: process}))(t)
		found := must.Get(experiment.Run(ctx, list...))(t)
		if !(found[0].Metrics["accuracy"] > 0.9) || !(found[0].Metrics["nll"] < 0.6) {
			t.Errorf("%s: the metrics are %v", name, found[0].Metrics)
		}
	}
	other := transformer(t, baselines.Deterministic{})
	other.Method = experiment.Method{Name: "SNGP", Layers: baselines.SNGP{}}
	other.Task.Network = nets.Func{Name: "elsewhere", Build: func(l nets.Layers, s *model.Scope, x *graph.Node, outputs int) *graph.Node {
		return attention(l, s.In("part"), x, outputs)
	}}
	must.GetErr(experiment.Run(ctx, other))(t, "the dense layer at the scope /model/network/output is needed")
	equal := baselines.DUE{Start: []baselines.Inducing{{Points: make([]float64, 3*4), LengthScale: 1}}, Jitter: 1e-300} // three points in one place
	must.GetErr(experiment.Run(ctx, small(equal)))(t, linalg.ErrNotPositiveDefinite)
}

// A likelihood of your own, without moments and classes, is measured by its own density.
type laplace struct{ Scale float64 }

func (laplace) Outputs() int { return 1 }

func (l laplace) NLL(_ *model.Scope, outputs, targets *graph.Node) *graph.Node {
	return graph.AddScalar(graph.MulScalar(graph.Abs(graph.Sub(targets, outputs)), 1/l.Scale), math.Log(2*l.Scale))
}

// fitted is laplace with a scale that is trained.
type fitted struct{ laplace }

func (fitted) NLL(s *model.Scope, outputs, targets *graph.Node) *graph.Node {
	logScale := params.New(s, outputs, "log_scale", params.Likelihood, params.Constant(0), 1, 1)
	return graph.Add(graph.Mul(graph.Abs(graph.Sub(targets, outputs)), graph.Exp(graph.Neg(logScale))), graph.AddScalar(logScale, math.Ln2))
}

// known is laplace with the scale in the unit of the data.
type known struct{ laplace }

func (l known) Rescale(unit, _ float64) likelihood.Likelihood { return known{laplace{l.Scale / unit}} }

// boxed has its number in another value.
type boxed struct {
	laplace
	list []likelihood.Likelihood
}

// embedding has the Rescale of known, which returns another type.
type embedding struct{ known }

func TestOwnLikelihood(t *testing.T) {
	e := adapted(t, baselines.MFVI{})
	for want, l := range map[string]likelihood.Likelihood{
		"laplace has the number Scale, 0.5, and the targets are standardised": laplace{0.5}, "boxed has the number Std, 0.5": boxed{list: []likelihood.Likelihood{&likelihood.KnownNoise{Std: 0.5}}},
		"embedding returns a experiment_test.known": embedding{},
	} {
		e.Task.Likelihood = l
		must.GetErr(experiment.Run(t.Context(), e))(t, want)
	}
	e.Task.Likelihood = known{laplace{0.5}}
	found := must.Get(experiment.Run(context.Background(), allSplits(e)...))(t)
	for _, r := range found {
		set, unit := setOf(t, r, "test"), must.Get(r.Predictions())(t).Unit
		want := 0.0
		for i, y := range set.Targets {
			density := 0.0
			for _, outputs := range set.Outputs {
				density += math.Exp(-math.Abs(y-outputs[i])*unit/0.5) / float64(len(set.Outputs))
			}
			want -= math.Log(density) / float64(len(set.Targets))
		}
		must.Near(t, r.Metrics["nll"], want, 1e-5, "the NLL")
		must.Near(t, float64(len(set.Outputs)), 3, 0, "draws")
	}
}

// censored is exponential survival: a target is a time, and 1 where it is that of the event.
type censored struct{ laplace }

func (censored) NLL(_ *model.Scope, outputs, targets *graph.Node) *graph.Node {
	column := func(i int) *graph.Node { return graph.SliceAxis(targets, -1, graph.AxisElem(i)) }
	return graph.Sub(graph.Mul(column(0), graph.Exp(outputs)), graph.Mul(column(1), outputs))
}

// tossed is an own likelihood of labels that is no Classification.
type tossed struct{ laplace }

func (tossed) NLL(_ *model.Scope, outputs, labels *graph.Node) *graph.Node {
	chosen := graph.ConvertDType(graph.Squeeze(graph.OneHot(labels, 2, outputs.DType()), -2), outputs.DType())
	return graph.ReduceAndKeep(graph.Mul(chosen, graph.Log1P(graph.Exp(graph.Concatenate([]*graph.Node{outputs, graph.Neg(outputs)}, -1)))), graph.ReduceSum, -1)
}

// The answers of a likelihood of your own may be several columns, or labels.
func TestAnswersOfOwnLikelihood(t *testing.T) {
	times, labels := line(6, 1), line(6, 1)
	times.Targets = []float64{1, 1, 2, 0, 3, 1, 4, 1, 2, 1, 1, 0}
	labels.Targets, labels.Labels = nil, []int{0, 1, 0, 1, 1, 1}
	for _, c := range []struct {
		l likelihood.Likelihood
		d train.Dataset
	}{{censored{}, times}, {tossed{}, labels}} {
		task := experiment.Task{Name: "own", Data: experiment.Arrays{Train: c.d, Sets: []experiment.Set{{Name: "test", Dataset: c.d}}}, Network: nets.MLP{}, Likelihood: c.l}
		list := must.Get(task.Experiments(experiment.Adam(300, 6, 0.1), 1, experiment.Method{Name: "plain", Layers: baselines.Deterministic{}}))(t)
		set := setOf(t, must.Get(experiment.Run(t.Context(), list...))(t)[0], "test")
		if nll := must.Get(set.NLL(1))(t); !(nll < 1.8) || len(set.Outputs[0]) != 6 {
			t.Errorf("%T: the NLL is %v", c.l, nll)
		}
	}
}

// Known noise is in the unit of the data, which differs between splits, in metrics, from a store and from the network's file.
func TestKnownNoise(t *testing.T) {
	e, folder := adapted(t, baselines.Deterministic{}), t.TempDir()
	e.Task.Likelihood = likelihood.KnownNoise{Std: 2}
	engine := experiment.Engine{Networks: folder, Store: &experiment.Store{Folder: t.TempDir()}}
	first := must.Get(engine.Run(t.Context(), allSplits(e)...))(t)
	units := map[float64]bool{}
	for i, r := range must.Get(engine.Run(t.Context(), allSplits(e)...))(t) {
		p, set := must.Get(r.Predictions())(t), setOf(t, r, "test")
		units[p.Unit] = true
		nll := 0.0
		for i, y := range set.Targets {
			nll -= distuv.Normal{Mu: set.Mean[0][i] * p.Unit, Sigma: 2}.LogProb(y*p.Unit) / float64(len(set.Targets))
		}
		must.Near(t, set.NoiseDeviation()*p.Unit, 2, 1e-6, "split %d: the noise", i)
		must.Near(t, r.Metrics["nll"], nll, 1e-6, "split %d: the NLL", i)
		must.Near(t, r.Metrics["nll"], first[i].Metrics["nll"], 0, "split %d: the NLL again", i)
		o := must.Get(trained.Open(filepath.Join(folder, r.Experiment.NetworkFile(0)), nets.MLP{Layers: baselines.Deterministic{}, Widths: []int{4}}, e.Task.Likelihood))(t)
		a := must.Get(o.Predict(t.Context(), []float64{1, 2}))(t)
		must.Near(t, a.High-a.Low, 2*2*1.959963985, 1e-5, "split %d: the width of the interval", i)
	}
	if len(units) != 3 {
		t.Errorf("the units are %v", units)
	}
	e.Task.Likelihood = likelihood.KnownNoise{Standardised: 0.5}
	must.Near(t, setOf(t, must.Get(experiment.Run(t.Context(), e))(t)[0], "test").NoiseDeviation(), 0.5, 1e-6, "the noise of standardised targets")
	if text := must.Get(e.Spec())(t); !strings.Contains(string(text), `"Likelihood":{"Std":0.5,"type":"likelihood.KnownNoise"}`) { // as stored
		t.Errorf("the identity is %s", text)
	}
}

// ownTable is a Table of your own.
type ownTable struct{ experiment.Table }

// Data that change after they were read for the identity are not trained on.
func TestDataThatChange(t *testing.T) {
	for _, own := range []bool{false, true} {
		set, e := smallTable("mine"), small(baselines.Deterministic{})
		if e.Task.Data = (experiment.Table{Set: set}); own {
			e.Task.Data = ownTable{experiment.Table{Set: set}}
		}
		engine := experiment.Engine{Notes: func(string) { set.Y[3]++ }} // first of the backend that is chosen
		must.GetErr(engine.Run(t.Context(), e))(t, "the data have changed")
	}
}

// What is odd about data is said once, and so is the backend that was chosen.
func TestRemarks(t *testing.T) {
	set, notes := smallTable("mine"), ""
	set.N = 12
	set.X, set.Y = []float64{1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 1, 1, 2, 2, 7, 7, 8, 8, 9, 9, 1, 1}, []float64{0, 1, 0, 1, 0, 1, 0, 1, 1, 2, 1, 1}
	e := small(baselines.Deterministic{})
	parts := datasets.Split{Train: []int{0, 1, 2, 3, 4, 5}, Test: []int{6, 7, 8, 9, 11}}
	e.Task.Data, e.Task.Likelihood, e.Task.Metrics = experiment.Table{Set: set, Classes: 3, Parts: []datasets.Split{parts, parts}}, likelihood.Categorical{Classes: 3}, nil
	engine := experiment.Engine{Notes: func(text string) { notes += text + "\n" }}
	other := e
	other.Split = 1
	must.Get(engine.Run(t.Context(), e, other))(t)
	if n := strings.Count(notes, "backend "); n != 1 {
		t.Errorf("%d notes name the backend:\n%s", n, notes)
	}
	for _, want := range []string{`table, split 0: 2 of the 5 examples of the set "test" are training examples too`, `table, split 0: the set "test" has the labels [2], which no training example has`} {
		if strings.Count(notes, want[len("table, split 0"):]) != 1 {
			t.Errorf("the notes lack %q, or have it twice:\n%s", want, notes)
		}
	}
}

// Likelihoods of package likelihood have metrics, in an ensemble too, which come out the same from a store.
func TestDistributions(t *testing.T) {
	counts := smallTable("counts")
	for i := range counts.Y {
		counts.Y[i] = float64(i % 6)
	}
	for _, c := range []struct {
		name string
		l    likelihood.Likelihood
		data experiment.Source
		want []string
	}{
		{"Student's t", likelihood.StudentT{Nu: 4}, nil, []string{"nll", "coverage95", "rmse"}},
		{"counts", likelihood.Poisson{}, experiment.Table{Set: counts, Count: 3, RawTargets: true}, []string{"nll", "coverage95", "rmse"}},
		{"quantiles", likelihood.Quantiles{Levels: []float64{0.1, 0.5, 0.9}}, experiment.Table{Set: smallTable("held out"), Count: 3, HeldOut: 0.2}, []string{"pinball", "coverage", "crossed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := adapted(t, baselines.MFVI{})
			e.Task.Likelihood, e.Task.Metrics, e.Method.Members = c.l, []experiment.Metric{experiment.Regression}, 2
			if c.data != nil {
				e.Task.Data = c.data
				e.Recipe.EarlyStopping = c.name == "quantiles"
			}
			found := stored(t, t.TempDir(), allSplits(e)...)
			for i, r := range found {
				for _, name := range c.want {
					if v, has := r.Metrics[name]; !has || math.IsNaN(v) || strings.HasPrefix(name, "coverage") && (v < 0 || v > 1) {
						t.Errorf("split %d: %s is %v", i, name, v)
					}
				}
				p := must.Get(r.Predictions())(t)
				set := must.Get(p.Set("test"))(t)
				if draws := max(len(set.Parameters), len(set.Outputs), len(set.Mean)); draws != 6 {
					t.Errorf("%d draws of 2 networks", draws)
				}
				e.Split, e.Seed = i, uint64(i)
				if again := must.Get(e.Measure(p))(t); again["nll"] != r.Metrics["nll"] || again["pinball"] != r.Metrics["pinball"] {
					t.Errorf("measured again: %v, were %v", again, r.Metrics)
				}
			}
		})
	}
}

// Classes and counts are columns of a table.
func TestTables(t *testing.T) {
	ctx := context.Background()
	set := smallTable("classes")
	for i := range set.Y {
		set.Y[i] = float64(i % 3)
	}
	classes, counts := adapted(t, baselines.Deterministic{}), adapted(t, baselines.Deterministic{})
	classes.Task.Data, classes.Task.Likelihood = experiment.Table{Set: set, Classes: 3, HeldOut: 0.2}, likelihood.Categorical{Classes: 3}
	classes.Task.Metrics, classes.Recipe.EarlyStopping = []experiment.Metric{experiment.Classification}, true
	counts.Task.Data = experiment.Table{Set: set, RawTargets: true}
	must.GetErr(counts.Task.Data.Load(ctx, 20))(t) // a split that is not there was loaded
	found := must.Get(experiment.Run(ctx, classes, counts))(t)
	test, raw := setOf(t, found[0], "test"), setOf(t, found[1], "test")
	if len(test.Labels) != 4 || test.Targets != nil || found[0].Metrics["accuracy"] < 0 || len(test.Probabilities) != 12 {
		t.Errorf("labels %v, targets %v, metrics %v", test.Labels, test.Targets, found[0].Metrics)
	}
	for i, label := range test.Labels {
		if raw.Targets[i] != float64(label) || must.Get(found[1].Predictions())(t).Unit != 1 {
			t.Errorf("target %d is %v as it is, and %d as a label", i, raw.Targets[i], label)
		}
	}
}

// Each set has a stream of noise of its own, unless the recipe says otherwise: which other sets are predicted, and in
// which order, then does not matter.
func TestNoiseOfSets(t *testing.T) {
	ctx := context.Background()
	for _, shared := range []bool{false, true} {
		e := transformer(t, baselines.MFVI{})
		e.Recipe.SharedNoise = shared
		other := e
		data := e.Task.Data.(experiment.Arrays)
		data.Sets = []experiment.Set{data.Sets[1], data.Sets[0]}
		other.Task.Data = data
		found := must.Get(experiment.Run(ctx, e, other))(t)
		for _, name := range []string{"test", "shifted"} {
			a, b := setOf(t, found[0], name), setOf(t, found[1], name)
			if equal := slices.Equal(a.Probabilities, b.Probabilities); equal == shared {
				t.Errorf("shared noise %t: the predictions of %q are equal %t in another order", shared, name, equal)
			}
		}
	}
}

// With coherent draws a draw is one function in all sets, of replicas and of networks by themselves; else it is none.
func TestCoherentDraws(t *testing.T) {
	for _, replicas := range []bool{true, false} {
		for _, coherent := range []bool{true, false} {
			e := small(dul.Density{InitStd: 0.3})
			e.Recipe = must.Get(e.Recipe.For(e.Method, e.Task.Likelihood, 2))(t)
			e.Recipe.Coherent = coherent
			e.Task.Data = experiment.Arrays{Train: line(6, 1), Sets: []experiment.Set{{Name: "test", Dataset: line(3, 1)}, {Name: "more", Dataset: line(6, 1)}}}
			data := e.Task.Data.(experiment.Arrays)
			data.Train.Targets = []float64{1, 2, 1, 2, 1, 2}
			e.Task.Data = data
			if !replicas {
				e.Task.Network = nets.Func{Name: "line", Build: func(l nets.Layers, s *model.Scope, x *graph.Node, outputs int) *graph.Node {
					return l.Dense(s.In("output"), x, outputs)
				}}
			}
			r := must.Get(experiment.Run(context.Background(), e))(t)[0]
			a, b := setOf(t, r, "test").Mean, setOf(t, r, "more").Mean
			if a[0][1] == a[1][1] {
				t.Error("two draws are equal")
			}
			for k := range a {
				for i := range a[k] {
					if same := math.Abs(a[k][i]-b[k][i]) < 1e-6; same != coherent {
						t.Errorf("replicas %t, coherent %t: draw %d is %v in one set and %v in another", replicas, coherent, k, a[k][i], b[k][i])
					}
				}
			}
		}
	}
}

// Progress never goes back, and ends at 1.
func TestProgress(t *testing.T) {
	last, calls := 0.0, 0
	en := experiment.Engine{Progress: func(done float64, note string) {
		if calls++; done < last || done > 1 || note == "" {
			t.Errorf("progress %v after %v: %q", done, last, note)
		}
		last = done
	}}
	must.Get(en.Run(context.Background(), allSplits(small(baselines.Deterministic{}))...))(t)
	if calls == 0 || last < 0.99 {
		t.Errorf("%d calls, the last with %v", calls, last)
	}
	// Predictions of many rows are most of the work, and move it.
	e, moved := adapted(t, baselines.MFVI{}), map[float64]bool{}
	d := line(10000, 1)
	d.Targets[0] = 0
	e.Task.Data = experiment.Arrays{Train: d, Sets: []experiment.Set{{Name: "test", Dataset: d}}}
	e.Recipe.Epochs, e.Recipe.BatchSize, e.Recipe.Samples, e.Task.Metrics = 1, 5000, 30, nil
	last, en.Progress = 0, func(done float64, note string) {
		if strings.Contains(note, "predicting") {
			moved[done] = true
		}
		last = done
	}
	must.Get(en.Run(context.Background(), e))(t)
	if len(moved) != 4 || slices.Min(slices.Collect(maps.Keys(moved))) > 0.2 || last < 0.99 { // before and after batches of 4096
		t.Errorf("while predicting %v are done", moved)
	}
}

// irregular is a source whose split 1 has another set, and whose split 2 has a label too many.
type irregular struct{ experiment.Table }

func (s irregular) Load(ctx context.Context, split int) (experiment.Data, error) {
	d, err := s.Table.Load(ctx, split)
	switch split {
	case 1:
		d.Sets[0].Name = "other"
	case 2:
		d.Train.Labels[0] = 9
	}
	return d, err
}

// Each split is checked before it is trained, and splits with other sets are predicted by themselves.
func TestSplitsThatDiffer(t *testing.T) {
	set := smallTable("classes")
	for i := range set.Y {
		set.Y[i] = float64(i % 2)
	}
	e := small(baselines.Deterministic{})
	e.Task.Data, e.Task.Likelihood = irregular{experiment.Table{Set: set, Count: 3, Classes: 2}}, likelihood.Categorical{Classes: 2}
	e.Task.Metrics = []experiment.Metric{experiment.Classification}
	found, err := experiment.Run(context.Background(), allSplits(e)...)
	if err == nil || !strings.Contains(err.Error(), "split 2, seed 2: the training data: example 0 has label 9") || len(found) != 2 {
		t.Fatalf("%d results, and the error %v", len(found), err)
	}
	if _, has := found[0].Metrics["nll"]; !has {
		t.Errorf("the metrics of split 0 are %v", found[0].Metrics)
	}
	if _, has := found[1].Metrics["other_nll"]; !has {
		t.Errorf("the metrics of split 1 are %v", found[1].Metrics)
	}
}

// What the store has counts as done.
func TestProgressOfStoredResults(t *testing.T) {
	folder, list := t.TempDir(), allSplits(small(baselines.Deterministic{}))
	stored(t, folder, list[:2]...)
	least, last := 1.0, 0.0
	en := experiment.Engine{Store: &experiment.Store{Folder: folder}, Progress: func(done float64, _ string) { least, last = min(least, done), done }}
	must.Get(en.Run(context.Background(), list...))(t)
	if !(least >= 2./3-1e-9) || !scalar.EqualWithinAbs(last, 1, 1e-9) {
		t.Errorf("the progress is %g at least, and %g at last", least, last)
	}
}

// What is changed in one experiment of a list stays as it was in all others.
func TestChangeIsApart(t *testing.T) {
	list := allSplits(adapted(t, dul.Density{}))
	before := list[0].Group()
	changed := list.Change(func(e *experiment.Experiment) {
		if e.Split == 1 {
			e.Recipe.Groups[0].Rate, e.Recipe.PretrainGroups[0].Rate = 2, 3
		}
	})
	if list[1].Group() != before || changed[0].Group() != before || changed[1].Group() == before {
		t.Error("a change of one experiment is in another, or in none")
	}
	if some := list.OnSplits(2, 0, 2); len(some) != 2 || some[0].Split != 0 || some[1].Split != 2 {
		t.Errorf("splits 0 and 2 are %v", some)
	}
}

// What a recipe says of energy models stays as it is, for methods that have some.
func TestRecipeForKeepsSettings(t *testing.T) {
	r := experiment.Adam(20, 16, 1e-2)
	r.LogLikelihoodScale, r.PretrainEpochs = 0.5, 7
	density := must.Get(r.For(experiment.Method{Layers: dul.Density{}}, likelihood.Gaussian{}, 3))(t)
	if density.LogLikelihoodScale != 0.5 || density.PretrainEpochs != 7 || len(density.PretrainGroups) != 1 || density.Samples != 3 {
		t.Errorf("the recipe of a density layer is %+v", density)
	}
	plain := must.Get(r.For(experiment.Method{Layers: baselines.Deterministic{}}, likelihood.Gaussian{}, 3))(t)
	if plain.LogLikelihoodScale != 0 || plain.PretrainEpochs != 0 || plain.PretrainGroups != nil || plain.Samples != 1 {
		t.Errorf("the recipe of a plain network is %+v", plain)
	}
}

// A batch of any size above the number of examples is all of them.
func TestFullBatch(t *testing.T) {
	all, most := small(baselines.Deterministic{}), small(baselines.Deterministic{})
	all.Recipe.BatchSize, most.Recipe.BatchSize = 1000, math.MaxInt
	found := must.Get(experiment.Run(context.Background(), all, most))(t)
	if difference := found[0].Difference(found[1]); difference != "" || !(found[0].Metrics["nll"] != 0) {
		t.Error(difference)
	}
}

// Splits of your own are used as they are, each seed trains a network of its own, and wrong splits are refused.
func TestOwnSplits(t *testing.T) {
	e, set := small(baselines.Deterministic{}), smallTable("mine")
	past := datasets.Split{Train: datasets.Order(0, 0, 30), Test: []int{39, 31}}
	table := experiment.Table{Set: set, Parts: []datasets.Split{{Train: []int{0, 1, 2}, Test: []int{3}}, past}}
	e.Task.Data = table
	d := must.Get(table.Load(t.Context(), 1))(t)
	if y := d.Sets[0].Targets; len(y) != 2 || !scalar.EqualWithinAbs(y[0]*d.Unit+d.Zero, set.Y[39], 1e-12) || !scalar.EqualWithinAbs(y[1]*d.Unit+d.Zero, set.Y[31], 1e-12) || d.Train.Len() != 30 || table.Splits() != 2 {
		t.Errorf("split 1 has the targets %v and %d training examples", y, d.Train.Len())
	}
	list := experiment.Experiments{e, e}
	list[0].Seed, list[1].Seed = 3, 4
	found := must.Get(experiment.Run(t.Context(), list...))(t)
	if len(found) != 2 || found[0].Seed != 3 || found[1].Seed != 4 || found[0].Metrics["nll"] == found[1].Metrics["nll"] {
		t.Errorf("the results are %v", found)
	}
	for want, other := range map[string]experiment.Table{
		"split 0 of Parts has the row 2, which": {Set: set, Parts: []datasets.Split{{Train: []int{1, 2}, Test: []int{2}}}},
		"has the row 40, which":                 {Set: set, Parts: []datasets.Split{{Train: []int{1, 2}, Test: []int{40}}}},
		"has 1 rows to train on and 0 to test":  {Set: set, Parts: []datasets.Split{{Train: []int{1}}}},
		"leave Count out":                       {Set: set, Parts: table.Parts, Count: 1},
	} {
		must.Err(t, other.Check(), want)
	}
	e.Task.Data = experiment.Table{Set: set, Count: 2}
	if e.Seed = 3; e.ID() == list[0].ID() {
		t.Error("other splits have the same identity")
	}
}

// A learning curve has each epoch of each member of an ensemble; of one that was written twice the last counts. What was
// trained before has none, which is said.
func TestCurves(t *testing.T) {
	together, own := small(baselines.Deterministic{}), transformer(t, baselines.Deterministic{})
	own.Method.Members = 2
	list := append(allSplits(together), own)
	folder, said := filepath.Join(t.TempDir(), "curves"), ""
	engine := experiment.Engine{Store: &experiment.Store{Folder: t.TempDir()}, Curves: folder, Notes: func(text string) { said += text }}
	must.Get(engine.Run(t.Context(), list...))(t)
	for i, want := range []string{"0.1 0.2 ", "0.1 0.2 ", "0.1 0.2 ", "0.1 0.2 1.1 1.2 "} {
		got := ""
		for _, p := range must.Get(list[i].Curve(folder))(t) {
			if got += fmt.Sprintf("%d.%d ", p.Model, p.Epoch); !(p.NLL > 0) || p.Pretraining {
				t.Errorf("of %v there is %+v", list[i], p)
			}
		}
		if got != want {
			t.Errorf("the curve of %v has the epochs %s, want %s", list[i], got, want)
		}
	}
	file := filepath.Join(folder, own.ID()+".csv")
	must.Do(t, os.WriteFile(file, append(must.Get(os.ReadFile(file))(t), "0,2,true,1.5,NaN,3,4,0\n"...), 0o600))
	if got := must.Get(own.Curve(folder))(t); len(got) != 4 || got[1].Total != 1.5 || !got[1].Pretraining {
		t.Errorf("with an epoch again there is %+v", got)
	}
	must.Do(t, os.WriteFile(file, []byte("0,1,"), 0o600))
	must.GetErr(own.Curve(folder))(t, "line 1")
	engine.Curves = filepath.Join(t.TempDir(), "others")
	if must.Get(engine.Run(t.Context(), own))(t); !strings.Contains(said, "not trained again to keep its learning curve") {
		t.Errorf("the engine says %q", said)
	}
	if got := must.Get(own.Curve(engine.Curves))(t); got != nil {
		t.Errorf("what was not trained has the curve %v", got)
	}

	// A held-out loss is in each epoch's line, and changes nothing of the training.
	held := adapted(t, baselines.MFVI{})
	held.Task.Data = experiment.Table{Set: smallTable("mine"), Count: 3, HeldOut: 0.2}
	plain, kept := must.Get(experiment.Run(t.Context(), allSplits(held)...))(t), must.Get(experiment.Engine{Curves: folder}.Run(t.Context(), allSplits(held)...))(t)
	for i, r := range kept {
		epochs := must.Get(r.Experiment.Curve(folder))(t)
		if before, now := epochs[0].HeldOut, epochs[len(epochs)-1].HeldOut; !(before > 0 && now > 0 && before != now) || r.Difference(plain[i]) != "" {
			t.Errorf("split %d: the held-out losses are %g and %g, and the metrics differ: %s", i, before, now, r.Difference(plain[i]))
		}
	}
}
