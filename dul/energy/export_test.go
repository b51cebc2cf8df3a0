package energy

import (
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/conv"
)

// Causal is causal for a square window, for the tests.
func Causal(kernel *graph.Node, size int) *graph.Node { return causal(kernel, size*size) }

// Whitened is the z of Conv at a given kernel.
func (l LDL) Whitened(x, kernel *graph.Node, size int) *graph.Node {
	return l.whitened(x, kernel, size)
}

// ConvWith is Conv with k components.
func (m Rank1Mixture) ConvWith(s *model.Scope, x *graph.Node, w conv.Window, k int) ConvTerms {
	return m.conv(s, x, w, k)
}
