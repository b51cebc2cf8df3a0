package runner

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/linalg"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/render"
)

func uci(method, fidelity string, split int) experiment.Experiment {
	return experiment.Experiment{Study: experiment.UCI, Method: method, Dataset: "yacht", Splits: experiment.GalSplits,
		Split: split, Seed: uint64(split), Epochs: 3, Samples: 4, Fidelity: fidelity, Scale: experiment.Quick}
}

func toy(method string, seed uint64) experiment.Experiment {
	return experiment.Experiment{Study: experiment.Toy, Method: method, Dataset: experiment.ToyCubic,
		Seed: seed, Epochs: 20, Samples: 50, Fidelity: experiment.Paper, Scale: experiment.Quick}
}

func ignore(float64, string) {}

// newRunner is a runner on whatever backend this machine has.
func newRunner(t *testing.T) *Runner {
	t.Helper()
	r, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The recipes are the two columns of the table of differences.
func TestRecipesOfTheFidelities(t *testing.T) {
	text, err := RecipeOf(uci(experiment.Density, experiment.Paper, 0))
	if err != nil {
		t.Fatal(err)
	}
	if want := (Recipe{HiddenLayers: 2, Width: 50, InitStd: 0.03, Rank1: 0.1, PretrainEpochs: 10}); text != want {
		t.Errorf("paper: %+v, want %+v", text, want)
	}
	code, err := RecipeOf(uci(experiment.Density, experiment.Released, 0))
	if err != nil {
		t.Fatal(err)
	}
	want := Recipe{HiddenLayers: 3, Width: 50, InitStd: 0.1, Uniform: true, Clip: true, ZeroFactors: true, Rank1: 0.1, Joint: true, DecayAll: true, PretrainEpochs: 10}
	if code != want {
		t.Errorf("released: %+v, want %+v", code, want)
	}
	// Setting every option to the other fidelity's value must give its recipe.
	e := uci(experiment.Density, experiment.Paper, 0)
	e.Options = map[string]string{}
	for _, d := range Differences() {
		if d.Paper != d.Released && !strings.Contains(d.Released, " ") && d.Name != "width" {
			e.Options[d.Name] = d.Released
		}
	}
	if got, err := RecipeOf(e); err != nil || got != want {
		t.Errorf("paper with the options %v: %+v (error %v), want the released recipe %+v", e.Options, got, err, want)
	}
	for dataset, width := range map[string]int{"protein": 100, "year": 100, "boston": 50} {
		e := uci(experiment.Density, experiment.Paper, 0)
		e.Dataset = dataset
		if got, err := RecipeOf(e); err != nil || got.Width != width {
			t.Errorf("width on %s is %d (error %v), want %d", dataset, got.Width, err, width)
		}
	}
}

func TestOptions(t *testing.T) {
	valid := map[string]string{"noise": "uniform01", "init_std": "0.2", "prior_std": "2", "hidden_layers": "1", "width": "7", "clip": "true", "detach": "false",
		"variance": "plain", "energy_optimizer": "joint", "decay": "all", "pretrain_epochs": "0", "optimizer": "adam", "mixture_factors": "zeros", "mixture_fraction": "0.2"}
	var names []string
	plain, err := RecipeOf(uci(experiment.Density, experiment.Paper, 0))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range Differences() {
		names = append(names, d.Name)
		e := uci(experiment.Density, experiment.Paper, 0)
		e.Options = map[string]string{d.Name: valid[d.Name]}
		if got, err := RecipeOf(e); err != nil || got == plain {
			t.Errorf("option %s=%s changes nothing (error %v)", d.Name, valid[d.Name], err)
		}
		e.Options[d.Name] = "nonsense"
		if _, err := RecipeOf(e); err == nil || !strings.Contains(err.Error(), d.Name) || !strings.Contains(err.Error(), "nonsense") {
			t.Errorf("option %s=nonsense: error %v", d.Name, err)
		}
	}
	if missing := slices.Sorted(maps.Keys(valid)); len(missing) != len(names) {
		t.Errorf("options are %v, this test knows %v", names, missing)
	}
	e := uci(experiment.Density, experiment.Paper, 0)
	e.Options = map[string]string{"nois": "gaussian"}
	if _, err := RecipeOf(e); err == nil || !strings.Contains(err.Error(), "noise") {
		t.Errorf("unknown option: error %v, want one that lists the options", err)
	}
}

// Weight decay reaches variational parameters only in the released recipe, and
// the energy models have an optimizer of their own only in the paper's.
func TestParameterGroups(t *testing.T) {
	decay := func(fidelity string, role params.Role, options map[string]string) (float64, bool) {
		e := uci(experiment.Density, fidelity, 0)
		e.Options = options
		recipe, err := RecipeOf(e)
		if err != nil {
			t.Fatal(err)
		}
		_, run, err := recipe.regression(e)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range run.Groups {
			if slices.Contains(g.Roles, role) {
				switch o := g.Optimizer.(type) {
				case train.SGD:
					return o.Decay, false
				case train.Adam:
					return o.Decay, true
				}
			}
		}
		t.Fatalf("no group has role %s", role)
		return 0, false
	}
	for _, test := range []struct {
		fidelity string
		role     params.Role
		decay    float64
		adam     bool
	}{
		{experiment.Paper, params.Weight, 1e-4, false},
		{experiment.Paper, params.Variational, 0, false},
		{experiment.Paper, params.Likelihood, 0, false},
		{experiment.Paper, params.Generative, 1e-5, true},
		{experiment.Released, params.Weight, 1e-4, false},
		{experiment.Released, params.Variational, 1e-4, false},
		{experiment.Released, params.Likelihood, 1e-4, false},
		{experiment.Released, params.Generative, 1e-4, false},
	} {
		if got, adam := decay(test.fidelity, test.role, nil); got != test.decay || adam != test.adam {
			t.Errorf("%s, %s: decay %v, Adam %v; want %v, %v", test.fidelity, test.role, got, adam, test.decay, test.adam)
		}
		// The option changes the optimizer of weights and variational parameters alone.
		wantAdam := test.adam || test.role == params.Weight || test.role == params.Variational
		if got, adam := decay(test.fidelity, test.role, map[string]string{experiment.OptionOptimizer: "adam"}); got != test.decay || adam != wantAdam {
			t.Errorf("%s, %s with Adam: decay %v, Adam %v; want %v, %v", test.fidelity, test.role, got, adam, test.decay, wantAdam)
		}
	}
}

// Every method runs on real data in both studies and gives what the tables and
// the figure need; a batch gives each experiment the result it has alone.
func TestRun(t *testing.T) {
	r := newRunner(t)
	for _, method := range experiment.Methods() {
		t.Run(method, func(t *testing.T) {
			batch := []experiment.Experiment{uci(method, experiment.Paper, 0), uci(method, experiment.Paper, 1)}
			last := 0.0
			found, err := r.Run(context.Background(), batch, func(done float64, _ string) {
				if done < last {
					t.Errorf("progress went back from %v to %v", last, done)
				}
				last = done
			})
			if err != nil {
				t.Fatal(err)
			}
			if last != 1 {
				t.Errorf("progress ended at %v, want 1", last)
			}
			for i, f := range found {
				if f.ID != batch[i].ID() || f.Batched != 2 || f.Diverged || f.Backend == "" || f.Device == "" || f.Version == "" || f.Finished.IsZero() || f.CPUSeconds <= 0 {
					t.Errorf("result %d is incomplete: %+v", i, f)
				}
				// Yacht's targets have standard deviation 15.
				if rmse := f.Metrics["rmse"]; !(rmse > 0.1 && rmse < 25) {
					t.Errorf("result %d: RMSE %v", i, rmse)
				}
				if nll := f.Metrics["nll"]; math.IsNaN(nll) || nll < 0 || nll > 20 {
					t.Errorf("result %d: NLL %v", i, nll)
				}
			}
			alone, err := r.Run(context.Background(), batch[1:], ignore)
			if err != nil {
				t.Fatal(err)
			}
			if a, b := alone[0].Metrics["rmse"], found[1].Metrics["rmse"]; math.Abs(a-b) > 1e-3*b {
				t.Errorf("RMSE of split 1 is %v alone and %v in a batch", a, b)
			}

			curves, err := r.Run(context.Background(), []experiment.Experiment{toy(method, 0)}, ignore)
			if err != nil {
				t.Fatal(err)
			}
			series := curves[0].Series
			for _, name := range []string{render.SeriesMean, render.SeriesStd, render.SeriesQ005, render.SeriesQ025, render.SeriesQ975, render.SeriesQ995} {
				if len(series[name]) != len(series[render.SeriesX]) {
					t.Errorf("series %q has %d points, x has %d", name, len(series[name]), len(series[render.SeriesX]))
				}
			}
			for i := range series[render.SeriesX] {
				order := []float64{series[render.SeriesQ005][i], series[render.SeriesQ025][i], series[render.SeriesQ975][i], series[render.SeriesQ995][i]}
				if !slices.IsSorted(order) {
					t.Fatalf("quantiles at x = %v are %v", series[render.SeriesX][i], order)
				}
			}
		})
	}
}

func TestRunErrors(t *testing.T) {
	r := newRunner(t)
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	unknownOption := uci(experiment.Density, experiment.Paper, 0)
	unknownOption.Options = map[string]string{"none": "1"}
	for name, test := range map[string]struct {
		ctx   context.Context
		batch []experiment.Experiment
		want  string
	}{
		"empty":    {context.Background(), nil, "empty batch"},
		"split":    {context.Background(), []experiment.Experiment{uci(experiment.Density, experiment.Paper, 20)}, "20 splits"},
		"option":   {context.Background(), []experiment.Experiment{unknownOption}, `no option "none"`},
		"method":   {context.Background(), []experiment.Experiment{uci("none", experiment.Paper, 0)}, `no method "none"`},
		"canceled": {canceled, []experiment.Experiment{uci(experiment.Density, experiment.Paper, 0)}, "stopped after 0"},
	} {
		_, err := r.Run(test.ctx, test.batch, ignore)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, test.want)
		}
		if name == "canceled" && !errors.Is(err, context.Canceled) {
			t.Errorf("error %v does not wrap context.Canceled", err)
		}
	}
}

