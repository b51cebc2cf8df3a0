package params

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
)

// CheckDense panics, as GoMLX's graph-building functions do, if a dense layer cannot
// be built: it needs inputs [..., batch, features] of a type of parameters (CheckType)
// with at least one feature, and at least one unit. layer is the layer's name in the
// message, such as "dul.Density".
func CheckDense(layer string, s *model.Scope, x *graph.Node, units int) {
	shape := x.Shape()
	switch err := CheckType(shape.DType); {
	case err != nil:
		panic(fmt.Errorf("%s at %s: inputs of shape %s: %w", layer, s.Scope(), shape, err))
	case shape.Rank() < 2 || shape.Dim(-1) < 1:
		panic(fmt.Errorf("%s at %s: inputs of shape %s; a dense layer takes [batch, features], with at least one feature", layer, s.Scope(), shape))
	case units < 1:
		panic(fmt.Errorf("%s at %s: %d units on inputs of shape %s; a layer has at least one", layer, s.Scope(), units, shape))
	}
}

// CheckType returns an error if parameters cannot have a type: they are Float32 or
// Float64.
func CheckType(dtype dtypes.DType) error {
	if dtype != dtypes.Float32 && dtype != dtypes.Float64 {
		return fmt.Errorf("the type is %s; it must be %s or %s", dtype, dtypes.Float32, dtypes.Float64)
	}
	return nil
}
