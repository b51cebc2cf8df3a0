// Package nets builds networks over any family of layers, and models of them: dul.Density or one of package baselines.
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

// layersOf are the layers of a field of a network in the scope s. It panics if there
// are none.
func layersOf(field string, layers Layers, s *model.Scope) positions {
	if layers == nil {
		panic(fmt.Errorf("%s is nil; give a family of layers, such as dul.Density{}", field))
	}
	return positions{layers, s.Scope()}
}

// MLP is a multilayer perceptron: for each width a layer and a ReLU, then a
// layer for the output. Every layer is of the given family, also the last.
type MLP struct {
	Layers Layers
	Widths []int // of the hidden layers; the paper's UCI networks have {50, 50}
}

// Apply maps [..., batch, features] to [..., batch, outputs]. It panics without
// Layers, as GoMLX's graph-building functions do.
func (m MLP) Apply(s *model.Scope, x *graph.Node, outputs int) *graph.Node {
	layers := layersOf("nets.MLP.Layers", m.Layers, s)
	for i, width := range m.Widths {
		x = ops.ReLU(layers.Dense(s.In("hidden_%d", i), x, width))
	}
	return layers.Dense(s.In("output"), x, outputs)
}

// ResidualMLP is a multilayer perceptron with residual connections and a head of
// a family of its own,
//
//	h_0 = dense(x),   h_l = h_{l-1} + relu(dense(h_{l-1})),   output = head(h_Depth),
//
// the network of van Amersfoort et al. (2021) for regression. With layers that
// bound how far they stretch distances, the connections keep inputs that differ
// apart in the features h_Depth.
type ResidualMLP struct {
	Layers Layers
	Head   Layers
	Width  int
	Depth  int
}

// Apply maps [..., batch, features] to what the head makes of it, [..., batch,
// outputs]. It panics without Layers or Head and on a width or depth that is not
// positive, as GoMLX's graph-building functions do.
func (m ResidualMLP) Apply(s *model.Scope, x *graph.Node, outputs int) *graph.Node {
	head := layersOf("nets.ResidualMLP.Head", m.Head, s)
	h := m.features(s, x)
	return head.Dense(s.In("output"), h, outputs)
}

// Moments are the mean and the variance of the outputs, for a head that has
// them, such as a Gaussian process. It panics for any other.
func (m ResidualMLP) Moments(s *model.Scope, x *graph.Node, outputs int) (mean, variance *graph.Node) {
	head, is := m.Head.(gaussianHead)
	if !is {
		panic(fmt.Errorf("nets.ResidualMLP: a head of type %T has no moments", m.Head))
	}
	h := m.features(s, x)
	return head.Moments(s.In("output"), h, outputs)
}

func (m ResidualMLP) features(s *model.Scope, x *graph.Node) *graph.Node {
	if m.Width < 1 || m.Depth < 1 {
		panic(fmt.Errorf("nets.ResidualMLP: width %d and depth %d; both must be at least 1", m.Width, m.Depth))
	}
	layers := layersOf("nets.ResidualMLP.Layers", m.Layers, s)
	h := layers.Dense(s.In("input"), x, m.Width)
	for i := range m.Depth {
		h = graph.Add(h, ops.ReLU(layers.Dense(s.In("block_%d", i), h, m.Width)))
	}
	return h
}

// A gaussianHead is a family whose outputs are Gaussian given its input: their
// means, [..., batch, outputs], and variances, [..., batch, 1] or [..., batch, outputs].
type gaussianHead interface {
	Moments(s *model.Scope, x *graph.Node, outputs int) (mean, variance *graph.Node)
}