// A Gaussian process without a Cholesky factor fails its own split, by name and
// with the condition number, and leaves the others what they are without it.
func TestFailedFactorisation(t *testing.T) {
	check := checkDUE
	t.Cleanup(func() { checkDUE = check })
	diagnosis := linalg.Diagnose([]float64{1, 2, 2, 1}, 2)
	checkDUE = func(baselines.DUE, *model.Store, string) error { return baselines.FailedReplicas{1: diagnosis} }
	r := newRunner(t)
	var batch []experiment.Experiment
	for split := range 3 {
		batch = append(batch, uci(experiment.DUE, experiment.Paper, split))
	}
	found, err := r.Run(context.Background(), batch, ignore)
	if err == nil || !errors.Is(err, linalg.ErrNotPositiveDefinite) || !strings.Contains(err.Error(), "split 1") || strings.Contains(err.Error(), "split 2") || !strings.Contains(err.Error(), "condition number 3") {
		t.Errorf("error %v", err)
	}
	if len(found) != 2 || found[0].ID != batch[0].ID() || found[1].ID != batch[2].ID() || found[1].Batched != 3 || found[1].Metrics["rmse"] <= 0 || found[1].Finished.IsZero() {
		t.Errorf("results %+v", found)
	}
	checkDUE = check
	whole, err := r.Run(context.Background(), batch, ignore)
	if err != nil || len(whole) != 3 || !maps.Equal(whole[2].Metrics, found[1].Metrics) {
		t.Errorf("split 2 among failures: %v, without: %v (%v)", found[1].Metrics, whole, err)
	}
	// Another failure is that of all.
	checkDUE = func(baselines.DUE, *model.Store, string) error { return errors.New("the head is not there") }
	if found, err := r.Run(context.Background(), batch, ignore); err == nil || len(found) > 0 {
		t.Errorf("another failure: %v, %v", found, err)
	}
}

