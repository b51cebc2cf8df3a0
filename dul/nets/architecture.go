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

// An Architecture is a network without its layers: an MLP, ResidualMLP, ResidualSum or ResNet whose Layers are nil, or
// a Func.
type Architecture interface {
	// Over returns the network with the given layers. It is an error if it already has layers, or if these lack a
	// method that it needs.
	Over(layers Layers) (Network, error)
}

// without returns an error if a network has layers already.
func without(layers ...Layers) error {
	for _, l := range layers {
		if l != nil {
			return fmt.Errorf("the network has Layers of type %T; leave them out, since others take their place", l)
		}
	}
	return nil
}

// Over implements Architecture. Over a Process it returns a ResidualMLP of as many layers, and hidden layers of different
// widths, or none, are an error.
func (m MLP) Over(layers Layers) (Network, error) {
	err := without(m.Layers)
	if _, is := layers.(Process); is && err == nil {
		if len(m.Widths) == 0 || slices.Min(m.Widths) != slices.Max(m.Widths) {
			return nil, fmt.Errorf("a Gaussian process needs hidden layers of one width, for residual connections, and nets.MLP has the Widths %v", m.Widths)
		}
		return ResidualMLP{Layers: layers, Head: layers, Width: m.Widths[0], Depth: len(m.Widths)}, nil
	}
	m.Layers = layers
	return m, err
}

// Over implements Architecture, with the same layers for the hidden part and the head.
func (m ResidualMLP) Over(layers Layers) (Network, error) {
	err := without(m.Layers, m.Head)
	m.Layers, m.Head = layers, layers
	return m, err
}

// Over implements Architecture.
func (m ResidualSum) Over(layers Layers) (Network, error) {
	err := without(m.Layers)
	m.Layers = layers
	return m, err
}

// Over implements Architecture. The layers must be ConvLayers.
func (r ResNet) Over(layers Layers) (Network, error) {
	c, has := layers.(ConvLayers)
	if !has {
		return nil, noConvolution(layers)
	}
	err := without(r.Layers)
	r.Layers = c
	return r, err
}

func noConvolution(layers Layers) error {
	return fmt.Errorf("layers of type %T have no convolution; give them the method Conv of nets.ConvLayers", layers)
}

// A Func is an Architecture that you write as a function, with the given layers and any operations and layers of GoMLX.
// It cannot have replicas.
type Func struct {
	// Name identifies a function of this module in stored results. A function from elsewhere, such as a notebook, needs
	// none: it is identified by the graph that it builds.
	Name string
	// Build maps inputs x to [batch, outputs] in the scope s. x is [batch, Shape...] for Floats, and [channels, batch,
	// height, width] for Pixels. If x has more axes, layers.Dense acts at each position (see Positions).
	// layers.(ConvLayers) has convolutions of images.
	Build func(layers Layers, s *model.Scope, x *graph.Node, outputs int) *graph.Node
}

