package uci

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/stat"

	"densityuncertainty/baselines"
	"densityuncertainty/datasets"
	"densityuncertainty/dul/linalg"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/jobs"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
)

// runner is one on the pure Go backend, for all methods and further ones.
func runner(t *testing.T, further ...methods.Method) Runner {
	t.Helper()
	t.Setenv(environment.ConfigVariable, environment.GoSequential)
	machine := must.Get(jobs.OpenMachine(environment.SmallNetworks))(t)
	return Runner{Machine: machine, Methods: append(methods.All(), further...)}
}

// yacht are runs of a few epochs and samples on some splits of yacht.
func yacht(m methods.Method, splits ...int) []results.Experiment {
	p := Paper().On("yacht")
	p.Scale, p.Epochs, p.Samples, p.Only = results.Quick, 3, 4, splits
	return p.Experiments(m)
}

func ignore(float64, string) {}

func near(got, want, tolerance float64) bool { return math.Abs(got-want) <= tolerance }

// The splits are the published ones, standardised by their training part alone. The numbers were computed outside of
// this program, from the data file and the generator that made the published splits.
func TestLoad(t *testing.T) {
	for _, c := range []struct {
		name      string
		splits    string
		split     int
		mean, std float64    // of the training targets
		test      []float64  // the first targets of the test part, in their units
		train     []float64  // of the training part
		input     [6]float64 // the first test input, standardised
		trained   [6]float64 // the first training input
	}{
		{"gal 3", GalSplits, 3, 10.13801444, 14.765106149, []float64{0.45, 20.91, 12.39}, []float64{1.15, 6, 2.62},
			[6]float64{-1.760327192, 0.050945338, 1.26685952, 0.020964353, 1.260074783, -1.101817846},
			[6]float64{0.059870108, -1.47820343, -0.069829138, -0.44218064, -0.159284462, -0.603932783}},
		{"gal 4", GalSplits, 4, 10.4966787, 14.910768084, []float64{1.76, 1.94, 1.07}, []float64{4.09, 5.54, 1.65},
			[6]float64{-1.720011872, 0.039358369, 1.232105186, -0.01092775, 1.218642121, -0.371562778},
			[6]float64{0.048231261, -0.089917539, 1.39420119, 1.841955093, -0.165984673, 0.123258806}},
		{"random 3", RandomSplits, 3, 10.592274368, 15.065766567, []float64{0.83, 0.36, 0.7}, []float64{12.86, 1.36, 0.04},
			[6]float64{1.623125525, 0.069677691, 1.212688842, 0.003845512, 1.213728436, -0.886985442},
			[6]float64{-0.002445203, 0.461791652, -1.733932291, 0.039954217, -1.837482631, 0.855532057}},
		{"random 4", RandomSplits, 4, 10.766209386, 15.34733831, []float64{1.99, 2.63, 2.94}, []float64{15.25, 12.4, 20.11},
			[6]float64{0.050572242, 0.026968201, -0.015664729, 2.624449284, -1.845376104, -0.378840468},
			[6]float64{1.528534409, 1.529592972, -0.015664729, 0.582236793, -0.235849376, 0.852835702}},
		{"gap 4", GapSplits, 4, 10.42297561, 14.793292627, []float64{1.01, 1.43, 2.05}, []float64{0.04, 0.17, 0.36},
			[6]float64{0.052128604, -2.086489818, -1.621773498, -2.004022485, -0.274633204, -0.61675541},
			[6]float64{0.052128604, 1.784874144, -1.621773498, 0.50251247, -1.6738, -1.598773732}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := Paper().On("yacht")
			p.Splits, p.Only = c.splits, []int{c.split}
			s := must.Get(load(t.Context(), p.Experiments(methods.Density)[0], false))(t)
			trained, test := s.train.Inputs.(nets.Floats), 31
			if c.splits == GapSplits {
				test = 103
			}
			n := 308 - test
			if s.experiment.Split != c.split || trained.Size() != 6 || s.inputs.Size() != 6 || s.train.Len() != n || s.inputs.Len() != test || len(s.target) != test {
				t.Fatalf("split %d of %d inputs, %d rows to train on, %d and %d to test", s.experiment.Split, trained.Size(), s.train.Len(), s.inputs.Len(), len(s.target))
			}
			if !near(s.scale.Mean[0], c.mean, 1e-8) || !near(s.scale.Std[0], c.std, 1e-8) {
				t.Errorf("targets are scaled by %v and %v, want %v and %v", s.scale.Mean[0], s.scale.Std[0], c.mean, c.std)
			}
			for i := range c.test {
				if got := s.target[i]*c.std + c.mean; !near(got, c.test[i], 1e-7) {
					t.Errorf("test target %d is %v, want %v", i, got, c.test[i])
				}
				if got := s.train.Targets[i]*c.std + c.mean; !near(got, c.train[i], 1e-7) {
					t.Errorf("training target %d is %v, want %v", i, got, c.train[i])
				}
			}
			for j := range c.input {
				if !near(s.inputs.Values[j], c.input[j], 1e-8) || !near(trained.Values[j], c.trained[j], 1e-8) {
					t.Errorf("column %d: test input %v, training input %v, want %v and %v", j, s.inputs.Values[j], trained.Values[j], c.input[j], c.trained[j])
				}
			}
			for j := range 7 { // all columns of the training part, the target last, have mean 0 and deviation 1
				var mean, square float64
				for i := range n {
					v := s.train.Targets[i]
					if j < 6 {
						v = trained.Values[6*i+j]
					}
					mean, square = mean+v/float64(n), square+v*v/float64(n)
				}
				if !near(mean, 0, 1e-12) || !near(square, 1, 1e-12) {
					t.Errorf("column %d has mean %v and mean square %v on the training part", j, mean, square)
				}
			}
		})
	}
}

