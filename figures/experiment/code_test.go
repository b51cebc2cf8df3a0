package experiment_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
)

// edited stands for an edit of the code below, as of a cell of a notebook.
var edited bool

// edit is a number before the edit or after it.
func edit(before, after float64) float64 {
	if edited {
		return after
	}
	return before
}

type (
	editedLayer      struct{}
	editedInitial    struct{}
	editedGradient   struct{}
	editedSource     struct{ experiment.Table }
	editedSets       struct{ experiment.Table }
	editedLikelihood struct{ likelihood.Gaussian }
	editedEnergy     struct{ energy.LDL }
	editedRoot       struct{ energy.LDL }
)

func (editedLayer) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	return graph.MulScalar(params.Dense(s, x, units), edit(1, 0))
}

func (editedInitial) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	return ops.Affine(x, params.New(s, x, "weights", params.Weight, params.Constant(edit(0.1, 0.2)), x.Shape().Dim(-1), units), params.Bias(s, x, units))
}

func (editedGradient) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	return graph.IdentityWithCustomGradient(params.Dense(s, x, units), func(_, v *graph.Node) *graph.Node { return graph.MulScalar(v, edit(1, -1)) })
}

func (e editedSource) Load(ctx context.Context, split int) (experiment.Data, error) {
	d, err := e.Table.Load(ctx, split)
	for i := range d.Train.Targets {
		if split == 2 {
			d.Train.Targets[i] *= edit(1, 3)
		}
	}
	return d, err
}

func (e editedSets) Load(ctx context.Context, split int) (experiment.Data, error) {
	d, err := e.Table.Load(ctx, split)
	if edited {
		d.Sets = append(d.Sets, experiment.Set{Name: "other", Dataset: d.Train})
	}
	return d, err
}

func (editedLikelihood) NLL(s *model.Scope, outputs, targets *graph.Node) *graph.Node {
	return likelihood.Gaussian{}.NLL(s, graph.AddScalar(outputs, edit(0, 1)), targets)
}

func (l editedEnergy) Dense(s *model.Scope, h *graph.Node) energy.Terms {
	terms := l.LDL.Dense(s, h)
	terms.Energy = graph.MulScalar(terms.Energy, edit(1, 2))
	return terms
}

// Dense has a root that coherent draws alone use.
func (l editedRoot) Dense(s *model.Scope, h *graph.Node) energy.Terms {
	terms := l.LDL.Dense(s, h)
	root := terms.Root
	terms.Root = func() *graph.Node { return graph.MulScalar(root(), edit(1, 2)) }
	return terms
}

func editedNetwork(layers nets.Layers, s *model.Scope, x *graph.Node, outputs int) *graph.Node {
	x = layers.Dense(s.In("hidden"), x, 4)
	if x = graph.Tanh(x); edited {
		x = ops.ReLU(x)
	}
	return layers.Dense(s.In("output"), x, outputs)
}

// editedMetric measures what it measures now.
func editedMetric(*experiment.Predictions) (map[string]float64, error) {
	return map[string]float64{"mine": edit(1, 2)}, nil
}

