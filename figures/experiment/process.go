package experiment

import (
	"fmt"
	"math"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/nets"
)

// headScope is where networks have their last layer.
const headScope = "/model/network/output"

// SNGP is the spectral-normalised neural Gaussian process (Liu et al. 2020): random features with a Laplace posterior,
// above layers whose spectral norm is bounded by 0.95, as in the regression of the DUE authors' code.
type SNGP struct {
	// LengthScale is the length scale of the kernel. 0 means the root of the number of inputs: distances of
	// standardised inputs grow with it, and the layers below stretch them little.
	LengthScale float64
}

// randomFeatures is the size of SNGP's head for inputs that are no images.
const randomFeatures = 256

// Hidden implements Process.
func (SNGP) Hidden() nets.Layers { return baselines.SpectralNormed{Bound: 0.95} }

// Draws implements Process: the mean over the posterior has a closed form, approximately.
func (SNGP) Draws() bool { return false }

// Head implements Process.
func (p SNGP) Head(t HeadTask) (Head, error) {
	var head baselines.SNGP
	switch {
	case t.Images: // orthogonal frequencies, as in the code with which the paper ran it
		head = baselines.SNGP{Examples: t.Examples, Orthogonal: true}
	case t.Classes > 0:
		head = baselines.SNGP{Examples: t.Examples, RandomFeatures: randomFeatures, Plain: true, FeatureScale: math.Sqrt(float64(randomFeatures) / 2)}
	default:
		head = baselines.RegressionSNGP(t.Examples, randomFeatures)
	}
	if head.LengthScale = p.LengthScale; p.LengthScale == 0 {
		head.LengthScale = math.Sqrt(float64(t.Inputs))
	}
	finish := func(store *model.Store, noise ...float64) error { return head.Posterior(store, headScope, noise...) }
	return Head{Layers: head, Finish: finish, KeepOutputs: true}, nil
}

// DUE is deterministic uncertainty estimation (van Amersfoort et al. 2021): a variational Gaussian process with inducing
// points, above layers whose spectral norm is bounded by 3. The points start from the features of the untrained
// network.
type DUE struct {
	Inducing int // the number of inducing points
}

// Check says which settings cannot be.
func (p DUE) Check() error {
	if p.Inducing < 1 {
		return fmt.Errorf("experiment.DUE has %d inducing points; at least 1 is needed", p.Inducing)
	}
	return nil
}

// Hidden implements Process.
func (DUE) Hidden() nets.Layers { return baselines.SpectralNormed{Bound: 3} }

// Draws implements Process.
func (DUE) Draws() bool { return true }

// Head implements Process.
func (p DUE) Head(t HeadTask) (Head, error) {
	var head baselines.DUE
	if t.Classes == 0 {
		head.Likelihood = baselines.Gaussian
	}
	features, width, err := t.Features()
	if err != nil {
		return Head{}, err
	}
	for i, f := range features {
		start, err := baselines.StartFrom(f, width, p.Inducing, t.Seeds[i])
		if err != nil {
			return Head{}, err
		}
		head.Start = append(head.Start, start)
	}
	return Head{Layers: head, Finish: func(store *model.Store, _ ...float64) error { return head.Check(store, headScope) }}, nil
}

// withHead is a task's network with a Gaussian process as its last layer. A multilayer perceptron becomes a residual
// one of as many layers. In any other network, the head takes the place of the dense layer at the scope "output".
func withHead(architecture nets.Architecture, p Process, head nets.Layers) (nets.Network, error) {
	if mlp, is := architecture.(nets.MLP); is {
		for _, width := range mlp.Widths {
			if width != mlp.Widths[0] {
				return nil, fmt.Errorf("a Gaussian process needs hidden layers of one width, and nets.MLP has the Widths %v: its network has residual connections", mlp.Widths)
			}
		}
		if len(mlp.Widths) == 0 {
			return nil, fmt.Errorf("a Gaussian process needs a network with hidden layers, and nets.MLP has no Widths")
		}
		return nets.ResidualMLP{Layers: p.Hidden(), Head: head, Width: mlp.Widths[0], Depth: len(mlp.Widths)}, nil
	}
	if residual, is := architecture.(nets.ResidualMLP); is {
		residual.Layers, residual.Head = p.Hidden(), head
		return residual, nil
	}
	if convolution, is := head.(nets.ConvLayers); is {
		if _, is := architecture.(nets.ResNet); is { // its only dense layer is the last
			return architecture.Over(convolution)
		}
		return architecture.Over(convHeaded{headed{p.Hidden(), head}, convolution})
	}
	return architecture.Over(headed{p.Hidden(), head})
}

// hasClosedForm says whether networks with a Gaussian process have their predictions in closed form.
func hasClosedForm(architecture nets.Architecture) bool {
	switch architecture.(type) {
	case nets.MLP, nets.ResidualMLP:
		return true
	}
	return false
}

// headed is a family whose dense layer at the scope "output" is of another family.
type headed struct{ hidden, head nets.Layers }

// Dense implements nets.Layers.
func (h headed) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	if s.Scope() == headScope {
		return h.head.Dense(s, x, units)
	}
	return h.hidden.Dense(s, x, units)
}

// convHeaded is headed with convolutions.
type convHeaded struct {
	headed
	conv nets.ConvLayers
}

// Conv implements nets.ConvLayers.
func (h convHeaded) Conv(s *model.Scope, x *graph.Node, c conv.Spec) *graph.Node {
	return h.conv.Conv(s, x, c)
}

// countedHead is a head that returns its features and counts how often it is built.
type countedHead struct {
	baselines.Headless
	count *int
}

// Dense implements nets.Layers.
func (h countedHead) Dense(_ *model.Scope, x *graph.Node, _ int) *graph.Node {
	*h.count++
	return x
}
