package nets

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
)

// A Network maps [..., batch, features] to [..., batch, outputs]; MLP is one.
type Network interface {
	Apply(s *model.Scope, x *graph.Node, outputs int) *graph.Node
}

// A Regression is a model of a real target with Gaussian noise of constant,
// trained variance, y ~ N(network(x), sigma^2): a network, its parameters and
// its source of noise. Training makes one, prediction uses it.
type Regression struct {
	Network Network
	Backend compute.Backend
	Store   *model.Store
	// Replicas is the number of replicas, 0 for a model without a replica axis.
	Replicas int
	// Host is the source of noise.
	Host *stochastic.HostSampler
	// DType is the type of parameters and activations.
	DType dtypes.DType
}

// NewRegression returns an untrained model for one seed, or, with replicated,
// for as many replicas as there are seeds. Noise comes from the host on all
// backends: these networks need little of it, and a replica's then does not
// depend on which others share its graph, nor on the backend.
func NewRegression(backend compute.Backend, network Network, seeds []uint64, replicated bool, dtype dtypes.DType) (*Regression, error) {
	store, err := newStore(seeds)
	if err != nil {
		return nil, err
	}
	r := &Regression{Network: network, Backend: backend, Store: store, Host: stochastic.NewHostSampler(seeds[0]), DType: dtype}
	if replicated {
		r.Replicas, r.Host = len(seeds), stochastic.NewReplicatedHostSampler(seeds)
	}
	return r, nil
}

// Scope is the scope of the model's parameters below the store's root.
func (r *Regression) Scope(root *model.Scope) *model.Scope { return root.In("model") }

// Mean is the predicted mean of the target, [..., batch, 1], with fresh noise.
// s is the model's Scope.
func (r *Regression) Mean(s *model.Scope, x *graph.Node) *graph.Node {
	return r.Network.Apply(s.In("network"), x, 1)
}

// LogVariance is log sigma^2, [..., 1, 1], starting at 0 ("we treat the output
// variance as a trainable parameter", appendix of the paper). s is the model's Scope.
func (r *Regression) LogVariance(s *model.Scope, like params.Like) *graph.Node {
	return params.New(s, like, "observation_log_variance", params.Likelihood, params.Constant(0), 1, 1)
}
