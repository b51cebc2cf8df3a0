// Package nets builds networks over any family of layers: dul.Density or one of
// package baselines.
package nets

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/ops"
)

// Layers is what a network needs of a family of layers.
type Layers interface {
	// Dense maps [..., batch, in] to [..., batch, units].
	Dense(s *model.Scope, x *graph.Node, units int) *graph.Node
}

// MLP is a multilayer perceptron: for each width a layer and a ReLU, then a
// layer for the output. Every layer is of the given family, also the last.
type MLP struct {
	Layers Layers
	Widths []int // of the hidden layers; the paper's UCI networks have {50, 50}
}

// Apply maps [..., batch, features] to [..., batch, outputs]. It panics on
// widths that are not positive, as GoMLX's graph-building functions do.
func (m MLP) Apply(s *model.Scope, x *graph.Node, outputs int) *graph.Node {
	for i, width := range m.Widths {
		if width < 1 {
			panic(fmt.Errorf("nets.MLP: hidden layer %d has width %d; it must be at least 1", i, width))
		}
		x = ops.ReLU(m.Layers.Dense(s.In("hidden_%d", i), x, width))
	}
	return m.Layers.Dense(s.In("output"), x, outputs)
}
