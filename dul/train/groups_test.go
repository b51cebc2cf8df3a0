package train_test

import (
	"math"
	"strings"
	"testing"

	"densityuncertainty/dul"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/train"
)

// A group without optimizer leaves its parameters as they are, the first group
// that has a parameter owns it, Match limits a group, and Rate multiplies the
// learning rate: for one step of plain SGD, the change.
func TestGroups(t *testing.T) {
	set := linearSet(16, 0.1, 2)
	oneStep := regression()
	oneStep.Epochs, oneStep.Schedule = 1, train.Constant(0.01)
	trained := func(groups ...train.Group) map[string]fixtures.Array {
		t.Helper()
		r := oneStep
		r.Groups = groups
		m := mlp(t, dul.Density{}, 4)
		fit(t, r, m, set)
		return parametersOf(t, m)
	}
	sgd := train.SGD{}
	all := train.AllRoles()
	start := trained(train.Group{Roles: []params.Role{params.Likelihood}, Optimizer: sgd}) // the others stay
	step := trained(train.Group{Roles: all, Optimizer: sgd})
	change := func(at map[string]fixtures.Array, path string) fixtures.Array {
		c := fixtures.Zeros(start[path].Dims...)
		for i, v := range at[path].Values {
			c.Values[i] = v - start[path].Values[i]
		}
		return c
	}
	const weights, bias, energy = "/model/network/output/weights", "/model/network/output/bias", "/model/network/output/energy/log_variance"
	for _, c := range []struct {
		name   string
		groups []train.Group
		factor map[string]float64 // of each path's change
	}{
		{"weights alone", []train.Group{{Roles: []params.Role{params.Weight}, Optimizer: sgd}},
			map[string]float64{weights: 1, bias: 1, energy: 0}},
		{"first group owns", []train.Group{{Roles: []params.Role{params.Generative}}, {Roles: all, Optimizer: sgd}},
			map[string]float64{weights: 1, bias: 1, energy: 0}},
		{"match", []train.Group{{Roles: all, Match: func(path string) bool { return strings.HasSuffix(path, "/bias") }, Optimizer: sgd}},
			map[string]float64{weights: 0, bias: 1, energy: 0}},
		{"rate", []train.Group{{Roles: []params.Role{params.Generative}, Optimizer: sgd, Rate: 3}, {Roles: all, Optimizer: sgd}},
			map[string]float64{weights: 1, bias: 1, energy: 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := trained(c.groups...)
			for path, factor := range c.factor {
				fixtures.Compare(t, path, change(got, path), change(step, path).Scale(factor), 1e-10)
			}
		})
		if largest := fixtures.RelativeError(t, weights, change(step, weights), fixtures.Zeros(8, 1)); largest == 0 {
			t.Fatal("training changes nothing")
		}
	}
}

func TestSchedules(t *testing.T) {
	if got := train.Constant(0.3)(7, 10); got != 0.3 {
		t.Errorf("constant schedule gives %g", got)
	}
	cosine := train.Cosine(0.2)
	for i, want := range []float64{0.2, 0.1, 0} {
		if got := cosine(5*i, 10); math.Abs(got-want) > 1e-15 {
			t.Errorf("cosine schedule at %d of 10 is %g, want %g", 5*i, got, want)
		}
	}
}
