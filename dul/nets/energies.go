package nets

import (
	"strings"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/stochastic"
)

// A LayerEnergy is the energy of the input of one layer of an image network.
type LayerEnergy struct {
	// Layer is the layer's scope below the network's, such as
	// "stage_2_block_1/conv_2".
	Layer string
	// Window is that of a convolution, zero for a dense layer.
	Window conv.Window
	// Energy is E of each example, [batch, 1]; of an image the mean over its positions.
	Energy *graph.Node
}

const energiesKey = "/layer_energies"

// Energies returns the energies of a graph's layers with energy models, in the
// order in which the network applies them. A graph in which the network is
// applied several times has them as often.
func Energies(g *graph.Graph) []LayerEnergy {
	energies, found := model.GetGraphParam(g, energiesKey)
	if !found {
		return nil
	}
	return energies.([]LayerEnergy)
}

// LastConvolution is the number of the last convolution in the list that sees
// more than one pixel, or -1: its input are the features whose energy tells
// inputs unlike the training data (the paper's section on out-of-distribution
// detection). Shortcuts and the head come after it or beside it.
func LastConvolution(energies []LayerEnergy) int {
	for i := len(energies) - 1; i >= 0; i-- {
		if energies[i].Window.Size > 1 {
			return i
		}
	}
	return -1
}

// traced is a family of layers that notes where each energy comes from.
type traced struct {
	layers ConvLayers
	base   string // scope of the network
}

// Conv implements ConvLayers.
func (t traced) Conv(s *model.Scope, x *graph.Node, c conv.Spec) *graph.Node {
	return t.note(s, x.Graph(), c.Window, func() *graph.Node { return t.layers.Conv(s, x, c) })
}

// Dense implements Layers.
func (t traced) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	return t.note(s, x.Graph(), conv.Window{}, func() *graph.Node { return t.layers.Dense(s, x, units) })
}

// norm is the batch normalisation of the family, if it has its own, such as
// baselines.SpectralNormed, else the usual one.
func (t traced) norm(s *model.Scope, x *graph.Node) *graph.Node {
	if own, has := t.layers.(Normalizer); has {
		return own.Norm(s, x)
	}
	return conv.BatchNorm(s, x)
}

// A Normalizer is a family with a batch normalisation of its own.
type Normalizer interface {
	// Norm maps images [channels, batch, height, width] to images of the same shape.
	Norm(s *model.Scope, x *graph.Node) *graph.Node
}

func (t traced) note(s *model.Scope, g *graph.Graph, w conv.Window, apply func() *graph.Node) *graph.Node {
	losses := stochastic.LayerLossesOf(g)
	before := len(losses.Energies)
	y := apply()
	energies := Energies(g)
	for _, energy := range losses.Energies[before:] {
		name := strings.TrimPrefix(strings.TrimPrefix(s.Scope(), t.base), model.ScopeSeparator)
		energies = append(energies, LayerEnergy{Layer: name, Window: w, Energy: energy})
	}
	model.SetGraphParam(g, energiesKey, energies)
	return y
}
