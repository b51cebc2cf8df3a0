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
// becomes a ResidualMLP of the same width and depth; without hidden layers, or with different widths, it is an error.
// In other networks the head replaces the dense layer at HeadScope; Apply panics unless there is exactly one. If the
// head has a method Conv, it also makes the convolutions.
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
	var layers Layers = headed{hidden, head}
	if convolution, is := head.(ConvLayers); is {
		if _, is := architecture.(ResNet); is { // its only dense layer is the last
			return architecture.Over(convolution)
		}
		layers = convHeaded{headed{hidden, head}, convolution}
	}
	network, err := architecture.Over(layers)
	switch architecture.(type) {
	case ResNet, ResidualSum:
		return network, err
	}
	return oneHead{network, architecture}, err
}

// oneHead is a network that may have another number of heads.
type oneHead struct {
	Network
	architecture Architecture
}

// TakesReplicas implements the interface of the function TakesReplicas.
func (n oneHead) TakesReplicas() bool { return TakesReplicas(n.Network) }

// Apply implements Network.
func (n oneHead) Apply(s *model.Scope, x *graph.Node, outputs int) *graph.Node {
	before := heads(x.Graph())
	y := n.Network.Apply(s, x, outputs)
	if built := heads(x.Graph()) - before; built != 1 {
		panic(fmt.Errorf("the head takes the place of the dense layer at the scope %s, and the network %T has %d there; build its last layer by layers.Dense(s.In(\"output\"), ...)", HeadScope, n.architecture, built))
	}
	return y
}

const headsKey = "/heads"

// heads is how many layers at HeadScope a graph has.
func heads(g *graph.Graph) int {
	n, _ := model.GetGraphParam(g, headsKey)
	built, _ := n.(int)
	return built
}

// Headless is a family without the dense layer at HeadScope, which returns its input. A network over it gives the features before
// the last layer of a trained model of the same network over Layers, see Model.With.
type Headless struct{ Layers }

// Dense implements Layers.
func (h Headless) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	if s.Scope() == HeadScope {
		return x
	}
	return h.Layers.Dense(s, x, units)
}

// Norm is the batch normalisation of the family, or else conv.BatchNorm.
func (h Headless) Norm(s *model.Scope, x *graph.Node) *graph.Node {
	return positions{layers: h.Layers}.Norm(s, x)
}

// Conv implements ConvLayers. It panics if the family has no convolution.
func (h Headless) Conv(s *model.Scope, x *graph.Node, c conv.Spec) *graph.Node {
	convolution, has := h.Layers.(ConvLayers)
	if !has {
		panic(fmt.Errorf("layers of type %T have no convolution, which images need", h.Layers))
	}
	return convolution.Conv(s, x, c)
}

// headed is a family whose dense layer at HeadScope is of another family.
type headed struct{ hidden, head Layers }

// Dense implements Layers.
func (h headed) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	if s.Scope() == HeadScope {
		model.SetGraphParam(x.Graph(), headsKey, heads(x.Graph())+1)
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