// Two test examples in hand: with draws of the mean 1 and 3, and 2 and 2, noise variances 1 and 4, targets 2 and 5, all
// in units of 10 about 100. In the target's own units the components are N(110, 10^2) and N(130, 20^2) for 120, and
// N(120, 10^2) and N(120, 20^2) for 150.
func TestEvaluate(t *testing.T) {
	s := splitData{target: []float64{2, 5}, scale: datasets.Scaler{Mean: []float64{100}, Std: []float64{10}}}
	p := methods.Prediction{Mixture: predict.Mixture{Mean: [][]float64{{1, 2}, {3, 2}}, NoiseStd: [][]float64{{1, 1}, {2, 2}}}}
	got := must.Get(s.evaluate(p))(t)
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
		results.MetricCRPS:      (crps(120, 110, 10, 130, 20) + crps(150, 120, 10, 120, 20)) / 2,
		results.MetricCoverage:  1,                           // the targets are at 0.575 and 0.966 of their distributions
		results.MetricSpearman:  -1,                          // the mean is uncertain where it is right
		results.MetricRMSE:      math.Sqrt((0 + 30*30) / 2.), // the means of the draws are 120 and 120
		results.MetricNLL:       -(math.Log(first) + math.Log(second)) / 2,
		results.MetricNoiseStd:  math.Sqrt((10*10 + 20*20) / 2.),
		results.MetricModelStd:  (10 + 0) / 2.,
		results.MetricSharpness: (math.Sqrt(10*10+250) + math.Sqrt(0+250)) / 2,
	}
	if !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want))) {
		t.Errorf("the metrics are %v, want %v", got, want)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !near(got[name], want[name], 1e-9) {
			t.Errorf("%s is %v, want %v", name, got[name], want[name])
		}
	}
}