// Edited code is trained anew, and its result is its own. Changed back, the code has the stored result. What the code is called
// does not matter.
func TestEditedCode(t *testing.T) {
	table := small(nil).Task.Data.(experiment.Table)
	for name, change := range map[string]func(e *experiment.Experiment){
		"a layer":              func(e *experiment.Experiment) { e.Method.Layers = editedLayer{} },
		"an initial value":     func(e *experiment.Experiment) { e.Method.Layers = editedInitial{} },
		"a gradient":           func(e *experiment.Experiment) { e.Method.Layers = editedGradient{} },
		"another split":        func(e *experiment.Experiment) { e.Task.Data = editedSource{table} },
		"one more test set":    func(e *experiment.Experiment) { e.Task.Data = editedSets{table} },
		"a likelihood":         func(e *experiment.Experiment) { e.Task.Likelihood = editedLikelihood{} },
		"a network":            func(e *experiment.Experiment) { e.Task.Network = nets.Func{Name: "mine", Build: editedNetwork} },
		"a pointer to a layer": func(e *experiment.Experiment) { e.Method.Layers = &editedLayer{} },
		"an energy": func(e *experiment.Experiment) {
			e.Method.Layers = dul.Density{Energy: editedEnergy{}}
			e.Recipe = must.Get(e.Recipe.For(e.Method, e.Task.Likelihood, 3))(t)
		},
		"the root of an energy": func(e *experiment.Experiment) {
			e.Method.Layers = dul.Density{InitStd: 0.5, Energy: editedRoot{}}
			e.Recipe = must.Get(e.Recipe.For(e.Method, e.Task.Likelihood, 3))(t)
			e.Recipe.Coherent = true
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() { edited = false }()
			e := small(baselines.Deterministic{})
			change(&e)
			folder, last := t.TempDir(), experiment.Experiment(e)
			last.Split = 2
			before, id := stored(t, folder, e, last), e.ID()
			edited = true
			if e.ID() == id {
				t.Fatal("the edited experiment has the identity of the one before")
			}
			after := stored(t, folder, e, last)
			if after[1].Metrics["nll"] == before[1].Metrics["nll"] && name != "one more test set" {
				t.Errorf("the edited experiment has the NLL %v of the one before", before[1].Metrics["nll"])
			}
			if name == "one more test set" && after[0].Metrics["other_nll"] == 0 {
				t.Errorf("the metrics of the other set are missing: %v", after[0].Metrics)
			}
			edited = false
			back := must.Get(untrained(t, folder).Run(t.Context(), e, last))(t)
			if difference := back[1].Difference(before[1]); difference != "" {
				t.Errorf("changed back: %s", difference)
			}
		})
	}
}

// A stored result has the numbers of a metric as it is now, and of one that is added later, wherever it is read.
func TestEditedMetric(t *testing.T) {
	defer func() { edited = false }()
	folder, e := t.TempDir(), with(small(baselines.Deterministic{}), editedMetric)
	before := stored(t, folder, e, allSplits(e)[1])[0]
	must.Do(t, exec.Command("gzip", "-rn9", folder).Run())
	edited = true
	for _, more := range [][]experiment.Metric{nil, {constant("more", 7)}} {
		after := must.Get(untrained(t, folder).Run(t.Context(), with(e, more...)))(t)[0]
		read := must.Get((&experiment.Store{Folder: folder}).Results())(t)[e.ID()]
		if difference := after.Difference(read); difference != "" || read.Metrics["mine"] != 2 || read.Metrics["more"] != float64(7*len(more)) || read.Metrics["rmse"] != before.Metrics["rmse"] {
			t.Errorf("the metrics were %v, Run says %v and the store %v", before.Metrics, after.Metrics, read.Metrics)
		}
	}
	if other := must.Get((&experiment.Store{Folder: folder}).Results())(t)[allSplits(e)[1].ID()]; other.Metrics["mine"] != 1 || len(other.Metrics) != len(before.Metrics) {
		t.Errorf("another experiment has %v", other.Metrics)
	}
}

// renamedLayer is editedLayer under another name, and renamedNetwork editedNetwork.
type renamedLayer struct{}

func (renamedLayer) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	half := params.Dense(s, x, units)
	return graph.MulScalar(half, 1)
}

func renamedNetwork(l nets.Layers, s *model.Scope, in *graph.Node, outputs int) *graph.Node {
	return l.Dense(s.In("output"), graph.Tanh(l.Dense(s.In("hidden"), in, 4)), outputs)
}

