package experiment_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/experiment/methods"
	"densityuncertainty/figures/experiment/toy"
	"densityuncertainty/figures/experiment/uci"
	oldmethods "densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
	oldtoy "densityuncertainty/figures/toy"
	olduci "densityuncertainty/figures/uci"
)

// The engine gives the numbers of the engines that it replaces, bit for bit, as long as there are both.

// compared are methods as the old engines and this one have them.
var compared = []struct {
	old oldmethods.Method
	now experiment.Method
}{
	{oldmethods.Deterministic, methods.Deterministic}, {oldmethods.MFVI, methods.MFVI}, {oldmethods.MCDropout, methods.MCDropout},
	{oldmethods.VDropout, methods.VDropout}, {oldmethods.Rank1, methods.Rank1}, {oldmethods.Density, methods.Density},
	{oldmethods.DensityMixture, methods.DensityMixture}, {oldmethods.Ensemble, methods.Ensemble},
	{oldmethods.SNGP, methods.SNGP}, {oldmethods.DUE, methods.DUE},
}

// sameNumbers compares results with those of an old engine. Metrics that the test leaves out are compared nowhere.
func sameNumbers(t *testing.T, what string, got experiment.Result, want results.Result, without ...func(metric string) bool) {
	t.Helper()
	if got.Diverged != want.Diverged {
		t.Errorf("%s: diverged %t, want %t", what, got.Diverged, want.Diverged)
	}
	if len(want.Metrics) == 0 && !want.Diverged {
		t.Errorf("%s: there is nothing to compare with", what)
	}
	for name, value := range want.Metrics {
		skipped := false
		for _, leave := range without {
			skipped = skipped || leave(name)
		}
		if v, has := got.Metrics[name]; !skipped && (!has || v != value) {
			t.Errorf("%s: %s is %v, want %v", what, name, v, value)
		}
	}
}

// All settings of the UCI tables.
func TestOldUCINumbers(t *testing.T) {
	ctx := context.Background()
	splits := []int{0, 3}
	text, released, adam, early := olduci.Paper(), olduci.Released(), olduci.Paper(), olduci.Paper()
	adam.Optimizer, early.EarlyStopping = oldmethods.Adam, true
	gaps, choosing := olduci.Paper(), olduci.Paper()
	gaps.Splits, choosing.Scale = olduci.GapSplits, results.Grid
	cross := func(preset experiment.Preset, data uci.Data) func(m experiment.Method) (experiment.Experiments, error) {
		return func(m experiment.Method) (experiment.Experiments, error) {
			return experiment.Cross(preset, []experiment.Source{data}, m)
		}
	}
	gal, few := uci.Data{Name: "yacht"}, []string{"density", "mcdropout", "ensemble", "due"}
	for _, c := range []struct {
		name     string
		protocol olduci.Protocol
		list     func(m experiment.Method) (experiment.Experiments, error)
		epochs   int
		methods  []string // nil for all
	}{
		{"paper", text, cross(uci.Paper, gal), 4, nil},
		{"released", released, cross(uci.Released, gal), 4, nil},
		{"adam", adam, cross(uci.Adam, gal), 3, few},
		{"early stopping", early, cross(uci.StoppedEarly, gal), 6, []string{"density", "mcdropout", "ensemble"}},
		{"gaps", gaps, cross(uci.Paper, uci.Data{Name: "yacht", Kind: uci.Gap}), 2, few},
		{"choosing", choosing, cross(uci.Paper, uci.Data{Name: "yacht", Choosing: true}), 2, few},
		{"tuned", olduci.Tuned(), func(m experiment.Method) (experiment.Experiments, error) {
			return uci.Tuned([]experiment.Source{gal}, m)
		}, 2, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := c.protocol.On("yacht")
			p.Only, p.Epochs = splits, c.epochs
			var list experiment.Experiments
			var old oldmethods.List
			for _, m := range compared {
				if c.methods != nil && !slices.Contains(c.methods, m.old.Name) {
					continue
				}
				old = append(old, m.old)
				one := must.Get(c.list(m.now))(t)
				list = append(list, one.OnSplits(splits...).Change(func(e *experiment.Experiment) { e.Recipe.Epochs = c.epochs })...)
			}
			want := must.Get(olduci.Run(ctx, p, old...))(t)
			got := must.Get(experiment.Run(ctx, list...))(t)
			if len(got) != len(want) {
				t.Fatalf("%d results, want %d", len(got), len(want))
			}
			for i := range got {
				sameNumbers(t, fmt.Sprint(list[i]), got[i], want[i])
			}
		})
	}
}

// The toy problems, where two moons' old networks were trained one by one: as replicas of one graph, sums are rounded in
// another order.
func TestOldToyNumbers(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name         string
		protocol     oldtoy.Protocol
		data         experiment.Source
		steps, draws int
		alike        float64 // relative difference of replicas
	}{
		{"cubic", oldtoy.Cubic(), toy.Cubic{Seeds: 2}, 40, 50, 0},
		{"moons", oldtoy.Moons(), toy.Moons{Seeds: 2}, 20, 5, 1e-6},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := c.protocol
			p.Steps, p.Samples, p.Seeds = c.steps, c.draws, []uint64{0, 1}
			var list experiment.Experiments
			var old oldmethods.List
			for _, m := range compared {
				old = append(old, m.old)
				list = append(list, must.Get(experiment.Cross(toy.Paper, []experiment.Source{c.data}, m.now))(t)...)
			}
			list = list.Change(func(e *experiment.Experiment) {
				if e.Recipe.Epochs = c.steps; e.Recipe.PretrainEpochs > 0 {
					e.Recipe.PretrainEpochs = c.steps / 2
				}
				if e.Recipe.Samples > 1 {
					e.Recipe.Samples = c.draws
				}
			})
			want := must.Get(oldtoy.Run(ctx, p, old...))(t)
			got := must.Get(experiment.Run(ctx, list...))(t)
			if len(got) != len(want) {
				t.Fatalf("%d results, want %d", len(got), len(want))
			}
			for i := range got {
				sameNumbers(t, fmt.Sprint(list[i]), got[i], want[i], func(metric string) bool {
					a, b := got[i].Metrics[metric], want[i].Metrics[metric]
					return math.Abs(a-b) <= c.alike*math.Abs(b)
				})
			}
		})
	}
}
