package nets_test

import (
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/stochastic"
)

// The seed fixes parameters and noise.
func TestNewClassifier(t *testing.T) {
	logits := func(seed uint64) []float64 {
		c, err := nets.NewClassifier(fixtures.Backend(t), tiny(dul.Density{}), 3, seed, dtypes.Float64)
		if err != nil {
			t.Fatal(err)
		}
		if fromHost := c.Host != nil; fromHost != ops.IsGo(c.Backend) {
			t.Fatalf("noise comes from the host: %t on backend %s", fromHost, c.Backend.Name())
		}
		out, err := model.CallOnce(c.Backend, c.Store, func(root *model.Scope, x *graph.Node) *graph.Node {
			if c.Host != nil {
				stochastic.SetNoiseSource(x.Graph(), c.Host.NewBuffers())
			}
			return c.Logits(c.Scope(root), x)
		}, fixtures.Tensor(c.DType, fixtures.Zeros(3, 2, 8, 8).Map(func(float64) float64 { return 1 })))
		if err != nil {
			t.Fatal(err)
		}
		return fixtures.FromTensor(t, out).Values
	}
	if !slices.Equal(logits(1), logits(1)) {
		t.Error("two classifiers of one seed differ")
	}
	if slices.Equal(logits(1), logits(2)) {
		t.Error("classifiers of two seeds are equal")
	}
}

func TestNewClassifierOfOneClass(t *testing.T) {
	if _, err := nets.NewClassifier(fixtures.Backend(t), tiny(baselines.Deterministic{}), 1, 1, dtypes.Float32); err == nil {
		t.Error("no error for a single class")
	}
}
