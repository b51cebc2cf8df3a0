package spec

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/dul/train"
)

// A Graph builds the graph of a model to see what it computes. The graph is never executed.
type Graph struct {
	Network    nets.Network
	Likelihood likelihood.Likelihood // nil for a network that is only applied
	Data       train.Dataset         // inputs and answers have its shapes and types
	Rows       int                   // of a batch; 0 means FewRows
	Training   bool                  // with the NLL, or otherwise of a prediction
	Coherent   bool                  // with coherent draws; see predict.Options
	Values     bool                  // with the constants of initial values, or otherwise zeros
}

// FewRows is the number of examples of a small batch. 7 is unlikely to be a width, so that a network that confuses axes is
// noticed.
const FewRows = 7

// Backend is the backend of graphs that are only looked at.
var Backend = sync.OnceValues(func() (compute.Backend, error) { return gobackend.New("") })

// Build builds the graph, and shows it to look: the model, the scope of its parameters, the outputs [rows, outputs], and in training
// the NLL [rows, 1]. An error says what is wrong with the network or the likelihood.
func (b Graph) Build(look func(m *nets.Model, s *model.Scope, outputs, nll *graph.Node)) error {
	b.Rows = cmp.Or(b.Rows, FewRows)
	backend, err := Backend()
	if err != nil {
		return err
	}
	m, err := nets.New(backend, b.Network, b.Likelihood, 1)
	if err != nil {
		return err
	}
	if !b.Values {
		params.WithoutValues(m.Store)
	}
	x, answers := b.batch()
	return nets.Build(backend, m.Store, func(root *model.Scope, in []*graph.Node) {
		x := in[0]
		root.Store().SetTraining(x.Graph(), b.Training)
		if b.Coherent {
			stochastic.SetCoherent(x.Graph())
		}
		if pixels, is := b.Data.Inputs.(nets.Pixels); is {
			x = pixels.Standardization.Images(x, dtypes.Float32)
		}
		s := m.Scope(root)
		outputs := m.Apply(s, x)
		m.CheckOutputs(s, outputs, b.Rows)
		var nll *graph.Node
		if b.Training { // a Gaussian process has draws of its outputs in training alone
			nll = checkedNLL(s, b.Likelihood, outputs, in[1], b.Rows)
		}
		look(m, s, outputs, nll)
	}, x, answers)
}

// checkedNLL applies a likelihood, which may have parameters of its own, and panics if its result has a wrong shape.
func checkedNLL(s *model.Scope, l likelihood.Likelihood, outputs, answers *graph.Node, rows int) *graph.Node {
	defer nets.PanicWithError("the likelihood of type %T", l)
	each := l.NLL(s, outputs, answers)
	if dims := each.Shape().Dimensions; !slices.Equal(dims, []int{rows, 1}) {
		panic(fmt.Errorf("the NLL of the likelihood of type %T has the shape %s for %d examples; want [%d, 1]", l, each.Shape(), rows, rows))
	}
	return each
}

// batch are the shapes of a batch of inputs and of their answers.
func (b Graph) batch() (x, answers shapes.Shape) {
	switch inputs := b.Data.Inputs.(type) {
	case nets.Pixels:
		x = shapes.Make(dtypes.Uint8, b.Rows, inputs.Channels(), inputs.Height, inputs.Width)
	case nets.Floats:
		x = shapes.Make(dtypes.Float32, append([]int{b.Rows}, inputs.Shape...)...)
	}
	if b.Data.Labels != nil {
		return x, shapes.Make(dtypes.Int32, b.Rows, 1)
	}
	return x, shapes.Make(dtypes.Float32, b.Rows, max(1, len(b.Data.Targets)/b.Data.Len()))
}

// Variables are the variables of a model, in the order of their paths.
func Variables(store *model.Store) []*model.Variable {
	return slices.SortedFunc(store.IterVariables(), func(a, b *model.Variable) int { return cmp.Compare(a.Path(), b.Path()) })
}

// WritePrediction adds to the graph of a prediction what the likelihood says of its outputs, and writes it.
func WritePrediction(w io.Writer, m *nets.Model, s *model.Scope, outputs *graph.Node) {
	switch l := m.Likelihood.(type) {
	case likelihood.Regression:
		l.Moments(s, outputs)
	case likelihood.Distribution:
		l.Parameters(s, outputs)
	case likelihood.Classification:
		likelihood.Logits(l, s, outputs)
	}
	WriteGraph(w, outputs.Graph())
}

// WriteGraph writes all nodes of a graph.
func WriteGraph(w io.Writer, g *graph.Graph) {
	for _, node := range g.Nodes() {
		fmt.Fprintln(w, node)
	}
}

// Graphs keep the values of all their constants, so that WriteGraph writes them.
func init() { graph.MinConstValueSizeToKeep = math.MaxInt }
