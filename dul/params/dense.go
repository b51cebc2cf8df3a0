package params

import (
	"math"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/ops"
)

// KaimingNormal starts weights at draws from N(0, 2/fanIn), which keeps the
// variance of activations through ReLU layers (He et al. 2015).
func KaimingNormal(fanIn int) Initial { return Normal(0, math.Sqrt(2/float64(fanIn))) }

// Dense returns the deterministic linear map x W + b of a dense layer:
// [..., batch, in] -> [..., batch, units]. W starts Kaiming-normal, b as Bias
// says; both have role Weight.
func Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	in := x.Shape().Dim(-1)
	w := New(s, x, "weights", Weight, KaimingNormal(in), in, units)
	return ops.Affine(x, w, Bias(s, x, units))
}

// Bias returns the parameter b of a dense layer on inputs x, [..., 1, units]. It
// starts at draws from U(-1/sqrt(in), 1/sqrt(in)), as PyTorch's linear layers
// do. Zero would put the kinks of all ReLUs of a first layer at the input zero,
// where its activations, and with them the energy of the next layer's input,
// would then vanish.
func Bias(s *model.Scope, x *graph.Node, units int) *graph.Node {
	bound := 1 / math.Sqrt(float64(x.Shape().Dim(-1)))
	return New(s, x, "bias", Weight, Uniform(bound), 1, units)
}
