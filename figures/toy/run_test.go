package toy

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/jobs"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
)

// runner is one on the pure Go backend, for all methods.
func runner(t *testing.T) Runner {
	t.Helper()
	t.Setenv(environment.ConfigVariable, environment.GoSequential)
	machine := must.Get(jobs.OpenMachine(environment.SmallNetworks))(t)
	return Runner{Machine: machine, Methods: methods.All()}
}

// short are experiments of a protocol with few steps and samples.
func short(p Protocol, m methods.Method, steps, samples int, seeds ...uint64) []results.Experiment {
	p = p.Quick()
	p.Steps, p.Samples, p.Seeds = steps, samples, seeds
	return p.Experiments(m)
}

// Every method gives what the figure needs; a batch gives each experiment the result it has alone.
func TestCubic(t *testing.T) {
	r := runner(t)
	for _, m := range methods.All() {
		t.Run(m.Name, func(t *testing.T) {
			batch := short(Cubic(), m, 20, 50, 0, 1)
			last := 0.0
			found := must.Get(r.Run(t.Context(), batch, func(done float64, note string) {
				if done < last || note == "" {
					t.Errorf("progress went from %v to %v, %q", last, done, note)
				}
				last = done
			}))(t)
			if last != 1 {
				t.Errorf("progress ended at %v, want 1", last)
			}
			alone := must.Get(r.Run(t.Context(), batch[1:], func(float64, string) {}))(t)
			for i, f := range found {
				if f.ID != batch[i].ID() || f.Batched != 2 || f.Diverged || f.Backend == "" || f.Finished.IsZero() || f.CPUSeconds <= 0 || !(f.Metrics[results.MetricNoiseStd] > 0) {
					t.Errorf("result %d is incomplete: %+v", i, f)
				}
				s := f.Series
				for _, name := range []string{results.SeriesMean, results.SeriesStd, results.SeriesQ005, results.SeriesQ025, results.SeriesQ975, results.SeriesQ995} {
					if len(s[name]) != 241 || len(s[results.SeriesX]) != 241 {
						t.Fatalf("series %q has %d points, x has %d", name, len(s[name]), len(s[results.SeriesX]))
					}
				}
				for k, x := range s[results.SeriesX] {
					if order := []float64{s[results.SeriesQ005][k], s[results.SeriesQ025][k], s[results.SeriesQ975][k], s[results.SeriesQ995][k]}; !slices.IsSorted(order) {
						t.Fatalf("quantiles at x = %v are %v", x, order)
					}
				}
				if i == 1 {
					for k, mean := range s[results.SeriesMean] {
						if got := alone[0].Series[results.SeriesMean][k]; math.Abs(got-mean) > 1e-2*(1+math.Abs(mean)) {
							t.Fatalf("the mean at place %d is %v in a batch and %v alone", k, mean, got)
						}
					}
				}
			}
		})
	}
}