func TestRenamedCode(t *testing.T) {
	a, b := small(editedLayer{}), small(renamedLayer{})
	a.Task.Network, b.Task.Network = nets.Func{Build: editedNetwork}, nets.Func{Name: "b", Build: renamedNetwork}
	if a.ID() != b.ID() {
		t.Errorf("renamed, the experiment has the spec %s, and had %s", must.Get(b.Spec())(t), must.Get(a.Spec())(t))
	}
	b.Task.Network = nets.MLP{Widths: []int{4}}
	if a.ID() == b.ID() {
		t.Error("two networks have one identity")
	}
	// Neighbours whose networks are one function, but of other variables, are not taken for one group.
	b = a
	for i, e := range []*experiment.Experiment{&a, &b} {
		e.Task.Network = nets.Func{Build: func(l nets.Layers, s *model.Scope, in *graph.Node, outputs int) *graph.Node {
			return l.Dense(s.In("output"), l.Dense(s.In("hidden"), in, 4+i), outputs)
		}}
	}
	if ids := (experiment.Experiments{a, b}).IDs(); ids[0] == ids[1] || ids[0] != a.ID() {
		t.Errorf("two networks of one function have the identities %v", ids)
	}
}

// Parts of a recipe of your own, which show in no graph of a network. They differ by the flag that is edited.
type (
	editedSchedule  struct{}
	editedOptimizer struct{ train.Adam }
	editedOrder     struct{}
	ghost           struct{} // centres blocks of examples, as no prediction may
)

func (editedSchedule) Rate(t, _ int) float64 { return 1e-2 / (1 + edit(0, 1)*float64(t/4)) }

func (o editedOptimizer) Update(s *model.Scope, value, gradient, rate, step *graph.Node) *graph.Node {
	if strings.HasSuffix(s.Scope(), "bias") {
		rate = graph.MulScalar(rate, edit(1, 2))
	}
	return o.Adam.Update(s, value, gradient, rate, step)
}

func (editedOrder) Of(seed uint64, epoch, n int) []int {
	return rand.New(rand.NewPCG(seed, uint64(epoch)*uint64(edit(1, 2)))).Perm(n)
}

type editedAugmentation struct{}

func (editedAugmentation) Draw(_ uint64, _, image int) (top, left int, flip bool) {
	return 0, 0, float64(image) < edit(3, 4)
}

func (ghost) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	y, size := params.Dense(s, x, units), int(edit(16, 8))
	if dims := y.Shape().Dimensions; dims[len(dims)-2] == 16 {
		blocks := graph.Reshape(y, -1, size, units)
		y = graph.Reshape(graph.Sub(blocks, graph.ReduceAndKeep(blocks, graph.ReduceMean, 1)), dims...)
	}
	return y
}

// What shows in no graph of a network is asked for its values: edited, a schedule, an optimizer and an order are trained anew, and a
// layer is seen in the batches that it is trained on.
func TestEditedRecipe(t *testing.T) {
	for name, change := range map[string]func(e *experiment.Experiment){
		"a schedule": func(e *experiment.Experiment) { e.Recipe.Schedule = editedSchedule{} },
		"an optimizer": func(e *experiment.Experiment) {
			e.Recipe.Groups = []train.Group{{Roles: train.AllRoles(), Optimizer: &editedOptimizer{}}}
		},
		"an order":             func(e *experiment.Experiment) { e.Recipe.Order = editedOrder{} },
		"a layer that sees 16": func(e *experiment.Experiment) { e.Method.Layers = ghost{} },
		"an augmentation":      func(e *experiment.Experiment) { e.Recipe.Augmentation = editedAugmentation{} },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() { edited = false }()
			e := small(baselines.Deterministic{})
			change(&e)
			before, text := e.ID(), string(must.Get(e.Spec())(t))
			edited = true
			if e.ID() == before {
				t.Errorf("the edited experiment has the identity of the one before, %s", text)
			}
		})
	}
}

