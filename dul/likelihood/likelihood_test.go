package likelihood_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/likelihood"
)

// labels are a constant [..., batch, 1].
func labels(like *graph.Node, values ...int32) *graph.Node {
	dims := like.Shape().Dimensions
	dims = append([]int{}, dims[len(dims)-2])
	return graph.Reshape(graph.Const(like.Graph(), values), append(dims, 1)...)
}

func TestGaussians(t *testing.T) {
	atMean := 0.5 * math.Log(2*math.Pi*4)
	for _, c := range []struct {
		name   string
		l      likelihood.Regression
		values fixtures.Values
	}{
		{"constant variance", likelihood.Gaussian{}, fixtures.Values{
			"outputs": fixtures.Matrix(2, 1, 1, -1), "target": fixtures.Matrix(2, 1, 3, -1), "/" + likelihood.LogVariance: fixtures.Matrix(1, 1, math.Log(4)),
		}},
		{"known variance", likelihood.KnownNoise{Std: 2}, fixtures.Values{"outputs": fixtures.Matrix(2, 1, 1, -1), "target": fixtures.Matrix(2, 1, 3, -1)}},
		{"heteroscedastic", likelihood.Heteroscedastic{}, fixtures.Values{
			"outputs": fixtures.Matrix(2, 2, 1, math.Log(4), -1, math.Log(4)), "target": fixtures.Matrix(2, 1, 3, -1),
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			nll := func(s *model.Scope, in fixtures.Nodes) *graph.Node { return c.l.NLL(s, in["outputs"], in["target"]) }
			out := fixtures.Evaluate(t, dtypes.Float64, c.values, nil, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
				return []*graph.Node{nll(s, in)}
			})[0]
			fixtures.Compare(t, "NLL", out, fixtures.Matrix(2, 1, atMean+0.5*4/4, atMean), 1e-15)
			fixtures.CheckGradient(t, c.values, nil, nll)
		})
	}
}

// The cross-entropy and its gradient, softmax minus the label, also of logits whose
// exponentials overflow.
func TestCrossEntropy(t *testing.T) {
	l := likelihood.Categorical{Classes: 3}
	values := fixtures.Values{"logits": fixtures.Matrix(3, 3, 0.5, -1, 2, 1e4, 0, -1e4, -1e4, 0, 1e4)}
	out := fixtures.Evaluate(t, dtypes.Float64, values, nil, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
		y := labels(in["logits"], 2, 0, 0)
		loss := l.NLL(s, in["logits"], y)
		return append(graph.Gradient(graph.ReduceAllSum(loss), in["logits"]), loss, likelihood.Correct(l, s, in["logits"], y))
	})
	sum := math.Exp(0.5) + math.Exp(-1) + math.Exp(2)
	p := func(z float64) float64 { return math.Exp(z) / sum }
	fixtures.Compare(t, "cross-entropy", out[1], fixtures.Matrix(3, 1, math.Log(sum)-2, 0, 2e4), 1e-15)
	fixtures.Compare(t, "its gradient", out[0], fixtures.Matrix(3, 3, p(0.5), p(-1), p(2)-1, 0, 0, 0, -1, 0, 1), 1e-15)
	fixtures.Compare(t, "correct", out[2], fixtures.Matrix(3, 1, 1, 1, 0), 0)
}

// Of several draws of the logits the negative log-likelihood is the mean, and the
// mean logits decide what is correct.
func TestDrawsOfLogits(t *testing.T) {
	l := likelihood.Categorical{Classes: 4}
	values := fixtures.Values{"logits": fixtures.Random(rand.New(rand.NewPCG(1, 1)), 3, 2, 4)}
	nll := func(s *model.Scope, in fixtures.Nodes) *graph.Node {
		return l.NLL(s, in["logits"], labels(in["logits"], 2, 0))
	}
	out := fixtures.Evaluate(t, dtypes.Float64, values, nil, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
		y := labels(in["logits"], 2, 0)
		var total, mean *graph.Node
		for k := range 3 {
			draw := graph.Reshape(graph.Slice(in["logits"], graph.AxisElem(k)), 2, 4)
			one := l.NLL(s, draw, y)
			if k == 0 {
				total, mean = one, draw
				continue
			}
			total, mean = graph.Add(total, one), graph.Add(mean, draw)
		}
		return []*graph.Node{nll(s, in), graph.DivScalar(total, 3), likelihood.Correct(l, s, in["logits"], y), likelihood.Correct(l, s, mean, y)}
	})
	fixtures.Compare(t, "negative log-likelihood", out[0], out[1], 1e-14)
	fixtures.Compare(t, "correct", out[2], out[3], 0)
	fixtures.CheckGradient(t, values, nil, nll)
}
