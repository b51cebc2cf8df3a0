package experiment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"strconv"
	"sync"
	"unsafe"

	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/figures/spec"
)

// Spec is the experiment as canonical JSON, but for its split and seed: what decides its numbers, by the names of
// types and fields. Experiments with equal specs are of one group.
//
//   - A field that is zero is left out. So a field that is added to a type later changes no identity, if its zero value
//     means what was done before.
//   - A pointer is the value that it points to. Nil and a pointer to zero differ.
//   - Fields without a capital letter count too. Leave out those that change while a program runs, such as a cache.
//   - A value in an interface is written with its type's name, as in {"InitStd":0.1,"type":"dul.Density"}.
//   - A type with a method Identity is written as that method says; see spec.Identifier.
//   - A type of integers with a method String, such as a choice among few, is written as its text.
//   - A nets.Func of this module is its name.
//   - The tag `experiment:"-"` leaves a field out. `experiment:"Name"` is for a field that was renamed: it keeps the
//     name that it had, and with it the identity of stored results. `experiment:"+"` writes the fields of an embedded
//     struct as if they were fields of the struct that it is in.
//   - More than 64 entries are written as their number and a digest.
//   - A type or a nets.Func from outside this module has no name here, since a name says nothing about code that may have
//     changed. Instead the Spec has digests of what the experiment computes: of the graphs of loss, gradients and
//     prediction for seven examples and of the initial values, and if the Source is from outside, of the data of all its splits. So
//     edited code is another experiment, and renamed code is the same. Of After, a Decision, a Sampler, a Process or a part of the
//     Recipe from outside no graph shows what they do: the Spec then has a digest of the running program.
//
// Functions, maps, channels, cycles of pointers and numbers that are not finite are errors.
func (e Experiment) Spec() ([]byte, error) {
	text, err := e.spec(context.Background())
	return text, e.problem(err)
}

func (e Experiment) spec(ctx context.Context) ([]byte, error) {
	e.Split, e.Seed = 0, 0
	t, outside, err := spec.Of(e, "Experiment")
	if err == nil && (outside || e.hidden()) {
		t.(map[string]spec.Tree)["code"], err = e.code(ctx)
	}
	return []byte(spec.Text(t)), err
}

// ID is the experiment's identity, 16 hexadecimal digits: a digest of its group, split and seed. It panics where Check
// returns an error.
func (e Experiment) ID() string { return idOf(e.Group(), e.Split, e.Seed) }

// Group is the identity without split and seed: a digest of Spec. The experiments of a group are averaged in one cell
// of a table, and can be trained together. It panics where Check returns an error.
func (e Experiment) Group() string {
	text, err := e.Spec()
	if err != nil {
		panic(err)
	}
	return spec.Digest(text)
}

// IDs are the identities of the experiments. It is faster than Experiment.ID for each of them where neighbours are of one
// group.
func (l Experiments) IDs() []string {
	ids, group := make([]string, len(l)), grouper()
	for i, e := range l {
		of, err := group(context.Background(), e)
		if err != nil {
			panic(e.problem(err))
		}
		ids[i] = idOf(of, e.Split, e.Seed)
	}
	return ids
}

// grouper returns a function that finds the group of an experiment, and remembers that of the experiment before: looking at
// your own data and graphs again for each split takes time.
func grouper() func(ctx context.Context, e Experiment) (string, error) {
	var before any
	var group string
	var failed error
	return func(ctx context.Context, e Experiment) (string, error) {
		if now := e.identified(); !reflect.DeepEqual(now, before) {
			text, err := e.spec(ctx)
			before, group, failed = now, spec.Digest(text), err
		}
		return group, failed
	}
}

// identified is the part of an experiment that decides its group's identity. A pointer stands for the function of its network.
func (e Experiment) identified() any {
	after := spec.Outside(e.Task.After)
	var network unsafe.Pointer
	if f, is := e.Task.Network.(nets.Func); is {
		network = *(*unsafe.Pointer)(unsafe.Pointer(&f.Build)) // which differs for closures over other variables
		f.Build = nil
		e.Task.Network = f
	}
	e.Task.Name, e.Method.Key, e.Method.Name, e.Preset, e.Split, e.Seed = "", "", "", "", 0, 0
	e.Task.Metrics, e.Task.After = nil, nil
	return []any{e, network, after}
}

