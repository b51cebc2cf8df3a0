package experiment_test

import (
	"context"
	"fmt"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/experiment/methods"
	"densityuncertainty/figures/experiment/uci"
	oldmethods "densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
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

// The UCI tables' settings: the text, the released code, Adam for all, and early stopping.
func TestOldUCINumbers(t *testing.T) {
	ctx := context.Background()
	splits := []int{0, 3}
	text, released, adam, early := olduci.Paper(), olduci.Released(), olduci.Paper(), olduci.Paper()
	adam.Optimizer, early.EarlyStopping = oldmethods.Adam, true
	for _, c := range []struct {
		name     string
		protocol olduci.Protocol
		preset   experiment.Preset
		epochs   int
		without  []string
	}{
		{"paper", text, uci.Paper, 4, nil},
		{"released", released, uci.Released, 4, nil},
		{"adam", adam, uci.Adam, 3, nil},
		{"early stopping", early, uci.StoppedEarly, 6, []string{"SNGP", "DUE"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := c.protocol.On("yacht")
			p.Only, p.Epochs = splits, c.epochs
			var list experiment.Experiments
			var old oldmethods.List
			for _, m := range compared {
				if c.without != nil && m.now.Process != nil {
					continue
				}
				old = append(old, m.old)
				one := must.Get(experiment.Cross(c.preset, uci.Sets(uci.Gal, "yacht"), m.now))(t)
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
