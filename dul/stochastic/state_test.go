package stochastic_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/environment/must"
)

// A source that is put where another one was goes on with its draws, in a graph
// of its own.
func TestHostGoesOnFromItsState(t *testing.T) {
	seeds := []uint64{5, 6}
	like := fixtures.Values{"x": fixtures.Zeros(2, 1, 1)}
	draws := func(h *stochastic.HostSampler, count int) []float64 {
		t.Helper()
		buffers := h.NewBuffers()
		c := fixtures.Compile(t, dtypes.Float32, like, buffers, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
			return []*graph.Node{
				stochastic.Draw(s, in["x"], stochastic.Gaussian(), 3, 5),
				stochastic.Draw(s, in["x"], stochastic.DropoutMask(0.3), 7, 1),
			}
		})
		var all []float64
		for i := range count {
			if i > 0 {
				must.Do(t, buffers.Refresh())
			}
			for _, draw := range c.Call(like) {
				all = append(all, draw.Values...)
			}
		}
		return all
	}

	uninterrupted := draws(stochastic.NewReplicatedHostSampler(seeds), 4)

	first := stochastic.NewReplicatedHostSampler(seeds)
	got := draws(first, 1)
	state := must.Get(first.State())(t)
	second := stochastic.NewReplicatedHostSampler([]uint64{0, 0})
	must.Do(t, second.SetState(state))
	if got = append(got, draws(second, 3)...); !slices.Equal(got, uninterrupted) {
		t.Error("the noise of a source that was stopped and put back differs from that of one that was not")
	}
}

func TestHostRefusesOtherStates(t *testing.T) {
	host := stochastic.NewReplicatedHostSampler([]uint64{1, 2})
	before := must.Get(host.State())(t)
	other := must.Get(stochastic.NewReplicatedHostSampler([]uint64{3, 4}).State())(t)
	damagedLast := slices.Concat(other[:len(other)/2], bytes.Repeat([]byte("x"), len(other)/2))
	for _, c := range []struct {
		name  string
		state []byte
	}{
		{"none", nil},
		{"cut short", other[:len(other)-1]},
		{"of one replica", other[:len(other)/2]},
		{"damaged in part", damagedLast},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := host.SetState(c.state); err == nil {
				t.Error("no error")
			}
			after := must.Get(host.State())(t)
			if !bytes.Equal(before, after) {
				t.Error("a refused state moved the streams")
			}
		})
	}
}
