package nets

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/stochastic"
)

// ConvLayers is what an image network needs of a family of layers.
type ConvLayers interface {
	Layers
	// Conv maps images [channels, batch, height, width] to images
	// [Filters, batch, Out(height), Out(width)].
	Conv(s *model.Scope, x *graph.Node, c conv.Spec) *graph.Node
}

// An ImageNetwork maps images [channels, batch, height, width] to logits
// [batch, classes]; ResNet is one.
type ImageNetwork interface {
	Apply(s *model.Scope, x *graph.Node, classes int) *graph.Node
}

// A Classifier is a model of the class of an image,
// p(y | x) = softmax(network(x))_y: a network, its parameters and its source of
// noise. Training makes one, prediction uses it.
type Classifier struct {
	Network ImageNetwork
	Backend compute.Backend
	Store   *model.Store
	// Host is the source of noise; nil draws noise in the graph.
	Host *stochastic.HostSampler
	// Classes is the number of classes.
	Classes int
	// DType is the type of parameters and activations.
	DType dtypes.DType
}

// NewClassifier returns an untrained model. The seed fixes its initial
// parameters and its noise, which comes from the host on the pure Go backend and
// from the graph on all others.
func NewClassifier(backend compute.Backend, network ImageNetwork, classes int, seed uint64, dtype dtypes.DType) (*Classifier, error) {
	if classes < 2 {
		return nil, fmt.Errorf("a classifier of %d classes was asked for; at least 2 are needed", classes)
	}
	store, err := newStore([]uint64{seed})
	if err != nil {
		return nil, err
	}
	c := &Classifier{Network: network, Backend: backend, Store: store, Classes: classes, DType: dtype}
	if ops.IsGo(backend) {
		c.Host = stochastic.NewHostSampler(seed)
	}
	return c, nil
}

// Scope is the scope of the model's parameters below the store's root.
func (c *Classifier) Scope(root *model.Scope) *model.Scope { return root.In("model") }

// Logits are the unnormalised log-probabilities of the classes, [batch,
// classes], with fresh noise, of images [channels, batch, height, width]. s is
// the model's Scope.
func (c *Classifier) Logits(s *model.Scope, x *graph.Node) *graph.Node {
	return c.Network.Apply(s.In("network"), x, c.Classes)
}
