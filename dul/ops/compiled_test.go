package ops_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/ops"
)

// What compilers get instead of the Go backend's forms has the same values and gradients.
func TestFormsForCompilers(t *testing.T) {
	rng := rand.New(rand.NewPCG(61, 67))
	for _, dims := range [][]int{{4, 4}, {3, 4, 4}} {
		t.Run(fmt.Sprint(dims), func(t *testing.T) {
			x := fixtures.Random(rng, dims...)
			out := fixtures.Evaluate(t, dtypes.Float64, fixtures.Values{"x": x}, nil, func(_ *model.Scope, in fixtures.Nodes) []*graph.Node {
				x := in["x"]
				square := func(y *graph.Node) *graph.Node { return graph.ReduceAllSum(graph.Mul(y, y)) }
				below, diagonal := ops.ComputedTriangle(x)
				lower := graph.Add(graph.Mul(x, below), diagonal)
				pairs := [][2]*graph.Node{
					{ops.PlainSum(x, -2), ops.SumRows(x)},
					{ops.PlainSum(x, -1), ops.SumColumns(x)},
					{lower, ops.UnitLowerTriangular(x)},
				}
				var nodes []*graph.Node
				for _, pair := range pairs {
					for _, y := range pair {
						nodes = append(nodes, y, graph.Gradient(square(y), x)[0])
					}
				}
				return nodes
			})
			for i := 0; i < len(out); i += 4 {
				fixtures.Compare(t, "value", out[i], out[i+2], 1e-14)
				fixtures.Compare(t, "gradient", out[i+1], out[i+3], 1e-14)
			}
		})
	}
}
