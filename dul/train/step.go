package train

import (
	"errors"
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
)

// CrossEntropy is -log softmax(logits)[label] of each example: logits
// [batch, classes] and labels [batch], integers, -> [batch, 1].
func CrossEntropy(logits, labels *graph.Node) *graph.Node {
	chosen := graph.OneHot(labels, logits.Shape().Dim(1), logits.DType())
	return graph.Sub(ops.LogSumExp(logits), ops.SumColumns(graph.Mul(logits, chosen)))
}

// executions are the compiled graphs of one phase, by how many steps of how many
// images they make: several whole batches together, one whole batch, and the
// smaller one at the end of an epoch.
type executions struct {
	of       *classificationRun
	phase    phase
	compiled map[executionShape]*execution
	// foreign are the buffers of noise that other graphs of the store use.
	foreign map[string]bool
}

type executionShape struct{ rows, count int }

// An execution is one compiled graph.
type execution struct {
	exec  *model.Exec
	sheet *stochastic.Sheet // nil for noise that is drawn in the graph
}

func (r *classificationRun) newExecutions(p phase) *executions {
	e := &executions{of: r, phase: p, compiled: map[executionShape]*execution{}, foreign: map[string]bool{}}
	for v := range r.fitted.Store.IterVariables() {
		if stochastic.IsNoise(v) {
			e.foreign[v.Path()] = true
		}
	}
	return e
}

// close frees the graphs and their buffers of noise.
func (e *executions) close() error {
	for _, c := range e.compiled {
		c.exec.Finalize()
	}
	store := e.of.fitted.Store
	var own []string
	for v := range store.IterVariables() {
		if stochastic.IsNoise(v) && !e.foreign[v.Path()] {
			own = append(own, v.Path())
		}
	}
	var failures []error
	for _, path := range own {
		failures = append(failures, store.DeleteVariable(path))
	}
	return errors.Join(failures...)
}

// run executes as many steps as there are rates, the first of which has the
// number t in its phase, on the images of a table of picks, which it frees. It
// returns each step's losses, and whether the graph had to be compiled first.
func (e *executions) run(shape executionShape, table *tensors.Tensor, rates []float64, t int) (losses [][]float64, compiled bool, err error) {
	c, found := e.compiled[shape]
	switch {
	case !found:
		c = e.compile(shape) // which draws the noise of the first execution
		e.compiled[shape] = c
	case c.sheet != nil:
		if err := c.sheet.Refresh(); err != nil {
			return nil, false, err
		}
	}
	numbers := make([]float64, len(rates))
	for i := range numbers {
		numbers[i] = float64(t + i)
	}
	vector := func(values []float64) *tensors.Tensor {
		return params.FromFloat64(shapes.Make(e.of.fitted.DType, len(values)), values)
	}
	rateVector, numberVector := vector(rates), vector(numbers)
	out, err := c.exec.Call1(e.of.device.pixels, e.of.device.labels, table, rateVector, numberVector)
	if err != nil {
		return nil, false, err
	}
	losses, err = rowsOf(out)
	// Buffers of the device are freed here, as the garbage collector, which sees
	// only the host's memory, might take its time.
	for _, t := range []*tensors.Tensor{out, table, rateVector, numberVector} {
		err = errors.Join(err, t.FinalizeAll())
	}
	return losses, !found, err
}

// compile makes the graph of shape.count steps, one after the other.
func (e *executions) compile(shape executionShape) *execution {
	f, c := e.of.fitted, &execution{}
	if f.Host != nil {
		c.sheet = f.Host.NewSheet()
	}
	c.exec = model.MustNewExec(f.Backend, f.Store,
		func(root *model.Scope, pixels, labels, table, rates, numbers *graph.Node) *graph.Node {
			g := pixels.Graph()
			if c.sheet != nil {
				stochastic.SetNoise(g, c.sheet)
			}
			root.Store().SetTraining(g, true)
			var losses []*graph.Node
			for k := range shape.count {
				entry := func(x *graph.Node) *graph.Node { return graph.Slice(x, graph.AxisElem(k)) }
				losses = append(losses, e.step(root.ResetVisited(), pixels, labels,
					graph.Reshape(entry(table), shape.rows, pickColumns),
					graph.Reshape(entry(rates)), graph.Reshape(entry(numbers))))
			}
			return graph.Concatenate(losses, 0)
		})
	return c
}

// step is one training step in the graph: the rate and the step's number t are
// scalars, the result is a row of losses, [1, lossColumns].
func (e *executions) step(root *model.Scope, pixels, labels, table, rate, t *graph.Node) *graph.Node {
	r, g := e.of, pixels.Graph()
	// A graph's tally is of all its layers; this step's begins here.
	*stochastic.TallyOf(g) = stochastic.Tally{}
	if r.BFloat16 {
		conv.UseBFloat16(g)
	}
	x := r.data.Standardization.Images(pick(pixels, table, r.Padding), r.fitted.DType)
	labels = graph.Reshape(graph.Gather(labels, graph.SliceAxis(table, 1, graph.AxisRange(pickImage, pickImage+1))), -1)
	s := r.fitted.Scope(root)
	nll, logits := ExpectedCrossEntropy(r.fitted.Logits(s, x), labels)

	batch := logits.Shape().Dim(0)
	weights := graph.MulScalar(graph.Ones(g, shapes.Make(logits.DType(), batch, 1)), 1/float64(batch))
	objective := Objective{N: []float64{float64(r.data.N())}, LogLikelihoodScale: r.LogLikelihoodScale}
	l := objective.Of(nll, weights)
	if e.phase.generative {
		if l.LogLikelihood == nil {
			panic(errors.New("generative pretraining was asked for, but no layer of the network has an energy model"))
		}
		l.Total = graph.MulScalar(l.LogLikelihood, -r.LogLikelihoodScale)
	}
	applyGroups(root.In("%s", e.phase.name), s, l.Total, e.phase.groups, rate, t)

	hits := graph.ConvertDType(graph.Equal(graph.ArgMax(logits, 1, labels.DType()), labels), logits.DType())
	accuracy := WeightedSum(graph.Reshape(hits, batch, 1), weights)
	row := []*graph.Node{l.Total, l.NLL, l.KL, l.LogLikelihood, accuracy}
	for i, entry := range row {
		if entry == nil {
			row[i] = graph.ZerosLike(accuracy)
		}
	}
	return graph.Concatenate(row, 1)
}

// rowsOf is a matrix's rows.
func rowsOf(t *tensors.Tensor) ([][]float64, error) {
	rows := make([][]float64, t.Shape().Dim(0))
	columns := t.Shape().Dim(1)
	for i := range rows {
		rows[i] = make([]float64, columns)
	}
	switch t.DType() {
	case dtypes.Float32:
		return rows, tensors.ConstFlatData(t, func(flat []float32) { fillRows(rows, flat) })
	case dtypes.Float64:
		return rows, tensors.ConstFlatData(t, func(flat []float64) { fillRows(rows, flat) })
	}
	return nil, fmt.Errorf("losses are of type %s, want float32 or float64", t.DType())
}

func fillRows[T float32 | float64](rows [][]float64, flat []T) {
	for i, v := range flat {
		rows[i/len(rows[0])][i%len(rows[0])] = float64(v)
	}
}