// Over implements Architecture.
func (f Func) Over(layers Layers) (Network, error) {
	switch {
	case f.Build == nil:
		return nil, fmt.Errorf("nets.Func %q needs the function Build", f.Name)
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

// TakesReplicas implements the interface of the function TakesReplicas.
func (MLP) TakesReplicas() bool { return true }

// TakesReplicas implements the interface of the function TakesReplicas.
func (ResidualMLP) TakesReplicas() bool { return true }

// TakesReplicas implements the interface of the function TakesReplicas.
func (m ResidualSum) TakesReplicas() bool { return !m.BatchNorm }

// TakesReplicas reports whether a network has a method
//
//	TakesReplicas() bool
//
// that returns true, as NewReplicas needs. Such a network takes inputs with a leading axis of replicas. It must make
// its parameters by package params, so that they have this axis too; all layers of this project do.
func TakesReplicas(network Network) bool {
	n, says := network.(interface{ TakesReplicas() bool })
	return says && n.TakesReplicas()
}

// Positions returns layers whose Dense acts at each position of inputs with more axes,
//
//	[replicas..., batch, positions..., in] -> [replicas..., batch, positions..., units],
//
// where "replicas..." are the axes params.Facts.Replicas of the graph. All positions share the parameters, and each has its
// own noise unless the family shares noise between examples. The layer's log-likelihood of example n is the mean over
// its P positions, as in a convolution,
//
//	1/P sum_p log p_energy(h[n, p]),
//
// and so is its energy. Its KL counts once.
//
// The result also has Conv of ConvLayers, which panics if the family has no convolution, and Norm, a batch
// normalisation. Energies names the layers by their scopes below s. If layers are already a result of Positions, they
// are returned as they are.
func Positions(layers Layers, s *model.Scope) Layers {
	if p, done := layers.(positions); done {
		return p
	}
	return positions{layers, s.Scope()}
}

// positions applies layers at each position, and notes where each energy comes from.
type positions struct {
	layers Layers
	base   string // scope of the network
}

// Dense implements Layers.
func (p positions) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	dense := p.layers
	if s.Scope() == model.JoinPath(p.base, outputScope) {
		heads := headsOf(x.Graph())
		heads.built++
		if heads.without == s.Scope() {
			return x
		}
		if process, is := dense.(Process); is {
			if x.Rank() > len(params.FactsOf(x.Graph()).Replicas)+2 {
				panic(fmt.Errorf("layer %s of type %T, for inputs %s: a Gaussian process takes one vector for each input; flatten or average the positions before it", s.Scope(), dense, x.Shape()))
			}
			dense, heads.process = lastLayer{process}, true
		}
	}
	return p.noted(s, x, conv.Window{}, func() *graph.Node {
		dims, lead := x.Shape().Dimensions, len(params.FactsOf(x.Graph()).Replicas)
		if len(dims) < lead+2 {
			panic(fmt.Errorf("a dense layer takes [batch, features], or [batch, positions..., features], after %d axes of replicas", lead))
		}
		if len(dims) == lead+2 {
			return dense.Dense(s, x, units)
		}
		examples := dims[:lead+1]
		rows := graph.Reshape(x, slices.Concat(dims[:lead], []int{-1, dims[len(dims)-1]})...)
		y := meansOverPositions(x.Graph(), examples, func() *graph.Node { return dense.Dense(s, rows, units) })
		if y == nil {
			return nil
		}
		if want := slices.Concat(rows.Shape().Dimensions[:lead+1], []int{units}); !slices.Equal(y.Shape().Dimensions, want) {
			panic(fmt.Errorf("its output for the positions %s is %s; want %v", rows.Shape(), y.Shape(), want))
		}
		return graph.Reshape(y, slices.Concat(dims[:len(dims)-1], []int{units})...)
	})
}

// Conv implements ConvLayers.
func (p positions) Conv(s *model.Scope, x *graph.Node, c conv.Spec) *graph.Node {
	return p.noted(s, x, c.Window, func() *graph.Node {
		layers, has := p.layers.(ConvLayers)
		if !has {
			panic(noConvolution(p.layers))
		}
		return layers.Conv(s, x, c)
	})
}

// Norm is the batch normalisation of the family, if it has its own, such as
// baselines.SpectralNormed, else conv.BatchNorm.
func (p positions) Norm(s *model.Scope, x *graph.Node) *graph.Node {
	if own, has := p.layers.(normalizer); has {
		return own.Norm(s, x)
	}
	return conv.BatchNorm(s, x)
}

// noted builds a layer and notes its energies under its name.
func (p positions) noted(s *model.Scope, x *graph.Node, w conv.Window, build func() *graph.Node) *graph.Node {
	g := x.Graph()
	before, energies := len(stochastic.LayerLossesOf(g).Energies), Energies(g) // without those that other positions inside note
	y := BuildLayer(p.layers, s, x, build)
	name := strings.TrimPrefix(strings.TrimPrefix(s.Scope(), p.base), model.ScopeSeparator)
	for _, energy := range stochastic.LayerLossesOf(g).Energies[before:] {
		energies = append(energies, LayerEnergy{Layer: name, Window: w, Energy: energy})
	}
	*energiesOf(g) = energies
	return y
}

// meansOverPositions builds a layer on the positions of all examples, and adds its
// losses to the graph as means over the positions of each example: terms
// [replicas..., batch*positions, 1] as [replicas..., batch, 1]. The examples are
// [replicas..., batch].
func meansOverPositions(g *graph.Graph, examples []int, build func() *graph.Node) *graph.Node {
	losses := stochastic.LayerLossesOf(g)
	before := *losses
	*losses = stochastic.LayerLosses{}
	y := build()
	own := *losses
	*losses = before
	mean := func(term *graph.Node) *graph.Node {
		term = graph.Reshape(term, slices.Concat(examples, []int{-1})...)
		return graph.MulScalar(ops.SumColumns(term), 1/float64(term.Shape().Dim(-1)))
	}
	if own.KL != nil {
		losses.AddKL(own.KL)
	}
	if own.LogLikelihood != nil {
		losses.AddLogLikelihood(mean(own.LogLikelihood))
	}
	for _, energy := range own.Energies {
		losses.AddEnergy(mean(energy))
	}
	return y
}

// BuildLayer returns build(), the output of a layer of the given family in the scope s for inputs x. If build panics or
// returns nil, BuildLayer panics with an error that names the layer, its family and the shape of x. All networks of
// this package use it.
func BuildLayer(family any, s *model.Scope, x *graph.Node, build func() *graph.Node) *graph.Node {
	defer func() {
		if err, failed := recover().(error); failed {
			hint := ""
			if raw := params.Raw(s); len(raw) > 0 {
				hint = fmt.Sprintf("; the layer made variable %s without params.New, which gives a parameter the type and the replicas of the inputs and whose shape must not depend on the batch", raw[0])
			}
			panic(fmt.Errorf("layer %s of type %T, for inputs %s: %w%s", s.Scope(), family, x.Shape(), err, hint))
		}
	}()
	defer PanicWithError("building it")
	y := build()
	if y == nil {
		panic(errors.New("it returned nil; return the output"))
	}
	return y
}
