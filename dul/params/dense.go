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
// [..., batch, in] -> [..., batch, units]. W starts Kaiming-normal, b at 0;
// both have role Weight.
func Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	in := x.Shape().Dim(-1)
	w := New(s, x, "weights", Weight, KaimingNormal(in), in, units)
	return ops.Affine(x, w, Bias(s, x, units))
}

// Bias returns the parameter b of a dense layer, [..., 1, units], starting at 0.
func Bias(s *model.Scope, like Like, units int) *graph.Node {
	return New(s, like, "bias", Weight, Constant(0), 1, units)
}
