package predict_test

import (
	"context"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	gomlx "github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/stochastic"
)

// counting is a network whose output is the number of its executions, with or
// without a draw of noise.
type counting struct{ noisy bool }

func (c counting) Apply(s *gomlx.Scope, x *graph.Node, _ int) *graph.Node {
	executions := s.Store().VariableWithValue("/executions", 0.0)
	count := graph.AddScalar(executions.NodeValue(x.Graph()), 1)
	executions.SetNodeValue(count)
	y := graph.BroadcastToDims(graph.Reshape(count, 1, 1), x.Shape().Dim(0), 1)
	if c.noisy {
		noise := stochastic.Draw(s, y, stochastic.Gaussian(), y.Shape().Dim(0), 1)
		y = graph.Add(y, graph.MulScalar(noise, 0))
	}
	return y
}

// Samples of a network without noise are one execution, and do not share memory.
func TestNetworkWithoutNoiseIsExecutedOnce(t *testing.T) {
	for noisy, want := range map[bool][]float64{false: {1, 1, 1}, true: {1, 2, 3}} {
		r, err := nets.NewRegression(fixtures.Backend(t), counting{noisy}, []uint64{1}, false, dtypes.Float64)
		if err != nil {
			t.Fatal(err)
		}
		draws, err := predict.Regression(context.Background(), r, []float64{0, 0}, 1, 3)
		if err != nil {
			t.Fatal(err)
		}
		for m, mean := range draws.Mean {
			if mean[0] != want[m] || mean[1] != want[m] {
				t.Errorf("noise %t: sample %d is of execution %v, want %v", noisy, m, mean, want[m])
			}
			mean[0], mean[1] = -1, -1
		}
	}
}

// A network with one output for each image shows that of its own batches too.
func TestClassifierWithoutNoise(t *testing.T) {
	c := classifier(t, baselines.Deterministic{})
	one := classify(t, c, photos(5), predict.Sampling{Samples: 1, BatchSize: 2})
	many := classify(t, c, photos(5), predict.Sampling{Samples: 6, BatchSize: 2, PerExecution: 2, KeepLogits: true})
	fixtures.Compare(t, "probabilities", fixtures.Matrix(5, classes, many.Probabilities...), fixtures.Matrix(5, classes, one.Probabilities...), 1e-14)
	if len(many.Logits) != 6 || len(many.Logits[5]) != 5*classes {
		t.Errorf("%d samples of logits", len(many.Logits))
	}
}