// A number that is not finite marks its own result as diverged, not the batch.
func TestFinite(t *testing.T) {
	one := []float64{1}
	for _, p := range []prediction{
		ofDraws(predict.Mixture{Mean: [][]float64{{1, math.NaN()}}, NoiseStd: [][]float64{{1, 1}}}),
		ofDraws(predict.Mixture{Mean: [][]float64{{1, 2}, {math.Inf(1), 0}}, NoiseStd: [][]float64{{1, 1}, {1, 1}}}),
		ofDraws(predict.Mixture{Mean: [][]float64{one}, NoiseStd: [][]float64{{math.NaN()}}}),
		ofMarginals(predict.Mixture{Mean: [][]float64{one}, Std: [][]float64{{math.NaN()}}, NoiseStd: [][]float64{{1}}}),
		{mean: [][]float64{one}, noise: one, diverged: true},
	} {
		if p.finite() {
			t.Errorf("%+v counts as finite", p)
		}
	}
	if !ofDraws(predict.Mixture{Mean: [][]float64{{1, 2}}, NoiseStd: [][]float64{{1, 1}}}).finite() {
		t.Error("finite draws count as not finite")
	}
}

// What a graph complains of is one line; a mistake of this code says where it is.
func TestPanicsBecomeErrors(t *testing.T) {
	fail := func(panicking func()) (err error) {
		defer recoverTo(&err, uci(experiment.Density, experiment.Paper, 0))
		panicking()
		return nil
	}
	if err := fail(func() {}); err != nil {
		t.Errorf("no panic gives %v", err)
	}
	if err := fail(func() { panic("shapes differ") }); err == nil || !strings.Contains(err.Error(), "yacht") || !strings.HasSuffix(err.Error(), "shapes differ") {
		t.Errorf("a graph's panic gives %v", err)
	}
	var empty []int
	if err := fail(func() { _ = empty[len(empty)] }); err == nil || !strings.Contains(err.Error(), "runner_test.go") {
		t.Errorf("an index out of range gives %v", err)
	}
}
