package stochastic_test

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/stochastic"
)

// The weighted log-likelihood is the sum of the layers' times the weights, which
// are a constant for the gradient.
func TestWeightLogLikelihood(t *testing.T) {
	values := fixtures.Values{"a": fixtures.Matrix(3, 1, 1, -2, 4), "b": fixtures.Matrix(3, 1, 0.5, 3, -1), "w": fixtures.Matrix(3, 1, 2, 0, 0.25)}
	out := fixtures.Evaluate(t, dtypes.Float64, values, nil, func(_ *model.Scope, in fixtures.Nodes) []*graph.Node {
		losses := stochastic.LayerLossesOf(in["a"].Graph())
		losses.AddLogLikelihood(in["a"])
		losses.AddLogLikelihood(in["b"])
		losses.WeightLogLikelihood(in["w"])
		sum := graph.ReduceAllSum(losses.LogLikelihood)
		return append([]*graph.Node{losses.LogLikelihood}, graph.Gradient(sum, in["a"], in["b"], in["w"])...)
	})
	fixtures.Compare(t, "log-likelihood", out[0], fixtures.Matrix(3, 1, 3, 0, 0.75), 1e-15)
	for i, name := range []string{"a", "b"} {
		fixtures.Compare(t, "gradient of "+name, out[1+i], values["w"], 1e-15)
	}
	fixtures.Compare(t, "gradient of the weights", out[3], fixtures.Zeros(3, 1), 0)
}

func TestWeightsWithoutALogLikelihood(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	(&stochastic.LayerLosses{}).WeightLogLikelihood(nil)
}