// idOf is the identity of an experiment of a group.
func idOf(group string, split int, seed uint64) string {
	return spec.Digest([]byte(group + " split " + strconv.Itoa(split) + " seed " + strconv.FormatUint(seed, 10)))
}

// hidden says whether a part from outside has code that shows in no graph and no data.
func (e Experiment) hidden() bool {
	_, outside, _ := spec.Of(e.Recipe, "Recipe")
	return outside || spec.Outside(e.Task.After) || spec.Outside(e.Task.Decision) || spec.Outside(e.Method.Sampler) || spec.Outside(e.Method.Process)
}

// program is the digest of the running program.
var program = sync.OnceValues(func() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	content, err := os.ReadFile(path)
	return spec.Digest(content), err
})

// code has digests of what an experiment with parts from outside this module computes: of its graphs and initial values; of
// the data of all splits, if the source is from outside; and of the program, if a part is hidden.
func (e Experiment) code(ctx context.Context) (map[string]spec.Tree, error) {
	d, err := e.load(ctx)
	if err != nil {
		return nil, err
	}
	found := map[string]spec.Tree{}
	if found["graphs"], err = codeOf(e, d); err != nil {
		return nil, err
	}
	if _, outside, _ := spec.Of(&e.Task.Data, "Task.Data"); outside { // spec.Of(e) has the same errors
		h := sha256.New()
		for split := range e.Task.Data.Splits() { // even if some cannot be loaded
			d, err := e.Task.Data.Load(ctx, split)
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			fmt.Fprintln(h, err == nil, Digest(d.all()...), d.Unit, d.Zero)
		}
		found["data"] = hex.EncodeToString(h.Sum(nil)[:8])
	}
	if e.hidden() {
		found["program"], err = program()
	}
	return found, err
}

// codeOf is a digest of what an experiment computes for data like these: the graphs of the training loss with its gradients
// and of the prediction, and the initial values.
func codeOf(e Experiment, d Data) (string, error) {
	backend, err := gobackend.New("")
	if err != nil {
		return "", err
	}
	defer backend.Finalize()
	b := building{backend: backend, data: d, coherent: e.Recipe.Coherent}
	network, err := b.network(e)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	var store *model.Store
	err = b.build(network, e.Task.Likelihood, true, true, func(m *nets.Model, s *model.Scope, outputs, nll *graph.Node) {
		store = m.Store
		var trained []*graph.Node
		for _, v := range variables(store) {
			if v.Trainable && v.InUseByGraph(nll.Graph()) && params.RoleOf(v, store) != "" {
				trained = append(trained, v.NodeValue(nll.Graph()))
			}
		}
		graph.Gradient(stochastic.LayerLossesOf(nll.Graph()).Objective(nll, rows), trained...)
		write(h, outputs.Graph())
	})
	if err == nil && e.Method.Process == nil { // a process predicts only after Finish
		err = b.build(network, e.Task.Likelihood, false, false, func(m *nets.Model, s *model.Scope, outputs, _ *graph.Node) {
			switch l := m.Likelihood.(type) {
			case likelihood.Regression:
				l.Moments(s, outputs)
			case likelihood.Distribution:
				l.Parameters(s, outputs)
			}
			write(h, outputs.Graph())
		})
	}
	if err == nil {
		err = store.InitializeVariables(backend, nil)
	}
	if err != nil {
		return "", err
	}
	for _, v := range variables(store) {
		value, err := v.Value()
		if err != nil {
			return "", err
		}
		fmt.Fprintln(h, v.Path(), v.Trainable, value.Value())
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// write writes all nodes of a graph.
func write(w io.Writer, g *graph.Graph) {
	for _, node := range g.Nodes() {
		fmt.Fprintln(w, node)
	}
}

// Graphs keep the values of all their constants, so that codeOf includes them.
func init() { graph.MinConstValueSizeToKeep = math.MaxInt }
