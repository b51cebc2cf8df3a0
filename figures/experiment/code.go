package experiment

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"sync"

	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
)

// hidden lists parts of an experiment from outside whose code shows in no graph and no data.
func (e Experiment) hidden() (names []string) {
	for name, is := range map[string]bool{
		"After": outsideFunc(e.Task.After), "Decision": outsideValue(e.Task.Decision), "Sampler": outsideValue(e.Method.Sampler),
	} {
		if is {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// program is the digest of the running program.
var program = sync.OnceValues(func() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	content, err := os.ReadFile(path)
	return digest(content), err
})

// code is what an experiment with parts from outside this module computes, as digests: of its graphs and initial values, of
// the data of all splits if the source is from outside, and of the program if a part is hidden.
func (e Experiment) code(ctx context.Context) (map[string]tree, error) {
	e.Split = 0
	d, err := e.load(ctx)
	if err != nil {
		return nil, err
	}
	found := map[string]tree{}
	if found["graphs"], err = codeOf(e, d); err != nil {
		return nil, err
	}
	var source treeWriter
	if _, err := source.tree(reflect.ValueOf(&e.Task).Elem().FieldByName("Data"), "Task.Data"); err != nil {
		return nil, err
	}
	if source.outside {
		h := sha256.New()
		for split := range e.Task.Data.Splits() { // of which some may be in order, and others not
			d, err := e.Task.Data.Load(ctx, split)
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			fmt.Fprintln(h, err == nil, Digest(d.all()...), d.Unit, d.Zero)
		}
		found["data"] = hex.EncodeToString(h.Sum(nil)[:8])
	}
	if names := e.hidden(); names != nil {
		if found["program"], err = program(); err != nil {
			return nil, fmt.Errorf("reading the program, by which %v is known: %w", names, err)
		}
	}
	return found, nil
}

// codeOf is a digest of what an experiment computes for data like these: the graphs of the training loss with its gradients
// and of the optimizers from outside, and of the prediction; the initial values; the learning rates, the order and the augmentation.
func codeOf(e Experiment, d Data) (string, error) {
	backend, err := gobackend.New("")
	if err != nil {
		return "", err
	}
	defer backend.Finalize()
	b := building{backend: backend, data: d}
	network, err := b.network(e)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	var store *model.Store
	err = b.build(network, e.Task.Likelihood, true, true, func(m *nets.Model, s *model.Scope, outputs, nll *graph.Node) {
		store = m.Store
		e.Recipe.step(m, nll)
		write(h, outputs.Graph())
	})
	if err == nil && e.Method.Process == nil { // which predicts only once it was finished
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
	for _, v := range slices.SortedFunc(store.IterVariables(), func(a, b *model.Variable) int { return cmp.Compare(a.Path(), b.Path()) }) {
		value, err := v.Value()
		if err != nil {
			return "", err
		}
		fmt.Fprintln(h, v.Path(), v.Trainable, value.Value())
	}
	const examples, epochs, steps = 64, 2, 1000
	for epoch := range epochs {
		if e.Recipe.Order != nil {
			fmt.Fprintln(h, e.Recipe.Order.Of(1, epoch, examples))
		}
		for image := range examples {
			if e.Recipe.Augmentation != nil {
				fmt.Fprintln(h, fmt.Sprint(e.Recipe.Augmentation.Draw(1, epoch, image)))
			}
		}
	}
	for step := range steps {
		fmt.Fprintln(h, e.Recipe.Schedule.Rate(step, steps))
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// write writes all nodes of a graph.
func write(w io.Writer, g *graph.Graph) {
	for _, node := range g.Nodes() {
		fmt.Fprintln(w, node)
	}
}

// step adds to a graph what the groups of the recipe do with the parameters, by the gradients of the loss.
func (r Recipe) step(m *nets.Model, nll *graph.Node) {
	g := nll.Graph()
	var trained []*model.Variable
	var values []*graph.Node
	for v := range m.Store.IterVariables() {
		if v.Trainable && v.InUseByGraph(g) && params.RoleOf(v, m.Store) != "" {
			trained = append(trained, v)
		}
	}
	slices.SortFunc(trained, func(a, b *model.Variable) int { return cmp.Compare(a.Path(), b.Path()) })
	for _, v := range trained {
		values = append(values, v.NodeValue(g))
	}
	gradients := graph.Gradient(stochastic.LayerLossesOf(g).Objective(nll, rows), values...)
	rate, count := graph.Scalar(g, m.DType, 0.5), graph.Scalar(g, m.DType, 3)
	for k, group := range slices.Concat(r.Groups, r.PretrainGroups) {
		for i, v := range trained {
			if outsideValue(group.Optimizer) && group.Contains(v.Path(), params.RoleOf(v, m.Store)) {
				group.Optimizer.Update(m.Store.RootScope().In("optimizer_%d_%d", k, i), values[i], gradients[i], rate, count)
			}
		}
	}
}
