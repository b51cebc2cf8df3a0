package linalg_test

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/linalg"
)

func TestUnitLowerTriangular(t *testing.T) {
	l := fixtures.Array{Dims: []int{2, 3, 3}, Values: []float64{9, 9, 9, 1, 9, 9, 2, 3, 9, 8, 8, 8, 4, 8, 8, 5, 6, 8}}
	want := fixtures.Array{Dims: l.Dims, Values: []float64{1, 0, 0, 1, 1, 0, 2, 3, 1, 1, 0, 0, 4, 1, 0, 5, 6, 1}}
	of := func(_ *model.Scope, in fixtures.Nodes) *graph.Node { return linalg.UnitLowerTriangular(in["l"]) }
	out := fixtures.Evaluate(t, dtypes.Float64, fixtures.Values{"l": l}, nil, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
		return []*graph.Node{of(s, in)}
	})[0]
	fixtures.Compare(t, "L", out, want, 0)
	fixtures.CheckGradient(t, fixtures.Values{"l": l}, nil, of)
}
