package train_test

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/floats"

	"densityuncertainty/dul"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/train"
)

// A group without optimizer leaves its parameters as they are, the first group
// that has a parameter owns it, Only limits a group, and Rate multiplies the
// learning rate: for one step of plain SGD, the change.
func TestGroups(t *testing.T) {
	set := linearSet(16, 0.1, 2)
	oneStep := regression()
	oneStep.Epochs, oneStep.Schedule = 1, train.Constant{Start: 0.01}
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
		{"only", []train.Group{{Roles: all, Only: []string{"bias"}, Optimizer: sgd}},
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

// A gradient above ClipNorm has this norm over all parameters of a replica, and its direction; one below it stays.
func TestClipNorm(t *testing.T) {
	sets := []train.Dataset{linearSet(16, 0.1, 2), linearSet(16, 3, 5)}
	step := func(limit float64) [2][]float64 { // of each replica
		run := regression()
		run.Epochs, run.PretrainEpochs, run.Schedule, run.ClipNorm = 1, 0, train.Constant{Start: 1}, limit
		run.BatchSize = 16
		run.Groups = []train.Group{{Roles: train.AllRoles(), Optimizer: train.SGD{}}}
		before, after := mlp(t, dul.Density{}, 4, 5), mlp(t, dul.Density{}, 4, 5)
		fit(t, run, after, sets...)
		run.ClipNorm = 1e-300 // nothing moves
		fit(t, run, before, sets...)
		var change [2][]float64
		old, now := parametersOf(t, before), parametersOf(t, after)
		for _, path := range slices.Sorted(maps.Keys(now)) {
			n := len(now[path].Values) / 2
			for i, v := range now[path].Values {
				change[i/n] = append(change[i/n], v-old[path].Values[i])
			}
		}
		return change
	}
	free := step(0)
	first, second := floats.Norm(free[0], 2), floats.Norm(free[1], 2)
	limit := (first + second) / 2 // clips one of them
	for r, change := range step(limit) {
		factor := min(1, limit/floats.Norm(free[r], 2))
		for i, v := range change {
			if want := free[r][i] * factor; math.Abs(v-want) > 1e-9*max(first, second) {
				t.Fatalf("replica %d, parameter %d moves by %g, want %g", r, i, v, want)
			}
		}
	}
	if math.Abs(first-second) < 0.01*limit {
		t.Errorf("the norms are %g and %g", first, second)
	}
}

// A role that is misspelt is an error, beside a group for all roles too; one that a
// parameter of the user's has is not.
func TestRolesOfGroups(t *testing.T) {
	all := train.Group{Roles: train.AllRoles(), Optimizer: train.SGD{}}
	for role, network := range map[params.Role]nets.Network{
		"weigths": nets.MLP{Layers: dul.Density{}}, "tempo": nets.MLP{Layers: ownRole{}},
	} {
		run := regression()
		run.Groups = []train.Group{{Roles: []params.Role{role}, Optimizer: train.SGD{}}, all}
		run.PretrainEpochs = 0
		err := run.Fit(context.Background(), newModel(t, network, likelihood.Gaussian{}, dtypes.Float32, 1), linearSet(16, 0.1, 2))
		if want := `group 0 trains parameters of role "weigths"`; role == "weigths" && (err == nil || !strings.Contains(err.Error(), want)) || role != "weigths" && err != nil {
			t.Errorf("role %s: the error is %v", role, err)
		}
	}
}

// ownRole is a linear layer, times a parameter of a role of its own.
type ownRole struct{}

func (ownRole) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	return graph.Mul(params.Dense(s, x, units), params.New(s, x, "tempo", "tempo", params.Constant(1), 1, units))
}

// Pretraining without groups of its own moves what the groups have of the energy
// models, as they say, and not even by weight decay anything else; groups of its own
// have what they contain.
func TestGroupsOfThePretraining(t *testing.T) {
	fixtures.SkipShortOffGo(t)
	const energy = params.Generative
	decaying := train.Adam{Decay: 0.1}
	others := train.Group{Roles: []params.Role{params.Weight, params.Variational, params.Likelihood}, Optimizer: decaying}
	all := []train.Group{{Roles: train.AllRoles(), Optimizer: decaying}}
	for _, c := range []struct {
		name        string
		groups, own []train.Group
		moves       func(path string, role params.Role) bool
	}{
		{"all roles", all, nil, func(_ string, r params.Role) bool { return r == energy }},
		{"several groups", []train.Group{others, {Roles: []params.Role{energy, params.Weight}, Optimizer: decaying}}, nil, func(_ string, r params.Role) bool { return r == energy }},
		{"a part of the energy models", []train.Group{{Roles: train.AllRoles(), Only: []string{"lower"}, Optimizer: decaying}}, nil,
			func(path string, r params.Role) bool { return r == energy && strings.HasSuffix(path, "/lower") }},
		{"the first group owns", append([]train.Group{{Roles: []params.Role{energy}, Only: []string{"lower"}}}, all...), nil,
			func(path string, r params.Role) bool { return r == energy && !strings.HasSuffix(path, "/lower") }},
		{"its own", nil, all, func(_ string, r params.Role) bool { return r != params.Likelihood }}, // the log-variance of the noise starts at 0
	} {
		t.Run(c.name, func(t *testing.T) {
			after := func(rate float64) (map[string]fixtures.Array, *nets.Model) {
				run := regression()
				run.Epochs, run.PretrainEpochs, run.Schedule = 0, 1, train.Constant{Start: rate}
				run.PretrainGroups = c.own
				if c.groups != nil {
					run.Groups = c.groups
				}
				m := mlp(t, dul.Density{}, 4)
				fit(t, run, m, linearSet(16, 0.1, 2))
				return parametersOf(t, m), m
			}
			start, _ := after(0)
			end, m := after(0.01)
			for path, was := range start {
				role := params.RoleOf(m.Store.GetVariable(path), m.Store)
				if moved := !slices.Equal(was.Values, end[path].Values); len(was.Values) > 1 && moved != c.moves(path, role) {
					t.Errorf("%s, of role %s, moved: %t", path, role, moved)
				}
			}
		})
	}
}
