package train_test

import (
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/train"
)

// The expected cross entropy is the mean of those of the draws.
func TestExpectedCrossEntropy(t *testing.T) {
	values := fixtures.Values{"logits": fixtures.Random(rand.New(rand.NewPCG(1, 1)), 3, 2, 4)}
	labels := func(in fixtures.Nodes) *graph.Node { return graph.Const(in["logits"].Graph(), []int32{2, 0}) }
	out := fixtures.Evaluate(t, dtypes.Float64, values, nil, func(_ *model.Scope, in fixtures.Nodes) []*graph.Node {
		nll, mean := train.ExpectedCrossEntropy(in["logits"], labels(in))
		var wantNLL, wantMean *graph.Node
		for s := range 3 {
			draw := graph.Reshape(graph.Slice(in["logits"], graph.AxisElem(s)), 2, 4)
			one, same := train.ExpectedCrossEntropy(draw, labels(in))
			if same != draw {
				t.Error("the mean of one draw is another node")
			}
			if s == 0 {
				wantNLL, wantMean = one, draw
				continue
			}
			wantNLL, wantMean = graph.Add(wantNLL, one), graph.Add(wantMean, draw)
		}
		return []*graph.Node{nll, graph.DivScalar(wantNLL, 3), mean, graph.DivScalar(wantMean, 3)}
	})
	fixtures.Compare(t, "negative log-likelihood", out[0], out[1], 1e-14)
	fixtures.Compare(t, "mean logits", out[2], out[3], 1e-14)
	fixtures.CheckGradient(t, values, nil, func(_ *model.Scope, in fixtures.Nodes) *graph.Node {
		nll, _ := train.ExpectedCrossEntropy(in["logits"], labels(in))
		return nll
	})
}
