package toy

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/internal/figtest"
)

// twice is a network that has nothing to train.
type twice struct{}

func (twice) Apply(_ *model.Scope, x *graph.Node, _ int) *graph.Node {
	return graph.MulScalar(x, 2)
}

func TestStretch(t *testing.T) {
	t.Setenv(environment.ConfigVariable, environment.GoSequential)
	backend, _ := must.Get2(environment.Open())(t)
	of := func(features nets.Network) (p pairs, least, most float64) {
		t.Helper()
		steps := 0
		p = must.Get(stretch(t.Context(), backend, 1, Features{"f", features}, func(train.Progress) { steps++ }))(t)
		if steps == 0 || len(p.inputs) != stretchPairs*(stretchPairs-1)/2 {
			t.Errorf("%d reports of progress, %d pairs", steps, len(p.inputs))
		}
		least = math.Inf(1)
		for i, d := range p.inputs {
			least, most = min(least, p.features[i]/d), max(most, p.features[i]/d)
		}
		return p, least, most
	}
	p, least, most := of(twice{})
	must.Near(t, least, 2, 1e-4, "the least stretch of twice the input")
	must.Near(t, most, 2, 1e-4, "the most stretch of twice the input")
	across := 0
	for _, a := range p.across {
		if a {
			across++
		}
	}
	if across == 0 || across == len(p.across) {
		t.Errorf("%d of %d pairs are of different classes", across, len(p.across))
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

func TestDrawStretch(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	network := pairs{title: "network", inputs: []float64{1, 1}, features: []float64{0.5, 3}, across: []bool{false, true}}
	for range 200 {
		d := 4 * rng.Float64()
		network.inputs = append(network.inputs, d)
		network.features = append(network.features, d*(0.5+2.5*rng.Float64()))
		network.across = append(network.across, rng.IntN(2) == 1)
	}
	same := network
	same.across = slices.Repeat([]bool{false}, len(network.inputs))
	f, err := drawStretch([]pairs{network, same})
	figtest.Golden(t)(f, err)
	if got := f.Panels[0][0].Title.Text; !strings.HasSuffix(got, "stretched 0.5 to 3 times") {
		t.Errorf("title %q", got)
	}
}
