// Package nets builds networks over any family of layers, and models of them: dul.Density or one of package baselines.
package nets

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/ops"
)

// Layers is a family of layers, such as dul.Density or one of package baselines.
type Layers interface {
	// Dense maps [..., batch, in] to [..., batch, units].
	Dense(s *model.Scope, x *graph.Node, units int) *graph.Node
}

// A Process is a family whose last layer is a Gaussian process f on the features of the other layers: baselines.SNGP or DUE.
type Process interface {
	Layers
	// Head is the last layer, [..., batch, in] -> [..., batch, units]. Networks build it in the place of Dense at the scope
	// "output" below their own.
	Head(s *model.Scope, x *graph.Node, units int) *graph.Node
	// Moments returns the mean of f, [..., batch, units], and its variance, [..., batch, 1] or [..., batch, units].
	Moments(s *model.Scope, x *graph.Node, units int) (mean, variance *graph.Node)
}

// layersOf are the layers of a field of a network in the scope s. It panics if there
// are none.
func layersOf(field string, layers Layers, s *model.Scope) positions {
	if layers == nil {
		panic(fmt.Errorf("%s is nil; give a family of layers, such as dul.Density{}", field))
	}
	return positions{layers, s.Scope()}
}

// MLP is a multilayer perceptron: a layer and a ReLU for each width, then a layer for the output. All layers, the last
// too, are of the given family.
type MLP struct {
	Layers Layers
	Widths []int // of the hidden layers; the paper's UCI networks have {50, 50}
}

// Apply maps [..., batch, features] to [..., batch, outputs]. It panics if Layers is nil.
func (m MLP) Apply(s *model.Scope, x *graph.Node, outputs int) *graph.Node {
	layers := layersOf("nets.MLP.Layers", m.Layers, s)
	for i, width := range m.Widths {
		x = ops.ReLU(layers.Dense(s.In("hidden_%d", i), x, width))
	}
	return layers.Dense(s.In("output"), x, outputs)
}

// ResidualMLP is a multilayer perceptron with residual connections and a head of another family,
//
//	h_0 = dense(x),   h_l = h_{l-1} + relu(dense(h_{l-1})),   output = head(h_Depth),
//
// the network of van Amersfoort et al. (2021) for regression. If the layers bound how far they stretch distances,
// different inputs have different features h_Depth. Width is the number of units of each h_l.
type ResidualMLP struct {
	Layers Layers
	Head   Layers
	Width  int
	Depth  int
}

// Apply maps [..., batch, features] to the head's output, [..., batch, outputs]. It panics if Layers or Head is nil or
// if Width or Depth is not positive.
func (m ResidualMLP) Apply(s *model.Scope, x *graph.Node, outputs int) *graph.Node {
	head := layersOf("nets.ResidualMLP.Head", m.Head, s)
	h := m.features(s, x)
	return head.Dense(s.In("output"), h, outputs)
}

// Moments returns the mean and the variance of the outputs, [..., batch, outputs]; the variance may be [..., batch, 1].
// It panics if the head has no method Moments, as a Gaussian process has.
func (m ResidualMLP) Moments(s *model.Scope, x *graph.Node, outputs int) (mean, variance *graph.Node) {
	head, is := m.Head.(Process)
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
