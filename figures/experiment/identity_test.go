package experiment_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/datasets"
	"densityuncertainty/dul"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/spec"
	"densityuncertainty/figures/uci"
)

// smallTable is a data set of your own.
func smallTable(name string) *datasets.Regression {
	set := &datasets.Regression{Name: name, N: 40, D: 2}
	for i := range set.N {
		a, b := float64(i%7)-3, float64(i%5)-2
		set.X, set.Y = append(set.X, a, b), append(set.Y, a+b*b/2+float64(i%3)/4)
	}
	return set
}

// small is an experiment that trains in a moment.
func small(layers nets.Layers) experiment.Experiment {
	return experiment.Experiment{
		Task: experiment.Task{
			Name: "table", Data: experiment.Table{Set: smallTable("mine"), Count: 3}, Network: nets.MLP{Widths: []int{4}},
			Likelihood: likelihood.Gaussian{}, Metrics: []experiment.Metric{experiment.Regression},
		},
		Method: experiment.Method{Name: "plain", Layers: layers},
		Recipe: experiment.Adam(2, 16, 1e-2),
	}
}

// rescaled is a family of your own, with settings of many kinds.
type scaled struct {
	Scale   float64
	Renamed float64 `experiment:"Former"`
	Title   string  `experiment:"-"`
	Choice  choice
	List    []float64
	Func    func()
	Map     map[string]float64
	Next    *scaled
	hidden  int
}

// Dense implements nets.Layers.
func (scaled) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	return params.Dense(s, x, units)
}

type choice int

func (c choice) String() string { return []string{"first", "second"}[c] }

// A type that says itself what it is.
type renamed struct{ scaled }

func (r renamed) Identity() spec.Identity {
	return spec.Identity{Type: "old.Name", Value: struct{ Scale float64 }{r.Scale}}
}

// A type that says itself what it is by a method of its pointer.
type cached struct {
	scaled
	cache map[string]float64
}

func (c *cached) Identity() spec.Identity {
	return spec.Identity{Type: "old.Name", Value: struct{ Scale float64 }{c.Scale}}
}

func TestIdentity(t *testing.T) {
	base := small(scaled{Scale: 1})
	for _, c := range []struct {
		name   string
		same   bool
		change func(e *experiment.Experiment)
	}{
		{"titles", true, func(e *experiment.Experiment) { e.Task.Name, e.Method.Name, e.Preset = "a", "b", "c" }},
		{"metrics", true, func(e *experiment.Experiment) { e.Task.Metrics = nil }},
		{"name of the data", true, func(e *experiment.Experiment) { e.Task.Data = experiment.Table{Set: smallTable("other"), Count: 3} }},
		{"a pointer to the family", true, func(e *experiment.Experiment) { e.Method.Layers = &scaled{Scale: 1} }},
		{"a field that is left out", true, func(e *experiment.Experiment) { e.Method.Layers = scaled{Scale: 1, Title: "x"} }},
		{"an empty list", true, func(e *experiment.Experiment) { e.Method.Layers = scaled{Scale: 1, List: []float64{}} }},
		{"a pointer to zero", false, func(e *experiment.Experiment) { e.Method.Layers = scaled{Scale: 1, Next: &scaled{}} }},
		{"minus zero", true, func(e *experiment.Experiment) { e.Method.Layers = scaled{Scale: 1, Renamed: math.Copysign(0, -1)} }},
		{"a setting of the family", false, func(e *experiment.Experiment) { e.Method.Layers = scaled{Scale: 2} }},
		{"a hidden field", false, func(e *experiment.Experiment) { e.Method.Layers = scaled{Scale: 1, hidden: 1} }},
		{"the type of the family", false, func(e *experiment.Experiment) { e.Method.Layers = baselines.Deterministic{} }},
		{"a number of the data", false, func(e *experiment.Experiment) {
			set := smallTable("mine")
			set.Y[3]++
			e.Task.Data = experiment.Table{Set: set, Count: 3}
		}},
		{"the number of splits", true, func(e *experiment.Experiment) { e.Task.Data = experiment.Table{Set: smallTable("mine"), Count: 4} }},
		{"the held-out part", false, func(e *experiment.Experiment) {
			e.Task.Data = experiment.Table{Set: smallTable("mine"), Count: 3, HeldOut: 0.1}
		}},
		{"the likelihood", false, func(e *experiment.Experiment) { e.Task.Likelihood = likelihood.Heteroscedastic{} }},
		{"the network", false, func(e *experiment.Experiment) { e.Task.Network = nets.MLP{Widths: []int{5}} }},
		{"the decay", false, func(e *experiment.Experiment) {
			e.Recipe.Groups = []train.Group{{Roles: train.AllRoles(), Optimizer: train.Adam{Decay: 1e-4}, Rate: 1}}
		}},
		{"the stream of noise", false, func(e *experiment.Experiment) { e.Recipe.SharedNoise = true }},
		{"coherent draws", false, func(e *experiment.Experiment) { e.Recipe.Coherent = true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			other := base
			c.change(&other)
			if same := other.Group() == base.Group(); same != c.same {
				t.Errorf("same group %t, want %t: %s", same, c.same, must.Get(other.Spec())(t))
			}
		})
	}
	split, seed := base, base
	split.Split, seed.Seed = 1, 1
	if ids := []string{base.ID(), split.ID(), seed.ID()}; ids[0] == ids[1] || ids[0] == ids[2] || ids[1] == ids[2] || split.Group() != base.Group() || len(ids[0]) != 16 {
		t.Errorf("identities %v, groups %s and %s", ids, split.Group(), base.Group())
	}
}

