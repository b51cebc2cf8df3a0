package stochastic_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/environment/must"
)

// seeded are the draws of a graph for so many examples, from sample and example on: by rows, by columns, and shared.
func seeded(t *testing.T, dtype dtypes.DType, seed uint64, replicas []uint64, examples, copies, sample, example int) []fixtures.Array {
	t.Helper()
	replicated := len(replicas) > 1
	lead := []int{}
	if replicated {
		lead = append(lead, len(replicas))
	}
	source := stochastic.NewSeeded(seed, replicas, replicated)
	draw := func(n, copies int) func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
		return func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
			var out []*graph.Node
			for range copies {
				out = append(out, stochastic.Draw(s, in["x"], stochastic.Uniform01(), n, 2), // a row for each example
					stochastic.Draw(s, in["x"], stochastic.Gaussian(), 2, 3*n), // three columns for each
					stochastic.Draw(s, in["x"], stochastic.DropoutMask(0.5), 4, 5))
			}
			return out
		}
	}
	like := fixtures.Values{"x": fixtures.Zeros(append(lead, 1, 1)...)}
	fixtures.Compile(t, dtype, like, source.Trace(examples+1), draw(examples+1, 1)).Call(like)
	buffers := source.NewBuffers(copies)
	source.StartAt(sample, example)
	c := fixtures.Compile(t, dtype, like, buffers, draw(examples, copies))
	out := c.Call(like)
	must.Do(t, buffers.Refresh())
	if again := c.Call(like); fmt.Sprint(again) != fmt.Sprint(out) {
		t.Errorf("a second execution at the same place draws %v, the first %v", again, out)
	}
	return out
}

// What is drawn for an example and a sample is the same in every graph, and every draw is another.
func TestSeededDraws(t *testing.T) {
	all := seeded(t, dtypes.Float64, 7, []uint64{1}, 5, 2, 10, 20)
	seen := map[string]bool{}
	for k := range 2 {
		for e := range 5 {
			one := seeded(t, dtypes.Float64, 7, []uint64{1}, 1, 1, 10+k, 20+e)
			got := all[3*k].Values[2*e : 2*e+2]
			if !slices.Equal(got, one[0].Values) {
				t.Errorf("sample %d, example %d, by rows: %v, alone %v", k, e, got, one[0].Values)
			}
			wide := all[3*k+1].Values
			columns := slices.Concat(wide[3*e:3*e+3], wide[15+3*e:15+3*e+3])
			if !slices.Equal(columns, one[1].Values) {
				t.Errorf("sample %d, example %d, by columns: %v, alone %v", k, e, columns, one[1].Values)
			}
			if !slices.Equal(all[3*k+2].Values, one[2].Values) {
				t.Errorf("sample %d, shared: %v, alone %v", k, all[3*k+2].Values, one[2].Values)
			}
			for _, values := range [][]float64{got, columns} {
				if key := fmt.Sprint(values); seen[key] {
					t.Errorf("sample %d, example %d: %v was drawn before", k, e, values)
				} else {
					seen[key] = true
				}
			}
		}
	}
	if slices.Equal(all[2].Values, all[5].Values) {
		t.Error("two samples share their noise")
	}
	// Replicas by their seeds, and the seed.
	two := seeded(t, dtypes.Float64, 7, []uint64{2, 1}, 5, 2, 10, 20)
	for i, draw := range all {
		half := len(draw.Values)
		if !slices.Equal(two[i].Values[half:], draw.Values) || slices.Equal(two[i].Values[:half], draw.Values) {
			t.Errorf("draw %d of replicas: %v, alone %v", i, two[i].Values, draw.Values)
		}
	}
	if other := seeded(t, dtypes.Float64, 8, []uint64{1}, 5, 2, 10, 20); slices.Equal(other[0].Values, all[0].Values) {
		t.Error("another seed draws the same")
	}
	// As it was in the first version: results may have been kept by their seed.
	want := []float64{0.04438984394073486, 0.9869266748428345}
	if got := seeded(t, dtypes.Float32, 7, []uint64{1}, 1, 1, 0, 0)[0].Values; !slices.Equal(got, want) {
		t.Errorf("the first draw is %v, want %v", got, want)
	}
}
