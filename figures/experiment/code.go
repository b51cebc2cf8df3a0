package experiment

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"sync"

	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/figures/spec"
)

// hidden says whether a part from outside has code that shows in no graph and no data.
func (e Experiment) hidden() bool {
	_, outside, _ := spec.Of(e.Recipe, "Recipe")
	return outside || spec.Outside(e.Task.After) || spec.Outside(e.Task.Decision) || spec.Outside(e.Method.Sampler)
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

// code is what an experiment with parts from outside this module computes, as digests: of its graphs and initial values, of
// the data of all splits if the source is from outside, and of the program if a part is hidden.
func (e Experiment) code(ctx context.Context) (map[string]spec.Tree, error) {
	d, err := e.load(ctx)
	if err != nil {
		return nil, err
	}
	found := map[string]spec.Tree{}
	if found["graphs"], err = codeOf(e, d); err != nil {
		return nil, err
	}
	if _, outside, _ := spec.Of(&e.Task.Data, "Task.Data"); outside { // an error is one of spec.Of(e), too
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
	b := building{backend: backend, data: d}
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

// variables are those of a model, in the order of their paths.
func variables(store *model.Store) []*model.Variable {
	return slices.SortedFunc(store.IterVariables(), func(a, b *model.Variable) int { return cmp.Compare(a.Path(), b.Path()) })
}

// Graphs keep the values of all their constants, so that codeOf sees them.
func init() { graph.MinConstValueSizeToKeep = math.MaxInt }
