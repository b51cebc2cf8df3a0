package predict

import (
	"context"
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
)

// A repeated is a graph of a model that is executed again and again, each time
// with fresh noise.
type repeated struct {
	exec     *model.Exec
	store    *model.Store
	sheet    *stochastic.NoiseBuffers // nil where noise is drawn in the graph
	executed bool
	noisy    bool // of the graph that was built last: whether executions differ
}

// newRepeated prepares the graph of build, which is given the store's root scope
// and the inputs.
func newRepeated(m *nets.Model, build func(root *model.Scope, x *graph.Node) []*graph.Node) (*repeated, error) {
	r := &repeated{store: m.Store}
	if m.Host != nil {
		r.sheet = m.Host.NewBuffers()
	}
	var err error
	r.exec, err = model.NewExec(m.Backend, m.Store, func(root *model.Scope, x *graph.Node) []*graph.Node {
		if r.sheet != nil {
			stochastic.SetNoiseSource(x.Graph(), r.sheet)
		}
		outputs := build(root, x)
		r.noisy = stochastic.HasNoise(x.Graph())
		return outputs
	})
	if err != nil {
		return nil, fmt.Errorf("building the prediction: %w", err)
	}
	return r, nil
}

// repeat executes the graph for the same inputs and hands each execution's
// outputs to use. Without noise all would have the same outputs, and only the
// first is carried out.
func (r *repeated) repeat(ctx context.Context, inputs *tensors.Tensor, times int, use func(out [][]float64)) error {
	var out [][]float64
	for m := range times {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("stopped after %d of %d executions: %w", m, times, err)
		}
		if m == 0 || r.noisy {
			var err error
			if out, err = r.outputs(inputs); err != nil {
				return fmt.Errorf("execution %d: %w", m, err)
			}
		} else {
			out = slices.Clone(out)
			for i, row := range out {
				out[i] = slices.Clone(row) // what use was given is its own
			}
		}
		use(out)
	}
	return nil
}

// outputs executes the graph once.
func (r *repeated) outputs(inputs *tensors.Tensor) ([][]float64, error) {
	if r.executed && r.sheet != nil {
		if err := r.sheet.Refresh(); err != nil {
			return nil, err
		}
	}
	r.executed = true
	nodes, err := r.exec.Call(inputs)
	if err != nil {
		return nil, err
	}
	out := make([][]float64, len(nodes))
	for i, node := range nodes {
		if out[i], err = params.ToFloat64(node); err != nil {
			return nil, err
		}
		// Go's collector does not see how much of an accelerator's memory a tensor holds.
		if err := node.FinalizeAll(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// close frees the compiled graph and its noise.
func (r *repeated) close() error {
	r.exec.Finalize()
	if r.sheet == nil {
		return nil
	}
	return r.sheet.Release(r.store)
}