func TestSpec(t *testing.T) {
	for want, layers := range map[string]nets.Layers{
		`"Layers":{"type":"own"}`:         scaled{},
		`"Layers":{"Former":3,"type":`:    scaled{Renamed: 3},
		`"Choice":"second"`:               scaled{Choice: 1},
		`"List":[0,0,`:                    scaled{List: make([]float64, 64)},
		`"List":{"entries":65,"sha256":"`: scaled{List: make([]float64, 65)},
		`{"Gradients":"detached","InitStd":0.1,"type":"dul.Density"}`: dul.Density{InitStd: 0.1, Gradients: dul.Detached},
		`"Layers":{"Scale":2,"type":"own"}`:                           renamed{scaled{Scale: 2}},
	} {
		if spec := string(must.Get(small(layers).Spec())(t)); !strings.Contains(spec, want) {
			t.Errorf("the spec is %s, want %s in it", spec, want)
		}
	}
}

func TestWithoutIdentity(t *testing.T) {
	circle := &scaled{}
	circle.Next = circle
	for want, layers := range map[string]nets.Layers{
		"Experiment.Method.Layers.Func is a function, which has no identity":                scaled{Func: func() {}},
		"Experiment.Method.Layers.Map is of type map[string]float64, which has no identity": scaled{Map: map[string]float64{}},
		"one that it is itself a part of has no identity":                                   circle,
		"Experiment.Method.Layers.Scale is +Inf; it must be finite":                         scaled{Scale: math.Inf(1)},
		"Experiment.Method.Layers.List[1] is NaN":                                           scaled{List: []float64{0, math.NaN()}},
		"without a name": struct{ scaled }{},
	} {
		must.Err(t, small(layers).Check(), want)
	}
}

// A method Identity counts whether its receiver is a value or a pointer, and so is the value that has it.
func TestIdentityOfPointers(t *testing.T) {
	want := small(renamed{scaled{Scale: 2}})
	for name, layers := range map[string]nets.Layers{
		"a pointer to a value's method": &renamed{scaled{Scale: 2}},
		"a pointer's method":            &cached{scaled{Scale: 2}, map[string]float64{"a": 1}},
		"a value with a pointer's":      cached{scaled{Scale: 2}, map[string]float64{}},
	} {
		e := small(layers)
		must.Do(t, e.Check())
		if e.ID() != want.ID() {
			t.Errorf("%s: the spec is %s", name, must.Get(e.Spec())(t))
		}
	}
}

// counting is a source that changes while it is used.
type counting struct {
	Table experiment.Table
	Loads int
}

