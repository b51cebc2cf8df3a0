package toy

import (
	"context"
	"math"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/report"
)

// twice is a network that has nothing to train.
type twice struct{}

func (twice) Apply(_ *model.Scope, x *graph.Node, _ int) *graph.Node {
	return graph.MulScalar(x, 2)
}

func TestStretch(t *testing.T) {
	t.Setenv(environment.ConfigVariable, environment.GoSequential)
	backend, _ := must.Get2(environment.Open())(t)
	of := func(features nets.Network) (pairs report.Pairs, least, most float64) {
		t.Helper()
		steps := 0
		pairs = must.Get(stretch(t.Context(), backend, 1, Features{"f", features}, func(train.Progress) { steps++ }))(t)
		if steps == 0 || len(pairs.Inputs) != stretchPairs*(stretchPairs-1)/2 {
			t.Errorf("%d reports of progress, %d pairs", steps, len(pairs.Inputs))
		}
		least = math.Inf(1)
		for i, d := range pairs.Inputs {
			least, most = min(least, pairs.Features[i]/d), max(most, pairs.Features[i]/d)
		}
		return pairs, least, most
	}
	pairs, least, most := of(twice{})
	must.Near(t, least, 2, 1e-4, "the least stretch of twice the input")
	must.Near(t, most, 2, 1e-4, "the most stretch of twice the input")
	across := 0
	for _, a := range pairs.Across {
		if a {
			across++
		}
	}
	if across == 0 || across == len(pairs.Across) {
		t.Errorf("%d of %d pairs are of different classes", across, len(pairs.Across))
	}

	// What the bound promises: c for the first layer, 1 + c for each of the others.
	const bound, depth = 0.5, 3
	layers := baselines.SpectralNormed{Bound: bound}
	residual := nets.Headless{Network: nets.ResidualMLP{Layers: layers, Head: layers, Width: stretchWidth, Depth: depth}}
	if _, _, most := of(residual); most > 1.02*bound*math.Pow(1+bound, depth) {
		t.Errorf("bounded layers stretch by %v", most)
	}

	must.GetErr(Stretch(canceled(t), backend, 1, func(float64, string) {}, Features{"f", twice{}}))(t) // a cancelled run, and no error
}

func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