// Code that shows nowhere is known by its name, and a stored result of it is said to be as it was.
func TestUnseenCode(t *testing.T) {
	type mine struct{ baselines.SNGP }
	process, after := small(mine{}), small(baselines.Deterministic{})
	after.Task.AfterTraining = nothingAfter
	for want, e := range map[string]experiment.Experiment{"densityuncertainty/figures/experiment_test.mine": process, "densityuncertainty/figures/experiment_test.nothingAfter": after} {
		folder, said := t.TempDir(), ""
		stored(t, folder, e)
		en := untrained(t, folder)
		en.Notes = func(text string) { said += text }
		must.Get(en.Run(t.Context(), e))(t)
		if !strings.Contains(said, "the code of "+want+" shows in no identity") {
			t.Errorf("the notes are %s", said)
		}
	}
}

// Two likelihoods with one loss could have other predictions; they are not taken for one experiment.
func TestTwoLikelihoodsOfOneLoss(t *testing.T) {
	type another struct{ likelihood.Gaussian }
	type one struct{ likelihood.Gaussian }
	a, b := small(baselines.Deterministic{}), small(baselines.Deterministic{})
	a.Task.Likelihood, b.Task.Likelihood = one{}, another{}
	must.GetErr(experiment.Run(t.Context(), a, b))(t, "with the loss of type")
}

// notebookCell is the program that the kernel makes of the cells of a notebook: all of them in package main.
const notebookCell = `package main

import (
	"context"
	"fmt"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/figures/experiment"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
)

// Parts that show in no graph of the network.
type (
	mine     struct{}
	schedule struct{}
)

func (schedule) Rate(t, total int) float64 { return 1e-2 / float64(1+t) }

func (mine) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	return graph.MulScalar(params.Dense(s, x, units), FACTOR)
}

func main() {
	set := &datasets.Regression{Name: "mine", N: 40, D: 1}
	for i := range set.N {
		set.X, set.Y = append(set.X, float64(i)), append(set.Y, float64(i%2))
	}
	task := experiment.Task{Name: "mine", Data: experiment.Table{Set: set, Count: 1, Classes: 2}, Network: nets.MLP{}, Likelihood: likelihood.Categorical{Classes: 2}, Metrics: []experiment.Metric{experiment.Classification}}
	recipe := experiment.Adam(2, 8, 1e-2)
	recipe.Schedule = schedule{}
	list, err := task.Experiments(recipe, 1, experiment.Method{Name: "mine", Layers: mine{}})
	if err != nil {
		panic(err)
	}
	engine := experiment.Engine{Store: &experiment.Store{Folder: FOLDER}, Curves: FOLDER, Notes: func(text string) { fmt.Println(text) }}
	results, err := engine.Run(context.Background(), list...)
	curve, curveErr := list[0].Curve(FOLDER)
	fmt.Println("NLL", results[0].Metrics["nll"], err, len(curve), "epochs", curveErr)
}
`

// The story of a notebook: a layer is edited, its cell is run again, and the number is new. Changed back, it is the one before,
// and it is said to be from the store.
func TestNotebookStory(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles programs")
	}
	folder := t.TempDir()
	run := func(factor string) (number, all string) {
		file := filepath.Join(folder, "main.go")
		must.Do(t, os.WriteFile(file, []byte(strings.NewReplacer("FACTOR", factor, "FOLDER", fmt.Sprintf("%q", filepath.Join(folder, "runs"))).Replace(notebookCell)), 0o644))
		out, err := exec.Command("go", "run", file).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		_, number, _ = strings.Cut(string(out), "NLL ")
		return number, string(out)
	}
	first, _ := run("1.0")
	silent, said := run("0.0")
	if !strings.HasPrefix(silent, fmt.Sprint(math.Ln2)[:6]) || strings.Contains(said, "from the store") {
		t.Errorf("outputs of 0 have the NLL %s, want log 2; before the edit %s", silent, first)
	}
	if back, said := run("1.0"); back != first || !strings.Contains(said, "1 of 1 results are from the store, of ") || !strings.Contains(back, "<nil> 2 epochs <nil>") {
		t.Errorf("changed back: %s, want %s", said, first)
	}
}
