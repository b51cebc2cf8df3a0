package nets

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/conv"
)

// HeadScope is the scope of the last layer of this package's networks.
const HeadScope = "/model/network/output"

// WithHead returns the architecture with hidden layers of one family and a last layer of another, the head. An MLP
// becomes a ResidualMLP of as many layers, and must have hidden layers of one width. In other networks the head
// replaces the dense layer in HeadScope. If the head has a method Conv, it also makes the convolutions.
func WithHead(architecture Architecture, hidden, head Layers) (Network, error) {
	if mlp, is := architecture.(MLP); is {
		for _, width := range mlp.Widths {
			if width != mlp.Widths[0] {
				return nil, fmt.Errorf("a Gaussian process needs hidden layers of one width, and nets.MLP has the Widths %v: its network has residual connections", mlp.Widths)
			}
		}
		if len(mlp.Widths) == 0 {
			return nil, fmt.Errorf("a Gaussian process needs a network with hidden layers, and nets.MLP has no Widths")
		}
		return ResidualMLP{Layers: hidden, Head: head, Width: mlp.Widths[0], Depth: len(mlp.Widths)}, nil
	}
	if residual, is := architecture.(ResidualMLP); is {
		residual.Layers, residual.Head = hidden, head
		return residual, nil
	}
	if convolution, is := head.(ConvLayers); is {
		if _, is := architecture.(ResNet); is { // its only dense layer is the last
			return architecture.Over(convolution)
		}
		return architecture.Over(convHeaded{headed{hidden, head}, convolution})
	}
	return architecture.Over(headed{hidden, head})
}

// headed is a family whose dense layer at HeadScope is of another family.
type headed struct{ hidden, head Layers }

// Dense implements Layers.
func (h headed) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	if s.Scope() == HeadScope {
		return h.head.Dense(s, x, units)
	}
	return h.hidden.Dense(s, x, units)
}

// convHeaded is headed with convolutions.
type convHeaded struct {
	headed
	conv ConvLayers
}

// Conv implements ConvLayers.
func (h convHeaded) Conv(s *model.Scope, x *graph.Node, c conv.Spec) *graph.Node {
	return h.conv.Conv(s, x, c)
}