// The data of a seed are standardised, and what is reported is back in their own units.
func TestCubicUnits(t *testing.T) {
	d := cubicOf(short(Cubic(), methods.Density, 1, 1, 3)[0])
	for i, y := range d.train.Targets {
		if back := d.target.Mean[0] + d.target.Std[0]*y; math.Abs(back-d.raw.Y[i]) > 1e-9 {
			t.Fatalf("target %d is %v, back in its units %v", i, d.raw.Y[i], back)
		}
	}
	n := len(d.grid)
	all := func(v float64) []float64 { return slices.Repeat([]float64{v}, n) }
	p := methods.Prediction{Mixture: predict.Mixture{Mean: [][]float64{all(1), all(3)}, NoiseStd: [][]float64{all(0.5), all(0.5)}}}
	metrics, series := d.summary(p)
	scale := d.target.Std[0]
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"mean", series[results.SeriesMean][7], d.target.Mean[0] + 2*scale},
		{"deviation", series[results.SeriesStd][7], scale},
		{"noise", metrics[results.MetricNoiseStd], 0.5 * scale},
		{"gap ratio", metrics[results.MetricGapRatio], 1},
		{"first x", series[results.SeriesX][0], -6},
		{"last x", series[results.SeriesX][n-1], 6},
		{"2.5% quantile", series[results.SeriesQ025][0], d.target.Mean[0] + scale},
	} {
		if math.Abs(c.got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
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
		{"study", t.Context(), func(e *results.Experiment) { e.Study = results.UCI }, `the study is "uci", want "toy"`},
		{"method", t.Context(), func(e *results.Experiment) { e.Method = "none" }, `no method "none", want one of deterministic, mfvi`},
		{"problem", t.Context(), func(e *results.Experiment) { e.Dataset = "yacht" }, `no problem "yacht", want toy-cubic or two-moons`},
		{"fidelity", t.Context(), func(e *results.Experiment) { e.Fidelity = results.Released }, "no toy experiment"},
		{"option", t.Context(), func(e *results.Experiment) { e.Options = map[string]string{"none": "1"} }, `no option "none"`},
		{"option of UCI", t.Context(), func(e *results.Experiment) { e.Options = map[string]string{"optimizer": "sgd"} }, `no option "optimizer"`},
		{"canceled", canceled, func(*results.Experiment) {}, "stopped after 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			batch := short(Cubic(), methods.Density, 5, 2, 0)
			c.change(&batch[0])
			_, err := r.Run(c.ctx, batch, func(float64, string) {})
			if err == nil || !strings.Contains(err.Error(), c.want) || c.ctx.Err() != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestCost(t *testing.T) {
	for _, c := range []struct {
		p    Protocol
		m    methods.Method
		want float64
	}{
		{Cubic(), methods.Density, 100 * 4000},
		{Cubic().Quick(), methods.Density, 100 * 800},
		{Moons(), methods.Density, 500 * 1000},
		{Cubic(), methods.Ensemble, 5 * 100 * 4000},
		{Moons(), methods.Ensemble, 5 * 500 * 1000},
	} {
		if got := (Runner{Methods: methods.All()}).Cost(c.p.Experiments(c.m)[0]); got != c.want {
			t.Errorf("%s, %s, %s: %v, want %v", c.m.Name, c.p.Problem, c.p.Scale, got, c.want)
		}
	}
}

// The training of each method, as the protocol's doc has it.
func TestTraining(t *testing.T) {
	for _, c := range []struct {
		name                   string
		p                      Protocol
		m                      methods.Method
		epochs, pretrain       int
		rate                   float64
		hidden, width, samples int
	}{
		{"cubic", Cubic(), methods.MFVI, 4000, 0, 1e-3, 1, 50, 1000},
		{"cubic, density", Cubic(), methods.Density, 4000, 2000, 1e-3, 1, 50, 1000},
		{"cubic, mixture, quick", Cubic().Quick(), methods.DensityMixture, 800, 400, 1e-3, 1, 50, 1000},
		{"moons", Moons(), methods.Ensemble, 1000, 0, 1e-2, 2, 50, 100},
		{"moons, density, quick", Moons().Quick(), methods.Density, 100, 50, 1e-2, 2, 50, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, m := must.Get2(ProtocolOf(c.p.Experiments(c.m)[0], methods.All()))(t)
			run := p.trainer(m, 70)
			if run.Epochs != c.epochs || run.PretrainEpochs != c.pretrain || p.LearningRate != c.rate || p.HiddenLayers != c.hidden || p.Width != c.width || p.Samples != c.samples || run.BatchSize != 70 || run.LogLikelihoodScale != 1 {
				t.Errorf("got %+v of %+v", run, p)
			}
			if c.pretrain > 0 && !slices.Equal(run.PretrainGroups[0].Roles, train.AllRoles()) { // as gradients=attached needs
				t.Errorf("pretraining moves %+v", run.PretrainGroups)
			}
		})
	}
}