func (c *counting) Splits() int { return c.Table.Splits() }

func (c *counting) Load(ctx context.Context, split int) (experiment.Data, error) {
	c.Loads++
	return c.Table.Load(ctx, split)
}

func TestIdentityThatChanges(t *testing.T) {
	e := small(baselines.Deterministic{})
	e.Task.Data = &counting{Table: e.Task.Data.(experiment.Table)}
	must.GetErr(experiment.Run(context.Background(), e))(t, "its identity changed while its data were read")
}

func TestDifferences(t *testing.T) {
	is, was := small(dul.Density{InitStd: 0.1}), small(dul.Density{InitStd: 0.2, Clip: true})
	is.Recipe.Groups = []train.Group{{Roles: train.AllRoles(), Optimizer: train.Adam{Decay: 1}, Rate: 1}}
	is.Split = 1
	is.Task.Data, was.Task.Data = uci.Data{Name: "yacht", Kind: uci.Random}, uci.Data{Name: "yacht"}
	is.Task.Network, was.Method.Layers = nets.MLP{}, dul.Density{InitStd: 0.2, Clip: true, Gradients: dul.Detached}
	found := must.Get(spec.Differences(is, was))(t)
	want := []spec.Difference{
		{Path: "Method.Layers.Clip", Is: "false", Was: "true"}, {Path: "Method.Layers.Gradients", Is: `"paper"`, Was: `"detached"`},
		{Path: "Method.Layers.InitStd", Is: "0.1", Was: "0.2"},
		{Path: "Recipe.Groups[0].Optimizer.Decay", Is: "1", Was: "0"}, {Path: "Split", Is: "1", Was: "0"},
		{Path: "Task.Data.Kind", Is: `"random"`, Was: `"gal"`}, {Path: "Task.Network.Widths", Is: "[]", Was: "[4]"},
	}
	if !slices.Equal(found, want) {
		t.Errorf("the differences are %v, want %v", found, want)
	}
}

// A list has the identities of its experiments, whether or not neighbours are of one group.
func TestIDs(t *testing.T) {
	list := must.Get(experiment.Cross(uci.Paper, uci.On("yacht", "boston"), methods.Density, methods.Ensemble))(t).OnSplits(0, 1)
	list = append(list, list[:2].Change(func(e *experiment.Experiment) { e.Recipe.Groups[0].Rate = 2 })...)
	list = append(list, list[0])
	for i, id := range list.IDs() {
		if group := spec.Digest(must.Get(list[i].Spec())(t)); id != list[i].ID() || list[i].Group() != group {
			t.Errorf("%v has the identity %s, want %s; the group %s, want %s", list[i], id, list[i].ID(), list[i].Group(), group)
		}
	}
}

// Different values have different keys, and what a key would not tell apart, or only slowly, has none.
func TestKey(t *testing.T) {
	type pair struct {
		A, B string
		C    any
		D    *scaled
		E    []bool
	}
	keys := map[any]int{}
	for i, v := range []any{pair{}, pair{A: "ab"}, pair{A: "a", B: "b"}, pair{B: "ab"}, pair{C: 1}, pair{C: int64(1)}, pair{C: uint(1)}, pair{C: 1.}, pair{C: choice(1)}, pair{C: &scaled{}},
		pair{C: scaled{}}, pair{C: scaled{hidden: 1}}, pair{D: &scaled{}}, pair{D: &scaled{Scale: 1}}, pair{D: &scaled{Next: &scaled{}}}, pair{E: []bool{true}}, pair{E: []bool{false}}, pair{E: []bool{false, true}}} {
		other, has := keys[spec.Key(v)]
		if has || spec.Key(v) == nil || spec.Key(v) != spec.Key(v) {
			t.Errorf("the key of %+v is that of value %d, nil or another one each time", v, other)
		}
		keys[spec.Key(v)] = i
	}
	circle := &scaled{}
	circle.Next = circle
	for _, v := range []any{circle, scaled{Map: map[string]float64{}}, make([]int, 65)} {
		if key := spec.Key(v); key != nil {
			t.Errorf("the key of a %T is %v", v, key)
		}
	}
}