// Every method runs on real data; a batch gives each experiment the result it has alone.
func TestRun(t *testing.T) {
	r := runner(t)
	for _, m := range methods.All() {
		t.Run(m.Name, func(t *testing.T) {
			batch := yacht(m, 0, 1)
			last, pretraining := 0.0, false
			found := must.Get(r.Run(t.Context(), batch, func(done float64, note string) {
				if done < last {
					t.Errorf("progress went back from %v to %v", last, done)
				}
				last, pretraining = done, pretraining || strings.HasPrefix(note, "generative pretraining")
			}))(t)
			if last != 1 || pretraining != m.HasEnergies {
				t.Errorf("progress ended at %v, generative pretraining %t", last, pretraining)
			}
			for i, f := range found {
				if f.ID != batch[i].ID() || f.Batched != 2 || f.Diverged || f.Backend == "" || f.Device == "" || f.Version == "" || f.Finished.IsZero() || f.CPUSeconds <= 0 {
					t.Errorf("result %d is incomplete: %+v", i, f)
				}
				// Yacht's targets have standard deviation 15.
				if rmse := f.Metrics[results.MetricRMSE]; !(rmse > 0.1 && rmse < 25) {
					t.Errorf("result %d: RMSE %v", i, rmse)
				}
				if nll := f.Metrics[results.MetricNLL]; !(nll > 0 && nll < 20) {
					t.Errorf("result %d: NLL %v", i, nll)
				}
			}
			alone := must.Get(r.Run(t.Context(), batch[1:], ignore))(t)
			if a, b := alone[0].Metrics[results.MetricRMSE], found[1].Metrics[results.MetricRMSE]; !near(a, b, 1e-3*b) {
				t.Errorf("RMSE of split 1 is %v alone and %v in a batch", a, b)
			}
		})
	}
}

