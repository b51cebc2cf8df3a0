package experiment_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/environment/must"
	oldcifar "densityuncertainty/figures/cifar"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/experiment/cifar"
	"densityuncertainty/figures/experiment/methods"
	"densityuncertainty/figures/experiment/toy"
	oldmethods "densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
	oldtoy "densityuncertainty/figures/toy"
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

// Image classifiers, on the images that come with the program.
func TestOldImageNumbers(t *testing.T) {
	if testing.Short() {
		t.Skip("it trains image networks")
	}
	ctx := context.Background()
	const trainN, testN, heldOut, samples = 80, 32, 32, 2
	for _, c := range []struct {
		name     string
		protocol oldcifar.Protocol
		preset   experiment.Preset
		methods  []string
	}{
		{"paper", oldcifar.Paper(oldcifar.CIFAR10, oldcifar.ResNet14), cifar.Paper, []string{"deterministic", "density", "sngp"}},
		{"released", oldcifar.Released(oldcifar.CIFAR10, oldcifar.ResNet20), cifar.Released, []string{"density-rank1mix"}},
		{"processor", oldcifar.Paper(oldcifar.CIFAR10, oldcifar.ResNet14).Processor(), cifar.Processor, []string{"mfvi"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := c.protocol
			p.Scale, p.Sample, p.Seeds, p.Epochs, p.TrainN, p.TestN, p.HeldOut, p.Samples = results.Quick, true, []uint64{0}, 1, trainN, testN, heldOut, samples
			data := []experiment.Source{cifar.Images{Name: cifar.CIFAR10, Sample: true, TrainN: trainN, TestN: testN, HeldOut: heldOut}}
			var list experiment.Experiments
			var old oldmethods.List
			for _, m := range compared {
				if slices.Contains(c.methods, m.old.Name) {
					old = append(old, m.old)
					list = append(list, must.Get(experiment.Cross(c.preset, data, m.now))(t)...)
				}
			}
			list = list.Change(func(e *experiment.Experiment) { e.Recipe.Epochs, e.Recipe.Samples = 1, min(e.Recipe.Samples, samples) })
			want := must.Get(oldcifar.Run(ctx, p, old...))(t)
			got := must.Get(experiment.Run(ctx, list...))(t)
			if len(got) != len(want) {
				t.Fatalf("%d results, want %d", len(got), len(want))
			}
			for i := range got {
				sameNumbers(t, fmt.Sprint(list[i]), got[i], want[i], func(metric string) bool { return strings.Contains(metric, "second") })
			}
		})
	}
}
