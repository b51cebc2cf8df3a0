package nets

import (
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
)

// Block applies one basic block with the given number of filters.
func Block(s *model.Scope, layers ConvLayers, x *graph.Node, filters, stride int) *graph.Node {
	return block{in: x.Shape().Dim(0), filters: filters, stride: stride}.apply(s, positions{layers, s.Scope()}, x)
}

// Drop is the dropout of a block.
func Drop(s *model.Scope, x *graph.Node, rate float64) *graph.Node {
	return block{dropout: rate}.drop(s, x)
}
