package nets_test

import (
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/nets"
)

// a_1 = (2x, -x), h = relu(a_1), a_2 = a_1 + (10 - h_1, 20 + 3 h_2).
func TestResidualSum(t *testing.T) {
	values := fixtures.Values{
		"x":                    fixtures.Matrix(3, 1, 1, -2, 0),
		"/net/input/weights":   fixtures.Matrix(1, 2, 2, -1),
		"/net/input/bias":      fixtures.Zeros(1, 2),
		"/net/block_0/weights": fixtures.Matrix(2, 2, -1, 0, 0, 3),
		"/net/block_0/bias":    fixtures.Matrix(1, 2, 10, 20),
	}
	network := nets.ResidualSum{Layers: baselines.Deterministic{}, Width: 2, Depth: 1}
	out := fixtures.Evaluate(t, dtypes.Float64, values, nil, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
		return []*graph.Node{network.Apply(s.In("net"), in["x"], 1), network.Sums().Apply(s.ResetVisited().In("net"), in["x"], 1)}
	})

	fixtures.Compare(t, "output", out[0], fixtures.Matrix(3, 1, 10, 6, 10), 1e-15)
	fixtures.Compare(t, "sums", out[1], fixtures.Matrix(3, 4,
		2, -1, 10, 19,
		-4, 2, 6, 28,
		0, 0, 10, 20), 1e-15)
}

// With batch normalisation in training, scale 1 and shift 0, the sum 0, 2, 4 of one unit becomes -s, 0, s with
// s = sqrt(3/2), and only what is positive goes on.
func TestResidualSumBatchNorm(t *testing.T) {
	values := fixtures.Values{
		"x":                       fixtures.Matrix(3, 1, 0, 1, 2),
		"/net/input/weights":      fixtures.Matrix(1, 1, 2),
		"/net/input/bias":         fixtures.Zeros(1, 1),
		"/net/block_0/weights":    fixtures.Matrix(1, 1, 1),
		"/net/block_0/bias":       fixtures.Zeros(1, 1),
		"/net/block_0/norm/scale": fixtures.Matrix(1, 1, 1),
		"/net/block_0/norm/shift": fixtures.Zeros(1, 1),
	}
	network := nets.ResidualSum{Layers: baselines.Deterministic{}, Width: 1, Depth: 1, BatchNorm: true}
	out := fixtures.Evaluate(t, dtypes.Float64, values, nil, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
		s.Store().SetTraining(in["x"].Graph(), true)
		return []*graph.Node{network.Apply(s.In("net"), in["x"], 1)}
	})[0]
	fixtures.Compare(t, "a_2", out, fixtures.Matrix(3, 1, 0, 2, 4+1.2247448713915890), 1e-5)
}

func TestResidualSumErrors(t *testing.T) {
	good := nets.ResidualSum{Layers: baselines.Deterministic{}, Width: 2, Depth: 1}
	flat, norm := good, good
	flat.Depth, norm.BatchNorm = 0, true
	for want, f := range map[string]func(s *model.Scope, x *graph.Node) *graph.Node{
		"depth 0":          func(s *model.Scope, x *graph.Node) *graph.Node { return flat.Apply(s, x, 1) },
		"3 outputs":        func(s *model.Scope, x *graph.Node) *graph.Node { return good.Apply(s, x, 3) },
		"without replicas": func(s *model.Scope, x *graph.Node) *graph.Node { return norm.Apply(s, graph.ExpandAxes(x, 0), 1) },
	} {
		_, err := model.CallOnce(fixtures.Backend(t), model.NewStore(), f, [][]float64{{1, 2}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want one with %q", err, want)
		}
	}
}
