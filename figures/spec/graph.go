package spec

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
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
	return nets.Build(backend, m.Store, func(root *model.Scope, in []*graph.Node) {
		x := in[0]
		root.Store().SetTraining(x.Graph(), b.Training)
		facts := params.FactsOf(x.Graph())
		facts.Examples, facts.Features, facts.Coherent = b.Data.Len(), madeUp, b.Coherent
		if pixels, is := b.Data.Inputs.(nets.Pixels); is {
			x = pixels.Standardization.Images(x, dtypes.Float32)
		}
		s := m.Scope(root)
		outputs := m.Apply(s, x)
		m.CheckOutputs(s, outputs, b.Rows)
		var nll *graph.Node
		if b.Training { // a Gaussian process has draws of its outputs in training alone
			nll = m.NLL(s, outputs, in[1])
		}
		look(m, s, outputs, nll)
	}, m.BatchShape(b.Data.Inputs, b.Rows), b.answers())
}

// madeUp are features for the initial values of a Gaussian process.
func madeUp(width int) ([][]float64, error) {
	rng, features := rand.New(rand.NewPCG(1, 1)), make([]float64, 1000*width)
	for i := range features {
		features[i] = rng.NormFloat64()
	}
	return [][]float64{features}, nil
}

// answers is the shape of a batch of answers.
func (b Graph) answers() shapes.Shape {
	if b.Data.Labels != nil {
		return shapes.Make(dtypes.Int32, b.Rows, 1)
	}
	return shapes.Make(dtypes.Float32, b.Rows, max(1, len(b.Data.Targets)/b.Data.Len()))
}

// Code is a digest of what a network computes that is trained by settings on all of Data: the graphs of the loss with its
// gradients and updates and, where predicted, of the prediction, for few examples and for the batches of training, and the initial
// values.
func (b Graph) Code(s train.Settings, predicted bool) (string, error) {
	h := sha256.New()
	var m *nets.Model
	for _, b.Rows = range batches(s.BatchSize, b.Data.Len()) {
		b.Training, b.Values = true, true
		err := b.Build(func(built *nets.Model, scope *model.Scope, outputs, nll *graph.Node) {
			m = built
			g, losses := outputs.Graph(), stochastic.LayerLossesOf(outputs.Graph())
			var trained []*model.Variable
			var values []*graph.Node
			for _, v := range Trained(m.Store) {
				if v.InUseByGraph(g) {
					trained, values = append(trained, v), append(values, v.NodeValue(g))
				}
			}
			update(s, scope, trained, values, graph.Gradient(losses.Objective(nll, b.Rows), values...))
			write(h, g)
		})
		if err == nil && predicted {
			b.Training, b.Values = false, false
			err = b.Build(func(m *nets.Model, s *model.Scope, outputs, _ *graph.Node) { WritePrediction(h, m, s, outputs) })
		}
		if err != nil {
			return "", err
		}
	}
	if err := m.Store.InitializeVariables(m.Backend, nil); err != nil {
		return "", err
	}
	for _, v := range variables(m.Store) {
		value, err := v.Value()
		if err != nil {
			return "", err
		}
		fmt.Fprintln(h, v.Path(), v.Trainable, value.Value())
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// batches are the batch sizes whose graphs are in a digest: FewRows, a whole batch, and the last batch of n examples. A layer may
// compute something else for each of them.
func batches(batch, n int) []int {
	all := []int{FewRows}
	for _, size := range []int{min(batch, n), n % max(batch, 1)} {
		if size > 0 && !slices.Contains(all, size) {
			all = append(all, size)
		}
	}
	return all
}

// update adds to a graph the updates by custom optimizers.
func update(settings train.Settings, s *model.Scope, trained []*model.Variable, values, gradients []*graph.Node) {
	for phase, groups := range [][]train.Group{settings.PretrainGroups, settings.Groups} {
		state := s.In("update_%d", phase)
		for i, v := range trained {
			g := slices.IndexFunc(groups, func(g train.Group) bool { return g.Contains(v.Path(), params.RoleOf(v, s.Store())) })
			if g >= 0 && IsCustom(groups[g].Optimizer) {
				rate := graph.Scalar(values[i].Graph(), values[i].DType(), 0.5)
				groups[g].Optimizer.Update(state.In("%s", model.EscapeScopeName(v.Path())), values[i], gradients[i], rate, graph.AddScalar(rate, 2.5))
			}
		}
	}
}

// mostAnswers is about how many answers of an Order or Augmentation are in a digest: those for all epochs, or evenly spaced ones.
const mostAnswers = 1_000_000

// Answers is a digest of what the custom parts of settings answer for n training examples: the rates of all steps,
// and the order and the augmentation of the examples.
func Answers(s train.Settings, n int, seed uint64) string {
	h := sha256.New()
	if IsCustom(s.Schedule) {
		total := cmp.Or(s.Epochs, s.PretrainEpochs) * ((n-1)/s.BatchSize + 1)
		for t := range total {
			h.Write(binary.LittleEndian.AppendUint64(nil, math.Float64bits(s.Schedule.Rate(t, total))))
		}
	}
	epochs := s.PretrainEpochs + s.Epochs
	for epoch := 0; epoch < epochs; epoch += 1 + epochs*n/mostAnswers {
		if IsCustom(s.Order) {
			fmt.Fprintln(h, s.Order.Of(seed, epoch, n))
		}
		for image := 0; image < n && IsCustom(s.Augmentation); image++ {
			top, left, flip := s.Augmentation.Draw(seed, epoch, image)
			fmt.Fprintln(h, top, left, flip)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// WriteData writes all numbers of a data set, and its name.
func WriteData(w io.Writer, name string, d train.Dataset) {
	write := func(words any) { binary.Write(w, binary.LittleEndian, words) } // to a hash, which takes everything
	floats := func(list []float64) {
		write(uint64(len(list)))
		for part := range slices.Chunk(list, 1<<13) {
			write(part)
		}
	}
	integers := func(list []int) {
		write(uint64(len(list)))
		for _, v := range list {
			write(int64(v))
		}
	}
	integers([]int{len(name)})
	io.WriteString(w, name)
	switch x := d.Inputs.(type) {
	case nets.Floats:
		integers(x.Shape)
		floats(x.Values)
	case nets.Pixels:
		integers([]int{x.Height, x.Width, len(x.Bytes)})
		w.Write(x.Bytes)
		floats(x.Standardization.Mean)
		floats(x.Standardization.Std)
	}
	floats(d.Targets)
	integers(d.Labels)
}

// variables are the variables of a model, in the order of their paths.
func variables(store *model.Store) []*model.Variable {
	return slices.SortedFunc(store.IterVariables(), func(a, b *model.Variable) int { return cmp.Compare(a.Path(), b.Path()) })
}

// Trained are the variables that training changes, in the order of their paths.
func Trained(store *model.Store) []*model.Variable {
	return slices.DeleteFunc(variables(store), func(v *model.Variable) bool {
		role := params.RoleOf(v, store)
		return role == "" || role == params.Running || !v.Trainable
	})
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
	write(w, outputs.Graph())
}

// write writes all nodes of a graph.
func write(w io.Writer, g *graph.Graph) {
	for _, node := range g.Nodes() {
		fmt.Fprintln(w, node)
	}
}

// Graphs keep the values of all their constants, so that write has them.
func init() { graph.MinConstValueSizeToKeep = math.MaxInt }
