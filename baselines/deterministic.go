package baselines

import (
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/params"
)

// Deterministic is the family of layers without uncertainty, y = x W + b.
type Deterministic struct{}

// Dense returns x W + b, [..., batch, in] -> [..., batch, units].
func (Deterministic) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	return params.Dense(s, x, units)
}

// Conv returns the convolution of x, [channels, batch, height, width] ->
// [filters, batch, height', width'].
func (Deterministic) Conv(s *model.Scope, x *graph.Node, c conv.Spec) *graph.Node {
	return conv.Layer(s, x, c)
}
