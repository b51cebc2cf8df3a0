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

func TestMLPRejectsBadWidths(t *testing.T) {
	_, err := model.CallOnce(fixtures.Backend(t), model.NewStore(), func(s *model.Scope, x *graph.Node) *graph.Node {
		return nets.MLP{Layers: baselines.Deterministic{}, Widths: []int{3, 0}}.Apply(s, x, 1)
	}, fixtures.Tensor(dtypes.Float64, fixtures.Zeros(2, 2)))
	if err == nil || !strings.Contains(err.Error(), "/hidden_1/weights would have the shape [3 0]") {
		t.Errorf("the error is %v", err)
	}
}
