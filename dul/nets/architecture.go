package nets

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
)

// An Architecture is a network whose family of layers is still to be chosen: an
// MLP, ResidualMLP, ResidualSum or ResNet, whose own Layers are ignored, or a Func.
type Architecture interface {
	// Over returns the network with these layers. An error says what they lack.
	Over(layers Layers) (Network, error)
}

// Over implements Architecture.
func (m MLP) Over(layers Layers) (Network, error) {
	m.Layers = layers
	return m, nil
}

// Over implements Architecture: the layers are those of the hidden part and of the head.
func (m ResidualMLP) Over(layers Layers) (Network, error) {
	m.Layers, m.Head = layers, layers
	return m, nil
}

// Over implements Architecture.
func (m ResidualSum) Over(layers Layers) (Network, error) {
	m.Layers = layers
	return m, nil
}

// Over implements Architecture. The layers must have a convolution, see ConvLayers.
func (r ResNet) Over(layers Layers) (Network, error) {
	c, has := layers.(ConvLayers)
	if !has {
		return nil, noConvolution(layers)
	}
	r.Layers = c
	return r, nil
}

func noConvolution(layers Layers) error {
	return fmt.Errorf("layers of type %T have no convolution; give them the method Conv of nets.ConvLayers", layers)
}

// A Func is an Architecture that is written as a function, with any operations of
// GoMLX and the layers of GoMLX beside those that it is given.
type Func struct {
	// Name stands for the function wherever networks are told apart, such as in kept
	// results. Change it when the function changes.
	Name string
	// Build maps inputs x to [batch, outputs] in the scope s. x is [batch, ...] of
	// nets.Floats, and [channels, batch, height, width] of nets.Pixels. The layers act
	// at each position of longer shapes, see Positions.
	Build func(layers Layers, s *model.Scope, x *graph.Node, outputs int) *graph.Node
	// Replicas says that Build also takes inputs with a leading axis of replicas,
	// [replicas, batch, ...], and returns [replicas, batch, outputs]. Without it,
	// NewReplicas refuses the network.
	Replicas bool
}

// Over implements Architecture.
func (f Func) Over(layers Layers) (Network, error) {
	switch {
	case f.Name == "" || f.Build == nil:
		return nil, fmt.Errorf("nets.Func %q: it needs a Name, which is its identity, and the function Build", f.Name)
	case layers == nil:
		return nil, errors.New("nets.Func: the layers are nil; give a family of layers, such as dul.Density{}")
	}
	return built{f, layers}, nil
}

// built is a Func over layers.
type built struct {
	architecture Func
	layers       Layers
}

// Apply implements Network.
func (b built) Apply(s *model.Scope, x *graph.Node, outputs int) *graph.Node {
	return b.architecture.Build(Positions(b.layers, s), s, x, outputs)
}

// TakesReplicas says whether a network, or an architecture, takes inputs with a
// leading axis of replicas, see NewReplicas.
func TakesReplicas(network any) bool {
	switch n := network.(type) {
	case MLP, ResidualMLP, allSums:
		return true
	case ResidualSum:
		return !n.BatchNorm
	case Func:
		return n.Replicas
	case built:
		return n.architecture.Replicas
	}
	return false
}

// Positions returns layers whose Dense acts at each position of longer shapes,
//
//	[replicas..., batch, positions..., in] -> [replicas..., batch, positions..., units],
//
// where "replicas..." are the axes that params.Replicas returns for the graph. All
// positions share the parameters. Each has noise of its own, unless the family shares
// its noise between examples. What the layer adds to the objective for an example is
// the mean over its positions, as in a convolution; so are its energies.
//
// The result also has the methods of ConvLayers and Normalizer; Conv panics if
// the family has no convolution. Energies names the layers by their scopes below s.
func Positions(layers Layers, s *model.Scope) Layers { return positions{layers, s.Scope()} }

// positions applies layers at each position, and notes where each energy comes from.
type positions struct {
	layers Layers
	base   string // scope of the network
}

// Dense implements Layers.
func (p positions) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	dims := x.Shape().Dimensions
	lead := len(params.Replicas(x.Graph()))
	if len(dims) < lead+2 {
		panic(fmt.Errorf("the dense layer %s has an input of shape %s; it must be [batch, features] after %d axes of replicas", s.Scope(), x.Shape(), lead))
	}
	if len(dims) == lead+2 {
		return p.apply(s, x.Graph(), conv.Window{}, nil, func() *graph.Node { return p.layers.Dense(s, x, units) })
	}
	rows := graph.Reshape(x, slices.Concat(dims[:lead], []int{-1, dims[len(dims)-1]})...)
	y := p.apply(s, x.Graph(), conv.Window{}, dims[:lead+1], func() *graph.Node { return p.layers.Dense(s, rows, units) })
	if want := slices.Concat(rows.Shape().Dimensions[:lead+1], []int{units}); !slices.Equal(y.Shape().Dimensions, want) {
		panic(fmt.Errorf("layers of type %T gave the dense layer %s an output of shape %s for inputs of shape %s; want %v", p.layers, s.Scope(), y.Shape(), rows.Shape(), want))
	}
	return graph.Reshape(y, slices.Concat(dims[:len(dims)-1], []int{units})...)
}

// Conv implements ConvLayers.
func (p positions) Conv(s *model.Scope, x *graph.Node, c conv.Spec) *graph.Node {
	layers, has := p.layers.(ConvLayers)
	if !has {
		panic(noConvolution(p.layers))
	}
	return p.apply(s, x.Graph(), c.Window, nil, func() *graph.Node { return layers.Conv(s, x, c) })
}

// Norm is the batch normalisation of the family, if it has its own, such as
// baselines.SpectralNormed, else conv.BatchNorm.
func (p positions) Norm(s *model.Scope, x *graph.Node) *graph.Node {
	if own, has := p.layers.(Normalizer); has {
		return own.Norm(s, x)
	}
	return conv.BatchNorm(s, x)
}

// apply builds a layer, and adds its losses and energies to those of the graph, as
// means over the positions of each example: examples are [replicas..., batch], or nil
// where the layer's terms have one entry for each example already.
func (p positions) apply(s *model.Scope, g *graph.Graph, w conv.Window, examples []int, layer func() *graph.Node) *graph.Node {
	all := stochastic.LayerLossesOf(g)
	before := *all
	*all = stochastic.LayerLosses{}
	y := layer()
	own := *all
	*all = before
	if y == nil {
		panic(fmt.Errorf("layers of type %T returned nil for the layer %s; it must be the layer's output", p.layers, s.Scope()))
	}
	eachExample := func(term *graph.Node) *graph.Node { // [..., batch*positions, 1] -> [..., batch, 1]
		if examples == nil {
			return term
		}
		term = graph.Reshape(term, slices.Concat(examples, []int{-1})...)
		return graph.MulScalar(ops.SumColumns(term), 1/float64(term.Shape().Dim(-1)))
	}
	if own.KL != nil {
		all.AddKL(own.KL)
	}
	if own.LogLikelihood != nil {
		all.AddLogLikelihood(eachExample(own.LogLikelihood))
	}
	energies := Energies(g)
	name := strings.TrimPrefix(strings.TrimPrefix(s.Scope(), p.base), model.ScopeSeparator)
	for _, energy := range own.Energies {
		energy = eachExample(energy)
		all.AddEnergy(energy)
		energies = append(energies, LayerEnergy{Layer: name, Window: w, Energy: energy})
	}
	model.SetGraphParam(g, energiesKey, energies)
	return y
}
