package uci

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/dul/params"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/spec"
	"densityuncertainty/figures/tables"
)

// Tuned makes the text's experiments with each split's optimizer and noise. The mean-energy control has the choices of
// density layers.
func TestTuned(t *testing.T) {
	for _, m := range []experiment.Method{methods.Density, methods.DensityMean, methods.SNGP, methods.MCDropout} {
		name := m.Key
		if m.Name == methods.DensityMean.Name {
			name = methods.Density.Key
		}
		optimizers := map[string]bool{}
		for _, e := range slices.Concat(Tuned().Of(Data{Name: "wine"}, m), Tuned().Of(Data{Name: "boston"}, m)) {
			must.Do(t, e.Check())
			c, _ := chosen(e.Task.Data.(Data), e.Split, name)
			_, withAdam := e.Recipe.Groups[slices.IndexFunc(e.Recipe.Groups, func(g train.Group) bool { return slices.Contains(g.Roles, params.Weight) })].Optimizer.(train.Adam)
			if withAdam != (c.optimizer == adam) {
				t.Errorf("%v is not trained with %s", e, c.optimizer)
			}
			optimizers[c.optimizer] = true
			if noisy, is := methods.WithNoise(e.Method.Layers, c.noise); is && !reflect.DeepEqual(e.Method.Layers, noisy) {
				t.Errorf("%v starts with the noise of %+v, want %g", e, e.Method.Layers, c.noise)
			}
		}
		if len(optimizers) != 2 {
			t.Errorf("the choices for %s have the optimizers %v; the test needs both", m.Name, optimizers)
		}
	}
}

// The committed choices follow from the committed results; -update writes them.
func TestCommittedChoices(t *testing.T) {
	figtest.GoldenText(t, "tuned.csv", string(must.Get(tables.Choose(must.Get(tables.Committed())(t), tunedColumns, candidates()))(t)))
}

// From the text to the authors' code and back, each option of density layers is taken once in each direction. All options
// of the other settings together give the other experiment, but for settings of convolutions.
func TestOptions(t *testing.T) {
	forConvolutions := []string{"Method.Layers.ConvEtaPriorStd", "Method.Layers.HalfChannels", "Method.Layers.Energy.ReplicatePadding"}
	for _, way := range directions() {
		base, other := way.base.Of(Data{Name: "yacht"}, methods.Density)[0], way.other.Of(Data{Name: "yacht"}, methods.Density)[0]
		all := way.base.Of(Data{Name: "yacht"}, methods.Density)
		for _, o := range densityOptions {
			one := way.with(o, "yacht")[0]
			must.Do(t, one.Check())
			if one.ID() == base.ID() || one.Task.Data.(Data).Kind != Gal {
				t.Errorf("from %s, %s: %v is the experiment without the option, or on other splits", way.base.Title, o.name, one)
			}
			if o.name != "pretrain_epochs" {
				all = all.Change(func(e *experiment.Experiment) { o.take(e, other) })
			}
		}
		for _, d := range must.Get(spec.Differences(all[0], other))(t) {
			if !slices.Contains(forConvolutions, d.Path) {
				t.Errorf("from %s, with all options of the other: %s is %s, want %s", way.base.Title, d.Path, d.Is, d.Was)
			}
		}
	}
}

// Without constant energy there is no change of a lead.
func TestConvergedTable(t *testing.T) {
	measured := must.Get(convergedTable(tables.Of(nil)))(t).Measured
	if last := measured[len(measured)-1]; strings.HasPrefix(last, "The lead") {
		t.Errorf("there is a change of a lead: %q", last)
	}
}
