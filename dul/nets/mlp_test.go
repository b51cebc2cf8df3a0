package nets_test

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/nets"
	"densityuncertainty/environment/must"
)

// h_0 = 2x, h_1 = h_0 + ReLU(-h_0), output 3 h_1: 6 max(x, 0).
func TestResidualMLP(t *testing.T) {
	values := fixtures.Values{
		"x":                    fixtures.Matrix(3, 1, 1, -2, 0),
		"/net/input/weights":   fixtures.Matrix(1, 1, 2),
		"/net/input/bias":      fixtures.Zeros(1, 1),
		"/net/block_0/weights": fixtures.Matrix(1, 1, -1),
		"/net/block_0/bias":    fixtures.Zeros(1, 1),
		"/net/output/weights":  fixtures.Matrix(1, 1, 3),
		"/net/output/bias":     fixtures.Zeros(1, 1),
	}
	out := fixtures.Evaluate(t, dtypes.Float64, values, nil, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
		network := nets.ResidualMLP{Layers: baselines.Deterministic{}, Head: baselines.Deterministic{}, Width: 1, Depth: 1}
		return []*graph.Node{network.Apply(s.In("net"), in["x"], 1)}
	})[0]
	fixtures.Compare(t, "6 max(x, 0)", out, fixtures.Matrix(3, 1, 6, 0, 0), 1e-15)
}

func TestResidualMLPErrors(t *testing.T) {
	plain := nets.ResidualMLP{Layers: baselines.Deterministic{}, Head: baselines.Deterministic{}, Width: 2, Depth: 1}
	flat := plain
	flat.Depth = 0
	for want, f := range map[string]func(s *model.Scope, x *graph.Node) *graph.Node{
		"has no moments": func(s *model.Scope, x *graph.Node) *graph.Node { m, _ := plain.Moments(s, x, 1); return m },
		"depth 0":        func(s *model.Scope, x *graph.Node) *graph.Node { return flat.Apply(s, x, 1) },
	} {
		must.GetErr(model.CallOnce(fixtures.Backend(t), model.NewStore(), f, [][]float64{{1, 2}}))(t, want)
	}
}

// |x_0 - x_1| as a network: ReLU(x_0 - x_1) + ReLU(x_1 - x_0), and no ReLU
// after the output.
func TestMLP(t *testing.T) {
	values := fixtures.Values{
		"x":                     fixtures.Matrix(3, 2, 3, 1, 1, 3, 2, 2),
		"/net/hidden_0/weights": fixtures.Matrix(2, 2, 1, -1, -1, 1),
		"/net/hidden_0/bias":    fixtures.Zeros(1, 2),
		"/net/hidden_1/weights": fixtures.Matrix(2, 1, 1, 1),
		"/net/hidden_1/bias":    fixtures.Zeros(1, 1),
		"/net/output/weights":   fixtures.Matrix(1, 1, -1),
		"/net/output/bias":      fixtures.Zeros(1, 1),
	}
	out := fixtures.Evaluate(t, dtypes.Float64, values, nil, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
		network := nets.MLP{Layers: baselines.Deterministic{}, Widths: []int{2, 1}}
		return []*graph.Node{network.Apply(s.In("net"), in["x"], 1)}
	})[0]
	fixtures.Compare(t, "-|x_0 - x_1|", out, fixtures.Matrix(3, 1, -2, -2, 0), 1e-15)
}
