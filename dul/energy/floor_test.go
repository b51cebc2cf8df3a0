package energy_test

import (
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/environment/must"
)

// descended is what gradient descent on the negative log-likelihood of inputs h
// makes of the log-variances of the features, from the given start.
func descended(t *testing.T, logLikelihood func(s *model.Scope, h *graph.Node) *graph.Node, h fixtures.Array, start, rate float64, steps int) []float64 {
	t.Helper()
	store := model.NewStore()
	var logVariances *model.Variable
	exec := must.Get(model.NewExec(fixtures.Backend(t), store, func(s *model.Scope, h, offset *graph.Node) *graph.Node {
		loss := graph.Neg(graph.ReduceAllMean(logLikelihood(s, h)))
		for v := range store.IterVariables() {
			if v.Name() == "log_variance" || v.Name() == "log_diagonals" {
				logVariances = v
			}
		}
		value := logVariances.NodeValue(h.Graph())
		step := graph.MulScalar(graph.Gradient(loss, value)[0], rate)
		logVariances.SetNodeValue(graph.Add(graph.Sub(value, step), offset))
		return loss
	}))(t)
	for range steps {
		loss := must.Get(exec.Call1(fixtures.Tensor(dtypes.Float32, h), float32(start)))(t)
		if l := fixtures.FromTensor(t, loss).Values[0]; math.IsNaN(l) || math.IsInf(l, 0) {
			t.Fatalf("the loss is %g", l)
		}
		start = 0
	}
	return fixtures.FromTensor(t, logVariances.MustValue()).Values
}

// The log-variance of a feature that is always zero ends at log 1e-4 instead of
// going on until its precision overflows; one below the floor of a feature that is
// not zero rises.
func TestDeadFeatures(t *testing.T) {
	images := fixtures.Zeros(2, 1, 2, 2) // [channels, batch, height, width]
	copy(images.Values, []float64{1, -1, 1, -1})
	dense := fixtures.Matrix(2, 2, 1, 0, -1, 0)
	window := conv.Same(1, 1)
	floor := math.Log(1e-4)
	for _, c := range []struct {
		name string
		h    fixtures.Array
		ll   func(s *model.Scope, h *graph.Node) *graph.Node
	}{
		{"LDL", dense, func(s *model.Scope, h *graph.Node) *graph.Node { return energy.LDL{}.Dense(s, h).LogLikelihood }},
		{"LDL convolution", images, func(s *model.Scope, h *graph.Node) *graph.Node { return energy.LDL{}.Conv(s, h, window).LogLikelihood }},
		{"mixture", dense, func(s *model.Scope, h *graph.Node) *graph.Node {
			return energy.Rank1Mixture{ZeroFactors: true}.Dense(s, h).LogLikelihood
		}},
		{"mixture of a convolution", images, func(s *model.Scope, h *graph.Node) *graph.Node {
			return energy.Rank1Mixture{ZeroFactors: true}.Conv(s, h, window).LogLikelihood
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := descended(t, c.ll, c.h, 0, 0.5, 800)
			if math.Abs(got[0]) > 1e-3 {
				t.Errorf("the log-variance of a feature of variance 1 is %g, want 0", got[0])
			}
			if got[1] > floor || got[1] < floor-0.5 {
				t.Errorf("the log-variance of a dead feature is %g, want about %g", got[1], floor)
			}
			if raised := descended(t, c.ll, c.h, floor-1, 1e-5, 40); !(raised[0] > floor-0.9) || raised[1] > floor-0.9 {
				t.Errorf("from below the floor log-variances go to %v, want the first to rise", raised)
			}
		})
	}
}