func TestRunRefuses(t *testing.T) {
	r := runner(t)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name   string
		ctx    context.Context
		change func(*results.Experiment)
		want   string
	}{
		{"study", t.Context(), func(e *results.Experiment) { e.Study = results.Toy }, `the study is "toy", want "uci"`},
		{"method", t.Context(), func(e *results.Experiment) { e.Method = "none" }, `no method "none", want one of deterministic, mfvi`},
		{"data set", t.Context(), func(e *results.Experiment) { e.Dataset = "iris" }, `no data set "iris", want one of boston`},
		{"splits", t.Context(), func(e *results.Experiment) { e.Splits = "other" }, `splits are "other", want gal, random or gap`},
		{"split", t.Context(), func(e *results.Experiment) { e.Split = 20 }, "20 splits"},
		{"option", t.Context(), func(e *results.Experiment) { e.Options = map[string]string{"none": "1"} }, `no option "none"`},
		{"option of images", t.Context(), func(e *results.Experiment) { e.Options = map[string]string{"padding": "zero"} }, `no option "padding"`},
		{"canceled", canceled, func(*results.Experiment) {}, "stopped after 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			batch := yacht(methods.Density, 0)
			c.change(&batch[0])
			_, err := r.Run(c.ctx, batch, ignore)
			if err == nil || !strings.Contains(err.Error(), c.want) || c.ctx.Err() != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestCost(t *testing.T) {
	for _, c := range []struct {
		dataset string
		p       Protocol
		m       methods.Method
		want    float64
	}{
		{"yacht", Paper(), methods.Density, 308 * 100},
		{"boston", Paper().Quick(), methods.Density, 506 * 20},
		{Year, Paper(), methods.Density, 515345 * 100},
		{"yacht", Paper(), methods.Ensemble, 5 * 308 * 100},
	} {
		if got := (Runner{Methods: methods.All()}).Cost(c.p.On(c.dataset).Experiments(c.m)[0]); got != c.want {
			t.Errorf("%s, %s, %s: %v, want %v", c.m.Name, c.dataset, c.p.Scale, got, c.want)
		}
	}
	if got := (Runner{}).Cost(results.Experiment{Dataset: "none"}); got != 0 {
		t.Errorf("no data set costs %v", got)
	}
}

// seen is a family that notes what it is asked for.
type seen struct {
	nets.Layers
	layers map[string]bool // "inputs to units"
}

func (l seen) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	l.layers[fmt.Sprintf("%d to %d", x.Shape().Dim(-1), units)] = true
	return l.Layers.Dense(s, x, units)
}

// The width and the number of layers of the protocol reach the network that is trained.
func TestNetworkOfARun(t *testing.T) {
	family := seen{baselines.Deterministic{}, make(map[string]bool)}
	own := methods.Method{Name: "own", Layers: func(methods.Options) nets.Layers { return family }}
	p := Paper().On("yacht")
	p.Width, p.HiddenLayers, p.Epochs, p.Only = 7, 3, 1, []int{0}
	must.Get(runner(t, own).Run(t.Context(), p.Experiments(own), ignore))(t)
	if got, want := slices.Sorted(maps.Keys(family.layers)), []string{"6 to 7", "7 to 1", "7 to 7"}; !slices.Equal(got, want) {
		t.Errorf("the layers are %v, want %v", got, want)
	}
}

// Splits are replicas of one graph where their epochs have as many batches, and for SNGP as many examples.
func TestReplicas(t *testing.T) {
	var splits []splitData
	for _, n := range []int{100, 128, 129, 100, 200} {
		set := train.Dataset{Inputs: nets.Rows(make([]float64, n), 1), Targets: make([]float64, n)}
		splits = append(splits, splitData{train: set})
	}
	for _, c := range []struct {
		m    methods.Method
		want string
	}{
		{methods.Density, "[100 128 100] [129 200]"},
		{methods.DUE, "[100 128 100] [129 200]"},
		{methods.SNGP, "[100 100] [128] [129] [200]"},
	} {
		t.Run(c.m.Name, func(t *testing.T) {
			var got []string
			for _, group := range (Protocol{Options: methods.Options{BatchSize: 128}}).replicas(c.m, splits) {
				var sizes []int
				for _, s := range group {
					sizes = append(sizes, s.train.Len())
				}
				got = append(got, fmt.Sprint(sizes))
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %v, want %s", got, c.want)
			}
		})
	}
}

// failing is a process whose end of training fails.
type failing struct {
	methods.Process
	err error
}

func (f failing) Head(task methods.Task) (methods.Head, error) {
	head, err := f.Process.Head(task)
	head.Finish = func(*model.Store, ...float64) error { return f.err }
	return head, err
}

// A Gaussian process without a Cholesky factor fails its own split, by name and with the condition number, and leaves
// the others what they are without it. Another failure is that of all.
func TestFailedFactorisation(t *testing.T) {
	failure := func(err error) Runner {
		m := methods.DUE
		m.Process = failing{m.Process, err}
		r := runner(t)
		r.Methods = methods.List{m}
		return r
	}
	batch := yacht(methods.DUE, 0, 1, 2)
	r := failure(baselines.FailedReplicas{1: linalg.Diagnose([]float64{1, 2, 2, 1}, 2)})
	found, err := r.Run(t.Context(), batch, ignore)
	if err == nil || !errors.Is(err, linalg.ErrNotPositiveDefinite) || !strings.Contains(err.Error(), "split 1") || strings.Contains(err.Error(), "split 2") || !strings.Contains(err.Error(), "condition number 3") {
		t.Errorf("error %v", err)
	}
	if len(found) != 2 || found[0].ID != batch[0].ID() || found[1].ID != batch[2].ID() || found[1].Batched != 3 || found[1].Metrics[results.MetricRMSE] <= 0 || found[1].Finished.IsZero() {
		t.Fatalf("results %+v", found)
	}
	whole, err := runner(t).Run(t.Context(), batch, ignore)
	if err != nil || len(whole) != 3 || !maps.Equal(whole[2].Metrics, found[1].Metrics) {
		t.Errorf("split 2 among failures: %v, without: %v (%v)", found[1].Metrics, whole, err)
	}
	other := errors.New("the head is not there")
	r = failure(other)
	if found, err := r.Run(t.Context(), batch, ignore); !errors.Is(err, other) || len(found) > 0 {
		t.Errorf("another failure: %v, %v", found, err)
	}
}

// With early stopping a fifth of the training part is held out; the test part stays what it is, and is not looked at.
func TestEarlyStopping(t *testing.T) {
	t.Setenv(environment.ConfigVariable, environment.GoSequential)
	p := Paper().On("yacht")
	p.Only, p.Epochs, p.Samples, p.LearningRate = []int{2, 3}, 150, 4, 0.03
	e := p.Experiments(methods.Density)[0]
	whole, stopped := must.Get(load(t.Context(), e, false))(t), must.Get(load(t.Context(), e, true))(t)
	raw := func(s splitData, targets []float64) []float64 { return s.scale.Inverse(targets) }
	both := slices.Concat(raw(stopped, stopped.train.Targets), raw(stopped, stopped.heldOut.Targets))
	all := raw(whole, whole.train.Targets)
	slices.Sort(both)
	slices.Sort(all)
	if len(both) != len(all) || stopped.heldOut.Len() != 55 || stopped.heldOut.Inputs.Len() != 55 {
		t.Fatalf("%d examples to train on and %d to stop by of %d", stopped.train.Len(), stopped.heldOut.Len(), len(all))
	}
	for i := range all {
		if !near(both[i], all[i], 1e-9) {
			t.Fatalf("target %d of both parts is %v, of the training part %v", i, both[i], all[i])
		}
	}
	if got, want := raw(stopped, stopped.target), raw(whole, whole.target); !near(got[0], want[0], 1e-9) || !near(got[30], want[30], 1e-9) || len(got) != len(want) {
		t.Error("the test part is another one")
	}
	if mean := stat.Mean(stopped.train.Targets, nil); !near(mean, 0, 1e-12) {
		t.Errorf("the mean of the examples to train on is %v", mean)
	}

	list := []methods.Method{methods.Density, methods.Ensemble}
	last := must.Get(Run(t.Context(), p, list...))(t)
	p.EarlyStopping = true
	best := must.Get(Run(t.Context(), p, list...))(t)
	for i, line := range best {
		if line.Experiment.Options["early_stopping"] != "true" || line.Diverged || line.Metrics[results.MetricNLL] == last[i].Metrics[results.MetricNLL] {
			t.Errorf("%v: %v, without early stopping %v", line.Experiment, line.Metrics, last[i].Metrics)
		}
	}
	// It is not that there are fewer examples to train on.
	backend, _ := must.Get2(environment.Open())(t)
	defer backend.Finalize()
	filled, m := must.Get2(ProtocolOf(best[0].Experiment, methods.All()))(t)
	fewer := methods.Regressions{Method: m, Trainer: filled.trainer(m), Network: m.Network(filled.Options, filled.Width, filled.HiddenLayers),
		Experiments: []results.Experiment{e}, Sets: []train.Dataset{stopped.train}, Inputs: []nets.Floats{stopped.inputs}}
	atEnd := must.Get(stopped.evaluate(must.Get(fewer.Fit(t.Context(), backend))(t)[0]))(t)
	if near(atEnd[results.MetricNLL], best[0].Metrics[results.MetricNLL], 1e-6) {
		t.Errorf("the last of %d epochs is kept: %v", p.Epochs, atEnd)
	}
	sngp := p.Experiments(methods.SNGP)[0]
	if sngp.Options["early_stopping"] != "" {
		t.Error("SNGP, which has none, has the option early_stopping")
	}
	sngp.Options = maps.Clone(sngp.Options)
	if sngp.Options == nil {
		sngp.Options = make(map[string]string)
	}
	sngp.Options["early_stopping"] = "true"
	if _, _, err := ProtocolOf(sngp, methods.All()); err == nil || !strings.Contains(err.Error(), "sngp has no use for the option early_stopping") {
		t.Errorf("SNGP with early stopping: %v", err)
	}
}
